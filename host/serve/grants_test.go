package serve_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host/plugin/grant"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/plugin"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// drop puts a plugin of a manifest into a project's folder, as a build does.
func drop(t *testing.T, project, version, permissions string) {
	t.Helper()
	code, err := os.ReadFile("../../runtime/testdata/guests/plain.wasm")
	if err != nil {
		t.Fatal(err)
	}
	manifest := `{"name":"ask","version":"` + version + `","abi":1,"steps":[{"type":"ask","summary":"s","fields":{"type":"object"}}],"permissions":[` + permissions + `]}`
	place := fmt.Appendf(nil, "%-2048s", "MANIFEST")
	code = bytes.Replace(code, place, fmt.Appendf(nil, "%-2048s", manifest), 1)
	path := filepath.Join(project, ".sentinel", "plugins", "ask.wasm")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path+".part", code, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".part", path); err != nil {
		t.Fatal(err)
	}
}

// asker is what the server says of the plugin.
func (l *life) asker() plugin.Info {
	for _, p := range l.server.Host().Runtime().Plugins() {
		if p.Source == "ask.wasm" {
			return p
		}
	}
	return plugin.Info{}
}

// decide calls plugin/allow or plugin/deny over the API.
func (l *life) decide(verb string, params map[string]any) {
	l.Helper()
	var out map[string]any
	if code := l.ask("POST", "/v1/commands/plugin/"+verb, params, &out); code != 200 {
		l.Fatalf("plugin/%s: %d, %v", verb, code, out)
	}
}

const (
	emits = `{"use":"emit","names":["a:*"],"reason":"tells"}`
	posts = emits + `,{"use":"http","names":["api.example.com"],"reason":"posts"}`
)

// TestGrantsWhileServing has a loop go on with the version that is allowed while
// one that asks for more waits. Allowed, it serves the next pass; what another
// process writes into the file of grants counts as well; and denied, it is gone.
func TestGrantsWhileServing(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	project := t.TempDir()
	drop(t, project, "1", emits)
	l := begin(t, project)
	rt := l.server.Host().Runtime()
	if p := l.asker(); p.State != plugin.Waiting {
		t.Fatalf("at first it is %+v", p)
	}
	l.decide("allow", map[string]any{"name": "ask"})
	one := l.asker()
	if one.State != plugin.Live {
		t.Fatalf("allowed, it is %+v", one)
	}
	def, problems := rt.Decode([]byte(`{"id":"loop","name":"loop","loop":{"type":"continuous"},"safety":{"maxIterations":100000},"steps":[{"type":"ask"},{"type":"wait","durationMs":5}]}`), "")
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	id, err := rt.Start(t.Context(), def, runtime.StartOptions{Workspace: project})
	if err != nil {
		t.Fatal(err)
	}
	// used is the module of the newest pass that has one.
	used := func() (pass int, digest string) {
		trace, err := rt.Trace(id)
		if err != nil {
			t.Fatal(err)
		}
		for i := range trace.Iterations {
			it := &trace.Iterations[i]
			it.Walk(func(s *runtime.TraceStep) {
				if s.Type == "ask" && len(s.Attempts) > 0 {
					pass, digest = it.Number, s.Attempts[0].Module
				}
			})
		}
		return pass, digest
	}
	passes := func(n int) {
		t.Helper()
		from, _ := used()
		l.until("passes", func() bool { now, _ := used(); return now >= from+n })
	}
	passes(3)

	drop(t, project, "2", posts)
	l.until("the second version to wait", func() bool { return l.asker().Next != nil })
	passes(3)
	if _, digest := used(); digest != one.Digest {
		t.Errorf("while the second version waits %s serves, want %s", digest, one.Digest)
	}
	l.decide("allow", map[string]any{"name": "ask", "digest": l.asker().Next.Digest})
	approved := time.Now() // the trace may be some iterations behind, so they are distinguished by their times
	two := l.asker()
	if two.Version != "2" || two.State != plugin.Live {
		t.Fatalf("allowed, the second version is %+v", two)
	}
	// A pass that had begun ends with the version that it began with.
	l.until("the second version in a pass", func() bool { _, d := used(); return d == two.Digest })
	trace, err := rt.Trace(id)
	if err != nil {
		t.Fatal(err)
	}
	for i := range trace.Iterations {
		it := &trace.Iterations[i]
		it.Walk(func(s *runtime.TraceStep) {
			if s.Type == "ask" && it.Start.After(approved) && s.Attempts[0].Module != two.Digest {
				t.Errorf("pass %d, begun after the approval, used %s", it.Number, s.Attempts[0].Module)
			}
		})
	}

	// Another process decides: the file alone tells this one.
	store := grant.New(grant.Options{File: filepath.Join(project, ".sentinel", "plugins", "grants.json"), Key: filepath.Join(os.Getenv("XDG_CONFIG_HOME"), "sentinel", "grants.key")})
	if err := store.Set(t.Context(), grant.Entry{Name: "ask", Digest: two.Digest, Denied: true, By: "another"}); err != nil {
		t.Fatal(err)
	}
	res, err := rt.Wait(t.Context(), id)
	if err != nil || res.Status != sentinels.StatusFailed || res.Error == nil {
		t.Errorf("denied, the loop ended %s: %v, %v", res.Status, res.Error, err)
	}
	if p := l.asker(); p.State != plugin.Waiting {
		t.Errorf("denied elsewhere, it is %+v", p)
	}
	if err := store.Set(t.Context(), grant.Entry{Name: "ask", Digest: two.Digest, File: "ask.wasm", By: "another", Grant: plugin.Grant{Allow: two.Grant.Allow}}); err != nil {
		t.Fatal(err)
	}
	l.until("it to be live again", func() bool { return l.asker().State == plugin.Live })
	// A broken file grants nothing, and says so.
	if err := os.WriteFile(store.File(), []byte(`{"format": 1, "plugins": {`), 0o644); err != nil {
		t.Fatal(err)
	}
	l.until("the broken file to count", func() bool { return l.asker().State == plugin.Waiting })
}

// TestDeathAfterAllow ends the process between the write of an approval and
// what it does: the next process finds the approval.
func TestDeathAfterAllow(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	project := t.TempDir()
	drop(t, project, "1", emits)
	if os.Getenv("GRANT_AND_DIE") != "" { // the process that dies
		project = os.Getenv("GRANT_AND_DIE")
		t.Setenv("XDG_CONFIG_HOME", os.Getenv("GRANT_HOME"))
		l := begin(t, project)
		p := l.asker()
		key := filepath.Join(os.Getenv("GRANT_HOME"), "sentinel", "grants.key")
		store := grant.New(grant.Options{File: filepath.Join(project, ".sentinel", "plugins", "grants.json"), Key: key})
		if err := store.Set(t.Context(), grant.Entry{Name: p.Name, Digest: p.Digest, File: p.Source, By: "t", Grant: plugin.Grant{Allow: p.Permissions}}); err != nil {
			t.Fatal(err)
		}
		os.Exit(7) // like a crash, without a graceful shutdown
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestDeathAfterAllow$")
	cmd.Env = append(os.Environ(), "GRANT_AND_DIE="+project, "GRANT_HOME="+os.Getenv("XDG_CONFIG_HOME"))
	if said, err := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() != 7 {
		t.Fatalf("%v: %s", err, said)
	}
	l := begin(t, project)
	if p := l.asker(); p.State != plugin.Live {
		t.Errorf("after the crash it is %+v", p)
	}
}
