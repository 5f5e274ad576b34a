package plan_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/plugins/plan"
	"github.com/sentinel-runtime/sentinel/sdk"
	"github.com/sentinel-runtime/sentinel/sdk/sdktest"
)

// tools is the host's description of three skills.
const tools = `{"total":3,"tools":[
	{"name":"fs/list","summary":"Find files.","risk":"low","returns":["files"],"schema":{"type":"object","additionalProperties":false,"properties":{"pattern":{"type":"string","description":"glob"},"maxResults":{"type":"integer"},"path_autofix":{"type":"boolean"}}}},
	{"name":"fs/read","summary":"Read a file.","risk":"low","returns":["content"],"schema":{"type":"object","additionalProperties":false,"required":["path"],"properties":{"path":{"type":"string"},"path_autofix":{"type":"boolean"}}}},
	{"name":"fs/write","summary":"Write a file.","risk":"medium","returns":[],"schema":{"type":"object","additionalProperties":false,"required":["path","content"],"properties":{"path":{"type":"string"},"content":{"type":"string"},"mode":{"type":["string","null"],"enum":["new","old",null]}}}}]}`

func execute(t *testing.T, fields string) sdk.Value {
	t.Helper()
	h := sdktest.New(t)
	if strings.HasPrefix(fields, `{"skills"`) {
		h.OK("sentinel_command", tools)
	}
	out, fault := sdktest.Run(t, sdktest.Only(plan.Step()), "plan", fields, h)
	if fault != nil {
		t.Fatal(fault)
	}
	return out
}

// check checks a plan, given as JSON.
func check(t *testing.T, text, more string) sdk.Value {
	t.Helper()
	return execute(t, `{"skills":["fs/*"],"plan":`+text+more+`}`)
}

// list is a plan of the steps.
func list(steps ...string) string {
	return `{"steps":[` + strings.Join(steps, ",") + `],"reasoning":"r"}`
}

const (
	find = `{"id":1,"description":"find","skillId":"fs_list","inputs":{"pattern":"README*"},"expectedOutput":"files"}`
	read = `{"id":2,"description":"read","skillId":"fs_read","inputs":{"path":"{{steps.1.outputs.files.0}}"},"expectedOutput":"text"}`
)

