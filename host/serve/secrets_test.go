//go:build unix

package serve_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/host/api"
	"github.com/sentinel-runtime/sentinel/host/principal"
)

// leaked is a secret of the environment, whose text differs in every encoding.
const leaked = "S3cr3t/Value+0123456789abcd"

// leaks are texts of which each gives the secret away.
var leaks = []string{leaked, base64.StdEncoding.EncodeToString([]byte(leaked)), url.QueryEscape(leaked)}

// leaksIn returns what gives the secret away in a text.
func leaksIn(text []byte) (found []string) {
	for _, leak := range leaks {
		if bytes.Contains(text, []byte(leak)) {
			found = append(found, leak)
		}
	}
	return found
}

// leaky writes the secret, which it gets as words of its command line, in two writes, with
// control characters within, encoded, and to standard error.
const leaky = `printf '%s\n' "$1"; printf '%s' "$2"; printf '%s\n' "$3"; printf '%s\033[1m%s\000%s\n' "$2" "" "$3"; printf '%s\n' "$4" "$5"; printf '%s\n' "$1" >&2`

// TestSecretsAtEveryDoor has a shell step, an emit step, a command, POST /v1/events and
// webhooks, of which one waits in the queue and one for more, carry a secret, and looks for it in the answer of every route and command that reads, for a viewer
// and for a person, in the live feed, and in every file of the state folder.
func TestSecretsAtEveryDoor(t *testing.T) {
	parts := map[string]any{"value": leaked, "one": leaked[:11], "two": leaked[11:], "base64": leaks[1], "percent": leaks[2]}
	shell := func(words ...any) any {
		return map[string]any{"type": "shell", "argv": append([]any{"sh", "-c", leaky, "sh"}, words...), "outputTo": "out"}
	}
	emit := func(value string) any {
		return map[string]any{"type": "emit", "event": "leak:step", "data": map[string]any{"plain": value, "base64": "$base64", "percent": "$percent"}}
	}
	// The secret is a variable that the caller sets.
	t.Run("variable", func(t *testing.T) {
		// The store keeps the variables of a start as they were given, for the run.
		secretsAtEveryDoor(t, parts, []any{shell("$value", "$one", "$two", "$base64", "$percent"), emit("$value")}, "store.db")
	})
	// A program finds it in a file.
	t.Run("file", func(t *testing.T) {
		found := map[string]any{"type": "shell", "argv": []any{"sh", "-c", `set -- "$(cat value)" "$(cat one)" "$(cat two)" "$(cat base64)" "$(cat percent)"; ` + leaky}, "outputTo": "out"}
		secretsAtEveryDoor(t, map[string]any{}, []any{found, map[string]any{"type": "emit", "event": "leak:step", "data": map[string]any{"of": "$out"}}}, "")
	})
}

