package serve_test

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

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