func TestCatalogue(t *testing.T) {
	out := execute(t, `{"skills":["fs/*"],"maxRisk":"low"}`)
	text := out.Get("text").StringOr("")
	for _, want := range []string{"- fs_read: Read a file.", "path*: string", "outputs: files", "{{steps.1.outputs.FIELD}}"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	if strings.Contains(text, "fs_write") || strings.Contains(text, "path_autofix") || out.Get("skills").Len() != 2 {
		t.Errorf("a risk above the limit, or a parameter that the definition sets, is offered:\n%s", text)
	}
}

// A model writes a plan in many forms.
func TestDecode(t *testing.T) {
	good := list(find, read)
	for _, form := range []string{
		good, sdk.Quote(good), sdk.Quote("```json\n" + good + "\n```"), sdk.Quote("Here it is:\n```\n" + good + "\n```\nDone."), sdk.Quote("The plan: " + good + " as asked."),
		`{"text":` + sdk.Quote(good) + `,"success":true}`, `{"text":"x","json":` + good + `}`, sdk.Quote("[" + find + "," + read + "]"), "[" + find + "," + read + "]",
	} {
		if out := check(t, form, ""); !out.Get("valid").BoolOr(false) || out.Get("plan").Get("steps").Len() != 2 {
			t.Errorf("%s: %s", form, out)
		}
	}
	for form, want := range map[string]string{
		`""`:                 "the reply is empty",
		`"I cannot do this"`: "the reply has no JSON",
		`{"a":1}`:            "the plan has no steps",
		`3`:                  "want a plan as JSON, got",
		`null`:               "want a plan as JSON, got null",
		sdk.Quote(good[:60]): "the reply is not JSON: json byte",
		`{"success":false,"error":{"code":"unavailable","message":"it broke"}}`: "the planner failed: it broke",
		`{"steps":[]}`:                "steps: want a list of 1 to 50 steps",
		`{"steps":"all"}`:             "steps: want a list of 1 to 50 steps, got",
		`{"steps":[1]}`:               "steps[0]: want an object, got",
		`"{\"a\":1,\"a\":2}"`:         "the reply is not JSON",
		list(find, find):              `steps[1].id: "1" is the id of an earlier step too`,
		list(`{"skillId":"fs_list"}`): "steps[0].id: want a number or a name",
	} {
		if out := check(t, form, ""); out.Get("valid").BoolOr(true) || out.Get("ok").BoolOr(true) || !strings.Contains(out.Get("text").StringOr(""), want) {
			t.Errorf("%s: %s, want %q", form, out, want)
		}
	}
}

// O8: "Plan used unknown skill names": "validate ids and inputs before execution".
func TestO8SkillsAndInputs(t *testing.T) {
	step := func(skill, inputs string) string {
		return list(`{"id":"a","skillId":"` + skill + `","inputs":` + inputs + `}`)
	}
	for text, want := range map[string]string{
		step("read_file", `{"path":"x"}`):                                  `steps[0].skillId: unknown skill "read_file"; the skills are fs_list, fs_read, fs_write`,
		step("fs_read", `{}`):                                              `steps[0].inputs.path: is missing`,
		step("fs_read", `{"path":1}`):                                      `steps[0].inputs.path: want "string", got`,
		step("fs_read", `{"path":"x","encoding":"utf8"}`):                  `steps[0].inputs.encoding: is not an input of fs_read`,
		step("fs_read", `"README"`):                                        `steps[0].inputs: want an object`,
		step("fs_list", `{"maxResults":"many"}`):                           `steps[0].inputs.maxResults: want "integer"`,
		step("fs_write", `{"path":"x","content":"","mode":3}`):             `steps[0].inputs.mode: want ["string","null"]`,
		step("fs_write", `{"path":"x","content":"","mode":"all"}`):         `steps[0].inputs.mode: want one of`,
		step("fs/read", `{"path":"x"}`):                                    "",
		step("fs_read", `{"path":"x"}`):                                    "",
		step("fs_write", `{"path":"x","content":"{{ name }} {{steps.}}"}`): "unknown reference",
		step("fs_write", `{"path":"x","content":"{{ name }} {{ b"}`):       "",
		step("fs_list", `{"maxResults":2.0}`):                              "",
	} {
		out := check(t, text, "")
		if got := out.Get("text").StringOr(""); out.Get("valid").BoolOr(false) != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %q", text, out, want)
		}
	}
	if out := execute(t, `{"skills":["fs/*"],"maxRisk":"low","plan":`+step("fs_write", `{"path":"x","content":""}`)+`}`); out.Get("valid").BoolOr(true) {
		t.Errorf("a skill above the risk: %s", out)
	}
}

// "dependency order, and references {{steps.N.outputs.path}} to earlier steps only."
func TestOrder(t *testing.T) {
	out := check(t, list(read, find), "")
	if got := out.Get("plan").Get("steps").At(0).Get("id").IntOr(0); got != 1 || !out.Get("ok").BoolOr(false) {
		t.Errorf("%s: step 1 must be first", out)
	}
	wait := func(id, on string) string { return `{"id":` + id + `,"skillId":"fs_list","dependsOn":[` + on + `]}` }
	for text, want := range map[string]string{
		list(read):           `depends on step "1", which the plan does not have`,
		list(wait("1", "1")): "in a circle: 1",
		list(wait("1", "3"), wait("2", "1"), wait("3", "2"), wait("4", "")):               "in a circle: 1 2 3",
		list(`{"id":1,"skillId":"fs_read","inputs":{"path":"{{steps.1.outputs.path}}"}}`): "in a circle: 1",
		list(`{"id":1,"skillId":"fs_read","inputs":{"path":"{{steps.1.result}}"}}`):       "unknown reference",
	} {
		if out := check(t, text, ""); out.Get("valid").BoolOr(true) || !strings.Contains(out.Get("text").StringOr(""), want) {
			t.Errorf("%s: %s, want %q", text, out, want)
		}
	}
}

