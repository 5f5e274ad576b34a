package operations_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	stdruntime "runtime"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/cli/clitest"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

func TestMain(m *testing.M) {
	runtime.ServeChild()
	os.Exit(m.Run())
}

// Two configuration files in the user's folder, in order and not.
var (
	good = map[string]string{"sentinel/config.json": "{\"serve\": {\"listen\": \"127.0.0.1:9000\"},\n \"models\": {\"default\": \"anthropic/x\"},\n \"secrets\": {\"KEY\": {\"file\": \"/absent\"}, \"TOKEN\": {\"env\": \"USER\"}}}"}
	bad  = map[string]string{"sentinel/config.json": `{"serve": {"drian": "5s"}, "logs": {"keep": "x"}}`}
)

// wrong is what every verb that reads the configuration says of bad.
var wrong = []string{
	`sentinel: DIR/sentinel/config.json:1:12: unknown setting "serve.drian", did you mean "serve.drain"?` + "\n", "\n  DIR/sentinel/config.json:1:37: logs.keep: want an integer, got a string\n",
	"hint: `sentinel config schema` shows what there is to set\n",
}

func TestConfig(t *testing.T) {
	clitest.Check(t, []clitest.Case{
		{Args: []string{"config", "show", "serve.listen"}, Files: good, Stdout: []string{`"127.0.0.1:9000"` + "\n"}},
		{Args: []string{"config", "show", "serve.listen", "--origin"}, Stdout: []string{`"127.0.0.1:8080"` + "\n"}},
		{Args: []string{"config", "show", "secrets", "-o", "jsonl"}, Files: good, Stdout: []string{`{"KEY":{"file":"/absent"},"TOKEN":{"env":"USER"}}` + "\n"}},
		{Args: []string{"config", "show"}, Files: good, Stdout: []string{"\nserve.listen                 \"127.0.0.1:9000\"                                              address of the API; empty for the socket"}},
		{Args: []string{"config", "show", "--origin"}, Files: good, Stdout: []string{"models.default               \"anthropic/x\"", "DIR/sentinel/config.json:2  model of a step", "DIR/sentinel/config.json:1  address of the API", "\nmodels.auto                  null                                                          default "}},
		{Args: []string{"config", "show", "--origin", "--trust", "mine", "-o", "json"}, Stdout: []string{"[\n  {\n    \"key\": \"models.default\",\n    \"value\": \"auto\",\n    \"origin\": \"default\",\n", "\"DIR/mine\"\n    ],\n    \"origin\": \"--trust\","}},
		{Args: []string{"config", "show", "-o", "jsonl"}, Files: good, Stdout: []string{`{"key":"models.default","value":"anthropic/x","origin":"DIR/sentinel/config.json:2",`, "\n" + `{"key":"serve.listen","value":"127.0.0.1:9000","origin":`}},
		{Args: []string{"config", "show", "serve.lisen"}, Code: 5, Stderr: []string{`there is no setting "serve.lisen"`, "hint: `sentinel config show` lists them\n"}},
		{Args: []string{"config", "show", "a", "b"}, Code: 2, Stderr: []string{`sentinel config show: unexpected argument "b"`}},
		{Args: []string{"config", "show"}, Files: bad, Code: 2, Stderr: wrong},
		{Args: []string{"config", "check"}, Files: bad, Code: 3, Stderr: wrong},
		{Args: []string{"config", "check"}, Files: good, Stderr: []string{"DIR/sentinel/config.json is in order\n"}},
		{Args: []string{"config", "check"}, Stderr: []string{"there is no file, so defaults hold\n"}},
		{Args: []string{"config", "check", "other.json"}, Files: map[string]string{"other.json": `{"logs": {"level": "loud"}}`, "sentinel/config.json": "{}"}, Code: 3,
			Stderr: []string{`DIR/other.json:1:`, `"loud" is none of debug, info, warn, error`}},
		{Args: []string{"config", "check", "other.json"}, Files: map[string]string{"other.json": "{}", "sentinel/config.json": "{"}, Stderr: []string{"DIR/other.json is in order\n"}},
		{Args: []string{"config", "check", "absent.json"}, Files: good, Code: 5, Stderr: []string{`no file "absent.json"`}},
		{Args: []string{"config", "check", "sentinel"}, Files: good, Code: 1, Stderr: []string{"read configuration: open DIR/sentinel: it is a folder"}},
		{Args: []string{"config", "check", "a", "b"}, Code: 2, Stderr: []string{`unexpected argument "b"`}},
		{Args: []string{"config", "path"}, Files: bad, Stdout: []string{"DIR/sentinel/config.json\n"}},
		{Args: []string{"config", "path", "x"}, Code: 2, Stderr: []string{`sentinel config path: unexpected argument "x"`}},
		{Args: []string{"config", "schema"}, Files: bad, Stdout: []string{`"$schema": "https://json-schema.org/draft/2020-12/schema"`, `"drain"`}},
		{Args: []string{"config"}, Stdout: []string{"Look at the configuration.\n", "  sentinel config [command]\n"}},
		{Args: []string{"config", "get"}, Code: 2, Stderr: []string{`sentinel config: unexpected argument "get"`}},
	})
}

