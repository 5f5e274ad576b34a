package abitest

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// blockChecks use the step type kit_blocks.
var blockChecks = []check{
	{"A6.8", "blocks have their variables, and the results are in the same order", func(j *judge) {
		t := j.run(step{typ: "kit_blocks", fields: must(`{"steps":{"count":2},"count":3,"concurrency":2,"failFast":true}`)}, say(
			`{"ok":{"blocks":[{"success":true,"output":{"a":1}},{"success":false,"output":null,"error":{"code":"timeout","message":"too late","x_new":1}},{"success":true,"output":"x","x_new":2}],"x_new":3}}`))
		j.ended(t)
		if len(t.calls) != 1 || t.calls[0].function != abi.FuncBlock {
			j.fatalf("%d calls, want one of %s", len(t.calls), abi.FuncBlock)
		}
		j.want("request", must(`{"blocks":[{"field":"steps","vars":{"i":0}},{"field":"steps","vars":{"i":1}},{"field":"steps","vars":{"i":2}}],"concurrency":2,"failFast":true}`), t.calls[0].request, defaults)
		j.want("output", must(`{"blocks":[{"success":true,"output":{"a":1}},{"success":false,"output":null,"error":{"code":"timeout","message":"too late"}},{"success":true,"output":"x"}],"steps":2}`), t.output, optionalKey)
	}},
	{"A6.8", "blocks with the options of loops; one that did not begin says so", func(j *judge) {
		t := j.run(step{typ: "kit_blocks", fields: must(`{"steps":{"count":2},"count":2,"concurrency":1,"drain":true,"isolated":true,"total":40}`)}, say(
			`{"ok":{"blocks":[{"success":false,"output":null,"error":{"code":"timeout","message":"too late"}},{"success":false,"skipped":true,"output":null,"error":{"code":"cancelled","message":"did not begin"}}]}}`))
		j.ended(t)
		if len(t.calls) != 1 {
			j.fatalf("%d calls, want one", len(t.calls))
		}
		j.want("request", must(`{"blocks":[{"field":"steps","vars":{"i":0}},{"field":"steps","vars":{"i":1}}],"concurrency":1,"drain":true,"isolated":true,"total":40}`), t.calls[0].request, defaults)
		j.want("output", must(`{"blocks":[{"success":false,"output":null,"error":{"code":"timeout","message":"too late"}},{"success":false,"skipped":true,"output":null,"error":{"code":"cancelled","message":"did not begin"}}],"steps":2}`), t.output, optionalKey)
	}},
	{"A6.8", "one block without options", func(j *judge) {
		t := j.run(step{typ: "kit_blocks", fields: must(`{"steps":{"count":1}}`)}, say(`{"ok":{"blocks":[{"success":true,"output":null}]}}`))
		j.ended(t)
		j.want("request", must(`{"blocks":[{"field":"steps","vars":{"i":0}}]}`), t.calls[0].request, defaults)
		j.want("output", must(`{"blocks":[{"success":true,"output":null}],"steps":1}`), t.output, optionalKey)
	}},
	{"A6.8", "an invalid call ends the step", func(j *judge) {
		t := j.run(step{typ: "kit_blocks", fields: must(`{"steps":{"count":1}}`)}, say(`{"error":{"code":"bad_fields","message":"no such field"}}`))
		if e := abi.As(t.err); e == nil || e.Code != abi.BadFields || e.Message != "no such field" {
			j.faultf("the step ended with %s", errorText(t.err))
		}
	}},
}

