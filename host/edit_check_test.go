package host_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/host/api"
	"github.com/sentinel-runtime/sentinel/plugins"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/plugin"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// TestInvalidEditChangesNothing: "The same check runs on every edit: refused for errors that
// the edit adds", and the row "invalid edit changes nothing".
func TestInvalidEditChangesNothing(t *testing.T) {
	dir := t.TempDir()
	h := open(t, host.Options{Workspace: dir})
	must(t, h, "sentinel/create", `{"definition":`+abc+`}`, nil)
	write(t, dir, map[string]string{"bad.json": `{"id": "abc", "name": "abc", "steps": [{"command": "code/reed"}]}`})
	before := stepTexts(t, h, "abc")
	for _, c := range []struct{ command, params, says string }{
		{"sentinel/create", `{"definition": {"id": "abc", "name": "abc", "steps": [{"command": "nope/nope"}]}}`, `unknown command "nope/nope"`},
		{"sentinel/create", `{"name": "abc", "steps": [{"command": "code/git", "params": {"operation": "x"}}]}`, `unknown value "x"`},
		{"sentinel/create", `{"file": "bad.json"}`, `bad.json:1:52: steps[0].command: unknown command "code/reed"`},
		{"sentinel/update", `{"sentinelId": "abc", "definition": {"id": "abc", "name": "abc", "steps": [{"type": "shell"}]}}`, "want command or argv"},
		{"sentinel/step/add", `{"sentinelId": "abc", "step": {"type": "llm", "prompt": "p", "model": "ollama/m", "tools": ["code/raed"]}}`, `unknown tool "code/raed"`},
		{"sentinel/step/update", `{"sentinelId": "abc", "index": 1, "params": {"command": 42}}`, "steps[1].params.command: is a number, want a string"},
		{"sentinel/step/update", `{"sentinelId": "abc", "index": 0, "params": {"depht": 1}}`, `has no parameter "depht"`},
		{"sentinel/step/update", `{"sentinelId": "abc", "index": 0, "step": {"command": "code/tre"}}`, `unknown command "code/tre"`},
		{"sentinel/step/update", `{"sentinelId": "abc", "address": "2.then.0", "step": {"command": "ls -la"}}`, `did you mean type "shell"?`},
	} {
		err := call(t, h, c.command, c.params, nil)
		if abi.CodeOf(err) != abi.BadFields || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s %s: %v", c.command, c.params, err)
		}
	}
	var loaded struct{ Problems []struct{ Problem string } }
	must(t, h, "sentinel/load", `{"path": "bad.json"}`, &loaded)
	if len(loaded.Problems) != 1 || !strings.Contains(loaded.Problems[0].Problem, `unknown command "code/reed"`) {
		t.Errorf("load: %+v", loaded)
	}
	s, err := h.Runtime().Definition("abc")
	if err != nil || s.Revision != 1 || strings.Join(before, "\n") != strings.Join(stepTexts(t, h, "abc"), "\n") {
		t.Errorf("revision %d, %v", s.Revision, err)
	}
}

// TestRunEditIsChecked: the same check on the edit of one run.
func TestRunEditIsChecked(t *testing.T) {
	h := open(t, host.Options{})
	def, problems := h.Runtime().Decode([]byte(`{"name": "n", "steps": [{"type": "wait", "event": "never", "timeoutMs": 100000}], "loop": {"type": "count", "max": 2}}`), "")
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	id, err := h.Runtime().Start(t.Context(), def, runtime.StartOptions{})
	if err != nil {
		t.Fatal(err)
	}
	err = call(t, h, "sentinel/step/add", map[string]any{"sentinelId": id, "step": json.RawMessage(`{"command": "code/reed"}`)}, nil)
	if abi.CodeOf(err) != abi.BadFields || !strings.Contains(err.Error(), `unknown command "code/reed"`) {
		t.Errorf("%v", err)
	}
	if err := call(t, h, "sentinel/stop", map[string]any{"run": id}, nil); err != nil {
		t.Error(err)
	}
}

// TestOlderErrorsAreListed: "refused for errors that the edit adds, older ones are listed".
func TestOlderErrorsAreListed(t *testing.T) {
	dir := t.TempDir()
	h := open(t, host.Options{Workspace: dir})
	// A store from before a command was renamed: saved without the host's checks.
	state := filepath.Join(dir, "state")
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	rt, err := runtime.Open(t.Context(), runtime.Options{Dir: state, CacheDir: compiled(), Plugins: []plugin.Source{{Name: "builtin", Wasm: plugins.Builtin, Manifest: plugins.Manifest, Trusted: true}}})
	if err != nil {
		t.Fatal(err)
	}
	def, problems := rt.Decode([]byte(`{"name": "old", "steps": [{"id": "a", "command": "code/gone"}, {"cmd": "true"}]}`), "")
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	if _, err := rt.Save(t.Context(), def, 0); err != nil {
		t.Fatal(err)
	}
	if err := rt.Close(); err != nil {
		t.Fatal(err)
	}
	h = open(t, host.Options{Workspace: dir, State: state})
	var out struct {
		Revision int
		Problems []struct{ Path, Kind, Message string }
	}
	must(t, h, "sentinel/step/update", `{"sentinelId": "old", "index": 1, "params": {"cmd": "false"}}`, &out)
	if out.Revision != 2 || len(out.Problems) != 1 || out.Problems[0].Kind != "warning" || out.Problems[0].Path != "steps[0].command" ||
		out.Problems[0].Message != `unknown command "code/gone" (not by this edit: the definition before has it too)` {
		t.Errorf("%+v", out)
	}
	if err := call(t, h, "sentinel/step/add", `{"sentinelId": "old", "step": {"command": "code/gone"}}`, nil); abi.CodeOf(err) != abi.BadFields {
		t.Errorf("the same error again: %v", err)
	}
	must(t, h, "sentinel/create", `{"definition": {"name": "old", "steps": [{"command": "code/gone"}]}, "replace": true}`, &out)
	if out.Revision != 3 || len(out.Problems) != 1 {
		t.Errorf("create: %+v", out)
	}
	must(t, h, "sentinel/step/update", `{"sentinelId": "old", "index": 0, "step": {"command": "code/tree"}}`, &out)
	if out.Revision != 4 {
		t.Errorf("repair: %+v", out)
	}
}

