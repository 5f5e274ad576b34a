package plugins_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	stdruntime "runtime"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/cli"
	"github.com/sentinel-runtime/sentinel/host/cli/app"
	"github.com/sentinel-runtime/sentinel/host/cli/clitest"
	"github.com/sentinel-runtime/sentinel/host/plugin/bundle/lock"
	"github.com/sentinel-runtime/sentinel/runtime/guest"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

func TestMain(m *testing.M) {
	guest.ServeChild()
	os.Exit(m.Run())
}

// Answers of plugin/allow: a plan, and the state of a plugin after a decision.
const (
	digest = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	plan   = `{"plugin":{"name":"scan","source":"scan.wasm","state":"live","types":["scan","scan_all"]},"digest":"` + digest + `",` +
		`"permissions":[{"use":"http","names":["api.example.com"],"reason":"It posts."},{"use":"secret","names":["TOKEN"],"reason":"It logs in."},{"use":"folder","names":["data:rw"],"reason":"It writes."}],` +
		`"grant":{"allow":[{"use":"http","names":["api.example.com"]},{"use":"secret","names":["TOKEN"]}],"secrets":{"TOKEN":["api.example.com"]},"folders":{"data":{"path":"reports","write":true}},"reuse":true,"private":true,"memory":134217728},` +
		`"pin":true,"far":["the secret TOKEN, sent to api.example.com"],"notes":["its steps end after 30s"]}`
	free = `{"plugin":{"name":"free","source":"free.wasm","state":"live"},"digest":"` + digest + `","grant":{}}`
)

// plain returns the result of a plugin after a decision.
func plain(fields string) map[string]any {
	return map[string]any{"plugin/allow": `{"plugin":{` + fields + `},"digest":"d"}`, "plugin/deny": `{"plugin":{` + fields + `},"digest":"d"}`}
}

