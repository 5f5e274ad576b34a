package emit_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/plugins/emit"
	"github.com/sentinel-runtime/sentinel/sdk/sdktest"
)

func TestEmit(t *testing.T) {
	for fields, request := range map[string]string{
		`{"event":"a:b","data":{"x":[1]}}`: `{"data":{"x":[1]},"event":"a:b"}`,
		`{"event":"a:b","data":null}`:      `{"data":null,"event":"a:b"}`,
		`{"event":"a:b"}`:                  `{"event":"a:b"}`,
	} {
		h := sdktest.New(t).OK("sentinel_emit", `{"id":"e1"}`)
		out, fault := sdktest.Run(t, sdktest.Only(emit.Step()), "emit", fields, h)
		if fault != nil || out.String() != `{"id":"e1","event":"a:b"}` {
			t.Errorf("%s: %s %v", fields, out, fault)
		}
		if diff := cmp.Diff([]string{request}, h.Requests("sentinel_emit")); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	if _, fault := sdktest.Run(t, sdktest.Only(emit.Step()), "emit", `{}`, sdktest.New(t)); fault == nil || fault.Field != "event" {
		t.Errorf("no event: %v", fault)
	}
}
