package api_test

import (
	"io"
	"log/slog"
	"os"
	"sync"
)

// dir is the folder of the package.
var dir = os.DirFS(".")

// textLogger logs into w, one record at a time.
func textLogger(w io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(&lockedWriter{w: w}, nil))
}

type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}