func TestAllow(t *testing.T) {
	results := map[string]any{"plugin/allow": plan}
	dry, done := `plugin/allow {"by":"ann","dryRun":true,"name":"scan"}`, `plugin/allow {"by":"ann","digest":"`+digest+`","name":"scan"}`
	clitest.Check(t, []clitest.Case{
		{Args: []string{"plugin", "allow", "scan", "--yes"}, Results: results, Calls: []string{dry, done},
			Stdout: []string{"plugin scan is live, with the step types scan, scan_all\n"},
			Stderr: []string{"scan  scan.wasm  0123456789ab\n", "  asks for  http api.example.com  It posts.\n", "  asks for  secret TOKEN  It logs in.\n",
				"  may       http api.example.com\n  may       send the secret TOKEN to api.example.com\n  may       read and write the folder reports, which it calls data\n" +
					"  may       send requests to addresses that are not public\n  may       use an instance for several steps\n  may       use 128 MB of memory\n",
				"  far:      the secret TOKEN, sent to api.example.com\n", "  for these bytes only: a changed file waits again\n", "  note:     its steps end after 30s\n"}},
		{Args: []string{"plugin", "allow", "scan", "--yes", "-o", "jsonl"}, Results: results, Calls: []string{dry, done},
			Stdout: []string{`{"plugin":{"name":"scan","source":"scan.wasm",`, `"far":["the secret TOKEN, sent to api.example.com"]`}},
		{Args: []string{"plugin", "allow", "free", "-y"}, Results: map[string]any{"plugin/allow": free},
			Calls:  []string{`plugin/allow {"by":"ann","dryRun":true,"name":"free"}`, `plugin/allow {"by":"ann","digest":"` + digest + `","name":"free"}`},
			Stdout: []string{"plugin free is live"}, Stderr: []string{"  it asks for nothing\n  may       nothing but run\n"}},
		{Args: []string{"plugin", "allow", "scan", "-y", "--only", "http=a.example.com,b.example.com", "--only", "emit=x:*", "--deny", "llm", "--deny", "folder",
			"--secret", "TOKEN=a.example.com", "--secret", "TOKEN=b.example.com,c.example.com", "--folder", "data=reports:rw", "--folder", "more=/srv/more",
			"--memory", "128", "--timeout", "1m30s", "--reuse", "--private", "--pin", "--digest", "0123", "--dry-run"}, Results: results,
			Calls: []string{`plugin/allow {"by":"ann","deny":["llm","folder"],"digest":"0123","dryRun":true,"folders":{"data":{"path":"reports","write":true},"more":{"path":"/srv/more"}},` +
				`"memoryMb":128,"name":"scan","only":[{"names":["a.example.com","b.example.com"],"use":"http"},{"names":["x:*"],"use":"emit"}],"pin":true,"private":true,"reuse":true,` +
				`"secrets":{"TOKEN":["a.example.com","b.example.com","c.example.com"]},"timeoutMs":90000}`},
			Stderr: []string{"  asks for  http api.example.com"}},
		{Args: []string{"plugin", "allow", "scan", "--follow", "--dry-run", "-o", "json"}, Results: results,
			Calls: []string{`plugin/allow {"by":"ann","dryRun":true,"follow":true,"name":"scan"}`}, Stdout: []string{"\n  \"digest\": \"" + digest + "\",\n", "\"pin\": true"}},
		// Nothing is decided without an answer.
		{Args: []string{"plugin", "allow", "scan"}, Stdin: "yes\n", Results: results, Calls: []string{dry}, Code: 2,
			Stderr: []string{"  asks for  http", "sentinel: no terminal to confirm the permissions\n", "hint: read what it asks for, then add --yes: sentinel plugin allow scan --yes\n"}},
		{Args: []string{"plugin", "allow", "scan", "-o", "json"}, Results: results, Calls: []string{dry}, Code: 2, Stderr: []string{"  asks for  http", "no terminal to confirm"}},
		{Args: []string{"plugin", "allow", "scna", "-y"}, Code: 5, Calls: []string{`plugin/allow {"by":"ann","dryRun":true,"name":"scna"}`},
			Results: map[string]any{"plugin/allow": &abi.Error{Code: abi.NotFound, Message: "no plugin", Hint: `did you mean "scan"?`}}, Stderr: []string{"no plugin", `hint: did you mean "scan"?`}},
		{Args: []string{"plugin", "allow", "scan", "-y", "-o", "json"}, Code: 4, Calls: []string{dry},
			Results: map[string]any{"plugin/allow": &abi.Error{Code: abi.Denied, Message: "only a person can decide"}}, Stderr: []string{"only a person can decide"}},
		{Args: []string{"plugin", "allow"}, Code: 2, Stderr: []string{"sentinel plugin allow: NAME is missing", "hint: usage: sentinel plugin allow NAME"}},
		{Args: []string{"plugin", "allow", "scan", "free"}, Code: 2, Stderr: []string{`unexpected argument "free"`}},
		{Args: []string{"plugin", "allow", "scan", "--only", "http"}, Code: 2, Stderr: []string{`--only "http" is not USE=NAME[,NAME...]`}},
		{Args: []string{"plugin", "allow", "scan", "--secret", "=a.example.com"}, Code: 2, Stderr: []string{`--secret "=a.example.com" is not NAME=HOST[,HOST...]`}},
		{Args: []string{"plugin", "allow", "scan", "--folder", "data="}, Code: 2, Stderr: []string{`--folder "data=" is not WORD=PATH[:rw]`}},
		{Args: []string{"plugin", "allow", "scan", "--folder", "data=a", "--folder", "data=b"}, Code: 2, Stderr: []string{"--folder data is given twice"}},
		{Args: []string{"plugin", "allow", "scan", "--folder", "data=~/reports"}, Code: 2, Stderr: []string{`--folder "data=~/reports": the variable HOME is not set` + "\nhint: give the absolute path\n"}},
		{Args: []string{"plugin", "allow", "scan", "--memory", "0"}, Code: 2, Stderr: []string{"--memory 0 is below 1\n"}},
		{Args: []string{"plugin", "allow", "scan", "--memory", "-64"}, Code: 2, Stderr: []string{"--memory -64 is below 1\n"}},
		{Args: []string{"plugin", "allow", "scan", "--timeout", "0"}, Code: 2, Stderr: []string{"--timeout 0s is below 1ms\n"}},
		{Args: []string{"plugin", "allow", "scan", "--timeout", "-1s"}, Code: 2, Stderr: []string{"--timeout -1s is below 1ms\n"}},
		{Args: []string{"plugin", "allow", "scan", "--timeout", "999us"}, Code: 2, Stderr: []string{"--timeout 999µs is below 1ms\n"}},
		{Args: []string{"plugin", "allow", "scan", "--memory", "lots"}, Code: 2, Stderr: []string{`invalid --memory "lots": want a whole number`, "hint: sentinel plugin allow --help"}},
	})
}

// A program that has said yes gets JSON and nothing else.
func TestAllowForPrograms(t *testing.T) {
	for _, format := range []string{"json", "jsonl"} {
		out := clitest.Run(t, &clitest.Engine{Results: map[string]any{"plugin/allow": plan}}, t.TempDir(), "", "plugin", "allow", "scan", "--yes", "-o", format)
		if !json.Valid([]byte(out.Stdout)) || out.Stderr != "" || out.Code != 0 || (strings.Count(out.Stdout, "\n") == 1) != (format == "jsonl") {
			t.Errorf("%s: %+v", format, out)
		}
	}
}

