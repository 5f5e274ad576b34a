package sdktest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sdk/internal/jsondiff"
)

// A Fake is a scripted answer to a host call.
type Fake struct {
	Function string `json:"function"` // "sentinel_http", or just "http"
	// Request is what the request must have: of objects at least these keys, everything
	// else exactly. Absent: any request.
	Request json.RawMessage `json:"request,omitempty"`
	OK      json.RawMessage `json:"ok,omitempty"` // the answer is this value, or
	Error   *abi.Error      `json:"error,omitempty"`
}

// ReadFakes reads a list of fakes.
func ReadFakes(text []byte) ([]Fake, error) {
	var list []Fake
	if err := decode(text, &list, fakeKeys); err != nil {
		return nil, &abi.Error{Code: abi.BadFields, Message: "read fakes: " + err.Error(),
			Hint: `it is a list: [{"function": "http", "ok": {"status": 200, "headers": {}, "body": ""}}]`}
	}
	return list, checkFakes(list)
}

// checkFakes completes the names and reports fakes that could never answer a call.
func checkFakes(list []Fake) error {
	for i := range list {
		f := &list[i]
		if !strings.HasPrefix(f.Function, "sentinel_") {
			f.Function = "sentinel_" + f.Function
		}
		switch {
		case !slices.Contains(abi.Funcs(), f.Function):
			return &abi.Error{Code: abi.BadFields, Message: fmt.Sprintf("read fakes: entry %d: unknown host function %q", i+1, f.Function),
				Hint: "there are " + strings.ReplaceAll(strings.Join(abi.Funcs(), ", "), "sentinel_", "")}
		case (f.OK == nil) == (f.Error == nil):
			return abi.New(abi.BadFields, fmt.Sprintf("read fakes: entry %d, %s: want either ok or error", i+1, f.Function))
		case f.Error != nil && !abi.IsCode(string(f.Error.Code)):
			return abi.New(abi.BadFields, fmt.Sprintf("read fakes: entry %d, %s: invalid error code %q", i+1, f.Function, f.Error.Code))
		}
	}
	return nil
}

// body is the answer as the guest gets it.
func (f Fake) body() json.RawMessage {
	answer := struct {
		OK    json.RawMessage `json:"ok,omitempty"`
		Error *abi.Error      `json:"error,omitempty"`
	}{f.OK, f.Error}
	text, err := json.Marshal(answer)
	if err != nil { // the parts were decoded from JSON
		panic(err)
	}
	return text
}

// matches reports whether the fake is for a call.
func (f Fake) matches(function string, request json.RawMessage) bool {
	if f.Function != function {
		return false
	}
	if f.Request == nil {
		return true
	}
	want, errWant := jsondiff.Decode(f.Request)
	got, errGot := jsondiff.Decode(request)
	return errWant == nil && errGot == nil && len(jsondiff.Compare("request", want, got, jsondiff.Any)) == 0
}

// mismatch describes in one line how a request differs from the expected one.
func mismatch(want, got json.RawMessage) string {
	w, errW := jsondiff.Decode(want)
	g, errG := jsondiff.Decode(got)
	if errW != nil || errG != nil {
		return fmt.Sprintf("want %s, got %s", want, got)
	}
	return strings.Join(jsondiff.Compare("request", w, g, jsondiff.Any), "; ")
}

// Sample returns a fake, as a line of a list, that answers a call like c. Clause A6 of
// ABI.md specifies the complete answer.
func Sample(c Call) string {
	answers := map[string]string{
		abi.FuncCommand: `{}`,
		abi.FuncLLM:     `{"conversation": "c1", "text": "...", "toolCalls": [], "finish": "stop", "usage": {"inputTokens": 1, "outputTokens": 1, "costUsd": 0}, "provider": "fake", "model": "fake"}`,
		abi.FuncWatch:   `{"executionId": "e1", "lines": [], "text": "", "finished": true, "exitCode": 0, "dropped": 0, "cursor": 0}`,
		abi.FuncEval:    `{"value": true, "truthy": true}`,
		abi.FuncVar:     `{"value": null, "found": false}`,
		abi.FuncBlock:   `{"blocks": [{"success": true, "output": null}]}`,
		abi.FuncSpawn:   `{"run": "r1", "sentinel": "child"}`,
		abi.FuncEmit:    `{"id": "e1"}`,
		abi.FuncWait:    `{"timedOut": false}`,
		abi.FuncHTTP:    `{"status": 200, "headers": {}, "body": "", "truncated": false}`,
		abi.FuncNow:     `{"unixMs": 1767225600000, "iso": "2026-01-01T00:00:00Z"}`,
		abi.FuncFile:    `{"text": "", "size": 0, "truncated": false}`,
	}
	answer, ok := answers[c.Function]
	if !ok {
		answer = `{}`
	}
	return fmt.Sprintf(`{"function": %q, "request": %s, "ok": %s}`, strings.TrimPrefix(c.Function, "sentinel_"), c.Request, answer)
}
