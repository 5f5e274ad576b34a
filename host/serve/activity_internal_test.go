package serve

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/runtime"
)

// stuckHandler writes nothing until it is released, as a terminal that is stopped.
type stuckHandler struct {
	slog.Handler
	release chan struct{}
}

func (h stuckHandler) Handle(ctx context.Context, r slog.Record) error {
	<-h.release
	return h.Handler.Handle(ctx, r)
}

// TestActivityDoesNotBlock: a log that takes no line does not stop the engine. Lines that
// do not fit are counted on the next one, and close writes those that wait.
func TestActivityDoesNotBlock(t *testing.T) {
	var a activityLog
	var text bytes.Buffer
	release := make(chan struct{})
	a.fired(runtime.TriggerFired{Sentinel: "early"}) // before open: dropped
	a.open(slog.New(stuckHandler{slog.NewTextHandler(&text, nil), release}))
	for range maxActivity + 50 { // one may be with the handler
		a.fired(runtime.TriggerFired{Sentinel: "storm", Type: "event", Outcome: "skipped"})
	}
	close(release)
	for full := true; full; {
		a.mu.Lock()
		full = len(a.lines) == maxActivity
		a.mu.Unlock()
	}
	a.fired(runtime.TriggerFired{Sentinel: "after", Type: "event", Outcome: "skipped"})
	a.close()
	a.close()
	a.progress(runtime.Progress{Event: runtime.OnRunStart, Sentinel: "late"})
	lines := strings.Split(strings.TrimSpace(text.String()), "\n")
	last := lines[len(lines)-1]
	if n := len(lines); n < maxActivity+1 || n > maxActivity+2 || !strings.Contains(last, "sentinel=after") || !strings.Contains(last, "linesLostBefore=") {
		t.Errorf("%d lines, the last is %s", n, last)
	}
	if strings.Contains(text.String(), "early") || strings.Contains(text.String(), "late") {
		t.Error("a line from before open or behind close")
	}
}

// TestActivityBelowLevel: a log that leaves out level info costs nothing.
func TestActivityBelowLevel(t *testing.T) {
	var a activityLog
	a.open(slog.New(slog.NewTextHandler(&bytes.Buffer{}, &slog.HandlerOptions{Level: slog.LevelWarn})))
	a.fired(runtime.TriggerFired{Sentinel: "s"})
	if a.lines != nil {
		t.Error("it logs")
	}
	a.close()
}