func TestToken(t *testing.T) {
	clitest.Check(t, []clitest.Case{
		{Args: []string{"token"}, Code: 5, Stderr: []string{"there is no state in DIR/.sentinel/state\nhint: start a server with `sentinel serve`, or name its folder: sentinel token DIR\n"}},
		{Args: []string{"token", "site", "--rotate"}, Files: map[string]string{"site/.sentinel/x": ""}, Code: 5, Stderr: []string{"there is no state in DIR/site/.sentinel/state"}},
		{Args: []string{"token", "a", "b"}, Code: 2, Stderr: []string{`sentinel token: unexpected argument "b"`}},
		{Args: []string{"token", "--state", "state"}, Files: map[string]string{"state/x": "", "sentinel/config.json": bad["sentinel/config.json"]}, Code: 2, Stderr: wrong},
	})
	dir := t.TempDir()
	clitest.Write(t, dir, map[string]string{"site/.sentinel/state/x": ""})
	token := func(args ...string) string {
		t.Helper()
		out := clitest.Run(t, &clitest.Engine{}, dir, "", append([]string{"token"}, args...)...)
		if out.Code != 0 || out.Stderr != "" {
			t.Fatalf("%q: %+v", args, out)
		}
		return out.Stdout
	}
	first := token("site")
	if !strings.HasPrefix(first, "sentinel_") || len(first) != len("sentinel_")+43+1 {
		t.Errorf("%q", first)
	}
	if again := token("--state", "site/.sentinel/state"); again != first {
		t.Errorf("%q, before %q", again, first)
	}
	rotated := token("site", "--rotate", "-o", "jsonl")
	if now := strings.TrimSpace(token("site")); now == strings.TrimSpace(first) || rotated != fmt.Sprintf("{\"token\":%q}\n", now) {
		t.Errorf("%q, then %q, before %q", rotated, now, first)
	}
}

func TestVersion(t *testing.T) {
	platform := stdruntime.GOOS + "/" + stdruntime.GOARCH
	clitest.Check(t, []clitest.Case{
		{Args: []string{"version"}, Stdout: []string{fmt.Sprintf("sentinel devel  plugin ABI %v  %s  %s\n", abi.Version, stdruntime.Version(), platform)}},
		{Args: []string{"version", "-v"}, Stdout: []string{"sentinel devel  plugin ABI", "\ncgo  "}},
		{Args: []string{"version", "-o", "jsonl"}, Stdout: []string{fmt.Sprintf(`{"abi":%v,"cgo":"`, abi.Version), `"platform":"` + platform + `","version":"devel"}` + "\n"}},
		{Args: []string{"version", "-o", "xml"}, Code: 2, Stderr: []string{`invalid --output "xml": want table, json or jsonl`}},
		{Args: []string{"version", "x"}, Code: 2, Stderr: []string{`sentinel version: unexpected argument "x"`}},
	})
}

