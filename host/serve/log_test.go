package serve_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/host/serve"
)

// lockedBuffer is a buffer that goroutines may write to.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// TestLogWithoutSecrets: the parts of the server write to the log of the host, which
// removes secrets. The folder of definitions has a broken file whose name is a secret.
func TestLogWithoutSecrets(t *testing.T) {
	const secret = "hunter2-hunter2"
	project := t.TempDir()
	folder := filepath.Join(project, ".sentinel", "sentinels")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, secret+".json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	var log lockedBuffer
	server, err := serve.Open(t.Context(), serve.Options{Host: host.Options{
		Workspace: project, Config: filepath.Join(t.TempDir(), "none.json"), Set: map[string]string{"serve.listen": ""},
		Logger: slog.New(slog.NewTextHandler(&log, nil)), Environ: func() []string { return []string{"SENTINEL_SECRET_KEY=" + secret} },
	}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	for limit := time.Now().Add(time.Minute); !strings.Contains(log.String(), ".json") && time.Now().Before(limit); {
		time.Sleep(10 * time.Millisecond)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if text := log.String(); !strings.Contains(text, ".json") || strings.Contains(text, secret) {
		t.Errorf("the log:\n%s", text)
	}
}

// TestLogOfRuns: each firing, start and end of a run is one line at level info, with the
// run and its outcome, also of a child and of a run that fails.
func TestLogOfRuns(t *testing.T) {
	project := t.TempDir()
	write(t, filepath.Join(project, ".sentinel", "sentinels", "build.json"), `{"name": "build", "trigger": {"type": "immediate"}, "steps": [
		{"definition": {"name": "part", "steps": [{"type": "emit", "event": "built"}]}},
		{"type": "shell", "command": "printf 'one\ntwo\n' >&2; exit 3"}]}`)
	write(t, filepath.Join(project, ".sentinel", "sentinels", "never.json"),
		`{"name": "never", "trigger": {"type": "event", "event": "built", "filter": "$event.data.wanted"}, "steps": [{"type": "emit", "event": "no"}]}`)
	var log lockedBuffer
	server, err := serve.Open(t.Context(), serve.Options{Host: host.Options{
		Workspace: project, Config: filepath.Join(t.TempDir(), "none.json"), Set: map[string]string{"serve.listen": ""},
		Logger: slog.New(slog.NewJSONHandler(&log, nil)),
	}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	for limit := time.Now().Add(time.Minute); !strings.Contains(log.String(), `"status":"failed"`) && time.Now().Before(limit); {
		time.Sleep(10 * time.Millisecond)
	}
	for limit := time.Now().Add(time.Minute); !strings.Contains(log.String(), `"filtered"`) && time.Now().Before(limit); {
		time.Sleep(10 * time.Millisecond)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	type line struct {
		Level, Msg, Sentinel, Trigger, Outcome, Status, Run, Root, Error string
	}
	lines := map[string]line{}
	for text := range strings.Lines(log.String()) {
		var l line
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		switch l.Msg {
		case "trigger fired", "run started", "run ended":
			key := l.Sentinel + " " + l.Msg
			if _, twice := lines[key]; twice || l.Level != "INFO" {
				t.Errorf("twice, or not at level info: %s", text)
			}
			lines[key] = l
		}
	}
	run, part := lines["build run started"].Run, lines["build@0 run started"].Run
	want := map[string]line{
		"build trigger fired": {Trigger: "immediate", Outcome: "started", Run: run},
		"build run started":   {Run: run},
		"build@0 run started": {Run: part, Root: run},
		"build@0 run ended":   {Run: part, Root: run, Status: "completed"},
		"build run ended":     {Run: run, Status: "failed", Error: "shell \"printf 'one\\ntwo\\n' >&2; exit 3\": exit code 3: one\ntwo"},
		"never trigger fired": {Trigger: "event", Outcome: "filtered"},
	}
	for key, w := range want {
		w.Level, w.Sentinel = "INFO", strings.Fields(key)[0]
		w.Msg = strings.TrimPrefix(key, w.Sentinel+" ")
		want[key] = w
	}
	if diff := cmp.Diff(want, lines); diff != "" || run == "" || part == "" {
		t.Errorf("(-want +got):\n%s\n%s", diff, log.String())
	}
}