func TestDecided(t *testing.T) {
	deny := []string{`plugin/deny {"by":"ann","name":"scan"}`}
	clitest.Check(t, []clitest.Case{
		{Args: []string{"plugin", "deny", "scan"}, Results: plain(`"name":"scan","source":"scan.wasm","state":"waiting","problem":"denied","approval":{"denied":true,"seal":"sealed"}`),
			Calls: deny, Stdout: []string{"plugin scan is denied\n"}},
		{Args: []string{"plugin", "deny", "scan", "-q"}, Results: plain(`"name":"scan","approval":{"denied":true,"seal":"sealed"}`),
			Calls: deny, Stdout: []string{"plugin scan is denied, and there is no file of it\n"}},
		{Args: []string{"plugin", "deny", "scan", "-o", "jsonl"}, Results: plain(`"name":"scan","state":"waiting","approval":{"denied":true,"seal":"sealed"}`),
			Calls: deny, Stdout: []string{`"approval":{"at":"0001-01-01T00:00:00Z","denied":true,"seal":"sealed"}},"digest":"d"}` + "\n"}},
		{Args: []string{"plugin", "deny", "scan"}, Code: 1, Calls: deny, Results: map[string]any{"plugin/deny": errors.New("disk is full")}, Stderr: []string{"sentinel: disk is full\n"}},
		{Args: []string{"plugin", "deny"}, Code: 2, Stderr: []string{"sentinel plugin deny: NAME is missing"}},
		{Args: []string{"plugin", "deny", "scan", "--yes"}, Code: 2, Stderr: []string{"unknown flag: --yes"}},
		{Args: []string{"plugin", "allow", "scan", "-y"}, Results: plain(`"name":"scan","state":"waiting","problem":"too many plugins are live"`),
			Calls:  []string{`plugin/allow {"by":"ann","dryRun":true,"name":"scan"}`, `plugin/allow {"by":"ann","digest":"d","name":"scan"}`},
			Stdout: []string{"plugin scan is waiting: too many plugins are live\n"}},
	})
}

const listed = `{"plugins":[
	{"name":"builtin","version":"1","source":"(built in)","digest":"aaaaaaaaaaaaaaaa","state":"live","types":["shell","wait"],"trusted":true,"permissions":[{"use":"command","reason":"It is part of the program."}]},
	{"name":"free","version":"2","source":"free.wasm","digest":"bbbbbbbbbbbbbbbb","state":"live","types":["free"],"trusted":false},
	{"name":"scan","version":"3","source":"scan.wasm","digest":"cccccccccccccccc","state":"live","types":["scan"],"trusted":false,
		"permissions":[{"use":"emit","names":["a:*"],"reason":"It tells."}],"grant":{"allow":[{"use":"emit","names":["a:*"]}]},
		"approval":{"by":"ann","at":"2026-01-02T12:00:00Z","pin":true,"seal":"sealed"},
		"next":{"version":"4","digest":"dddddddddddddddd","permissions":[{"use":"emit","names":["a:*"],"reason":"It tells."},{"use":"llm","reason":"It asks."}],"missing":[{"use":"llm","reason":"It asks."}],"problem":"it asks for more"}},
	{"name":"gone","version":"5","source":"gone.wasm","digest":"eeeeeeeeeeeeeeee","state":"waiting","types":["gone"],"trusted":false,"problem":"it was denied",
		"approval":{"by":"bob","at":"2026-01-02T12:00:00Z","denied":true,"seal":"broken"}},
	{"name":"bad","source":"bad.wasm","state":"refused","trusted":false,"problem":"not a WebAssembly module\nat offset 0"}]}`

