package step

import (
	"context"
	"encoding/json"

	"github.com/sentinel-runtime/sentinel/runtime/internal/cond"
	"github.com/sentinel-runtime/sentinel/runtime/internal/failure"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// callEval handles a call of ABI clause A6.6: it evaluates an expression.
func (a *attempt) callEval(ctx context.Context, c *call) (callEnd, error) {
	var req struct {
		Expression string                     `json:"expression"`
		Vars       map[string]json.RawMessage `json:"vars"`
		Strict     bool                       `json:"strict"`
	}
	if e := parse(c, &req); e != nil {
		return callEnd{err: e}, nil
	}
	outer := ConditionVars(a.run.Lookup(a.sc, a.retry))
	vars := func(name string) (json.RawMessage, bool) {
		if v, ok := req.Vars[name]; ok {
			return v, true
		}
		return outer(name)
	}
	v, err := a.svc.Conditions.Eval(ctx, a.run.EmitsFor(), req.Expression, vars)
	if err != nil {
		if RunEnding(ctx) {
			return callEnd{}, context.Cause(ctx)
		}
		return callEnd{err: failure.From(err, abi.Plugin)}, nil
	}
	if req.Strict && (v.JSON == nil || v.NotFinite) {
		return callEnd{err: noValue(v.NotFinite, req.Expression, vars)}, nil
	}
	end, err := reply(struct {
		Value  json.RawMessage `json:"value,omitempty"`
		Truthy bool            `json:"truthy"`
	}{v.JSON, v.Truthy})
	end.body.Reads = a.svc.ReadsIn(req.Expression, vars)
	return end, err
}

// noValue returns the error of an expression whose value JSON does not have. The usual cause is a part that is missing:
// paths and calls are optional in an expression, so that it has no error of its own.
func noValue(notFinite bool, source string, vars cond.Vars) *abi.Error {
	e := &abi.Error{Code: abi.BadFields, Permanent: true, Message: "the value is undefined or a function", Hint: "use ?? null for a missing value"}
	if notFinite {
		e.Message = "the value is NaN or an infinity"
	}
	e.Message += ", which JSON does not have"
	if missing := missingIn(source, vars); missing != "" {
		e.Message += ": " + missing + " is undefined"
		e.Hint = "say what is used where it is missing, such as (" + missing + " ?? 0)"
	}
	return e
}