func TestUnit(t *testing.T) {
	cases := []clitest.Case{
		{Args: []string{"unit", "--user", "--as", "ci"}, Code: 2, Stderr: []string{"--user is the unit of who is logged in, --as names another account\nhint: give one of them\n"}},
		{Args: []string{"unit", "a", "b"}, Code: 2, Stderr: []string{`sentinel unit: unexpected argument "b"`}},
		{Args: []string{"unit", "--as"}, Code: 2, Stderr: []string{"flag needs an argument: --as", "hint: sentinel unit --help"}},
		{Args: []string{"unit", "--user"}, Files: bad, Code: 2, Stderr: wrong},
	}
	// Where go test has put this program, as go run would.
	if file, err := os.Executable(); err != nil {
		t.Fatal(err)
	} else if strings.Contains(filepath.ToSlash(file), "/go-build") {
		cases = append(cases, clitest.Case{Args: []string{"unit", "--user"}, Code: 2, Stderr: []string{"unit: this program is " + file + ", a temporary file\nhint: install it first, and run it from there\n"}})
	}
	clitest.Check(t, cases)
}

func TestDoctor(t *testing.T) {
	clitest.Check(t, []clitest.Case{
		{Args: []string{"doctor", "--only", "configuration"}, Files: good, Stdout: []string{"ok    configuration  DIR/sentinel/config.json is in order\n"}},
		{Args: []string{"doctor", "--only", "configuration", "-o", "jsonl"}, Stdout: []string{`{"checks":[{"name":"configuration","status":"ok","detail":"there is no file, so defaults hold"}],"status":"ok"}` + "\n"}},
		// Checks are in the order in which they should be mended, whatever the order of the flags.
		{Args: []string{"doctor", "--only", "model,configuration"}, Files: bad, Code: 1, Stdout: []string{
			`fail  configuration  DIR/sentinel/config.json:1:12: unknown setting "serve.drian", did you mean "serve.drain"?` + "\n  DIR/sentinel/config.json:1:37: logs.keep: want an integer, got a string\n" +
				"                     mend: `sentinel config schema` shows what there is to set\n" +
				"warn  model          the configuration has to be mended first\n                     mend: configure a model, and set the variable of its key\n"}},
		{Args: []string{"doctor", "--only", "model"}, Stdout: []string{"warn  model  no model is configured, so steps that need one fail; all others work\n             mend: set one of: OLLAMA_HOST; "}},
		{Args: []string{"doctor", "--only", "model"}, Files: good, Code: 1, Stdout: []string{"fail  model  the model anthropic/x is configured, and its provider is not ready\n             mend: set ANTHROPIC_API_KEY"}},
		{Args: []string{"doctor", "--only", "secrets"}, Files: good, Stdout: []string{`warn  secrets  secret "KEY": has no value on this host; secret "TOKEN": its value is too short to be kept out of what is written` + "\n               mend: store it with `sentinel secret set KEY`, set SENTINEL_SECRET_KEY where the host runs"}},
		{Args: []string{"doctor", "--only", "secrets"}, Files: bad, Stdout: []string{"warn  secrets  the configuration has to be mended first\n"}},
		{Args: []string{"doctor", "--only", "secrets"}, Stdout: []string{"ok    secrets  none is configured, and no plugin was granted one\n"}},
		{Args: []string{"doctor", "--only", "environment"}, Stdout: []string{"ok    environment  other processes cannot read the variables of the host\n"}},
		{Args: []string{"doctor", "--only", "child processes"}, Stdout: []string{"ok    child processes  one was started and ended\n"}},
		{Args: []string{"doctor", "site", "--only", "server"}, Files: map[string]string{"site/.sentinel/x": ""}, Code: 1,
			Stdout: []string{"fail  server  no server answers for DIR/site/.sentinel/state\n              mend: start one with sentinel serve\n"}},
		{Args: []string{"doctor", "--only", "server", "-o", "json"}, Code: 1, Stdout: []string{"\"status\": \"fail\"\n}\n", "\"fix\": \"start one with sentinel serve\""}},
		{Args: []string{"doctor", "--only", "servre"}, Code: 2, Stderr: []string{"doctor: unknown check servre\nhint: sentinel doctor shows them all\n"}},
		{Args: []string{"doctor", "--only", "configuration", "--only", "servre", "--only", "modls"}, Code: 2, Stderr: []string{"doctor: unknown check servre, modls\n"}},
		{Args: []string{"doctor", "a", "b"}, Code: 2, Stderr: []string{`sentinel doctor: unexpected argument "b"`}},
	})
}