func TestList(t *testing.T) {
	results, calls := map[string]any{"plugin/list": listed}, []string{"plugin/list {}"}
	clitest.Check(t, []clitest.Case{
		{Args: []string{"plugin", "list"}, Results: results, Calls: calls, Stdout: []string{
			"PLUGIN   VERSION  STATE     FILE        DIGEST        STEP TYPES\n",
			"builtin  1        built in  (built in)  aaaaaaaaaaaa  shell wait\n",
			"free     2        live      free.wasm   bbbbbbbbbbbb  free\n",
			"scan     3        waiting   scan.wasm   cccccccccccc  scan\n",
			"gone     5        denied    gone.wasm   eeeeeeeeeeee  gone\n",
			"bad               refused   bad.wasm\n\nscan\n  version 3 serves; version 4 (dddddddddddd) waits\n  it asks for more\n  asks for  emit a:*  It tells.\n  asks for  llm  It asks.\n  new       llm  It asks.\n  may       emit a:*\n  allowed by ann at 2026-01-0",
			", for these bytes only\n  hint: sentinel plugin allow scan\n",
			"\ngone\n  it was denied\n  denied by bob at 2026-01-0", ", elsewhere or edited since: it does not count here\n  hint: sentinel plugin allow gone\n",
			"\nbad\n  not a WebAssembly module\n    at offset 0\n"}},
		{Args: []string{"plugin", "list", "-o", "jsonl"}, Results: results, Calls: calls,
			Stdout: []string{"\n" + `{"name":"free","version":"2","source":"free.wasm","digest":"bbbbbbbbbbbbbbbb","state":"live","types":["free"],"trusted":false}` + "\n"}},
		{Args: []string{"plugin", "list", "-o", "json"}, Results: map[string]any{"plugin/list": `{"plugins":[]}`}, Calls: calls, Stdout: []string{"[]\n"}},
		{Args: []string{"plugin", "list", "-o", "yaml"}, Code: 2, Stderr: []string{`invalid --output "yaml": want table, json or jsonl`}},
		{Args: []string{"plugin", "list", "scan"}, Code: 2, Stderr: []string{`sentinel plugin list: unexpected argument "scan"`}},
		{Args: []string{"plugin", "list"}, Results: map[string]any{"plugin/list": &abi.Error{Code: abi.Unavailable, Message: "the store is closing"}}, Calls: calls, Code: 1, Stderr: []string{"the store is closing"}},
		{Args: []string{"plugin", "lst"}, Code: 2, Stderr: []string{`plugin: unknown command "lst"`, `hint: did you mean "list"?`}},
		{Args: []string{"plugin", "zzzzzz"}, Code: 2, Stderr: []string{"hint: sentinel plugin --help lists them"}},
	})
}