// O7: "reject a plan equal to a failed one (normalised)": "key order, whitespace, ids
// renamed, descriptions ignored".
func TestO7EqualPlans(t *testing.T) {
	failed := check(t, list(find, read), `,"autofix":false`)
	hash := failed.Get("hash").StringOr("")
	if len(hash) != 16 {
		t.Fatalf("hash %q", hash)
	}
	more := `,"autofix":true,"failed":[{"attemptNumber":1,"hash":"0000000000000000"},{"attemptNumber":2,"hash":"` + hash + `"}]`
	for text, equal := range map[string]bool{
		list(find, read): true,
		list(
			`{"inputs":{"pattern":" README*\n"},"skillId":"fs/list","id":"search","description":"another text"}`,
			`{"skillId":"fs_read","id":"look","inputs":{"path":"{{ steps.search.outputs.files[0] }}"}}`): true,
		list(strings.Replace(find, "README", "readme", 1), read):   false,
		list(find, strings.Replace(read, "files.0", "files.1", 1)): false,
		list(find): false,
		list(find, read, `{"id":3,"skillId":"fs_list"}`):                false,
		list(strings.Replace(find, `*"`, `*","maxResults":5`, 1), read): false,
	} {
		out := check(t, text, more)
		if !out.Get("valid").BoolOr(false) || out.Get("equal").BoolOr(!equal) != equal || out.Get("ok").BoolOr(equal) == equal ||
			(out.Get("hash").StringOr("") == hash) != equal || equal && out.Get("equalTo").IntOr(0) != 2 {
			t.Errorf("%s: %s, want equal %v", text, out, equal)
		}
	}
}

// A switch of the definition, not of the model, decides about path_autofix.
func TestAutofix(t *testing.T) {
	text := list(`{"id":1,"skillId":"fs_read","inputs":{"path":"/a","path_autofix":true}}`, `{"id":2,"skillId":"fs_write","inputs":{"path":"/a","content":"/a"}}`)
	for _, on := range []bool{false, true} {
		steps := check(t, text, fmt.Sprintf(`,"autofix":%v`, on)).Get("plan").Get("steps")
		if got := steps.At(0).Get("inputs").Get("path_autofix").BoolOr(!on); got != on {
			t.Errorf("%s", steps)
		}
		if steps.At(1).Get("inputs").Get("path_autofix").Exists() {
			t.Errorf("%s: a skill without the parameter", steps)
		}
	}
}

