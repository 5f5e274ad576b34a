package llm_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/plugins/llm"
	"github.com/sentinel-runtime/sentinel/sdk"
	"github.com/sentinel-runtime/sentinel/sdk/sdktest"
)

// reply returns a reply of the model; more has further members of its object.
func reply(text, more string) string {
	return `{"conversation":"c1","text":` + sdk.Quote(text) + `,"toolCalls":[],"finish":"stop",
		"usage":{"inputTokens":10,"outputTokens":2,"costUsd":0.25},"provider":"fake","model":"m1"` + more + `}`
}

// toolCalls returns a reply that calls tools, each given as `name {arguments}`.
func toolCalls(calls ...string) string {
	var list []string
	for i, c := range calls {
		name, arguments, _ := strings.Cut(c, " ")
		list = append(list, `{"id":"t`+strconv.Itoa(i)+`","name":"`+name+`","arguments":`+arguments+`}`)
	}
	return `{"conversation":"c1","text":"","toolCalls":[` + strings.Join(list, ",") + `],"finish":"tools",
		"usage":{"inputTokens":10,"outputTokens":2,"costUsd":0.25},"provider":"fake","model":"m1"}`
}

func run(t *testing.T, fields string, h *sdktest.Host) (sdk.Value, *sdk.Error) {
	t.Helper()
	return sdktest.Run(t, sdktest.Only(llm.Step()), "llm", fields, h)
}

// get returns the named members of a value as a JSON list, "-" for a missing one.
func get(v sdk.Value, names ...string) string {
	var list []sdk.Value
	for _, n := range names {
		if m := v.Get(n); m.Exists() {
			list = append(list, m)
		} else {
			list = append(list, sdk.String("-"))
		}
	}
	return sdk.List(list...).String()
}

