package definitions_test

import (
	"testing"

	"github.com/sentinel-runtime/sentinel/host/cli/clitest"
)

const (
	noProblem = `{"valid":true,"sentinelId":"a","problems":[]}`
	edited    = `{"sentinelId":"a","revision":3,"hash":"h","steps":1}`
	stored    = `{"sentinels":[{"sentinelId":"a","name":"a"}],"runs":[]}`
	diff      = `{"sentinelId":"a","from":2,"to":3,"text":"--- a\n+++ b\n-old\n+new\n"}`
	text      = `{"name": "a", "steps": [{"type": "wait", "durationMs": 1}]}`
	escaped   = `"{\"name\": \"a\", \"steps\": [{\"type\": \"wait\", \"durationMs\": 1}]}"`
)

func TestWrite(t *testing.T) {
	saved := map[string]any{"sentinel/validate": noProblem, "sentinel/create": `{"sentinelId":"a","name":"a","revision":2,"warning":"the file is read-only"}`}
	clitest.Check(t, []clitest.Case{
		{Args: []string{"create", "-"}, Stdin: text, Results: saved,
			Calls:  []string{`sentinel/validate {"definition":` + escaped + `,"edit":true}`, `sentinel/create {"definition":` + escaped + `}`},
			Stdout: []string{"a  revision 2\n"}, Stderr: []string{"warning: the file is read-only"}},
		{Args: []string{"create", "-", "--revision", "0", "-o", "jsonl"}, Stdin: text, Results: saved,
			Calls:  []string{`sentinel/validate {"definition":` + escaped + `,"edit":true}`, `sentinel/create {"definition":` + escaped + `,"revision":0}`},
			Stdout: []string{`{"sentinelId":"a","name":"a","revision":2,"hash":"","warning":"the file is read-only"}` + "\n"}},
		{Args: []string{"create", "--name", "n", "--steps", `[{"type":"wait"}]`, "--loop", `{"type":"once"}`}, Results: saved,
			Calls: []string{`sentinel/create {"loop":{"type":"once"},"name":"n","steps":[{"type":"wait"}]}`}, Stdout: []string{"a  revision 2"}},
		{Args: []string{"create", "-"}, Stdin: text, Code: 3, Stderr: []string{"-:1:9: steps: too few", "hint: add one"},
			Results: map[string]any{"sentinel/validate": `{"valid":false,"problems":[{"line":1,"column":9,"path":"steps","kind":"value","message":"too few","hint":"add one"}]}`},
			Calls:   []string{`sentinel/validate {"definition":` + escaped + `,"edit":true}`}},
		{Args: []string{"create", "--name", "n"}, Code: 2, Stderr: []string{"give FILE, or --name and --steps"}},
		{Args: []string{"create", "--name", "n", "--steps", "["}, Code: 2, Stderr: []string{"--steps: "}},
		{Args: []string{"create", "missing.json"}, Code: 5, Stderr: []string{`no file "missing.json"`}},
		{Args: []string{"update", "-", "--note", "why", "--revision", "2"}, Stdin: text, Stdout: []string{"a  revision 3\n", "+new"},
			Results: map[string]any{"sentinel/validate": noProblem, "sentinel/update": edited, "sentinel/diff": diff},
			Calls:   []string{`sentinel/validate {"definition":` + escaped + `,"edit":true}`, `sentinel/update {"definition":` + escaped + `,"note":"why","revision":2,"sentinelId":"a"}`, `sentinel/diff {"sentinelId":"a","to":3}`}},
		{Args: []string{"delete", "a"}, Results: map[string]any{"sentinel/delete": `{"sentinelId":"a","revision":4,"runs":2}`},
			Calls: []string{`sentinel/delete {"sentinelId":"a"}`}, Stdout: []string{"a  deleted with revision 4"}, Stderr: []string{"2 runs", "sentinel rollback a 3"}},
		{Args: []string{"rollback", "a", "@2", "--note", "n"}, Results: map[string]any{"sentinel/rollback": edited, "sentinel/diff": diff},
			Calls: []string{`sentinel/rollback {"note":"n","sentinelId":"a","to":2}`, `sentinel/diff {"sentinelId":"a","to":3}`}, Stdout: []string{"a  revision 3"}},
		{Args: []string{"accept", "a", "@2", "--note", "n"}, Results: map[string]any{"sentinel/accept": edited, "sentinel/diff": diff},
			Calls: []string{`sentinel/accept {"note":"n","revision":2,"sentinelId":"a"}`, `sentinel/diff {"sentinelId":"a","to":3}`}, Stdout: []string{"a  revision 3"}},
		{Args: []string{"rollback", "a", "first"}, Code: 2, Stderr: []string{`"first"`, "a revision is a number"}},
		{Args: []string{"load", "x.json"}, Code: 3, Stderr: []string{"x.json: bad", "1 file is not loaded"},
			Results: map[string]any{"sentinel/load": `{"loaded":[],"problems":[{"file":"x.json","problem":"x.json: bad"}]}`}, Calls: []string{`sentinel/load {"path":"DIR/x.json"}`}},
	})
}

