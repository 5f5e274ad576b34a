package plugintest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/host/plugin/plugintest"
	"github.com/sentinel-runtime/sentinel/runtime/guest"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sdk/sdktest"
	"github.com/sentinel-runtime/sentinel/sdk/toolchain"
)

// tricky is built and compiled once for all tests of the package.
var tricky = sync.OnceValues(func() (*plugintest.Plugin, error) {
	project, err := toolchain.Open(filepath.Join("testdata", "tricky"))
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "tricky")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	out := filepath.Join(dir, "tricky.wasm")
	if err := project.Build(context.Background(), out, os.Stderr); err != nil {
		return nil, err
	}
	module, err := os.ReadFile(out)
	if err != nil {
		return nil, err
	}
	h, err := guest.Open(guest.Options{})
	if err != nil {
		return nil, err
	}
	return plugintest.Load(context.Background(), h, module, guest.LoadOptions{})
})

func load(t *testing.T) *plugintest.Plugin {
	t.Helper()
	p, err := tricky()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// posted are the calls of a post that works.
const posted = `[{"function":"http","request":{"method":"POST","body":"hey"},"ok":{"status":200,"headers":{},"body":"yo","truncated":false}},
	{"function":"sentinel_emit","request":{"event":"posted","data":"yo"},"ok":{"id":"e1"}}]`

func fakes(t *testing.T, text string) []sdktest.Fake {
	t.Helper()
	list, err := sdktest.ReadFakes([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestRun(t *testing.T) {
	p := load(t)
	in, err := p.ReadInput([]byte(`{"message":"hey"}`), "tricky_post")
	if err != nil {
		t.Fatal(err)
	}
	out, err := sdktest.Execute(t.Context(), p, in, sdktest.Answers(fakes(t, posted)))
	if err != nil || out.Error != nil {
		t.Fatal(err, out.Error)
	}
	if diff := cmp.Diff(`{"id":"e1","attempt":1}`, string(out.Output)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]sdktest.Line{{Level: "info", Message: "posting hey"}}, out.Logs); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(out.Calls) != 2 || out.Calls[0].Function != abi.FuncHTTP || !out.Calls[1].Faked || out.MemoryBytes == 0 {
		t.Errorf("%+v", out)
	}
	// A call without a scripted answer is denied, and the guest sees it.
	out, err = sdktest.Execute(t.Context(), p, in, sdktest.Answers(nil))
	if err != nil || out.Error == nil || out.Error.Code != abi.Denied || !strings.HasPrefix(out.Error.Message, "post: ") || out.Calls[0].Faked {
		t.Errorf("%v %+v", err, out)
	}
	// The sample for the call is a fake that lets it pass.
	list := fakes(t, "["+sdktest.Sample(out.Calls[0])+"]")
	if out, err = sdktest.Execute(t.Context(), p, in, sdktest.Answers(list)); err != nil || len(out.Calls) != 2 || !out.Calls[0].Faked {
		t.Errorf("%v %+v", err, out)
	}
}

// Fields are held to the schema before the guest sees them, as in a run.
func TestRunHoldsFieldsToTheSchema(t *testing.T) {
	p := load(t)
	for fields, want := range map[string]string{
		`{}`:                      "text",
		`{"text":1}`:              "text",
		`{"text":"a","oops":"b"}`: "oops",
	} {
		in, err := p.ReadInput([]byte(fields), "tricky_post")
		if err != nil {
			t.Fatal(err)
		}
		out, err := sdktest.Execute(t.Context(), p, in, sdktest.Answers(nil))
		if err != nil || out.Error == nil || out.Error.Code != abi.BadFields || !strings.Contains(out.Error.Message, want) || len(out.Calls) > 0 {
			t.Errorf("%s: %v %+v", fields, err, out)
		}
	}
	in, err := p.ReadInput([]byte(`{}`), "other")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := sdktest.Execute(t.Context(), p, in, sdktest.Answers(nil)); err != nil || out.Error == nil || !strings.Contains(out.Error.Hint, "tricky_pages") {
		t.Errorf("%v %+v", err, out)
	}
}

func TestReadInput(t *testing.T) {
	p := load(t)
	in, err := p.ReadInput([]byte(`{"step":{"type":"tricky_post","fields":{"text":"a"}},"attempt":3,"run":{"iteration":2}}`), "")
	if err != nil || in.Attempt != 3 || in.Run.Iteration != 2 || in.Step.Type != "tricky_post" {
		t.Errorf("%+v %v", in, err)
	}
	for text, want := range map[string]string{
		`[]`:           "want an object, got an array",
		`{"text":"a"}`: "several step types",
		`{"step":{"type":"tricky_post"},"tries":1}`: "tries",
	} {
		if _, err := p.ReadInput([]byte(text), ""); abi.CodeOf(err) != abi.BadFields || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestCases has, for each thing that can be wrong with a case, what is said.
func TestCases(t *testing.T) {
	p := load(t)
	for _, test := range []struct{ text, want string }{
		{`{"name":"n","step":{"type":"tricky_post","fields":{"text":"hey"}},"calls":` + posted + `,"output":{"id":"e1","attempt":1},"logs":["posting"]}`, ""},
		{`{"name":"n","step":{"type":"tricky_post","fields":{"text":"hey"}},"attempt":2,"calls":` + posted + `,"output":{"id":"e1","attempt":1}}`, "output.attempt: want 1, got 2"},
		{`{"name":"n","step":{"type":"tricky_post","fields":{"text":"ho"}},"calls":` + posted + `,"output":{"id":"e1","attempt":1}}`, `request.body: want "hey", got "ho"`},
		{`{"name":"n","step":{"type":"tricky_post","fields":{"text":"hey"}},"calls":` + posted + `,"output":{"id":"e1"}}`, "output.attempt: want nothing, got 1"},
		{`{"name":"n","step":{"type":"tricky_post","fields":{"text":"hey"}},"calls":` + posted + `,"output":["x"]}`, `output: want ["x"], got {"attempt":1,"id":"e1"}`},
		{`{"name":"n","step":{"type":"tricky_post","fields":{"text":"hey"}},"output":{}}`, "call 1: want no further call, got sentinel_http"},
		{`{"name":"n","step":{"type":"tricky_pages","fields":{}},"calls":` + posted + `,"output":0}`, "call 2, sentinel_emit, was not made"},
		{`{"name":"n","step":{"type":"tricky_post","fields":{"text":"hey"}},"calls":[{"function":"http","ok":{"status":429}}],"error":{"code":"unavailable","retryAfterMs":1500}}`, ""},
		{`{"name":"n","step":{"type":"tricky_post","fields":{"text":"hey"}},"calls":[{"function":"http","ok":{"status":429}}],"error":{"code":"denied","message":"lazy"}}`, `error.code: want "denied", got "unavailable"`},
		{`{"name":"n","step":{"type":"tricky_post","fields":{"text":"hey"}},"calls":[{"function":"http","error":{"code":"timeout","message":"slow"}}],"error":{"code":"timeout","message":"post: slow"}}`, ""},
		{`{"name":"n","step":{"type":"tricky_post","fields":{"text":"hey"}},"calls":` + posted + `,"error":{"code":"timeout"}}`, "want the error timeout, got the output"},
		{`{"name":"n","step":{"type":"tricky_post","fields":{"text":"hey"}},"calls":` + posted + `,"logs":["post","lost"]}`, `no line contains "lost"`},
		{`{"name":"n","step":{"type":"tricky_post","fields":{"text":"bad"}},"problems":[{"field":"text","message":"is bad"}]}`, ""},
		{`{"name":"n","step":{"type":"tricky_post","fields":{"text":"good"}},"problems":[{"field":"text"}]}`, "problems[0]: want"},
		{`{"name":"n","step":{"type":"tricky_post","fields":{"text":"good"}},"problems":[]}`, ""},
		{`{"name":"n","step":{"type":"tricky_pages","fields":{"steps":[{},{}]}},"calls":[{"function":"emit","ok":{}},{"function":"emit","ok":{}}],"output":2}`, ""},
		{`{"name":"n","step":{"type":"tricky_pages","fields":{"steps":[{},{}]}},"state":1,"calls":[{"function":"emit","request":{"data":1.0},"ok":{}}],"output":2}`, ""},
		// It is right as long as nothing ends the process.
		{`{"name":"n","step":{"type":"tricky_pages","fields":{"steps":[{}],"lost":true}},"calls":[{"function":"emit","ok":{}}],"output":1}`, "resume from checkpoint 1, call 2: call 3 is new: sentinel_emit"},
	} {
		cases, err := sdktest.ReadCases([]byte("[" + test.text + "]"))
		if err != nil {
			t.Errorf("%s: %v", test.text, err)
			continue
		}
		r := sdktest.Try(t.Context(), p, cases[0])
		said := strings.Join(r.Problems, "\n")
		if r.OK != (test.want == "") || !strings.Contains(said, test.want) {
			t.Errorf("%s\nsaid %q, want %q", test.text, said, test.want)
		}
	}
}

// TestTryResumes checks a step that checkpoints after each of its pages: it is
// resumed from every checkpoint, and where it ignores its state, the result names
// the checkpoint, both calls and the rule.
func TestTryResumes(t *testing.T) {
	p := load(t)
	emit := sdktest.Fake{Function: abi.FuncEmit, OK: json.RawMessage(`{}`)}
	for _, test := range []struct {
		pages, resumed int
		lost           bool
		problems       []string
	}{
		{pages: 0},
		{pages: 3, resumed: 3},
		{pages: 210, resumed: 200},
		{pages: 5, resumed: 5, lost: true, problems: []string{
			`resume from checkpoint 1, call 2: call 3 was sentinel_emit {"event":"page","data":1} and is now sentinel_emit {"event":"page","data":0}`,
			`resume from checkpoint 2, call 4: call 5 was sentinel_emit {"event":"page","data":2} and is now sentinel_emit {"event":"page","data":0}`,
			"resume from checkpoint 3, call 6: ",
			"2 more of 5 diverge",
		}},
	} {
		fields := fmt.Appendf(nil, `{"pages":%d,"lost":%t}`, test.pages, test.lost)
		r := sdktest.Try(t.Context(), p, sdktest.Case{
			Name: "pages", Step: sdktest.Step{Type: "tricky_pages", Fields: fields},
			Calls: slices.Repeat([]sdktest.Fake{emit}, test.pages), Output: fmt.Append(nil, test.pages),
		})
		if r.Checkpoints != test.pages || r.Resumed != test.resumed || len(r.Problems) != len(test.problems) || r.OK != (test.problems == nil) {
			t.Errorf("%s: %+v", fields, r)
			continue
		}
		for i, want := range test.problems {
			if !strings.Contains(r.Problems[i], want) || (i == 0) != strings.Contains(r.Problems[i], "A6.17") {
				t.Errorf("%s: problem %d is %q, want %q", fields, i, r.Problems[i], want)
			}
		}
	}
}
