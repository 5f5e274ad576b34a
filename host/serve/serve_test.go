package serve_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/host/serve"
	"github.com/sentinel-runtime/sentinel/runtime"
)

// A life is one server from Open until it has ended.
type life struct {
	*testing.T
	server  *serve.Server
	http    *httptest.Server
	token   string
	viewing bool // token is a viewer's
	start   serve.Start
	stop    context.CancelFunc
	ended   chan error
}

// begin serves a project's folder without a port of its own.
func begin(t *testing.T, project string) *life {
	t.Helper()
	return beginWith(t, host.Options{Workspace: project})
}

// beginWith is begin for other options of the host.
func beginWith(t *testing.T, opt host.Options) *life {
	t.Helper()
	opt.Config, opt.Set = filepath.Join(t.TempDir(), "none.json"), map[string]string{"serve.listen": ""}
	l := &life{T: t, ended: make(chan error, 1)}
	ready := make(chan serve.Start, 1)
	var err error
	l.server, err = serve.Open(t.Context(), serve.Options{
		Host:  opt,
		Ready: func(s serve.Start) { ready <- s },
	})
	if err != nil {
		t.Fatal(err)
	}
	l.http = httptest.NewServer(l.server.Handler())
	if l.token, err = l.server.Token(); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	l.stop = stop
	go func() { l.ended <- l.server.Run(ctx) }()
	t.Cleanup(func() { l.end() })
	select {
	case l.start = <-ready:
	case err := <-l.ended:
		t.Fatalf("the server ended at once: %v", err)
	}
	return l
}

// end stops the server as SIGTERM does.
func (l *life) end() {
	if l.http == nil {
		return
	}
	l.stop()
	if err := <-l.ended; err != nil {
		l.Errorf("run: %v", err)
	}
	l.http.Close()
	l.http = nil
}

// ask makes a request and decodes the answer into result, unless that is nil.
func (l *life) ask(method, path string, body, result any) int {
	l.Helper()
	var send io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			l.Fatal(err)
		}
		send = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(l.Context(), method, l.http.URL+path, send)
	if err != nil {
		l.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+l.token)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := l.http.Client().Do(req)
	if err != nil {
		l.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		l.Fatal(err)
	}
	if result != nil {
		if err := json.Unmarshal(text, result); err != nil {
			l.Fatalf("%s %s: %s: %v", method, path, text, err)
		}
	}
	return res.StatusCode
}

// until waits for something that other goroutines bring about.
func (l *life) until(what string, ok func() bool) {
	l.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			l.Fatalf("%s did not come about", what)
		}
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

type listed struct {
	Sentinels []struct {
		SentinelID string `json:"sentinelId"`
		RunCount   int    `json:"runCount"`
		Revision   int    `json:"revision"`
	} `json:"sentinels"`
}

func (l *life) runs(id string) int {
	var list listed
	l.ask(http.MethodGet, "/v1/sentinels", nil, &list)
	for _, s := range list.Sentinels {
		if s.SentinelID == id {
			return s.RunCount
		}
	}
	return 0
}

// TestLife drops a file into the folder, has its trigger fire, edits a step over
// the API while a loop runs, ends the server in the middle of the loop and finds
// it going on in the next one, without a question.
func TestLife(t *testing.T) {
	project := t.TempDir()
	l := begin(t, project)
	file := filepath.Join(project, ".sentinel", "sentinels", "loop.json")
	write(t, file, `{
	// what this is for
	"name": "loop",
	"trigger": {"type": "immediate"},
	"steps": [
		{"type": "shell", "command": "echo first >> lines.txt"},
		{"type": "wait", "durationMs": 20}
	],
	"loop": {"type": "continuous"}, "safety": {"maxIterations": 100000}
}`)
	lines := func() string {
		text, _ := os.ReadFile(filepath.Join(project, "lines.txt"))
		return string(text)
	}
	l.until("the first pass", func() bool { return strings.Contains(lines(), "first") })

	edit := map[string]any{"sentinelId": "loop", "index": 0, "params": map[string]any{"command": "echo second >> lines.txt"}}
	if status := l.ask(http.MethodPost, "/v1/commands/sentinel/step/update", edit, nil); status != http.StatusOK {
		t.Fatalf("step/update: status %d", status)
	}
	l.until("a pass on the edited step", func() bool { return strings.Contains(lines(), "second") })
	text, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(text), "echo second") || !strings.Contains(string(text), "// what this is for") {
		t.Errorf("the file does not follow the edit, or lost its comment: %s, %v", text, err)
	}

	l.end()
	before := strings.Count(lines(), "\n")
	l = begin(t, project)
	if l.start.Unclean || l.start.Recovery.Resumed != 1 || len(l.start.Recovery.InDoubt) != 0 {
		t.Errorf("after a clean end: %+v", l.start)
	}
	l.until("further passes", func() bool { return strings.Count(lines(), "\n") > before+2 })
	if n := l.runs("loop"); n != 1 {
		t.Errorf("%d runs, want the one that goes on", n)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	l.until("the sentinel's going with its file", func() bool {
		var list listed
		l.ask(http.MethodGet, "/v1/sentinels", nil, &list)
		return len(list.Sentinels) == 0
	})
}

// TestSecondProcess checks that the error names the owner of the store.
func TestSecondProcess(t *testing.T) {
	project := t.TempDir()
	begin(t, project)
	_, err := serve.Open(t.Context(), serve.Options{Host: host.Options{Workspace: project}})
	if !errors.Is(err, runtime.ErrHeld) || !strings.Contains(err.Error(), fmt.Sprint(os.Getpid())) {
		t.Errorf("a second server: %v, want it to name process %d", err, os.Getpid())
	}
}

// TestCloseIsAlwaysLegal: before Run, twice, and during it.
func TestCloseIsAlwaysLegal(t *testing.T) {
	opt := serve.Options{Host: host.Options{Workspace: t.TempDir(), Set: map[string]string{"serve.listen": ""}}}
	s, err := serve.Open(t.Context(), opt)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Close(), s.Close()); err != nil {
		t.Error(err)
	}
	if err := s.Run(t.Context()); err == nil {
		t.Error("a closed server ran")
	}
	if s, err = serve.Open(t.Context(), opt); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() { ended <- s.Run(context.Background()) }()
	if err := errors.Join(s.Close(), <-ended); err != nil && !strings.Contains(err.Error(), "closed") {
		t.Error(err)
	}
}
