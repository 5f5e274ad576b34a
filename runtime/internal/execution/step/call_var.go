package step

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/sentinel-runtime/sentinel/runtime/internal/failure"
	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/sentinels/reference"
)

// callVar handles a call of ABI clause A6.7: it reads or sets variables.
func (a *attempt) callVar(_ context.Context, c *call) (callEnd, error) {
	var req struct {
		Get string                     `json:"get"`
		Set map[string]json.RawMessage `json:"set"`
	}
	if e := parseOutline(c, &req); e != nil {
		return callEnd{err: e}, nil
	}
	if req.Set != nil {
		size := a.sc.Size()
		for name, v := range req.Set {
			if slices.Contains(sentinels.Reserved, name) {
				return callEnd{err: failure.New(abi.BadFields, "variable %q is reserved", name)}, nil
			}
			v = journal.Compact(a.svc.Redact.JSON(c.outline.Insert(v))) // as an output has it
			req.Set[name] = v
			if size += int64(len(v)); size > a.run.VariableLimit() {
				return callEnd{err: memoryError(a.run, "variables would take %d bytes or more", size)}, nil
			}
		}
		end, err := reply(struct{}{})
		if err == nil {
			end.body.Sets, end.body.SetLarge, err = a.svc.Values.KeepLarge(req.Set)
		}
		return end, err
	}
	name, path := splitName(req.Get)
	v, ok := a.run.Lookup(a.sc, a.retry)(name)
	if ok = ok && len(v) > 0; ok && path != "" {
		v, ok = reference.Path(v, path)
	}
	if !ok {
		v = nil
	}
	return reply(struct {
		Value json.RawMessage `json:"value,omitempty"`
		Found bool            `json:"found"`
	}{v, ok})
}

// splitName splits "a.b[0]" after its first name.
func splitName(s string) (name, path string) {
	for i, r := range s {
		if r == '.' {
			return s[:i], s[i+1:]
		}
		if r == '[' {
			return s[:i], s[i:]
		}
	}
	return s, ""
}