// wasm returns a small plugin of the runtime's tests.
func wasm(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "runtime", "internal", "wasm", "testdata", "wat", name+".wasm"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestModules(t *testing.T) {
	files := map[string]string{
		"count.wasm": wasm(t, "count"), "asked.wasm": wasm(t, "asked"), "broken.wasm": "text", ".sentinel/plugins/count.wasm": wasm(t, "count"), "more/echo.wasm": wasm(t, "echo"),
		"project/plugin.json": `{"language": "go", "name": "shout"}`, "odd/plugin.json": `{"language": "cobol", "name": "shout"}`,
		"fakes.json": `[{"function": "emit"}]`, "cases.json": `[{"name": "once", "step": {"type": "count"}, "output": 99}]`,
	}
	cases := []clitest.Case{
		{Args: []string{"plugin", "inspect", "count.wasm"}, Stdout: []string{"file       count.wasm\n", "signature  none\n", "plugin     count 1, ABI 1\n", "step type  count", "asks for   nothing: it is live at once\n"}},
		{Args: []string{"plugin", "inspect", "count", "-o", "jsonl"}, Stdout: []string{`{"file":".sentinel/plugins/count.wasm",`, `"name":"count"`}},
		{Args: []string{"plugin", "inspect", "echo", "--plugins", "more"}, Stdout: []string{"file       more/echo.wasm\n"}},
		{Args: []string{"plugin", "inspect", "asked.wasm", "-v"}, Stdout: []string{"asks for    llm: the test needs it\n", "host calls  sentinel_llm\n", "export      run () -> i32\n"}},
		{Args: []string{"plugin", "inspect", "broken.wasm"}, Code: 2, Stdout: []string{"size       4 bytes\n"}, Stderr: []string{"not a WebAssembly module"}},
		{Args: []string{"plugin", "inspect", "absent"}, Code: 5, Stderr: []string{`no plugin ".sentinel/plugins/absent.wasm"`, "hint: give the file of a module"}},
		{Args: []string{"plugin", "inspect"}, Code: 2, Stderr: []string{"sentinel plugin inspect: the module is missing"}},
		{Args: []string{"plugin", "inspect", "odd"}, Code: 2, Stderr: []string{"DIR/odd/plugin.json", `hint: it holds {"language": "go", "name": "shout"}`}},
		{Args: []string{"plugin", "call", "count.wasm"}, Stdout: []string{"11\n"}},
		{Args: []string{"plugin", "call", "count.wasm", "-o", "jsonl"}, Stdout: []string{`{"output":11,"calls":[],"logs":[],`}},
		{Args: []string{"plugin", "call", "count.wasm", "--input", "{"}, Code: 2, Stderr: []string{"sentinel: read input: line 1, column 2: the text ends before the value does\n", "hint: give the step's fields"}},
		{Args: []string{"plugin", "call", "count.wasm", "--type", "shout"}, Code: 2, Stderr: []string{`the step ended with bad_fields: plugin "count" has no step type "shout"`, "hint: it has count\n"}},
		{Args: []string{"plugin", "call", "count.wasm", "--input", "@absent.json"}, Code: 5, Stderr: []string{"--input: stat DIR/absent.json"}},
		{Args: []string{"plugin", "call", "count.wasm", "--fake", "absent.json"}, Code: 5, Stderr: []string{"--fake: stat DIR/absent.json"}},
		{Args: []string{"plugin", "call", "count.wasm", "--fake", "fakes.json"}, Code: 2, Stderr: []string{"read fakes: entry 1, sentinel_emit: want either ok or error\n"}},
		{Args: []string{"plugin", "bench", "count.wasm", "--n", "0"}, Code: 2, Stderr: []string{"--n 0 is below 1\n"}},
		{Args: []string{"plugin", "bench", "count.wasm", "--n", "1", "-o", "jsonl"}, Stdout: []string{`{"what":"step, fresh instance","ms":`, `,"n":1,"note":"instance, describe and step`, "\n" + `{"what":"memory after it","bytes":65536,`}},
		{Args: []string{"plugin", "test", "count.wasm", "--run", "("}, Code: 2, Stderr: []string{"plugin test: --run: error parsing regexp"}},
		{Args: []string{"plugin", "test", "count.wasm"}, Code: 5, Stderr: []string{"plugin test: stat DIR/tests/cases.json", "--cases names another file"}},
		{Args: []string{"plugin", "test", "count.wasm", "--abi", "--cases", "absent.json"}, Code: 5, Stderr: []string{"absent.json"}},
		{Args: []string{"plugin", "test", "count.wasm", "--cases", "cases.json"}, Code: 1, Stdout: []string{"FAIL once  ", "     output: want 99, got 11\n"}, Stderr: []string{"0 passed, 1 failed\n"}},
		{Args: []string{"plugin", "test", "count.wasm", "--cases", "cases.json", "-o", "jsonl"}, Code: 1, Stdout: []string{`{"name":"once","ok":false,"problems":["output: want 99, got 11"],`}},
		{Args: []string{"plugin", "build", "absent"}, Code: 5, Stderr: []string{`open project "DIR/absent": no plugin.json there`}},
		{Args: []string{"plugin", "new", "shout"}, Stdout: []string{"shout\n"}, Stderr: []string{"next: edit shout/plugin.go, then sentinel plugin build shout, sentinel plugin test shout\n"}},
		{Args: []string{"plugin", "new", "json_diff", "--dir", "my work/it", "-o", "jsonl"}, Stdout: []string{`{"dir":"DIR/my work/it","language":"go","name":"json_diff","source":"plugin.go"}` + "\n"}},
		{Args: []string{"plugin", "new", "shout", "--dir", "project"}, Code: 1, Stderr: []string{`create project "DIR/project": there is something already`, "hint: take another folder with --dir"}},
		{Args: []string{"plugin", "new", "a-b"}, Code: 2, Stderr: []string{`plugin new: name "a-b": want a small letter`, "hint: the name is that of a step type too"}},
		{Args: []string{"plugin", "new"}, Code: 2, Stderr: []string{"sentinel plugin new: the name is missing"}},
		{Args: []string{"plugin", "pack", "project"}, Code: 5, Stderr: []string{"there is no project/shout.wasm", "hint: build it first: sentinel plugin build project"}},
		{Args: []string{"plugin", "pack", "count.wasm", "-f", "out/x.tar"}, Code: 1, Stderr: []string{`write package "DIR/out/x.tar": `}},
		{Args: []string{"plugin", "pack", "count.wasm", "-o", "jsonl"}, Stdout: []string{`"name":"count","signed":false,"to":"count-1.tar","version":"1"}` + "\n"}},
		{Args: []string{"plugin", "push", "count.wasm", "nowhere"}, Code: 2, Stderr: []string{`read reference "nowhere": want HOST/NAME:TAG or HOST/NAME@sha256:DIGEST`}},
		{Args: []string{"plugin", "push", "count.wasm"}, Code: 2, Stderr: []string{"sentinel plugin push: REF is missing"}},
	}
	for i := range cases {
		cases[i].Files = files
	}
	clitest.Check(t, cases)
}

// step is one command line in a folder that several use.
type step struct {
	args           string
	code           int
	stdout, stderr string // parts, with DIR for the folder
}

// follow runs command lines in one folder. Without stdout standard output must be empty.
func follow(t *testing.T, dir string, steps []step) {
	t.Helper()
	for _, s := range steps {
		out := clitest.Run(t, &clitest.Engine{}, dir, "", strings.Fields(s.args)...)
		stdout, stderr := strings.ReplaceAll(out.Stdout, dir, "DIR"), strings.ReplaceAll(out.Stderr, dir, "DIR")
		if out.Code != s.code || !strings.Contains(stdout, s.stdout) || !strings.Contains(stderr, s.stderr) || s.stdout == "" && stdout != "" {
			t.Fatalf("%s: exit code %d, want %d, %q and %q\nstandard output:\n%s\nstandard error:\n%s", s.args, out.Code, s.code, s.stdout, s.stderr, stdout, stderr)
		}
	}
}

// The table of the lock says how each file stands to it, and the exit code whether a
// host would load them.
func TestLock(t *testing.T) {
	count, echo := wasm(t, "count"), wasm(t, "echo")
	of := func(module string) string { return lock.Digest([]byte(module)) }
	short := func(module string) string { return strings.TrimPrefix(of(module), "sha256:")[:12] + "…" }
	dir := t.TempDir()
	clitest.Write(t, dir, map[string]string{"here/count.wasm": count, "here/bad.wasm": "text"})
	follow(t, dir, []step{
		{args: "plugin lock", stdout: "FILE  STATE  PLUGIN  VERSION  DIGEST\n"},
		{args: "plugin lock --check count.wasm", code: 2, stderr: "--check checks all files"},
		{args: "plugin lock a b", code: 2, stderr: `unexpected argument "b"`},
		{args: "plugin lock --plugins here --check", stdout: "count.wasm  unlocked                   " + short(count) + "\n"},
		{args: "plugin lock --plugins here absent.wasm", code: 5, stderr: `lock plugin: no file "absent.wasm" in "DIR/here"`},
		// Files that no host loads matter to the user who names them, and to a check.
		{args: "plugin lock --plugins here", stdout: "bad.wasm    unusable                   " + short("text") + "  scan module: not a WebAssembly module\ncount.wasm  locked    count   1        " + short(count) + "\n"},
		{args: "plugin lock --plugins here bad.wasm", code: 4, stdout: "bad.wasm  unusable", stderr: "check lock: bad.wasm is unusable\nhint: install it again"},
	})
	clitest.Write(t, dir, map[string]string{"here/count.wasm": echo})
	if err := os.Remove(filepath.Join(dir, "here", "bad.wasm")); err != nil {
		t.Fatal(err)
	}
	follow(t, dir, []step{
		{args: "plugin lock --plugins here", code: 4, stdout: "count.wasm  changed  count   1        " + short(echo) + "  the lock says " + short(count) + "\n", stderr: "check lock: count.wasm is changed\n"},
		{args: "plugin lock --plugins here -o json", code: 4, stdout: `"digest": "` + of(echo) + `"`},
		{args: "plugin lock --plugins here -o jsonl", code: 4, stdout: `{"file":"count.wasm","state":"changed","digest":"` + of(echo) + `",`},
		{args: "plugin unlock --plugins here echo", code: 5, stderr: `unlock plugin "echo": the lock does not name it`},
		{args: "plugin unlock --plugins here count.wasm", stderr: "count.wasm is not locked any more; it was count 1, " + of(count) + "\n"},
		{args: "plugin lock --plugins here count.wasm", stdout: "count.wasm  locked  echo    1        " + short(echo) + "\n"},
	})
	if err := os.Remove(filepath.Join(dir, "here", "count.wasm")); err != nil {
		t.Fatal(err)
	}
	follow(t, dir, []step{
		{args: "plugin lock --plugins here", stdout: "count.wasm  missing  echo    1\n"},
		{args: "plugin lock --plugins here --check", code: 4, stdout: "count.wasm  missing", stderr: "check lock: count.wasm is missing\n"},
		{args: "plugin unlock", code: 2, stderr: "sentinel plugin unlock: FILE is missing"},
	})
}

func TestInstall(t *testing.T) {
	dir, count := t.TempDir(), wasm(t, "count")
	digest := lock.Digest([]byte(count))
	clitest.Write(t, dir, map[string]string{"count.wasm": count, "other.wasm": wasm(t, "echo"), "asked.wasm": wasm(t, "asked"), "site/.sentinel/plugins/echo.wasm": wasm(t, "asked")})
	follow(t, dir, []step{
		{args: "plugin install", code: 2, stderr: "sentinel plugin install: FILE, URL or oci://REF is missing"},
		{args: "plugin install ftp://example.com/x.wasm", code: 4, stderr: "hint: use https"},
		{args: "plugin install count.wasm --digest 1234", code: 2, stderr: `read digest "1234": want sha256: and 64 hexadecimal digits`},
		{args: "plugin install count.wasm --key nonsense", code: 2, stderr: `"nonsense" is neither a file nor a key`},
		{args: "plugin install count.wasm --dir site", stdout: "count       1                                                                        installed\nfile        site/.sentinel/plugins/count.wasm\ndigest      " + digest + "\nfrom        DIR/count.wasm\nsignature   not signed\nstep types  count\n", stderr: "it asks for nothing: a server of this folder has it live now\n"},
		{args: "plugin install count.wasm --dir site -o jsonl", stdout: `{"file":"count.wasm","change":"unchanged","before":{`},
		{args: "plugin install other.wasm --dir site", code: 1, stderr: "--replace"},
		{args: "plugin install other.wasm --dir site --replace --digest " + lock.Digest([]byte(wasm(t, "echo"))), stdout: "installed\n"},
		{args: "plugin install other.wasm --dir site --name ../x.wasm", code: 2, stderr: "../x.wasm"},
		{args: "plugin install asked.wasm --plugins here", stdout: "asks for    llm: the test needs it\n", stderr: "it waits until you allow what it asks for: sentinel plugin allow asked\n"},
		{args: "plugin install asked.wasm --plugins here -q", stdout: "unchanged\n"},
		{args: "plugin uninstall count --dir site", stderr: "count 1 is removed\n"},
		{args: "plugin uninstall count --dir site", code: 5, stderr: `uninstall plugin "count": the lock does not name it`},
		{args: "plugin uninstall", code: 2, stderr: "sentinel plugin uninstall: NAME is missing"},
	})
	if _, err := os.Stat(filepath.Join(dir, "site", ".sentinel", "plugins", "count.wasm")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file is still there: %v", err)
	}
}

func TestKeys(t *testing.T) {
	dir := t.TempDir()
	clitest.Write(t, dir, map[string]string{"count.wasm": wasm(t, "count"), "text.txt": "text"})
	pack := clitest.Run(t, &clitest.Engine{}, dir, "", "plugin", "pack", "count.wasm")
	if pack.Code != 0 || !strings.HasPrefix(pack.Stdout, "count-1.tar  sha256:") || pack.Stderr != "it is not signed; sentinel plugin sign does that, before\n" {
		t.Fatalf("%+v", pack)
	}
	follow(t, dir, []step{
		{args: "plugin sign count.wasm", code: 5, stderr: "there is no secret key sentinel/plugin.key\nhint: make one with `sentinel plugin keygen`"},
		{args: "plugin keygen", code: 2, stderr: "the key needs a password, and there is no terminal to type it\nhint: set SENTINEL_PLUGIN_KEY_PASSWORD"},
		{args: "plugin keygen a b", code: 2, stderr: `unexpected argument "b"`},
		// Without a name both halves are beside the configuration.
		{args: "plugin keygen --no-password -o jsonl", stdout: `{"file":"DIR/sentinel/plugin.key","id":"`, stderr: "public key: sentinel/plugin.pub\n"},
		{args: "plugin keygen --no-password", code: 1, stderr: "make key: sentinel/plugin.key is there already\nhint: "},
		{args: "plugin sign text.txt", code: 2, stderr: `open plugin: "DIR/text.txt": it is neither a WebAssembly module nor a package of one`},
		{args: "plugin sign count-1.tar", code: 2, stderr: "count-1.tar is not a .wasm file\nhint: sign the module first and pack it then"},
		{args: "plugin sign count.wasm --key text.txt", code: 2, stderr: "minisign"},
		{args: "plugin verify count.wasm", code: 2, stderr: "no key to check with\nhint: name one with --key"},
		{args: "plugin verify count.wasm --key sentinel/plugin.pub", code: 4, stderr: `verify "count.wasm": it is not signed` + "\nhint: there is no count.wasm.minisig\n"},
		{args: "plugin sign count.wasm -o jsonl", stdout: `"file":"DIR/count.wasm.minisig","key":"`, stderr: "count.wasm.minisig: signed with key "},
		{args: "plugin verify count.wasm --key sentinel/plugin.pub -o jsonl", stdout: `"statement":{"name":"count","version":"1","file":"count.wasm","digest":"`},
		{args: "plugin verify absent.wasm --key sentinel/plugin.pub", code: 5, stderr: "absent.wasm"},
		{args: "plugin verify count.wasm --key text.txt", code: 2, stderr: `"text.txt": `},
		{args: "plugin trust", code: 2, stderr: "sentinel plugin trust: PUBKEY is missing"},
		{args: "plugin trust sentinel/plugin.pub --comment me", stderr: ", in DIR/sentinel/config.json\nfrom now on only signed plugins are installed\n"},
		{args: "plugin trust sentinel/plugin.pub", stderr: " is trusted already\n"},
		{args: "plugin verify count.wasm", stdout: " (me)\n", stderr: "sentinel plugin count version:1 file:count.wasm sha256:"},
		{args: "plugin inspect count.wasm", stdout: "signature  good, of key "},
	})
	if stdruntime.GOOS != "windows" {
		secret := filepath.Join(dir, "sentinel", "plugin.key")
		if info, err := os.Stat(secret); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v: want a file that only the user can read", info, err)
		}
		if err := os.Chmod(secret, 0o644); err != nil {
			t.Fatal(err)
		}
		follow(t, dir, []step{{args: "plugin sign count.wasm", stderr: "warning: others can read the secret key: chmod 600 sentinel/plugin.key\n"}})
	}
	// A trusted key that cannot be read must not become no key, which would accept all.
	clitest.Write(t, dir, map[string]string{"sentinel/config.json": `{"plugins": {"keys": [{"id": "0000", "key": "nonsense"}]}}`})
	for _, args := range []string{"plugin verify count.wasm", "plugin install count.wasm", "plugin lock", "plugin trust sentinel/plugin.pub"} {
		follow(t, dir, []step{{args: args, code: 2, stderr: "setting plugins.keys[0]: read public key: not a minisign key\nhint: correct it in DIR/sentinel/config.json\n"}})
	}
}