func TestRepair(t *testing.T) {
	empty := map[string]string{"state/x": ""}
	clitest.Check(t, []clitest.Case{
		{Args: []string{"recover", "--state", "absent"}, Code: 5, Stderr: []string{`repair "DIR/absent": there is neither a store nor a sound snapshot` + "\nhint: put store.db back from a copy of yours"}},
		{Args: []string{"recover", "--state", "state", "--dry-run", "-o", "json"}, Files: empty, Code: 5, Stderr: []string{`repair "DIR/state": there is neither a store nor a sound snapshot`}},
		// A bare name is looked for among the snapshots, a path is not.
		{Args: []string{"recover", "--state", "state", "--from", "absent.db"}, Files: empty, Code: 5, Stderr: []string{`there is no snapshot "absent.db"` + "\nhint: its name is that of a file in DIR/state/snapshots\n"}},
		{Args: []string{"recover", "--state", "state", "--from", "./absent.db"}, Files: empty, Code: 5, Stderr: []string{`there is no snapshot "DIR/absent.db"`}},
		{Args: []string{"recover", "all"}, Code: 2, Stderr: []string{`sentinel recover: unexpected argument "all"`}},
		{Args: []string{"recover", "list", "--state", "state"}, Files: empty, Stderr: []string{"no snapshot in state\n"}},
		{Args: []string{"recover", "list", "-o", "json"}, Stdout: []string{"[]\n"}},
		{Args: []string{"recover", "list", "-o", "jsonl"}},
		{Args: []string{"recover", "list", "x"}, Code: 2, Stderr: []string{`sentinel recover list: unexpected argument "x"`}},
		{Args: []string{"compact", "--state", "absent"}, Code: 5, Stderr: []string{`compact "DIR/absent": there is no store`}},
		{Args: []string{"compact", "x"}, Code: 2, Stderr: []string{`sentinel compact: unexpected argument "x"`}},
	})
}

// The example in the help of recover names a file as recover list shows them.
func TestSnapshots(t *testing.T) {
	e, dir := &clitest.Engine{}, t.TempDir()
	_, name, ok := strings.Cut(clitest.Run(t, e, dir, "", "recover", "--help").Stdout, "sentinel recover --from ")
	name, _, _ = strings.Cut(name, "\n")
	if !ok || !strings.HasSuffix(name, "-hourly-9f86d081884c7d65.db") {
		t.Fatalf("the example has %q", name)
	}
	clitest.Write(t, dir, map[string]string{"state/snapshots/" + name: "12345", "state/snapshots/20260101T000000.000Z-upgrade-9f86d081884c7d65.db": "1", "state/snapshots/other.db": ""})
	path := filepath.Join(dir, "state", "snapshots", name)
	for format, want := range map[string]string{
		"table": "  BYTES\n" + name + "   2026-01-0", "json": "[\n  {\n    \"path\": \"" + path, "jsonl": fmt.Sprintf("{\"path\":%q,\"taken\":\"2026-01-02T03:04:05Z\",\"why\":\"hourly\",\"store\":\"9f86d081884c7d65\",\"bytes\":5}\n{", path),
	} {
		out := clitest.Run(t, e, dir, "", "recover", "list", "--state", "state", "-o", format)
		if out.Code != 0 || !strings.Contains(out.Stdout, want) || strings.Contains(out.Stdout, "other.db") {
			t.Errorf("%s: %+v, want %q", format, out, want)
		}
	}
}