// pageChecks use the step type kit_pages.
var pageChecks = []check{
	{"A6.12", "a step that is parked at every call has the same result", func(j *judge) {
		whole := j.run(pages(4, nil), page)
		j.ended(whole)
		j.want("output", must(`{"sum":60,"from":0}`), whole.output, nil)
		if len(whole.calls) != 8 || len(whole.logs) != 4 {
			j.fatalf("%d calls and %d log lines for 4 pages, want 8 and 4", len(whole.calls), len(whole.logs))
		}
		for at := range whole.calls {
			j.resume(whole.calls, at)
		}
	}},
	{"A6.12", "a step with many calls ends", func(j *judge) {
		const n = 2000
		t := j.run(pages(n, nil), page)
		j.ended(t)
		if out, _ := t.output.(map[string]any); !sameValue(out["sum"], 10*n*(n-1)/2) {
			j.faultf("sum is %v, want %d", out["sum"], 10*n*(n-1)/2)
		}
		if len(t.calls) != 2*n || len(t.logs) != n {
			j.faultf("%d calls and %d log lines for %d pages, want %d and %d", len(t.calls), len(t.logs), n, 2*n, n)
		}
	}},
	{"A6.12", "no page is processed after the last checkpoint", func(j *judge) {
		t := j.run(pages(3, must(`{"next":3,"sum":30}`)), page)
		j.ended(t)
		j.want("output", must(`{"sum":30,"from":3}`), t.output, nil)
		if len(t.calls) != 0 {
			j.faultf("%d calls, want none", len(t.calls))
		}
	}},
	{"A6.14", "log lines are in the order of the step", func(j *judge) {
		t := j.run(pages(3, nil), page)
		j.ended(t)
		for i, line := range t.logs {
			j.want("log line", map[string]any{"level": "info", "message": fmt.Sprintf("page %d", i)}, line, nil)
		}
	}},
}

// pages returns a step of the type kit_pages.
func pages(n int, state any) step {
	return step{typ: "kit_pages", fields: map[string]any{"pages": n}, state: state}
}

// page answers the calls of kit_pages: the value of page i is 10 times i.
func page(_ int, function string, request any) (string, error) {
	if function == abi.FuncCheckpoint {
		return `{"ok":{}}`, nil
	}
	m, _ := request.(map[string]any)
	params, _ := m["params"].(map[string]any)
	number, _ := params["page"].(json.Number)
	i, err := number.Int64()
	if m["command"] != "kit/page" || err != nil {
		return `{"error":{"code":"bad_fields","message":"want the command kit/page with a page"}}`, nil
	}
	return fmt.Sprintf(`{"ok":{"value":%d}}`, 10*i), nil
}

// resume parks a step of 4 pages at one of its calls and executes it again, as a host
// does: from the last checkpoint, with the recorded answers after it.
func (j *judge) resume(calls []called, at int) {
	parked := j.attempt(pages(4, nil).input(), nil, func(n int, function string, request any) (string, error) {
		if n == at {
			return "", errParked
		}
		return page(n, function, request)
	})
	if !errors.Is(parked.err, errParked) {
		j.fatalf("parked at call %d: the step ended with %s, want the error of the call", at+1, errorText(parked.err))
	}
	var state any
	from := 0
	for i, c := range parked.calls {
		if c.function == abi.FuncCheckpoint {
			m, _ := c.request.(map[string]any)
			state, from = m["state"], i+1
		}
	}
	again := j.attempt(pages(4, state).input(), parked.calls[from:], page)
	if again.err != nil {
		j.faultf("resumed at call %d: %s", at+1, errorText(again.err))
		return
	}
	for i, c := range again.calls {
		if from+i >= len(calls) {
			j.faultf("resumed at call %d: %d calls too many", at+1, from+len(again.calls)-len(calls))
			break
		}
		j.want(fmt.Sprintf("resumed at call %d: call %d", at+1, from+i+1), calls[from+i].request, c.request, nil)
	}
	j.want(fmt.Sprintf("resumed at call %d: output", at+1), map[string]any{"sum": json.Number("60"), "from": json.Number(fmt.Sprint(from / 2))}, again.output, nil)
}

// validateChecks are about the export validate.
var validateChecks = []check{
	{"A1.3", "validate returns exactly the problems", func(j *judge) {
		for _, c := range []struct{ input, want string }{
			{`{"type":"kit_echo","fields":{"echo":"bad"}}`, `[{"field":"echo","message":"is bad","hint":"use good"}]`},
			{`{"type":"kit_echo","fields":{"echo":"good"}}`, `[]`},
			{`{"type":"kit_echo","fields":{"echo":"$ref ü"}}`, `[]`},
			{`{"type":"kit_echo","fields":{}}`, `[]`},
			{`{"type":"kit_fail","fields":{"echo":"bad"}}`, `[]`},
			{`{"type":"kit_blocks","fields":{"steps":{"count":3}}}`, `[]`},
		} {
			answer, err := j.guest.Validate(j.ctx, []byte(c.input))
			if err != nil {
				j.faultf("validate %s: %s", c.input, errorText(err))
				continue
			}
			problems := j.problems(answer)
			if problems == nil {
				problems = []any{}
			}
			j.want("problems of "+c.input, must(c.want), any(problems), nil)
		}
	}},
}