func TestOneTurn(t *testing.T) {
	for _, tt := range []struct{ name, fields, request string }{
		{"prompt alone", `{"prompt":"hi"}`, `{"append":[{"content":"hi","role":"user"}],"sources":true}`},
		{"prompt and system alone", `{"prompt":"hi","system":"be kind","context":false}`, `{"append":[{"content":"hi","role":"user"}],"system":"be kind"}`},
		{"no prompt", `{}`, `{"append":[{"content":"Go on from the context above.","role":"user"}],"context":true}`},
		{"everything", `{"prompt":"hi","system":"be kind","model":"p/m","temperature":0.2,"maxTokens":9,"tools":["code/*"]}`,
			`{"append":[{"content":"hi","role":"user"}],"maxTokens":9,"model":"p/m","sources":true,"system":"be kind","temperature":0.2,"tools":["code/*"]}`},
		{"no tools", `{"prompt":"hi","tools":[],"parseToolCalls":true}`, `{"append":[{"content":"hi","role":"user"}],"sources":true}`},
		{"every tool", `{"prompt":"hi","parseToolCalls":true}`, `{"append":[{"content":"hi","role":"user"}],"sources":true,"tools":["*"]}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := sdktest.New(t).OK("sentinel_llm", reply("hello", ""))
			out, fault := run(t, tt.fields, h)
			const want = `{"text":"hello","success":true,"stopReason":"stop","model":"m1","provider":"fake","usage":{"inputTokens":10,"outputTokens":2,"costUsd":0.25,"calls":1},"turns":1,"toolCalls":[]}`
			if fault != nil || out.String() != want {
				t.Errorf("got  %s %v\nwant %s", out, fault, want)
			}
			if diff := cmp.Diff([]string{tt.request}, h.Requests("sentinel_llm")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestJSONReply checks that the fields of a JSON reply are in the result, except names of the step's own fields, and that json has the whole reply.
func TestJSONReply(t *testing.T) {
	h := sdktest.New(t).OK("sentinel_llm", reply("{...}", `,"json":{"complete":true,"text":"theirs","turns":99,"success":false}`))
	out, fault := run(t, `{"prompt":"hi"}`, h)
	if fault != nil {
		t.Fatal(fault)
	}
	want := `[true,"{...}",1,false,{"complete":true,"text":"theirs","turns":99,"success":false}]`
	if got := get(out, "complete", "text", "turns", "success", "json"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Specification: "A reply that is a JSON array is one (`$r[0]`, `each: "$r"`, `.length`)."
func TestSpecReplyIsArray(t *testing.T) {
	const want = `[1,{"a":2}]`
	for _, tt := range []struct{ fields, text string }{
		{`{"prompt":"hi"}`, want},
		{`{"prompt":"hi"}`, "\n " + want + " \n"},
		{`{"prompt":"hi"}`, "```json\n" + want + "\n```"},
		{`{"prompt":"hi","schema":{"type":"array"}}`, "Here you are:\n```json\n" + want + "\n```"},
	} {
		h := sdktest.New(t).OK("sentinel_llm", reply(tt.text, `,"json":`+want))
		if out, fault := run(t, tt.fields, h); fault != nil || out.String() != want {
			t.Errorf("%q: %s %v", tt.text, out, fault)
		}
	}
	// An array within prose is not the reply.
	h := sdktest.New(t).OK("sentinel_llm", reply("See:\n```json\n[1]\n```", `,"json":[1]`))
	if out, fault := run(t, `{"prompt":"hi"}`, h); fault != nil || get(out, "json", "success") != `[[1],true]` {
		t.Errorf("within prose: %s %v", out, fault)
	}
}

func TestToolLoop(t *testing.T) {
	h := sdktest.New(t).
		OK("sentinel_llm", toolCalls(`code/read {"path":"a"}`, `code/write {}`), toolCalls(`code/verify {}`), reply("done", "")).
		OK("sentinel_command", `{"content":"x"}`).
		Fail("sentinel_command", &sdk.Error{Code: sdk.CodeDenied, Message: "not on the list", Hint: "use code/edit"}).
		OK("sentinel_command", `{"success":false}`)
	out, fault := run(t, `{"prompt":"fix it","tools":["code/read","code/write","code/verify"],"temperature":0}`, h)
	if fault != nil {
		t.Fatal(fault)
	}
	if diff := cmp.Diff([]string{
		`{"by":"model","command":"code/read","params":{"path":"a"},"tools":["code/read","code/write","code/verify"]}`,
		`{"by":"model","command":"code/write","params":{},"tools":["code/read","code/write","code/verify"]}`,
		`{"by":"model","command":"code/verify","params":{},"tools":["code/read","code/write","code/verify"]}`,
	}, h.Requests("sentinel_command")); diff != "" {
		t.Errorf("commands (-want +got):\n%s", diff)
	}
	const rest = `,"conversation":"c1","temperature":0,"tools":["code/read","code/write","code/verify"]}`
	if diff := cmp.Diff([]string{
		`{"append":[{"content":"fix it","role":"user"}],"sources":true,"temperature":0,"tools":["code/read","code/write","code/verify"]}`,
		`{"append":[{"content":"{\"content\":\"x\"}","name":"code/read","role":"tool","toolCallId":"t0"},` +
			`{"content":"Error (denied): not on the list\nHint: use code/edit","isError":true,"name":"code/write","role":"tool","toolCallId":"t1"}]` + rest,
		`{"append":[{"content":"{\"success\":false}","name":"code/verify","role":"tool","toolCallId":"t0"}]` + rest,
	}, h.Requests("sentinel_llm")); diff != "" {
		t.Errorf("turns (-want +got):\n%s", diff)
	}
	want := `["done",true,"stop",3,{"inputTokens":30,"outputTokens":6,"costUsd":0.75,"calls":3},[` +
		`{"name":"code/read","arguments":{"path":"a"},"success":true},` +
		`{"name":"code/write","arguments":{},"success":false,"error":"not on the list"},` +
		`{"name":"code/verify","arguments":{},"success":false}]]`
	if got := get(out, "text", "success", "stopReason", "turns", "usage", "toolCalls"); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestMaxTurns checks that maxTurns is exact, and that the tools of the last turn are not executed.
func TestMaxTurns(t *testing.T) {
	for _, field := range []string{"3", `"3"`} {
		h := sdktest.New(t).
			OK("sentinel_llm", toolCalls(`a {"n":1}`), toolCalls(`a {"n":2}`), toolCalls(`a {"n":3}`)).
			OK("sentinel_command", `1`, `2`)
		out, fault := run(t, `{"prompt":"x","tools":["a"],"maxTurns":`+field+`}`, h)
		if fault != nil {
			t.Fatal(fault)
		}
		if got := get(out, "success", "stopReason", "turns", "note"); got != `[false,"limit",3,"The model still wanted tools when maxTurns was reached."]` {
			t.Errorf("got %s", got)
		}
		if got := out.Get("toolCalls").At(2).String(); got != `{"name":"a","arguments":{"n":3},"success":false,"error":"not executed: maxTurns reached"}` {
			t.Errorf("last call: %s", got)
		}
		turns := h.Requests("sentinel_llm")
		if strings.Contains(turns[1], "One reply is left") || strings.Contains(turns[1], "one reply is left") || !strings.Contains(turns[2], "one reply is left") {
			t.Errorf("the model was not informed in the right turn: %q", turns)
		}
	}
	many := sdktest.New(t)
	for i := range 25 {
		many.OK("sentinel_llm", toolCalls(`a {"n":`+strconv.Itoa(i)+`}`))
		if i < 24 {
			many.OK("sentinel_command", `1`)
		}
	}
	if out, fault := run(t, `{"prompt":"x","tools":["a"]}`, many); fault != nil || get(out, "turns", "stopReason") != `[25,"limit"]` {
		t.Errorf("default of maxTurns: %s %v", get(out, "turns", "stopReason"), fault)
	}
}

// TestRepeatedCalls checks that the second call in a row gets a warning and the
// third ends the step. Another call in between resets the count.
func TestRepeatedCalls(t *testing.T) {
	h := sdktest.New(t).
		OK("sentinel_llm", toolCalls(`a {"x":1,"y":2}`), toolCalls(`a {"y":2,"x":1}`), toolCalls(`b {}`), toolCalls(`a {"x":1,"y":2}`), toolCalls(`a {"x":1,"y":2}`), toolCalls(`a {"x":1,"y":2}`)).
		OK("sentinel_command", `1`, `2`, `3`, `4`, `5`)
	out, fault := run(t, `{"prompt":"x","tools":["a","b"]}`, h)
	if fault != nil {
		t.Fatal(fault)
	}
	if got := get(out, "success", "stopReason", "turns", "note"); got != `[false,"repeated",6,"The model made the same call of a three times in a row."]` {
		t.Errorf("got %s", got)
	}
	for i, request := range h.Requests("sentinel_llm") {
		warned := strings.Contains(request, "third time ends")
		if want := i == 2 || i == 5; warned != want {
			t.Errorf("turn %d warned: %v, want %v", i, warned, want)
		}
	}
	// A repeated sequence of two calls is detected too.
	h = sdktest.New(t).OK("sentinel_llm", toolCalls(`a {}`, `b {}`), toolCalls(`a {}`, `b {}`), toolCalls(`a {}`, `b {}`)).OK("sentinel_command", `1`, `2`, `3`, `4`)
	if out, fault := run(t, `{"prompt":"x","tools":["a","b"]}`, h); fault != nil || get(out, "stopReason", "turns") != `["repeated",3]` || out.Get("toolCalls").Len() != 6 {
		t.Errorf("repeated sequence: %s %v", out, fault)
	}
}

// Specification: "`maxToolCalls` caps a step."
func TestSpecMaxToolCalls(t *testing.T) {
	const fields = `{"prompt":"x","tools":["a"],"maxToolCalls":3}`
	start := func() *sdktest.Host {
		return sdktest.New(t).
			OK("sentinel_llm", toolCalls(`a {"n":1}`), toolCalls(`a {"n":2}`, `a {"n":3}`, `a {"n":4}`)).
			OK("sentinel_command", `1`, `2`, `3`)
	}
	h := start().OK("sentinel_llm", reply("done", ""))
	out, fault := run(t, fields, h)
	if fault != nil || get(out, "text", "success", "stopReason", "turns") != `["done",true,"stop",3]` {
		t.Fatalf("%s %v", out, fault)
	}
	if got := out.Get("toolCalls").At(3).String(); got != `{"name":"a","arguments":{"n":4},"success":false,"error":"not executed: maxToolCalls reached"}` {
		t.Errorf("the fourth call: %s", got)
	}
	// The model has an answer to each call, and knows that it has to reply.
	want := `[{"role":"tool","content":"2","toolCallId":"t0","name":"a"},{"role":"tool","content":"3","toolCallId":"t1","name":"a"},` +
		`{"role":"tool","content":"Error (limit): not executed, because no tool call is left\n\n[Note: no tool call is left. Answer now, without tools.]","toolCallId":"t2","name":"a","isError":true}]`
	if got := h.Calls()[5].Value().Get("append").String(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}

	h = start().OK("sentinel_llm", toolCalls(`a {"n":5}`))
	out, fault = run(t, fields, h)
	if fault != nil || get(out, "success", "stopReason", "note") != `[false,"limit","The model still wanted tools when maxToolCalls was reached."]` || out.Get("toolCalls").Len() != 5 {
		t.Errorf("%s %v", out, fault)
	}
	if _, fault := run(t, `{"prompt":"x","maxToolCalls":0}`, sdktest.New(t)); fault == nil || fault.Field != "maxToolCalls" {
		t.Errorf("maxToolCalls 0: %v", fault)
	}
}

// TestEmptyReply: after an empty reply the model is asked once more; a second one ends without success.
func TestEmptyReply(t *testing.T) {
	for _, tt := range []struct {
		name, fields string
		replies      []string
		want         string
	}{
		{"then text", `{"prompt":"x"}`, []string{reply(" \n", ""), reply("here", "")}, `["here",true,"stop",2]`},
		{"twice", `{"prompt":"x"}`, []string{reply("", ""), reply("", "")}, `["",false,"empty",2]`},
		{"no turn left", `{"prompt":"x","tools":["a"],"maxTurns":1}`, []string{reply("", "")}, `["",false,"empty",1]`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := sdktest.New(t).OK("sentinel_llm", tt.replies...)
			out, fault := run(t, tt.fields, h)
			if fault != nil || get(out, "text", "success", "stopReason", "turns") != tt.want {
				t.Fatalf("%s %v, want %s", out, fault, tt.want)
			}
			if calls := h.Calls(); len(calls) == 2 {
				if got := calls[1].Value().Get("append").String(); got != `[{"role":"user","content":"Your reply is empty. Reply with text, or call a tool."}]` {
					t.Errorf("asked again with %s", got)
				}
			}
		})
	}
}

func TestCallsNotExecuted(t *testing.T) {
	for _, fields := range []string{`{"prompt":"x"}`, `{"prompt":"x","tools":["a"],"parseToolCalls":false}`} {
		h := sdktest.New(t).OK("sentinel_llm", toolCalls(`a {"n":1}`))
		out, fault := run(t, fields, h)
		want := `[true,"tools",[{"name":"a","arguments":{"n":1},"success":false,"error":"not executed"}]]`
		if fault != nil || get(out, "success", "stopReason", "toolCalls") != want {
			t.Errorf("%s: %s %v", fields, out, fault)
		}
	}
}

func TestSchema(t *testing.T) {
	const fields = `{"prompt":"x","schema":{"type":"object","required":["ok"]}}`
	h := sdktest.New(t).OK("sentinel_llm",
		reply("{}", `,"json":{},"problems":["ok: missing"]`),
		reply(`{"ok":1}`, `,"json":{"ok":1}`))
	out, fault := run(t, fields, h)
	if fault != nil || get(out, "ok", "turns") != `[1,2]` {
		t.Errorf("%s %v", out, fault)
	}
	again := h.Calls()[1].Value()
	if got := again.Get("append").At(0).Get("content").StringOr(""); got != "Your reply does not fit the required JSON Schema:\n- ok: missing\nReply again with the corrected JSON only." {
		t.Errorf("correction %q", got)
	}
	if got := get(again, "schema", "conversation"); got != `[{"type":"object","required":["ok"]},"c1"]` {
		t.Errorf("got %s", got)
	}
	for name, h := range map[string]*sdktest.Host{
		"twice": sdktest.New(t).OK("sentinel_llm", reply("no", ""), reply("no", "")),
		"cap":   sdktest.New(t).OK("sentinel_llm", reply("no", "")),
	} {
		f := fields
		if name == "cap" {
			f = strings.Replace(fields, `"prompt"`, `"maxTurns":1,"prompt"`, 1)
		}
		_, fault := run(t, f, h)
		if fault == nil || fault.Code != sdk.CodePlugin || fault.Message != "llm: the reply does not match the schema: the reply is not JSON" {
			t.Errorf("%s: %v", name, fault)
		}
	}
}

// Specification: "a reply cut at the cap has `stopReason: length` and is an error where a
// schema is asked for".
func TestSpecReplyCutAtTheCap(t *testing.T) {
	cut := func(more string) string { return strings.Replace(reply("cut of", more), `"stop"`, `"length"`, 1) }
	h := sdktest.New(t).OK("sentinel_llm", cut(""))
	if out, fault := run(t, `{"prompt":"x"}`, h); fault != nil || get(out, "success", "stopReason", "text") != `[false,"length","cut of"]` {
		t.Errorf("without a schema: %s %v", out, fault)
	}
	// Also if what there is of the reply is valid, such as the 12 of 1234: the model is
	// not asked again.
	for _, more := range []string{`,"problems":["the reply was cut off"]`, `,"json":12`} {
		h = sdktest.New(t).OK("sentinel_llm", cut(more))
		_, fault := run(t, `{"prompt":"x","schema":{"type":"integer"}}`, h)
		if fault == nil || fault.Code != sdk.CodeLimit || fault.Message != "llm: the reply was cut at its limit of 2 tokens, so it does not match the schema" ||
			!strings.Contains(fault.Hint, "maxTokens") {
			t.Errorf("with a schema: %+v", fault)
		}
	}
}

// Specification: "the call goes out with a lower cap ..., and says so."
func TestSpecNoteOfALoweredLimit(t *testing.T) {
	h := sdktest.New(t).OK("sentinel_llm", reply("short", `,"maxTokens":300`))
	if out, fault := run(t, `{"prompt":"x"}`, h); fault != nil || get(out, "success", "note") != `[true,"The budget left 300 tokens for the reply."]` {
		t.Errorf("%s %v", out, fault)
	}
	h = sdktest.New(t).OK("sentinel_llm", strings.Replace(reply("cut", `,"maxTokens":300`), `"stop"`, `"length"`, 1))
	if _, fault := run(t, `{"prompt":"x","schema":{"type":"object"}}`, h); fault == nil || !strings.Contains(fault.Hint, "budget") {
		t.Errorf("%+v", fault)
	}
}

func TestEnds(t *testing.T) {
	h := sdktest.New(t).OnError("retry").Fail("sentinel_llm", &sdk.Error{Code: sdk.CodeUnavailable, Message: "429", RetryAfterMs: 800})
	if _, fault := run(t, `{"prompt":"x"}`, h); fault == nil || fault.RetryAfterMs != 800 {
		t.Errorf("%v", fault)
	}
	h = sdktest.New(t).OK("sentinel_llm", toolCalls(`a {}`)).Fail("sentinel_command", sdk.Fail(sdk.CodeCancelled, "stopped"))
	if _, fault := run(t, `{"prompt":"x","tools":["a"]}`, h); fault == nil || fault.Code != sdk.CodeCancelled {
		t.Errorf("a stopped run continued: %v", fault)
	}
}

// TestLargeResults checks that results and arguments are cut at a character
// boundary, so that request and output stay within their limits.
func TestLargeResults(t *testing.T) {
	big := strings.Repeat("é", 100<<10)
	h := sdktest.New(t).
		OK("sentinel_llm", toolCalls(`a {"content":`+sdk.Quote(big)+`}`, `b {}`, `c {}`), reply("ok", "")).
		OK("sentinel_command", sdk.Quote(big), sdk.Quote(big), sdk.Quote(big))
	out, fault := run(t, `{"prompt":"x","tools":["a"]}`, h)
	if fault != nil {
		t.Fatal(fault)
	}
	second := h.Requests("sentinel_llm")[1]
	if len(second) > 200<<10 || !strings.Contains(second, `[cut: 161110 more bytes]`) {
		t.Errorf("request of %d bytes", len(second))
	}
	if n := len(out.String()); n > 8<<10 {
		t.Errorf("output of %d bytes", n)
	}
}

func TestBadFields(t *testing.T) {
	for fields, field := range map[string]string{
		`{"temperature":"hot"}`: "temperature",
		`{"maxTurns":0}`:        "maxTurns",
		`{"maxTokens":-1}`:      "maxTokens",
		`{"tools":"code/read"}`: "tools",
		`{"prompt":[1]}`:        "prompt",
	} {
		if _, fault := run(t, fields, sdktest.New(t)); fault == nil || fault.Code != sdk.CodeBadFields || fault.Field != field {
			t.Errorf("%s: %v", fields, fault)
		}
	}
}