// The content of a file never becomes code of a shell line, a program, or an option: a step
// that would do that is refused when its plan is checked, and blocked when it is prepared.
func TestOutputsAreNotCode(t *testing.T) {
	const tools = `{"total":2,"tools":[
		{"name":"code/shell/execute","summary":"Execute.","risk":"high","returns":["stdout"],"schema":{"type":"object","additionalProperties":false,"properties":{"command":{"type":"string"},"args":{"type":"array"},"argv":{"type":"array"},"env":{"type":"object"},"stdin":{"type":"string"}}}},
		{"name":"sentinel/start","summary":"Start.","risk":"medium","returns":[],"schema":{"type":"object","properties":{"definition":{"type":"object"},"inputs":{"type":"object"}}}}]}`
	const results = `[{"stepId":1,"success":true,"output":{"content":"x'; touch LAB; echo '","option":"--upload-pack=touch LAB","list":["--exec=x"],"path":"a.md"}}]`
	for _, c := range []struct{ command, inputs, want, at string }{
		{"code/shell/execute", `{"command":"echo 'title: {{steps.1.outputs.content}}'"}`, "executed as code", "command"},
		{"code/shell/execute", `{"command":"{{steps.1.outputs.content}}"}`, "executed as code", "command"},
		{"code/shell/execute", `{"argv":["sh","-c","echo {{steps.1.outputs.content}}"]}`, "executed as code", "argv"},
		{"code/shell/execute", `{"command":"node","args":["-e","{{steps.1.outputs.content}}"]}`, "executed as code", "args"},
		{"code/shell/execute", `{"argv":["{{steps.1.outputs.content}}"]}`, "executed as code", "argv"},
		{"code/shell/execute", `{"argv":"{{steps.1.outputs.list}}"}`, "executed as code", "argv"},
		{"sentinel/start", `{"definition":{"steps":[{"type":"shell","command":"echo {{steps.1.outputs.content}}"}]}}`, "executed as code", "definition"},
	} {
		h := sdktest.New(t)
		h.OK("sentinel_command", tools)
		checked, fault := sdktest.Run(t, sdktest.Only(plan.Step()), "plan", `{"skills":["*"],"plan":{"steps":[{"id":1,"skillId":"sentinel_start"},{"id":2,"skillId":"`+c.command+`","inputs":`+c.inputs+`}]}}`, h)
		if got := checked.Get("problems").String(); fault != nil || checked.Get("valid").BoolOr(true) || !strings.Contains(got, "steps[1].inputs."+c.at+": ") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %v %s, want %q", c.inputs, fault, got, c.want)
		}
	}
	for inputs, want := range map[string]string{
		`{"command":"echo {{steps.1.outputs.content}}"}`:                             "command: a reference is not replaced here",
		`{"argv":["git","fetch","{{steps.1.outputs.option}}"]}`:                      `argv[2]: the output begins with a dash`,
		`{"command":"git","args":"{{steps.1.outputs.list}}"}`:                        `args[0]: the output begins with a dash`,
		`{"argv":["cat","{{steps.1.outputs.path}}","--x={{steps.1.outputs.path}}"]}`: "",
		`{"command":"echo \"$T\"","env":{"T":"{{steps.1.outputs.content}}"}}`:        "",
		`{"command":"cat","stdin":"{{steps.1.outputs.content}}"}`:                    "",
	} {
		out := execute(t, `{"step":{"id":2,"command":"code/shell/execute","inputs":`+inputs+`,"dependsOn":["1"]},"results":`+results+`}`)
		e := out.Get("blocked").Get("error")
		if got := e.Get("message").StringOr(""); want == "" && out.Get("blocked").Exists() || !strings.Contains(got, want) || want != "" && e.Get("code").StringOr("") != "bad_fields" {
			t.Errorf("%s: %s, want %q", inputs, out, want)
		}
	}
}

func TestPrepare(t *testing.T) {
	const results = `[{"stepId":1,"success":true,"output":{"files":["a.md",{"n":2}],"n":3}},{"stepId":"x","success":false,"error":{}},{"stepId":7,"success":true,"output":{"content":"x","truncated":true}}]`
	for inputs, want := range map[string]string{
		`{"p":"{{steps.1.outputs.files.0}}"}`:                                    `{"p":"a.md"}`,
		`{"p":"{{ steps.1.output.files[1] }}"}`:                                  `{"p":{"n":2}}`,
		`{"p":["see {{steps.1.outputs.n}} and {{steps.1.outputs.files[1].n}}"]}`: `{"p":["see 3 and 2"]}`,
		`{"p":"{{name}} {{steps"}`:                                               `{"p":"{{name}} {{steps"}`,
	} {
		out := execute(t, `{"step":{"id":2,"command":"fs/read","risk":"low","inputs":`+inputs+`,"dependsOn":["1"]},"results":`+results+`}`)
		if got := out.Get("inputs").String(); got != want || out.Get("blocked").Exists() || out.Get("command").StringOr("") != "fs/read" {
			t.Errorf("%s: %s, want %s", inputs, out, want)
		}
	}
	for step, want := range map[string]string{
		`{"inputs":{"p":"{{steps.1.outputs.none}}"},"dependsOn":["1"]}`:    "the output of step 1 has no value for {{steps.1.outputs.none}}",
		`{"inputs":{"p":"{{steps.1.outputs.files.7}}"},"dependsOn":["1"]}`: "the output of step 1 has no value",
		`{"inputs":{"p":"{{steps.7.outputs.content}}"},"dependsOn":["7"]}`: "is a part of the file",
		`{"inputs":{},"dependsOn":["x"]}`:                                  "not executed, because step x failed",
		`{"inputs":{},"dependsOn":["later"]}`:                              "not executed, because step later failed",
	} {
		out := execute(t, `{"step":`+step+`,"results":`+results+`}`)
		if got := out.Get("blocked").Get("error").Get("message").StringOr(""); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %q", step, out, want)
		}
	}
}

