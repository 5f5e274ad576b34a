package host_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// TestSpecDraftedDefinition quotes the specification: "definition may be a reference to a
// value: decoded, validated and grant-checked when started, never more grants than the
// parent, journaled by digest; from model text the write rules of by: model hold for all
// it does."
func TestSpecDraftedDefinition(t *testing.T) {
	for _, c := range []struct {
		name, steps string // of the definition that the model writes
		named       string // a step of the parent, which is never executed
		want        string // the error, "" for none
	}{
		{"reads", `{"command":"code/read","params":{"path":"a.txt"}}`, "", ""},
		{"writes a file", `{"command":"code/write","params":{"path":"b.txt","content":"b"}}`, "", ""},
		{"writes what this program executes", `{"command":"code/write","params":{"path":".sentinel/sentinels/x.json","content":"{}"}}`, "", "may not write"},
		{"a shell line that the parent does not name", `{"cmd":"touch pwned"}`, "", `"code/shell/execute"`},
		{"a shell line within parallel branches", `{"branches":[[{"cmd":"touch pwned"}]],"failFast":true}`, "", `"code/shell/execute"`},
		{"in a definition of its own", `{"definition":{"steps":[{"cmd":"touch pwned"}]}}`, "", `"code/shell/execute"`},
		{"a stored sentinel", `{"definition":{"$ref":"toucher"}}`, "", `"code/shell/execute"`},
		{"in another folder", `{"definition":{"workspace":"/","steps":[{"command":"code/read","params":{"path":"a.txt"}}]}}`, "", "is not in"},
		{"in the folder above", `{"definition":{"workspace":"..","steps":[{"command":"code/read","params":{"path":"a.txt"}}]}}`, "", "is not in"},
		{"in a hidden folder", `{"definition":{"workspace":".github","steps":[{"command":"code/write","params":{"path":"a.yml","content":"x"}}]}}`, "", "is not in"},
		{"in the folder behind a link", `{"definition":{"workspace":"link","steps":[{"command":"code/read","params":{"path":"a.txt"}}]}}`, "", "is not in"},
		{"in a folder below", `{"definition":{"workspace":"below","steps":[{"command":"code/read","params":{"path":"../a.txt"}}]}}`, "", "outside the workspace"},
		{"a private command", `{"command":"sentinel/start","params":{"sentinelId":"toucher"}}`, "", `"sentinel/start"`},
		{"a shell line that the parent names", `{"cmd":"touch b.txt"}`, `,{"cmd":"true","condition":"false"}`, ""},
		{"watches a file", `{"type":"watch","file":"a.txt","from":"start","timeoutMs":1}`, "", ""},
		{"watches a file of secrets", `{"type":"watch","file":".env","from":"start","timeoutMs":1}`, "", "models do not read files that hold secrets"},
		{"watches the state of the host", `{"type":"watch","file":".sentinel/state/x","from":"start","timeoutMs":1}`, "", "models do not read the state of the host"},
		{"an unknown command", `{"command":"code/raed","params":{}}`, "", `unknown command "code/raed"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			newModelServer(t, func(chatRequest) answer { return answer{text: `{"steps":[` + c.steps + `]}`} })
			h := open(t, host.Options{})
			must(t, h, "sentinel/create", map[string]any{"definition": `{"id":"toucher","steps":[{"cmd":"touch pwned"}]}`}, nil)
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("a"), 0o600); err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{".env", ".sentinel/state/x"} {
				name = filepath.Join(dir, filepath.FromSlash(name))
				if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte("secret"), 0o600)); err != nil {
					t.Fatal(err)
				}
			}
			if err := errors.Join(os.Mkdir(filepath.Join(dir, "below"), 0o700), os.Symlink(t.TempDir(), filepath.Join(dir, "link"))); err != nil {
				t.Fatal(err)
			}
			res := run(t, h, fmt.Sprintf(`{"name":"drafter","steps":[
				{"type":"llm","prompt":"write one","model":"openai/m","outputTo":"draft"},
				{"definition":"$draft.json"}%s]}`, c.named), dir)
			if c.want == "" && res.Status != sentinels.StatusCompleted || c.want != "" && (res.Status != sentinels.StatusFailed || !strings.Contains(res.Error.Message, c.want)) {
				t.Errorf("%s with %v, want %s", res.Status, res.Error, strconv.Quote(c.want))
			}
			if c.name == "reads" {
				res := run(t, h, `{"name":"whole","steps":[{"type":"llm","prompt":"write one","model":"openai/m","outputTo":"draft"},{"definition":"$draft"}]}`, dir)
				if res.Error == nil || !strings.Contains(res.Error.Message, "did you mean $draft.json?") {
					t.Errorf("the whole output: %v", res.Error)
				}
			}
			if _, err := os.Stat(filepath.Join(dir, "pwned")); err == nil {
				t.Error("the shell line was executed")
			}
		})
	}
}

// TestDefinitionsThatStepsPassOn: a definition with a value of the run in it, which may come from a
// model, is bounded to the commands that the step's definition names, however a command gets
// it; one that is written in the step is its author's.
func TestDefinitionsThatStepsPassOn(t *testing.T) {
	newModelServer(t, func(chatRequest) answer {
		return answer{text: `{"name":"made","steps":[{"id":"s","cmd":"touch pwned"}]}`}
	})
	for name, c := range map[string]struct {
		step, run string
		executed  bool
	}{
		"create":         {`{"command":"sentinel/create","params":{"definition":"$draft.json"}}`, "made", false},
		"create by text": {`{"command":"sentinel/create","params":{"definition":"$draft.text"}}`, "made", false},
		"parts":          {`{"command":"sentinel/create","params":{"name":"made","steps":"$draft.json.steps"}}`, "made", false},
		"a text in it":   {`{"command":"sentinel/create","params":{"definition":{"name":"made","steps":[{"cmd":"$draft.json.steps[0].cmd"}]}}}`, "made", false},
		"beside":         {`{"command":"sentinel/create","params":{"definition":{"name":"p","steps":[{"definition":{"$ref":"made"}}]},"definitions":{"made":"$draft.json"}}}`, "made", false},
		"update":         {`{"command":"sentinel/update","params":{"sentinelId":"old","definition":{"name":"old","steps":"$draft.json.steps"}}}`, "old", false},
		"step":           {`{"command":"sentinel/step/add","params":{"sentinelId":"old","step":"$draft.json.steps[0]"}}`, "old", false},
		"import":         {`{"command":"sentinel/import","params":{"definition":"$draft.json"}}`, "made", false},
		"run":            {`{"command":"sentinel/run","params":{"definition":"$draft.json"}}`, "", false},
		"all parameters": {`{"command":"sentinel/run","params":"$all"}`, "", false},
		"named":          {`{"command":"sentinel/run","params":{"definition":"$draft.json"}},{"cmd":"true"}`, "", true},
		"written":        {`{"command":"sentinel/create","params":{"definition":{"name":"made","steps":[{"cmd":"touch pwned; echo $$HOME"}]}}}`, "made", true},
		"run, written":   {`{"command":"sentinel/run","params":{"definition":{"name":"made","steps":[{"cmd":"touch pwned"}]},"inputs":{"x":"$draft.text"}}}`, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			h, dir := open(t, host.Options{}), t.TempDir()
			old := `{"name":"made","id":"old","steps":[{"type":"set","values":{"a":1}}]}`
			must(t, h, "sentinel/create", map[string]any{"definition": old}, nil)
			res := run(t, h, `{"name":"passer","steps":[{"type":"llm","prompt":"write one","model":"openai/m","outputTo":"draft"},
				{"type":"set","values":{"all":{"definition":"$draft.json"}}},`+c.step+`]}`, dir)
			if c.run != "" {
				if res.Status != sentinels.StatusCompleted {
					t.Fatalf("%s, %v", res.Status, res.Error)
				}
				run(t, h, `{"name":"starter","steps":[{"command":"sentinel/run","params":{"sentinelId":"`+c.run+`"}}]}`, dir)
			}
			if _, err := os.Stat(filepath.Join(dir, "pwned")); (err == nil) != c.executed {
				t.Errorf("executed: %t, want %t; %s, %v", err == nil, c.executed, res.Status, res.Error)
			}
		})
	}
}

// TestToolsOfADraftedDefinition: tools of the step are what such a definition may call besides the commands
// that its parent names, but never more than the parent itself may call.
func TestToolsOfADraftedDefinition(t *testing.T) {
	const touch, shell = `{"steps":[{"cmd":"touch made"}]}`, `,"tools":["code/shell/execute"]`
	// A definition in a variable that has another one in a variable, and gives it the tools.
	const within = `{"steps":[{"type":"set","values":{"inner":` + touch + `}},{"type":"sentinel","definition":"$inner"` + shell + `}]}`
	h := open(t, host.Options{})
	for name, c := range map[string]struct {
		fan, tools string
		want       string // the error, "" for none
	}{
		"without":                  {touch, "", `"code/shell/execute"`},
		"others":                   {touch, `,"tools":["code/read"]`, `"code/shell/execute"`},
		"with":                     {touch, shell, ""},
		"of a bounded one":         {within, "", `"code/shell/execute"`},
		"of a bounded one with it": {within, shell, ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			res := run(t, h, `{"name":"drafter","steps":[{"type":"set","values":{"fan":`+c.fan+`}},{"type":"sentinel","definition":"$fan"`+c.tools+`}]}`, dir)
			_, err := os.Stat(filepath.Join(dir, "made"))
			if c.want == "" && (res.Status != sentinels.StatusCompleted || err != nil) || c.want != "" && (res.Error == nil || !strings.Contains(res.Error.Message, c.want) || err == nil) {
				t.Errorf("%s with %v, want %q", res.Status, res.Error, c.want)
			}
		})
	}
}