// TestPatchAliases: "aliases are resolved before a patch is merged", of the fields of a step
// and of the parameters of its command.
func TestPatchAliases(t *testing.T) {
	h := open(t, host.Options{})
	must(t, h, "sentinel/create", `{"definition": {"name": "p", "steps": [
		{"id": "sh", "cmd": "a", "workingDir": "x"},
		{"id": "ex", "command": "code/shell/execute", "params": {"command": "a", "workdir": "x"}},
		{"id": "if", "if": "true", "then": []},
		{"id": "in", "pipeline": {"pipeline": [], "loop": {"type": "until", "if": "true"}, "timeoutMs": 9}}]}}`, nil)
	srv := serve(t, h)
	do := caller(t, srv, http.StatusOK)
	for id, patch := range map[string]string{
		"sh": `{"cmd": "b", "workingDir": "y"}`, "ex": `{"cwd": "y"}`, "if": `{"if": "false"}`,
		"in": `{"pipeline": {"loop": {"if": "false"}, "timeoutMs": 7}}`,
	} {
		do("PATCH", "/v1/sentinels/p/steps/"+id, patch, nil, "If-Match: *")
	}
	want := []string{
		`0 {"type":"shell","id":"sh","command":"b","cwd":"y"}`,
		`1 {"type":"command","id":"ex","command":"code/shell/execute","params":{"command":"a","cwd":"y"}}`,
		`2 {"type":"condition","id":"if","check":"false","then":[]}`,
	}
	got := stepTexts(t, h, "p")
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%s, want %s", got[i], want[i])
		}
	}
	if !strings.Contains(got[3], `"check":"false"`) || !strings.Contains(got[3], `"safety":{"timeoutMs":7}`) {
		t.Errorf("%s", got[3])
	}
	if err := call(t, h, "sentinel/step/update", `{"sentinelId": "p", "address": "sh", "params": {"cmd": "a", "command": "b"}}`, nil); err == nil || !strings.Contains(err.Error(), `"cmd" and "command" are the same field`) {
		t.Errorf("both: %v", err)
	}
}

// TestStepsByIndexAddressOrID: "steps are addressed by index, address or id everywhere":
// commands and HTTP. The command line has the same in steps.txtar.
func TestStepsByIndexAddressOrID(t *testing.T) {
	h := open(t, host.Options{})
	const text = `{"name": "p", "steps": [{"id": "a", "if": "true", "then": [{"id": "_B-1", "cmd": "true"}]}]}`
	must(t, h, "sentinel/create", `{"definition": `+text+`}`, nil)
	for _, place := range []string{`"address": "_B-1"`, `"address": "0.then.0"`, `"address": "steps[0].then[0]"`} {
		var out struct{ Address string }
		must(t, h, "sentinel/step/update", `{"sentinelId": "p", `+place+`, "params": {"name": "`+strings.Split(place, `"`)[3]+`"}}`, &out)
		if out.Address != "0.then.0" {
			t.Errorf("%s is %q", place, out.Address)
		}
	}
	srv := serve(t, h)
	ok, made := caller(t, srv, http.StatusOK), caller(t, srv, http.StatusCreated)
	for _, name := range []string{"_B-1", "0.then.0", "a", "0"} {
		var step struct{ Address string }
		ok("GET", "/v1/sentinels/p/steps/"+name, "", &step)
		if want := map[string]string{"a": "0", "0": "0"}[name]; step.Address != want && step.Address != "0.then.0" {
			t.Errorf("GET %s is %q", name, step.Address)
		}
	}
	ok("PATCH", "/v1/sentinels/p/steps/_B-1", `{"cmd": "echo 1"}`, nil, "If-Match: *")
	ok("PUT", "/v1/sentinels/p/steps/_B-1", `{"id": "_B-1", "cmd": "echo 2"}`, nil, "If-Match: *")
	made("POST", "/v1/sentinels/p/steps", `{"address": "_B-1", "step": {"id": "c", "cmd": "echo 0"}}`, nil)
	if got := stepTexts(t, h, "p"); len(got) != 3 || got[1] != `0.then.0 {"type":"shell","id":"c","command":"echo 0"}` {
		t.Errorf("%q", got)
	}
	ok("DELETE", "/v1/sentinels/p/steps/c", "", nil, "If-Match: *")
	var started struct{ Run string }
	made("POST", "/v1/sentinels/p/runs", `{}`, &started)
	if _, err := h.Runtime().Wait(t.Context(), sentinels.RunID(started.Run)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"_B-1", "0.then.0"} {
		var step struct{ Address, State string }
		ok("GET", "/v1/runs/"+started.Run+"/steps/"+name, "", &step)
		if step.Address != "0.then.0" || step.State != "ok" {
			t.Errorf("run step %s is %+v", name, step)
		}
	}
}

// serve returns the API of a host.
func serve(t *testing.T, h *host.Host) *httptest.Server {
	t.Helper()
	a, err := api.New(api.Options{Commands: registryOf{h}, Tokens: anyToken{}})
	if err != nil {
		t.Fatal(err)
	}
	srv := serveAPI(t, a)
	return srv
}
