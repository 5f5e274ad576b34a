package serve_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
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

// TestLogOfChanges: the log has each change of a definition, of a plugin and of what fires, with who
// made it. The audit log has the files of plugins.
func TestLogOfChanges(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	project := t.TempDir()
	drop(t, project, "1", emits)
	path := filepath.Join(project, ".sentinel", "sentinels", "a.json")
	const text = `{"id": "a", "name": "a", "trigger": {"type": "event", "event": "go"}, "steps": [{"type": "wait", "durationMs": 1}]}`
	write(t, path, text)
	var log lockedBuffer
	server, err := serve.Open(t.Context(), serve.Options{Host: host.Options{
		Workspace: project, Config: filepath.Join(t.TempDir(), "none.json"), Set: map[string]string{"serve.listen": "", "serve.rescan": "100ms"},
		Logger: slog.New(slog.NewTextHandler(&log, nil)),
	}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	logged := func(parts ...string) {
		t.Helper()
		for limit := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
			for line := range strings.Lines(log.String()) {
				found := true
				for _, part := range parts {
					found = found && strings.Contains(line, part)
				}
				if found {
					return
				}
			}
			if time.Now().After(limit) {
				t.Fatalf("no line with %q in\n%s", parts, log.String())
			}
		}
	}
	call := func(name, params string) {
		t.Helper()
		if _, err := server.Host().Call(t.Context(), name, json.RawMessage(params)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	logged(`"definition saved"`, "sentinel=a", "revision=1", "by=file", "a.json")
	write(t, path, strings.Replace(text, "1}", "2}", 1))
	logged(`"definition saved"`, "revision=2", "by=file")
	call("sentinel/pause", `{"sentinelId": "a"}`)
	logged("msg=paused", "sentinel=a", "by=user")
	call("sentinel/resume", `{"sentinelId": "a"}`)
	logged("msg=resumed", "sentinel=a", "by=user")
	call("sentinel/rollback", `{"sentinelId": "a", "to": 1}`)
	logged(`"definition saved"`, "revision=3", "by=user", "rollback")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	logged(`"definition deleted"`, "sentinel=a", "by=file")
	logged(`"plugin waiting"`, "plugin=ask", "version=1", "problem=")
	call("plugin/allow", `{"name": "ask"}`)
	logged(`"plugin live"`, "plugin=ask")
	logged(`"plugin allowed"`, "plugin=ask", "by=user")
	drop(t, project, "2", "")
	logged(`"plugin live"`, "plugin=ask", "version=2", "by=file", "file=ask.wasm", "digest=")
	if err := os.Remove(filepath.Join(project, ".sentinel", "plugins", "ask.wasm")); err != nil {
		t.Fatal(err)
	}
	logged(`"plugin is unloaded"`, "plugin=ask")
	if live := regexp.MustCompile(`(?m)^.*msg="plugin (is )?live".*$`).FindAllString(log.String(), -1); len(live) != 2 {
		t.Errorf("%d lines for two versions that became live:\n%s", len(live), strings.Join(live, "\n"))
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	entries, err := os.ReadFile(filepath.Join(project, ".sentinel", "state", "audit", "audit.jsonl"))
	if err != nil || !strings.Contains(string(entries), `"event":"plugin/file","actor":"file","outcome":"denied"`) || !strings.Contains(string(entries), `"state":"live"`) ||
		!regexp.MustCompile(`"event":"plugin/file","actor":"file","outcome":"ok","details":\{[^}]*"file":"ask.wasm","name":"ask","state":"removed"`).Match(entries) {
		t.Errorf("%v: %s", err, entries)
	}
}