// secretsAtEveryDoor executes steps with variables. A file of the state folder with the name
// given may have the secret.
func secretsAtEveryDoor(t *testing.T, variables map[string]any, steps []any, given string) {
	project := t.TempDir()
	write(t, filepath.Join(project, ".sentinel", "sentinels", "heard.json"),
		`{"name": "heard", "trigger": {"type": "event", "event": "leak:post"}, "steps": [{"type": "emit", "event": "heard", "data": {"of": "$event"}}]}`)
	// Of webhooks the first event starts a run, the next one waits in the queue or for more.
	for name, common := range map[string]string{"queued": `"concurrency": "queue", "trigger": {"type": "webhook", "insecure": true}`, "quiet": `"trigger": {"type": "webhook", "insecure": true, "debounceMs": 3600000}`} {
		write(t, filepath.Join(project, ".sentinel", "sentinels", name+".json"), fmt.Sprintf(`{"name": %q, %s, "steps": [{"type": "wait", "durationMs": 3600000}]}`, name, common))
	}
	for name, text := range map[string]string{"value": leaked, "one": leaked[:11], "two": leaked[11:], "base64": leaks[1], "percent": leaks[2]} {
		write(t, filepath.Join(project, name), text)
	}
	l := beginWith(t, host.Options{Workspace: project, Environ: func() []string { return []string{"SENTINEL_SECRET_FOO=" + leaked} }})
	tokens := api.TokenStore{State: l.server.Host().State(), Trust: l.server.Host().Trust()}
	viewer, err := tokens.New(principal.Viewer, "wall", time.Hour, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	feed := l.follow("runs", "triggers", "sentinels", "events:**")

	var run struct{ Run, Status string }
	raw := l.read("POST", "/v1/commands/sentinel/run", map[string]any{"variables": variables, "definition": map[string]any{"name": "leak", "steps": steps}})
	if err := json.Unmarshal(raw, &run); err != nil || run.Status != "completed" {
		t.Fatalf("%s: %v", raw, err)
	}
	line := map[string]any{"argv": []any{"sh", "-c", leaky, "sh", leaked, leaked[:11], leaked[11:], leaks[1], leaks[2]}}
	if raw := l.read("POST", "/v1/commands/code/shell/execute", line); bytes.Count(raw, []byte("[redacted]")) < 6 {
		t.Errorf("execute: %s", raw)
	}
	event := map[string]any{"event": "leak:post", "data": map[string]any{"plain": leaked, leaked: 1, "escaped": "x\"" + leaked, "base64": leaks[1], "percent": leaks[2]}}
	if code := l.ask("POST", "/v1/events", event, nil); code != http.StatusCreated {
		t.Fatalf("emit: %d", code)
	}
	delete(event, "event")
	for _, hook := range []struct {
		name, outcome string
	}{{"queued", "started"}, {"queued", "queued"}, {"quiet", "debounced"}} {
		body, err := json.Marshal(event)
		if err != nil {
			t.Fatal(err)
		}
		headers := []string{"Ce-Specversion: 1.0", "Ce-Id: " + rand.Text(), "Ce-Source: /s/" + leaked, "Ce-Subject: " + leaked, "Ce-Type: t"}
		if status, text := l.hook("POST", "/v1/hooks/"+hook.name, string(body), "", headers...); status != http.StatusAccepted || !strings.Contains(text, hook.outcome) {
			t.Fatalf("webhook %s: %d %s", hook.name, status, text)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for heard := false; !heard; {
		_, message, err := feed.Read(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if found := leaksIn(message); found != nil {
			t.Errorf("the live feed has %q: %s", found, message)
		}
		heard = bytes.Contains(message, []byte(`"kind":"heard"`))
	}

	l.everyAnswer(run.Run, "person")
	search := map[string]any{"pattern": "S3cr3t"}
	if text := l.read("POST", "/v1/commands/code/search", search); leaksIn(text) == nil {
		t.Errorf("a person does not find the text of a file of theirs: %s", text)
	}
	l.token, l.viewing = viewer, true
	l.until("the token of a viewer to be valid", func() bool { return l.ask("GET", "/tickets", nil, nil) == http.StatusOK })
	l.everyAnswer(run.Run, "viewer")
	// A match would tell what the text does not show; the file is found by what is around.
	if text := l.read("POST", "/v1/commands/code/search", search); bytes.Contains(text, []byte("[redacted]")) {
		t.Errorf("a viewer finds a file by the secret in it: %s", text)
	}
	if text := l.read("POST", "/v1/commands/code/search", map[string]any{"pattern": "redacted"}); !bytes.Contains(text, []byte("[redacted]")) {
		t.Errorf("a viewer does not find the file: %s", text)
	}
	state := l.server.Host().State()
	l.end()
	l.everyFile(state, given)
}

// follow opens a socket that subscribes to topics.
func (l *life) follow(topics ...string) *websocket.Conn {
	l.Helper()
	conn, _, err := websocket.Dial(l.Context(), l.http.URL+"/ws", &websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer " + l.token}}})
	if err != nil {
		l.Fatal(err)
	}
	l.Cleanup(func() { _ = conn.CloseNow() })
	conn.SetReadLimit(1 << 20)
	text, _ := json.Marshal(map[string]any{"subscribe": topics})
	if err := conn.Write(l.Context(), websocket.MessageText, text); err != nil {
		l.Fatal(err)
	}
	for text = nil; !bytes.Contains(text, []byte(`"subscribed"`)); {
		if _, text, err = conn.Read(l.Context()); err != nil {
			l.Fatal(err)
		}
	}
	return conn
}

// readsFiles reports whether the request is for what is in the files of the workspace, which a
// person gets as they are.
func readsFiles(path string) bool {
	family, _, _ := strings.Cut(strings.TrimPrefix(path, "/v1/commands/"), "/")
	return family == "code" && !strings.Contains(path, "/shell/") || family == "rag" || family == "fs"
}

// read is ask for an answer as it is, nil for one that is an error.
func (l *life) read(method, path string, body any) []byte {
	l.Helper()
	var send io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			l.Fatal(err)
		}
		send = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(l.Context(), method, l.http.URL+path, send)
	if err != nil {
		l.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+l.token)
	req.Header.Set("Content-Type", "application/json")
	res, err := l.http.Client().Do(req)
	if err != nil {
		l.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		l.Fatal(err)
	}
	if found := leaksIn(text); found != nil && (l.viewing || !readsFiles(path)) {
		l.Errorf("%s %s has %q:\n%.2000s", method, path, found, text)
	}
	if res.StatusCode >= 300 {
		return nil
	}
	return text
}

// everyAnswer reads through every route of the OpenAPI document and every command that only
// reads, about one run.
func (l *life) everyAnswer(run, who string) {
	l.Helper()
	var executions struct {
		Executions []struct {
			ID string `json:"executionId"`
		}
	}
	if err := json.Unmarshal(l.read("POST", "/v1/commands/logs/list", map[string]any{"run": run}), &executions); err != nil || len(executions.Executions) != 1 {
		l.Fatalf("%s: executions: %v %v", who, executions, err)
	}
	about := map[string]any{
		"run": run, "id": run, "runId": run, "executionId": executions.Executions[0].ID, "sentinelId": "heard", "sentinel": "heard", "address": "0", "pattern": ".", "revision": 1,
		"query": leaked, "collection": "sentinels", "cursor": 0, "path": ".",
	}
	var document struct {
		Paths map[string]map[string]json.RawMessage `json:"paths"`
	}
	if err := json.Unmarshal(l.read("GET", "/openapi.json", nil), &document); err != nil {
		l.Fatal(err)
	}
	l.read("POST", "/v1/commands/code/shell/status", map[string]any{"executionId": leaked}) // its error names what is not there
	answered := map[string]bool{}
	for pattern, methods := range document.Paths {
		if methods["get"] == nil || pattern == "/v1/feed" || pattern == "/ws" {
			continue // [life.follow] is the feed
		}
		path := strings.NewReplacer("{run}", run, "{id}", "heard", "{sentinel}", "heard", "{revision}", "1", "{address}", "0", "{path}", "0").Replace(pattern)
		answered["GET "+pattern] = l.read("GET", path, nil) != nil
	}
	for _, c := range l.server.Host().Commands().List() {
		if !c.ReadOnly() || c.Name == "sentinel/await" {
			continue
		}
		var input struct {
			Properties map[string]json.RawMessage
			Required   []string
		}
		if err := json.Unmarshal(c.Input(), &input); err != nil {
			l.Fatal(err)
		}
		params := map[string]any{}
		for name, value := range about {
			if input.Properties[name] != nil {
				params[name] = value
			}
		}
		if c.Name == "events/tail" {
			params = nil
		}
		answered[c.Name] = l.read("POST", "/v1/commands/"+c.Name, params) != nil
	}
	for _, must := range []string{
		"GET /v1/events", "GET /v1/runs", "GET /v1/runs/{run}", "GET /v1/runs/{run}/result", "GET /v1/runs/{run}/trace", "GET /v1/runs/{run}/logs",
		"GET /v1/runs/{run}/steps", "GET /v1/runs/{run}/steps/{path}", "events/tail", "logs/list", "logs/read", "logs/tail", "logs/search",
		"code/shell/watch", "code/shell/list", "code/shell/status", "sentinel/trace", "sentinel/status", "sentinel/result", "audit/list",
	} {
		if !answered[must] {
			l.Errorf("%s: %s had no answer to look into", who, must)
		}
	}
}

// everyFile looks into the state folder, which must have kept something of the run, but not
// into the file with the name given.
func (l *life) everyFile(state, given string) {
	l.Helper()
	kept := 0
	err := filepath.WalkDir(state, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || d.Name() == given {
			return err
		}
		data, err := os.ReadFile(path)
		if found := leaksIn(data); found != nil {
			at := bytes.Index(data, []byte(found[0]))
			l.Errorf("%s has %q, the first in %q", path, found, data[max(0, at-300):min(len(data), at+100)])
		}
		kept += bytes.Count(data, []byte("[redacted]"))
		return err
	})
	if err != nil || kept == 0 {
		l.Errorf("%d marks in %s: %v", kept, state, err)
	}
}
