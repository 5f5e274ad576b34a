package abitest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// callChecks use the step type kit_call.
func callChecks() []check {
	var checks []check
	names := map[string]bool{}
	for _, c := range callCases {
		if names[c.name] {
			continue
		}
		names[c.name] = true
		cases := slices.DeleteFunc(slices.Clone(callCases), func(other callCase) bool { return other.name != c.name })
		checks = append(checks,
			check{c.clause, c.name + ": requests and answers keep every key", func(j *judge) {
				for _, c := range cases {
					j.callCase(c, c.answer)
				}
			}},
			check{"A6.1", c.name + ": unknown keys in an answer are ignored", func(j *judge) {
				for _, c := range cases {
					if m, ok := must(c.answer).(map[string]any); ok && c.name != "command" {
						m["x_new"] = must(`{"a":[1,2]}`)
						j.callCase(c, string(encode(m)))
					}
				}
			}},
			check{"A6.1", c.name + ": an error is an answer, and ends the step if it is not caught", func(j *judge) { j.callFails(cases[0]) }},
		)
	}
	return append(checks, moreCallChecks...)
}

// moreCallChecks are about calls in general.
var moreCallChecks = []check{
	{"A6.1", "an error of every code reaches the step", func(j *judge) {
		for _, code := range append(abi.Codes(), "made_up") {
			want := code
			out := j.call("command", `{"command":"kit/do"}`, true, `{"error":{"code":"`+string(code)+`","message":"as expected","x_new":[1]}}`)
			if m, _ := caught(out).(map[string]any); code == "made_up" && m["code"] != "made_up" {
				want = abi.Plugin // an SDK may know the shared codes only
			}
			j.want("error of code "+string(code), map[string]any{"code": string(want), "message": "as expected"}, caught(out), optionalKey)
		}
	}},
	{"A6.1", "an answer may have keys besides ok", func(j *judge) {
		out := j.call("command", `{"command":"kit/do"}`, true, `{"x_new":{"error":1},"ok":{"a":1}}`)
		j.want("output", must(`{"ok":{"a":1}}`), out, nil)
	}},
	{"A6.1", "texts in requests and answers do not change", func(j *judge) {
		for _, text := range texts() {
			args := encode(map[string]any{"command": "kit/do", "params": map[string]any{text: text}})
			answer := encode(map[string]any{"ok": []any{text, map[string]any{text: 1}}})
			t := j.run(kitCall("command", string(args), true), say(string(answer)))
			if t.err != nil || len(t.calls) != 1 {
				j.faultf("text %q: %d calls, %s", brief(text, 100), len(t.calls), errorText(t.err))
				continue
			}
			j.want(fmt.Sprintf("request with %q", brief(text, 100)), must(string(args)), t.calls[0].request, defaults)
			j.want(fmt.Sprintf("output with %q", brief(text, 100)), must(string(answer)), t.output, nil)
		}
		answer := `{"ok":"\u0041\ud83d\ude00\/"}`
		j.want("output", must(answer), j.call("command", `{"command":"kit/do"}`, true, answer), nil)
	}},
	{"A6.1", "numbers in requests and answers keep their value", func(j *judge) {
		for _, number := range numbers {
			args := `{"command":"kit/do","params":{"n":` + number + `}}`
			t := j.run(kitCall("command", args, true), say(`{"ok":[`+number+`]}`))
			if t.err != nil || len(t.calls) != 1 {
				j.faultf("number %s: %d calls, %s", number, len(t.calls), errorText(t.err))
				continue
			}
			j.want("request with "+number, must(args), t.calls[0].request, defaults)
			j.want("output with "+number, must(`{"ok":[`+number+`]}`), t.output, nil)
		}
	}},
	{"A6.11", "a wait that timed out is distinguishable from one that did not", func(j *judge) {
		out := j.call("wait", `{"event":"git:*","timeoutMs":10}`, true, `{"ok":{"timedOut":true}}`)
		m, _ := out.(map[string]any)
		ok, _ := m["ok"].(map[string]any)
		e, _ := m["error"].(map[string]any)
		if ok["timedOut"] != true && e["code"] != string(abi.Timeout) {
			j.faultf("output is %s, want timedOut true or an error of code timeout", encode(out))
		}
	}},
	{"A6.14", "log lines have a level and keep their text", func(j *judge) {
		for _, level := range []string{"debug", "info", "warn", "error"} {
			request := map[string]any{"level": level, "message": "line \"é\"\n✓"}
			t := j.run(kitCall("log", string(encode(request)), false), denied)
			j.ended(t)
			if len(t.logs) != 1 {
				j.fatalf("%d log lines, want one", len(t.logs))
			}
			j.want("log line", request, t.logs[0], nil)
			if len(t.calls) != 0 {
				j.faultf("a log line made %d other calls", len(t.calls))
			}
		}
	}},
	{"A8", "a request of nearly 256 KiB is sent", func(j *judge) {
		text := strings.Repeat("0123456789abcdef", 256<<10/16-20)
		t := j.run(kitCall("command", `{"command":"kit/do","params":{"text":"`+text+`"}}`, false), say(`{"ok":1}`))
		j.ended(t)
		request, _ := t.calls[0].request.(map[string]any)
		params, _ := request["params"].(map[string]any)
		if params["text"] != text {
			j.faultf("the text of the request is not that of the field")
		}
	}},
	{"A8", "an answer of nearly 256 KiB is received", func(j *judge) {
		for _, text := range []string{strings.Repeat("x", 256<<10-100), strings.Repeat("✓é", (256<<10-100)/5)} {
			answer := map[string]any{"ok": text}
			j.want("output", answer, j.call("command", `{"command":"kit/do"}`, false, string(encode(answer))), nil)
		}
	}},
	{"A8", "a request that is too large is an error, not a trap", func(j *judge) {
		text := strings.Repeat("x", 300<<10)
		t := j.run(kitCall("command", `{"command":"kit/do","params":{"text":"`+text+`"}}`, false), say(`{"ok":1}`))
		if abi.CodeOf(t.err) != abi.Limit {
			j.faultf("the step ended with %s, want code limit", errorText(t.err))
		}
	}},
}

