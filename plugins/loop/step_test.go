package loop_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/plugins/loop"
	"github.com/sentinel-runtime/sentinel/sdk"
	"github.com/sentinel-runtime/sentinel/sdk/sdktest"
)

const (
	yes   = `{"value":true,"truthy":true}`
	no    = `{"value":false,"truthy":false}`
	first = `{"blocks":[{"success":true,"output":"one"}]}`
	last  = `{"blocks":[{"success":true,"output":"two"}]}`
)

func run(t *testing.T, fields string, h *sdktest.Host) (string, *sdk.Error) {
	t.Helper()
	out, fault := sdktest.Run(t, sdktest.Only(loop.Step()), "loop", fields, h)
	return out.String(), fault
}

func TestCount(t *testing.T) {
	h := sdktest.New(t).OK("sentinel_block", first, last)
	out, fault := run(t, `{"steps":{"count":1},"count":2}`, h)
	if want := `{"iterations":2,"output":"two","reason":"count"}`; fault != nil || out != want {
		t.Errorf("got %s %v, want %s", out, fault, want)
	}
	if diff := cmp.Diff([]string{
		`{"blocks":[{"field":"steps","vars":{"index":0}}]}`,
		`{"blocks":[{"field":"steps","vars":{"index":1}}]}`,
	}, h.Requests("sentinel_block")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{
		`{"state":{"last":"one","passes":1}}`,
		`{"state":{"last":"two","passes":2}}`,
	}, h.Requests("sentinel_checkpoint")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if out, fault := run(t, `{"steps":{"count":1},"count":0}`, sdktest.New(t)); fault != nil || out != `{"iterations":0,"output":null,"reason":"count"}` {
		t.Errorf("no iterations: %s %v", out, fault)
	}
	if out, fault := run(t, `{"steps":{"count":0},"count":2}`, sdktest.New(t)); fault != nil || out != `{"iterations":2,"output":null,"reason":"count"}` {
		t.Errorf("no steps: %s %v", out, fault)
	}
}

// TestWhile checks that while is evaluated before the first iteration.
func TestWhile(t *testing.T) {
	h := sdktest.New(t).OK("sentinel_eval", no)
	if out, fault := run(t, `{"steps":{"count":1},"while":"$go"}`, h); fault != nil || out != `{"iterations":0,"output":null,"reason":"while"}` {
		t.Errorf("%s %v", out, fault)
	}
	h = sdktest.New(t).OK("sentinel_eval", yes, no).OK("sentinel_block", first)
	if out, fault := run(t, `{"steps":{"count":1},"while":"$go","indexAs":"n"}`, h); fault != nil || out != `{"iterations":1,"output":"one","reason":"while"}` {
		t.Errorf("%s %v", out, fault)
	}
	if diff := cmp.Diff([]string{`{"expression":"$go","vars":{"n":0}}`, `{"expression":"$go","vars":{"n":1}}`}, h.Requests("sentinel_eval")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestUntil checks that until is evaluated after the first iteration.
func TestUntil(t *testing.T) {
	h := sdktest.New(t).OK("sentinel_block", first, last).OK("sentinel_eval", no, yes)
	if out, fault := run(t, `{"steps":{"count":1},"until":"$done","maxIterations":2}`, h); fault != nil || out != `{"iterations":2,"output":"two","reason":"until"}` {
		t.Errorf("%s %v", out, fault)
	}
}

func TestEach(t *testing.T) {
	h := sdktest.New(t).OK("sentinel_block", first, last)
	if out, fault := run(t, `{"steps":{"count":1},"each":["a",{"b":null}],"as":"file"}`, h); fault != nil || out != `{"iterations":2,"output":"two","reason":"each"}` {
		t.Errorf("%s %v", out, fault)
	}
	if diff := cmp.Diff([]string{
		`{"blocks":[{"field":"steps","vars":{"file":"a","index":0}}]}`,
		`{"blocks":[{"field":"steps","vars":{"file":{"b":null},"index":1}}]}`,
	}, h.Requests("sentinel_block")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, fault := run(t, `{"steps":{"count":1},"each":"a,b"}`, sdktest.New(t)); fault == nil || fault.Field != "each" {
		t.Errorf("each of a string: %v", fault)
	}
}

// TestMaxIterations checks that reaching the limit is an error that names it.
func TestMaxIterations(t *testing.T) {
	for fields, message := range map[string]string{
		`{"steps":{"count":1},"until":"$done","maxIterations":2}`: "loop: maxIterations 2 reached: until is still false",
		`{"steps":{"count":1},"while":"$go","maxIterations":2}`:   "loop: maxIterations 2 reached: while is still true",
		`{"steps":{"count":1},"count":5,"maxIterations":2}`:       "loop: maxIterations 2 reached: want 5 iterations",
		`{"steps":{"count":1},"each":[1,2,3],"maxIterations":2}`:  "loop: maxIterations 2 reached: want 3 iterations",
		`{"steps":{"count":1},"maxIterations":2}`:                 "loop: maxIterations 2 reached: the loop has no other end",
	} {
		h := sdktest.New(t).OK("sentinel_block", first, last)
		switch {
		case message[len(message)-5:] == "false":
			h.OK("sentinel_eval", no, no)
		case message[len(message)-4:] == "true":
			h.OK("sentinel_eval", yes, yes, yes)
		}
		_, fault := run(t, fields, h)
		if fault == nil || fault.Code != sdk.CodeLimit || fault.Message != message || !fault.Permanent {
			t.Errorf("%s: %+v", fields, fault)
		}
	}
}

// TestResume checks that a loop continues from its checkpoint.
func TestResume(t *testing.T) {
	h := sdktest.New(t).State(`{"passes":1,"last":"one"}`).OK("sentinel_block", last)
	if out, fault := run(t, `{"steps":{"count":1},"count":2}`, h); fault != nil || out != `{"iterations":2,"output":"two","reason":"count"}` {
		t.Errorf("%s %v", out, fault)
	}
	if diff := cmp.Diff([]string{`{"blocks":[{"field":"steps","vars":{"index":1}}]}`}, h.Requests("sentinel_block")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// until was true before the checkpoint: no further iteration.
	h = sdktest.New(t).State(`{"passes":3,"last":"x","ended":true}`)
	if out, fault := run(t, `{"steps":{"count":1},"until":"$done"}`, h); fault != nil || out != `{"iterations":3,"output":"x","reason":"until"}` {
		t.Errorf("%s %v", out, fault)
	}
}

func TestErrorInIteration(t *testing.T) {
	h := sdktest.New(t).OK("sentinel_block", first, `{"blocks":[{"success":false,"error":{"code":"denied","message":"no"}}]}`)
	if _, fault := run(t, `{"steps":{"count":1},"count":3}`, h); fault == nil || fault.Code != sdk.CodeDenied || fault.Message != "no" {
		t.Errorf("%v", fault)
	}
}

func TestProblems(t *testing.T) {
	for fields, want := range map[string]string{
		`{"steps":{"count":1}}`:                                   "count: want one of count, while, until and each",
		`{"steps":{"count":1},"count":1,"until":"x"}`:             "until: want one of count, while, until and each, not also count",
		`{"steps":{"count":1},"count":1,"as":"x"}`:                "as: requires each",
		`{"steps":{"count":1},"each":"$list","as":"x"}`:           "",
		`{"steps":{"count":1},"maxIterations":3}`:                 "",
		`{"steps":{"count":1},"while":"$x","maxIterations":"$n"}`: "",
	} {
		got := sdktest.Problems(t, sdktest.Only(loop.Step()), "loop", fields)
		if want == "" && len(got) > 0 || want != "" && (len(got) != 1 || got[0] != want) {
			t.Errorf("%s: %q, want %q", fields, got, want)
		}
	}
}

// The lines of an output are read one by one, with the parts of a long one joined.
func TestLinesOf(t *testing.T) {
	page := func(text string, next int, more string) string {
		return fmt.Sprintf(`{"lines":[{"text":%q%s}],"next":%d,"finished":true,"missing":0}`, text, more, next)
	}
	const end = `{"lines":[],"next":5,"finished":true,"missing":0}`
	const each = `{"steps":{"count":1},"each":{"linesOf":"x1"}}`
	h := sdktest.New(t).
		OK("sentinel_command", page("a", 1, ""), page("b", 3, `,"open":true`), page("c", 4, ""), page("d", 5, `,"open":true`), end, end).
		OK("sentinel_block", first, first, last)
	if out, fault := run(t, each, h); fault != nil || out != `{"iterations":3,"output":"two","reason":"each"}` {
		t.Errorf("%s %v", out, fault)
	}
	if diff := cmp.Diff([]string{
		`{"blocks":[{"field":"steps","vars":{"index":0,"item":"a"}}]}`,
		`{"blocks":[{"field":"steps","vars":{"index":1,"item":"bc"}}]}`,
		`{"blocks":[{"field":"steps","vars":{"index":2,"item":"d"}}]}`,
	}, h.Requests("sentinel_block")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := h.Requests("sentinel_checkpoint")[1]; got != `{"state":{"last":"one","line":4,"passes":2}}` {
		t.Errorf("checkpoint %s", got)
	}
	for answer, want := range map[string]string{
		`{"lines":[{"text":"a"}],"next":1,"finished":false}`:            "goes on",
		`{"lines":[{"text":"a"}],"next":1,"finished":true,"missing":7}`: "7 lines of the output of x1 are not kept",
	} {
		if _, fault := run(t, each, sdktest.New(t).OK("sentinel_command", answer)); fault == nil || !strings.Contains(fault.Message, want) {
			t.Errorf("%s: %v, want %q", answer, fault, want)
		}
	}
}

// TestItems checks that items are requested in batches whose results are in their order, and what onItemError does.
func TestItems(t *testing.T) {
	const (
		bad     = `{"success":false,"output":null,"error":{"code":"denied","message":"no"}}`
		good    = `{"success":true,"output":1}`
		skipped = `{"success":false,"output":null,"skipped":true,"error":{"code":"cancelled","message":"another branch failed"}}`
	)
	for _, tt := range []struct{ name, fields, request, answer, want string }{
		{"continue", `"each":["a","b"],"maxConcurrent":2,"onItemError":"continue"`,
			`{"blocks":[{"field":"steps","vars":{"index":0,"item":"a"}},{"field":"steps","vars":{"index":1,"item":"b"}}],"concurrency":2,"isolated":true,"total":2}`,
			bad + "," + good, `{"iterations":2,"output":1,"results":[null,1],"failed":[{"index":0,"item":"a","error":{"code":"denied","message":"no"}}],"reason":"each"}`},
		{"stop", `"each":{"from":7,"to":9},"maxConcurrent":2,"onItemError":"stop"`,
			`{"blocks":[{"field":"steps","vars":{"index":0,"item":7}},{"field":"steps","vars":{"index":1,"item":8}},{"field":"steps","vars":{"index":2,"item":9}}],"concurrency":2,"drain":true,"isolated":true,"total":3}`,
			bad + "," + good + "," + skipped, `{"iterations":2,"output":1,"results":[null,1],"failed":[{"index":0,"item":7,"error":{"code":"denied","message":"no"}}],"reason":"each"}`},
		{"one after the other", `"each":["a"],"onItemError":"fail"`, `{"blocks":[{"field":"steps","vars":{"index":0,"item":"a"}}],"drain":true,"total":1}`,
			good, `{"iterations":1,"output":1,"results":[1],"failed":[],"reason":"each"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := sdktest.New(t).OK("sentinel_block", `{"blocks":[`+tt.answer+`]}`)
			out, fault := run(t, `{"steps":{"count":1},`+tt.fields+`}`, h)
			if fault != nil || out != tt.want {
				t.Errorf("got  %s %v\nwant %s", out, fault, tt.want)
			}
			if diff := cmp.Diff([]string{tt.request}, h.Requests("sentinel_block")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	h := sdktest.New(t).OK("sentinel_block", `{"blocks":[`+good+`,`+bad+`]}`)
	if _, fault := run(t, `{"steps":{"count":1},"each":[1,2],"maxConcurrent":1}`, h); fault == nil || fault.Message != "item 1: no" || fault.Code != "denied" {
		t.Errorf("fail: %+v", fault)
	}
	h = sdktest.New(t).OK("sentinel_block", `{"blocks":[`+strings.Repeat(good+",", 255)+good+`]}`, `{"blocks":[`+good+`]}`)
	if out, fault := run(t, `{"steps":{"count":1},"each":{"from":1,"to":257},"maxConcurrent":3}`, h); fault != nil || !strings.HasPrefix(out, `{"iterations":257,`) {
		t.Errorf("two batches: %.100s %v", out, fault)
	}
}

// TestEachForms checks the lists that each makes.
func TestEachForms(t *testing.T) {
	h := sdktest.New(t).OK("sentinel_eval", `{"value":["a"],"truthy":true}`).OK("sentinel_block", first)
	if out, fault := run(t, `{"steps":{"count":1},"each":{"expr":"$list"}}`, h); fault != nil || out != `{"iterations":1,"output":"one","reason":"each"}` {
		t.Errorf("expression: %s %v", out, fault)
	}
	if diff := cmp.Diff([]string{`{"state":{"last":"one","list":["a"],"passes":1}}`}, h.Requests("sentinel_checkpoint")); diff != "" {
		t.Errorf("checkpoint (-want +got):\n%s", diff)
	}
	h = sdktest.New(t).OK("sentinel_command", `{"cwd":".","files":["a.go"],"truncated":false}`).OK("sentinel_block", first)
	if out, fault := run(t, `{"steps":{"count":1},"each":{"files":"*.go"}}`, h); fault != nil || out != `{"iterations":1,"output":"one","reason":"each"}` {
		t.Errorf("files: %s %v", out, fault)
	}
	h = sdktest.New(t).OK("sentinel_command", `{"cwd":".","files":[],"truncated":false,"note":"no file matches *.go in /w"}`)
	if out, fault := run(t, `{"steps":{"count":1},"each":{"files":"*.go"}}`, h); fault != nil || out != `{"iterations":0,"output":null,"reason":"each"}` {
		t.Errorf("no files: %s %v", out, fault)
	}
	if logs := h.Logs(); len(logs) != 1 || logs[0].Level != "warn" || logs[0].Message != "each: no file matches *.go in /w" {
		t.Errorf("no files: log %v", logs)
	}
	h = sdktest.New(t).OK("sentinel_command", `{"cwd":".","files":["a.go"],"truncated":true}`)
	if _, fault := run(t, `{"steps":{"count":1},"each":{"files":"*.go"}}`, h); fault == nil || fault.Code != sdk.CodeLimit || fault.Hint == "" {
		t.Errorf("too many files: %v", fault)
	}
	h = sdktest.New(t).OK("sentinel_eval", `{"value":{"a":1},"truthy":true}`)
	if _, fault := run(t, `{"steps":{"count":1},"each":{"expr":"$list"}}`, h); fault == nil || fault.Field != "each" {
		t.Errorf("an object: %v", fault)
	}
	for fields, want := range map[string]string{
		`{"steps":{"count":1},"each":{"from":1}}`:                        "want one of linesOf, expr, files, or from and to",
		`{"steps":{"count":1},"each":{"from":1,"to":2,"files":"*"}}`:     "want one of linesOf, expr, files, or from and to",
		`{"steps":{"count":1},"each":{"linesOf":"e"},"maxConcurrent":2}`: "cannot be used with linesOf, whose lines are read one after the other",
		`{"steps":{"count":1},"count":2,"maxConcurrent":2}`:              "requires each",
		`{"steps":{"count":1},"while":"true","onItemError":"stop"}`:      "requires each",
		`{"steps":{"count":1},"count":2,"finallyTimeoutMs":9}`:           "requires finally or onFailure",
	} {
		problems := sdktest.Problems(t, sdktest.Only(loop.Step()), "loop", fields)
		if len(problems) != 1 || !strings.Contains(problems[0], want) {
			t.Errorf("%s: %v, want %q", fields, problems, want)
		}
	}
}
