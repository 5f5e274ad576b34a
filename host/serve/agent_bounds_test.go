package serve_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/host/api"
	"github.com/sentinel-runtime/sentinel/host/principal"
	"github.com/sentinel-runtime/sentinel/runtime"
)

// TestDefinitionsOfAgentTokens: what is stored with the token of an agent writes no file of the
// host, started by a person or by an event, until a person accepts it; the agent cannot.
func TestDefinitionsOfAgentTokens(t *testing.T) {
	project := t.TempDir()
	l := begin(t, project)
	own := filepath.Join(project, host.DirName, "recipes", "own.json")
	person := l.token
	agent, err := (api.TokenStore{State: l.server.Host().State(), Trust: l.server.Host().Trust()}).New(principal.Agent, "ci", time.Hour, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	l.token = agent
	l.until("the token of the agent to be valid", func() bool { return l.ask("GET", "/tickets", nil, nil) == http.StatusOK })
	def := map[string]any{
		"id": "own", "name": "own", "trigger": map[string]any{"type": "event", "event": "go"},
		"steps": []any{map[string]any{"type": "command", "command": "code/write", "params": map[string]any{"path": own, "content": "{}"}}},
	}
	if code := l.ask("POST", "/v1/commands/sentinel/create", map[string]any{"definition": def}, nil); code != http.StatusOK {
		t.Fatalf("create: %d", code)
	}
	accept := map[string]any{"sentinelId": "own", "revision": 1}
	if code := l.ask("POST", "/v1/commands/sentinel/accept", accept, nil); code != http.StatusForbidden {
		t.Errorf("accepted by the agent: %d", code)
	}
	l.token = person
	run := func() string {
		var r struct{ Status string }
		if code := l.ask("POST", "/v1/commands/sentinel/run", map[string]any{"sentinelId": "own"}, &r); code != http.StatusOK {
			t.Fatalf("run: %d", code)
		}
		return r.Status
	}
	if status := run(); status != "failed" {
		t.Errorf("started by a person: %s", status)
	}
	if code := l.ask("POST", "/v1/events", map[string]any{"event": "go"}, nil); code != http.StatusCreated {
		t.Fatalf("emit: %d", code)
	}
	l.until("the run of the trigger to end", func() bool {
		var list struct{ Runs []struct{ Status string } }
		l.ask("GET", "/v1/runs?sentinel=own", nil, &list)
		return len(list.Runs) == 2 && list.Runs[0].Status == "failed"
	})
	if _, err := os.Stat(own); err == nil {
		t.Error("a file of the host was written")
	}
	if code := l.ask("POST", "/v1/commands/sentinel/accept", accept, nil); code != http.StatusOK {
		t.Fatalf("accepted by a person: %d", code)
	}
	if err := os.Mkdir(filepath.Dir(own), 0o700); err != nil {
		t.Fatal(err)
	}
	if status := run(); status != "completed" {
		t.Errorf("accepted: %s", status)
	}
}

// TestBoundsOfFiles: an edit of an agent is not in the file, and waits in the inbox, also if its author
// may call all that it names and when the process starts again, until a person accepts it.
func TestBoundsOfFiles(t *testing.T) {
	project := t.TempDir()
	file := filepath.Join(project, host.DirName, "sentinels", "x.json")
	write(t, file, `{"name": "x", "steps": [{"id": "a", "type": "set", "values": {"n": 1}}]}`)
	l := begin(t, project)
	newest := func(n int) (r runtime.Stored) {
		l.until("the revision", func() (there bool) {
			var err error
			r, err = l.server.Host().Runtime().Revision("x", n)
			return err == nil
		})
		return r
	}
	if r := newest(1); r.Within != nil {
		t.Errorf("the file of a person is bounded: %+v", r)
	}
	person := l.token
	agent, err := (api.TokenStore{State: l.server.Host().State(), Trust: l.server.Host().Trust()}).New(principal.Agent, "ci", time.Hour, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	l.token = agent
	l.until("the edit of the agent", func() bool {
		return l.ask("POST", "/v1/commands/sentinel/step/update", map[string]any{"sentinelId": "x", "address": "a", "params": map[string]any{"values": map[string]any{"n": 2}}}, nil) == http.StatusOK
	})
	l.token = person
	says := func(when, n string) {
		t.Helper()
		if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), `"n": `+n) {
			t.Errorf("%s: the file says %s: %v", when, text, err)
		}
	}
	says("edited by an agent", "1")
	if r := newest(2); len(r.Within) == 0 {
		t.Error("the edit of an agent has no bound")
	}
	l.end()
	l = begin(t, project)
	says("started again", "1")
	var inbox struct{ Entries []struct{ ID, Prompt string } }
	code := l.ask("POST", "/v1/commands/inbox/list", map[string]any{}, &inbox)
	if code != http.StatusOK || len(inbox.Entries) != 1 || inbox.Entries[0].ID != "x" ||
		!strings.Contains(inbox.Entries[0].Prompt, "is not written to its file") {
		t.Errorf("inbox: %d %+v", code, inbox)
	}
	if code := l.ask("POST", "/v1/commands/sentinel/accept", map[string]any{"sentinelId": "x", "revision": 2}, nil); code != http.StatusOK {
		t.Errorf("accepted by a person: %d", code)
	}
	says("accepted", "2")
	if r := newest(3); r.Within != nil {
		t.Errorf("accepted: %+v", r)
	}
}