// X13: "operator codes map to categories": the codes of the specification, by the code of
// the host, which decides about retries.
func TestX13Codes(t *testing.T) {
	for _, c := range []struct {
		command, err, want string
		retryable          bool
	}{
		{"fs/read", `{"code":"not_found","field":"path","message":"open \"x\": no such file"}`, "FILE_NOT_FOUND", false},
		{"ticket/show", `{"code":"not_found","message":"ticket \"x\""}`, "TASK_NOT_FOUND", false},
		{"fs/read", `{"code":"not_found","field":"command","message":"no such command"}`, "SKILL_NOT_FOUND", false},
		{"fs/rm", `{"code":"denied","message":"call \"fs/rm\": not among the tools of this step"}`, "SKILL_NOT_FOUND", false},
		{"fs/read", `{"code":"denied","field":"path","message":"open \"/x\": outside the workspace"}`, "PATH_RESTRICTED", false},
		{"fs/write", `{"code":"denied","field":"path","message":"models may not write files that steer tools"}`, "PERMISSION_DENIED", false},
		{"fs/write", `{"code":"denied","message":"approve: rejected by me"}`, "PERMISSION_DENIED", false},
		{"fs/list", `{"code":"bad_fields","field":"pattern","message":"bad"}`, "VALIDATION_FAILED", false},
		{"fs/list", `{"code":"bad_fields","field":"maxResults","message":"bad"}`, "INVALID_ARGS", false},
		{"x", `{"code":"timeout","message":"m"}`, "TIMEOUT", true},
		{"x", `{"code":"unavailable","message":"m"}`, "NETWORK_ERROR", true},
		{"x", `{"code":"trap","message":"m"}`, "UNKNOWN", false},
	} {
		out := execute(t, `{"step":{"id":1,"command":"`+c.command+`"},"outcome":{"success":false,"skipped":true,"error":`+c.err+`}}`)
		e := out.Get("result").Get("error")
		if e.Get("code").StringOr("") != c.want || e.Get("retryable").BoolOr(!c.retryable) != c.retryable || out.Get("result").Get("success").BoolOr(true) {
			t.Errorf("%s of %s: %s", c.err, c.command, out)
		}
	}
}

// "same tool + args twice warns, three failures in a row = stuck".
func TestRepeats(t *testing.T) {
	log, results := `[]`, `[]`
	step := func(path string, ok bool) sdk.Value {
		t.Helper()
		outcome := `{"content":"x"}`
		if !ok {
			outcome = `{"success":false,"error":{"code":"not_found","field":"path","message":"no such file"}}`
		}
		out := execute(t, `{"step":{"id":1,"skillId":"fs_read","command":"fs/read","inputs":{"path":"`+path+`"}},"outcome":`+outcome+`,"log":`+log+`,"results":`+results+`}`)
		log, results = out.Get("log").String(), out.Get("results").String()
		return out
	}
	for i, c := range []struct {
		path             string
		ok, warns, stuck bool
	}{
		{"a", false, false, false}, {"a", false, true, false}, {"b", true, false, false},
		{"c", false, false, false}, {"a", false, true, false}, {"d", false, false, true}, {"e", false, false, true}, {"d", true, false, false},
	} {
		out := step(c.path, c.ok)
		if (out.Get("warning").StringOr("") != "") != c.warns || out.Get("stuck").BoolOr(!c.stuck) != c.stuck {
			t.Errorf("%d: %s", i, out)
		}
	}
	before := log
	out := execute(t, `{"step":{"id":1,"skillId":"fs_read"},"outcome":{"success":false,"blocked":true,"error":{"code":"cancelled","message":"not executed"}},"log":`+log+`}`)
	if diff := cmp.Diff(before, out.Get("log").String()); diff != "" || !out.Get("result").Get("skipped").BoolOr(false) {
		t.Errorf("a step that was not executed counts as an action: %s", diff)
	}
}