// person runs one command line at a terminal where typed is typed, and passwords one
// after the other when a password is read.
func person(t *testing.T, e *clitest.Engine, dir, typed string, passwords []string, args ...string) clitest.Output {
	t.Helper()
	var out, errs bytes.Buffer
	code := cli.Run(t.Context(), app.Env{
		Args: args, Dir: dir, Stdin: strings.NewReader(typed), Stdout: &out, Stderr: &errs, Engine: e, StdinTerminal: true, StderrTerminal: true,
		Getenv: func(name string) string {
			return map[string]string{"NO_COLOR": "1", "HOME": "/home/ann", "USER": "ann", "XDG_CONFIG_HOME": dir, "SENTINEL_TRUST_ROOTS": "/"}[name]
		},
		Password: func(context.Context) (string, error) {
			if len(passwords) == 0 {
				return "", io.ErrUnexpectedEOF
			}
			p := passwords[0]
			passwords = passwords[1:]
			return p, nil
		},
	})
	return clitest.Output{Stdout: out.String(), Stderr: errs.String(), Code: code}
}

// Only "y" and "yes" allow; the second call has the digest that was shown.
func TestConfirm(t *testing.T) {
	for typed, allows := range map[string]bool{"y\n": true, " YES \n": true, "yes": true, "n\n": false, "\n": false, "yes please\n": false, "": false} {
		e := &clitest.Engine{Results: map[string]any{"plugin/allow": plan}}
		out := person(t, e, t.TempDir(), typed, nil, "plugin", "allow", "scan")
		if !strings.Contains(out.Stderr, "? allow scan this? yes / no: ") || out.Code != 0 {
			t.Errorf("%q: exit code %d: %s", typed, out.Code, out.Stderr)
		}
		if refused := strings.HasSuffix(out.Stderr, "nothing was allowed\n"); refused == allows || (len(e.Calls) == 2) != allows || (out.Stdout != "") != allows {
			t.Errorf("%q: allows %t, calls %q, %q\n%s", typed, allows, e.Calls, out.Stdout, out.Stderr)
		}
	}
}

