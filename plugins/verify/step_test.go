package verify_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/plugins/verify"
	"github.com/sentinel-runtime/sentinel/sdk"
	"github.com/sentinel-runtime/sentinel/sdk/sdktest"
)

func TestVerify(t *testing.T) {
	const result = `{"verification_status":"failing","checks":[],"summary":{},"feedback_for_agent":["ac-1: no"]}`
	h := sdktest.New(t).OK("sentinel_command", result)
	out, fault := sdktest.Run(t, sdktest.Only(verify.Step()), "verify", `{"ticketId":"T-1","branchName":"fix","token":3}`, h)
	if fault != nil || out.Get("verification_status").StringOr("") != "failing" {
		t.Errorf("%s %v", out, fault)
	}
	want := []string{`{"command":"verify/run","params":{"branch_name":"fix","ticket_id":"T-1","token":3}}`}
	if diff := cmp.Diff(want, h.Requests("sentinel_command")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// V3: what could not be executed is an error that is retried, with the delay of the
// ticket's strategy.
func TestInfrastructureFaultIsRetried(t *testing.T) {
	h := sdktest.New(t).OK("sentinel_command", `{"verification_status":"blocked","checks":[],"summary":{},"blocked":{"reason":"infrastructure","message":"connection refused","delayMs":2000}}`)
	_, fault := sdktest.Run(t, sdktest.Only(verify.Step()), "verify", `{"ticketId":"T-1"}`, h)
	if fault == nil || fault.Code != sdk.CodeUnavailable || fault.RetryAfterMs != 2000 || fault.Permanent || !strings.Contains(fault.Message, "connection refused") {
		t.Errorf("%+v", fault)
	}
	h = sdktest.New(t).OK("sentinel_command", `{"verification_status":"blocked","checks":[],"summary":{},"blocked":{"reason":"manual","message":"a person has to check"}}`)
	if out, fault := sdktest.Run(t, sdktest.Only(verify.Step()), "verify", `{"ticketId":"T-1"}`, h); fault != nil || out.Get("verification_status").StringOr("") != "blocked" {
		t.Errorf("%s %v: what a person decides is a result", out, fault)
	}
	if _, fault := sdktest.Run(t, sdktest.Only(verify.Step()), "verify", `{}`, sdktest.New(t)); fault == nil || fault.Field != "ticketId" {
		t.Errorf("no ticket: %v", fault)
	}
}