// Results are a variable that each step writes again: outputs and inputs are bounded, and
// nothing that was cut is used by another step.
func TestLargeOutputs(t *testing.T) {
	results, big := `[]`, strings.Repeat("x", 20<<10)
	for i := range 6 {
		out := execute(t, fmt.Sprintf(`{"step":{"id":%d,"skillId":"fs_write","inputs":{"content":%q}},"outcome":{"content":%q},"results":%s}`, i+1, big, big, results))
		results = out.Get("results").String()
	}
	if len(results) > 128<<10 {
		t.Errorf("%d bytes of results", len(results))
	}
	ask := func(id int) sdk.Value {
		return execute(t, fmt.Sprintf(`{"step":{"inputs":{"path":"{{steps.%d.outputs.content}}"},"dependsOn":["%d"]},"results":%s}`, id, id, results))
	}
	if got := ask(1).Get("inputs").Get("path").StringOr(""); got != big {
		t.Errorf("%d bytes of the first output", len(got))
	}
	if got := ask(6).Get("blocked").Get("error").Get("message").StringOr(""); !strings.Contains(got, "the output of step 6 has 20494 bytes, too many") {
		t.Errorf("the last: %q", got)
	}
	if out := check(t, list(`{"id":1,"skillId":"fs_write","inputs":{"path":"a","content":"`+strings.Repeat("x", 100<<10)+`"}}`), ""); !strings.Contains(out.Get("text").StringOr(""), "bytes, the limit is 98304") {
		t.Errorf("%.200s", out)
	}
}

func TestFields(t *testing.T) {
	for fields, want := range map[string]string{
		`{"skills":["a"]}`: "", `{"step":{}}`: "", `{}`: "skills", `{"skills":[],"step":{}}`: "skills", `{"step":{},"plan":1}`: "plan", `{"skills":[],"log":[]}`: "log",
	} {
		got := sdktest.Problems(t, sdktest.Only(plan.Step()), "plan", fields)
		if len(got) > 1 || (len(got) == 1) != (want != "") || want != "" && !strings.HasPrefix(got[0], want+": ") {
			t.Errorf("%s: %v, want %q", fields, got, want)
		}
	}
}

func FuzzPlan(f *testing.F) {
	for _, seed := range []string{list(find, read), "```json\n" + list(find) + "\n```", "{", "{{steps.1.outputs.a}}", list(`{"id":"{{","skillId":"fs_read","inputs":{"path":"{{steps.a.outputs.{{steps.b.outputs}}}}"},"dependsOn":["{{"]}`)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		out := check(t, sdk.Quote(text), "")
		if !out.Get("valid").BoolOr(false) {
			if out.Get("problems").Len() == 0 || out.Get("text").StringOr("") == "" {
				t.Errorf("refused without a reason: %s", out)
			}
			return
		}
		again := check(t, sdk.Quote(text), `,"failed":[{"hash":"`+out.Get("hash").StringOr("")+`"}]`)
		if !again.Get("equal").BoolOr(false) {
			t.Errorf("a plan is not equal to itself:\n%s\n%s", out, again)
		}
		done := map[string]bool{}
		for _, s := range out.Get("plan").Get("steps").Items() {
			needs, _ := s.Get("dependsOn").AsStrings()
			for _, id := range needs {
				if !done[id] {
					t.Errorf("step %s precedes %s: %s", s.Get("id"), id, out)
				}
			}
			if n, ok := s.Get("id").AsInt(); ok {
				done[fmt.Sprint(n)] = true
			} else {
				done[s.Get("id").StringOr("")] = true
			}
		}
	})
}
