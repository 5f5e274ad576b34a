package validation_test

import (
	"context"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/validation"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// TestCheckEndsWithCaller: a check stops at the step at which its caller goes away.
func TestCheckEndsWithCaller(t *testing.T) {
	types, err := sentinels.NewTypeSet([]sentinels.TypeSpec{{Type: "llm", Fields: []byte(`{"type":"object","properties":{"model":{"type":"string"}}}`)}})
	if err != nil {
		t.Fatal(err)
	}
	def, problems := sentinels.Decode([]byte(`{"name":"n","steps":[`+strings.Repeat(`{"type":"llm","model":"m"},`, 999)+`{"type":"llm","model":"m"}]}`), sentinels.DecodeOptions{Types: types})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	ctx, leave := context.WithCancel(t.Context())
	asked := 0
	c := validation.Checker{Commands: func() *command.Registry { return nil }, Model: func(string) (*sentinels.Problem, bool) {
		if asked++; asked == 10 {
			leave()
		}
		return nil, true
	}}
	if c.Definition(ctx, def, types); asked != 10 {
		t.Errorf("%d of 1000 steps were checked, and the caller left at the 10th", asked)
	}
}