// kitCall returns a step of the type kit_call.
func kitCall(name, args string, catch bool) step {
	fields := map[string]any{"call": name, "args": json.RawMessage(args)}
	if catch {
		fields["catch"] = true
	}
	return step{typ: "kit_call", fields: fields}
}

// say returns a script with the same answer for every call.
func say(answer string) script {
	return func(int, string, any) (string, error) { return answer, nil }
}

// call makes one call and returns the output.
func (j *judge) call(name, args string, catch bool, answer string) any {
	t := j.run(kitCall(name, args, catch), say(answer))
	j.ended(t)
	return t.output
}

// callCase makes the call of a case, with an answer that may have more keys, and
// compares request and output.
func (j *judge) callCase(c callCase, answer string) {
	t := j.run(kitCall(c.name, c.args, false), say(`{"ok":`+answer+`}`))
	if t.err != nil {
		j.faultf("%s %s: the step failed: %s", c.name, c.args, errorText(t.err))
		return
	}
	if len(t.calls) != 1 || t.calls[0].function != c.function {
		j.faultf("%s %s: %d calls, want one of %s", c.name, c.args, len(t.calls), c.function)
		return
	}
	request := c.request
	if request == "" {
		request = c.args
	}
	j.want("request of "+c.name, must(request), t.calls[0].request, defaults)
	out, ok := t.output.(map[string]any)
	if !ok {
		j.faultf("%s: the output is %s, want an object", c.name, encode(t.output))
		return
	}
	got, want := out["ok"], must(c.answer)
	if empty(want) && empty(got) {
		return // {} and null both mean that there is no value
	}
	j.want("answer of "+c.name, want, got, func(key string, value any) bool {
		return optionalKey(key, value) || key == "x_new" // a wrapper may return the whole answer
	})
}

// callFails answers a call with an error, which the step gets and returns.
func (j *judge) callFails(c callCase) {
	object := `{"code":"unavailable","message":"not \"now\" ü","field":"params.x","retryAfterMs":250,"permanent":true,"hint":"wait"}`
	out := j.call(c.name, c.args, true, `{"error":`+object+`}`)
	j.want("the error that "+c.name+" gave the step", must(object), caught(out), nil)
	t := j.run(kitCall(c.name, c.args, false), say(`{"error":`+object+`}`))
	want := abi.Error{Code: abi.Unavailable, Message: "not \"now\" ü", Field: "params.x", RetryAfterMs: 250, Permanent: true, Hint: "wait"}
	if e := abi.As(t.err); e == nil || *e != want {
		j.faultf("the step ended with %+v, want %+v", e, want)
	}
	out = j.call(c.name, c.args, true, `{"error":{"code":"denied","message":"no"}}`)
	j.want("the smallest error that "+c.name+" gave the step", must(`{"code":"denied","message":"no"}`), caught(out), optionalKey)
}

// caught returns the error object of a kit_call that caught one.
func caught(output any) any {
	m, ok := output.(map[string]any)
	if !ok || !slices.Equal(slices.Collect(maps.Keys(m)), []string{"error"}) {
		return output
	}
	return m["error"]
}