func TestSteps(t *testing.T) {
	results := map[string]any{"sentinel/list": stored, "sentinel/step/add": edited, "sentinel/step/update": edited, "sentinel/step/remove": edited, "sentinel/diff": diff,
		"sentinel/step/list": `{"sentinelId":"a","revision":3,"steps":[{"address":"0","type":"shell","name":"build","step":{"type":"shell"},"last":"failed","error":{"code":"plugin","message":"exit code 1"}}]}`}
	find, show := `sentinel/list {"only":"sentinels","sentinelId":"a"}`, `sentinel/diff {"sentinelId":"a","to":3}`
	clitest.Check(t, []clitest.Case{
		{Args: []string{"step", "add", "a", "--index", "2", "--step", `{"type":"wait"}`}, Results: results, Stdout: []string{"a  revision 3"},
			Calls: []string{find, `sentinel/step/add {"index":2,"sentinelId":"a","step":{"type":"wait"}}`, show}},
		{Args: []string{"step", "update", "a", "3.then.0", "--params", `{"x":1}`, "--revision", "2"}, Results: results, Stdout: []string{"a  revision 3"},
			Calls: []string{find, `sentinel/step/update {"address":"3.then.0","params":{"x":1},"revision":2,"sentinelId":"a"}`, show}},
		{Args: []string{"step", "remove", "--sentinelId", "a", "--index", "0", "-q"}, Results: results, Stdout: []string{"a  revision 3"},
			Calls: []string{find, `sentinel/step/remove {"index":0,"sentinelId":"a"}`}},
		{Args: []string{"step", "list", "a"}, Results: results, Stdout: []string{"ADDRESS", "shell", "failed exit code 1", "build"},
			Calls: []string{find, `sentinel/step/list {"sentinelId":"a"}`}},
		{Args: []string{"step", "add", "a"}, Code: 2, Stderr: []string{"--step is missing"}},
		{Args: []string{"step", "update", "a", "0"}, Code: 2, Stderr: []string{"give either --params or --step"}},
		{Args: []string{"step", "remove", "a"}, Code: 2, Stderr: []string{"no step is named"}},
		{Args: []string{"step", "remove", "a", "0", "--index", "1"}, Code: 2, Stderr: []string{`unexpected argument "0"`}},
		{Args: []string{"step", "remove", "a", "--index", "-3"}, Code: 2, Stderr: []string{"--index -3 is below 0"}},
	})
}

func TestTransfer(t *testing.T) {
	clitest.Check(t, []clitest.Case{
		{Args: []string{"export", "a"}, Results: map[string]any{"sentinel/list": stored, "sentinel/export": `{"definition":{"name":"a < b"}}`},
			Calls: []string{`sentinel/list {"only":"sentinels","sentinelId":"a"}`, `sentinel/export {"sentinelId":"a"}`}, Stdout: []string{"{\n  \"name\": \"a < b\"\n}\n"}},
		{Args: []string{"export", "--all", "--history"}, Results: map[string]any{"sentinel/export": `{"bundle":{"format":1}}`},
			Calls: []string{`sentinel/export {"all":true,"history":true}`}, Stdout: []string{`"format": 1`}},
		{Args: []string{"export"}, Code: 2, Stderr: []string{"give NAME, or --all"}},
		{Args: []string{"import", "-", "--rename", "a=b", "--overwrite"}, Stdin: text,
			Results: map[string]any{"sentinel/import": `{"imported":[{"sentinelId":"b","revision":1,"change":"created"}],"notes":["plugin \"x\" is not loaded here"]}`},
			Calls:   []string{`sentinel/import {"file":"TEMP","overwrite":true,"rename":{"a":"b"}}`}, Stdout: []string{"b", "created"}, Stderr: []string{`plugin "x" is not loaded here`}},
		{Args: []string{"import", "-", "--rename", "="}, Code: 2, Stderr: []string{"want OLD=NEW"}},
		{Args: []string{"deploy", "a", "--to", "/project"}, Results: map[string]any{"sentinel/deploy": `{"sentinelId":"a","to":"/project","files":[{"file":"a.json","kind":"definition","change":"created"}],"missing":["b"],"notes":["allow it"]}`},
			Calls: []string{`sentinel/deploy {"sentinelId":"a","to":"/project"}`}, Stdout: []string{"/project/a.json", "created"}, Stderr: []string{"not stored here: b", "allow it"}},
		{Args: []string{"deploy", "a"}, Code: 2, Stderr: []string{"--to is missing"}},
	})
}

func TestHistory(t *testing.T) {
	clitest.Check(t, []clitest.Case{
		{Args: []string{"diff", "a", "2", "@3"}, Results: map[string]any{"sentinel/list": stored, "sentinel/diff": diff}, Stdout: []string{"-old\n+new\n"},
			Calls: []string{`sentinel/list {"only":"sentinels","sentinelId":"a"}`, `sentinel/diff {"from":2,"sentinelId":"a","to":3}`}},
		{Args: []string{"diff", "a", "0"}, Code: 2, Stderr: []string{`"0"`}},
		{Args: []string{"revisions", "a", "--limit", "2"}, Stdout: []string{"by ann", "why"},
			Results: map[string]any{"sentinel/revisions": `{"sentinelId":"a","revisions":[{"revision":3,"savedAt":"2026-01-02T03:00:00Z","by":"by ann","note":"why"}]}`},
			Calls:   []string{`sentinel/revisions {"limit":2,"sentinelId":"a"}`}},
		{Args: []string{"revisions", "a", "--limit", "-1"}, Code: 2, Stderr: []string{"--limit -1 is below 0"}},
	})
}