func TestServe(t *testing.T) {
	// Settings are read before anything is made in the folder.
	for _, c := range []struct{ args, stderr string }{
		{"serve --log-level loud", `sentinel: --log-level: logs.level: "loud" is none of debug, info, warn, error`},
		{"serve --log-format xml", `sentinel: --log-format: logs.format: "xml" is none of text, json`},
		{"serve --drain soon", `sentinel: --drain: invalid duration "soon": want one such as 90s, 1h30m or 30d`},
		{"serve --tls-cert cert.pem", "sentinel: --tls-cert: serve.tlsCert: TLS needs both tlsCert and tlsKey"},
		{"serve a b", `sentinel serve: unexpected argument "b"`},
		{"serve --port 80", "sentinel serve: unknown flag: --port\nhint: sentinel serve --help shows its flags\n"},
	} {
		dir := t.TempDir()
		out := clitest.Run(t, &clitest.Engine{}, dir, "", strings.Fields(c.args)...)
		if out.Code != 2 || out.Stdout != "" || !strings.Contains(out.Stderr, c.stderr) {
			t.Errorf("%s: %+v, want %q", c.args, out, c.stderr)
		}
		if made, err := os.ReadDir(dir); err != nil || len(made) > 0 {
			t.Errorf("%s: made %v, %v", c.args, made, err)
		}
	}
	clitest.Check(t, []clitest.Case{
		{Args: []string{"serve"}, Files: bad, Code: 2, Stderr: wrong},
		{Args: []string{"serve", "--no-auth", "--listen", "0.0.0.0:80"}, Code: 4, Stderr: []string{`listen on "0.0.0.0:80": other machines can reach it, and no token is required` + "\nhint: leave out --no-auth"}},
	})
}

func TestCompletion(t *testing.T) {
	clitest.Check(t, []clitest.Case{
		{Args: []string{"completion", "bash"}, Stdout: []string{"# bash completion V2 for sentinel", "__start_sentinel"}},
		{Args: []string{"completion", "zsh"}, Stdout: []string{"#compdef sentinel\n"}},
		{Args: []string{"completion", "fish"}, Stdout: []string{"# fish completion for sentinel", "complete -c sentinel"}},
		{Args: []string{"completion", "powershell"}, Stdout: []string{"Register-ArgumentCompleter"}},
		{Args: []string{"completion", "tcsh"}, Code: 2, Stderr: []string{`completion: unknown shell "tcsh"` + "\nhint: there are bash, zsh, fish and powershell\n"}},
		{Args: []string{"completion"}, Code: 2, Stderr: []string{"sentinel completion: the shell is missing\nhint: usage: sentinel completion bash|zsh|fish|powershell"}},
	})
}

// Every setting that is shown can be set: its key is in the schema.
func TestSettingsAreInTheSchema(t *testing.T) {
	e, dir := &clitest.Engine{}, t.TempDir()
	type node struct {
		Properties map[string]*node `json:"properties"`
	}
	var schema node
	var settings []struct {
		Key string `json:"key"`
	}
	if err := json.Unmarshal([]byte(clitest.Run(t, e, dir, "", "config", "schema").Stdout), &schema); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(clitest.Run(t, e, dir, "", "config", "show", "-o", "json").Stdout), &settings); err != nil {
		t.Fatal(err)
	}
	for _, s := range settings {
		at := &schema
		for part := range strings.SplitSeq(s.Key, ".") {
			if at = at.Properties[part]; at == nil {
				t.Errorf("setting %q is not in the schema", s.Key)
				break
			}
		}
	}
	if len(settings) < 50 {
		t.Errorf("%d settings are shown", len(settings))
	}
}