// A shell does not expand the ~ behind an equals sign.
func TestHomeFolder(t *testing.T) {
	e := &clitest.Engine{Results: map[string]any{"plugin/allow": plan}}
	out := person(t, e, t.TempDir(), "", nil, "plugin", "allow", "scan", "--dry-run", "--folder", "a=~/x/y:rw", "--folder", "b=~", "--folder", "c=~bob/x", "--folder", "d=x/~", "--folder", "e=~/~z")
	want := `plugin/allow {"by":"ann","dryRun":true,"folders":{"a":{"path":"/home/ann/x/y","write":true},"b":{"path":"/home/ann"},"c":{"path":"~bob/x"},"d":{"path":"x/~"},"e":{"path":"/home/ann/~z"}},"name":"scan"}`
	if out.Code != 0 || len(e.Calls) != 1 || e.Calls[0] != want {
		t.Errorf("%+v\ncalls %q\nwant  %q", out, e.Calls, want)
	}
}

func TestPassword(t *testing.T) {
	for _, c := range []struct {
		passwords []string
		code      int
		stderr    string
	}{
		{[]string{""}, 2, "the password is empty\nhint: use --no-password"},
		{[]string{"one", "two"}, 2, "The same again: \nsentinel: these are two different passwords\n"},
		{[]string{"one"}, 1, "read password: unexpected EOF"},
	} {
		dir := t.TempDir()
		out := person(t, &clitest.Engine{}, dir, "", c.passwords, "plugin", "keygen", "team.key")
		if out.Code != c.code || !strings.Contains(out.Stderr, c.stderr) || out.Stdout != "" {
			t.Errorf("%q: %+v", c.passwords, out)
		}
		if made, err := filepath.Glob(filepath.Join(dir, "team.*")); err != nil || len(made) > 0 {
			t.Errorf("%q: files are written: %q, %v", c.passwords, made, err)
		}
	}
}
