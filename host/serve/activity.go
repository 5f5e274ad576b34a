package serve

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers"
)

// maxActivity is how many lines of an activityLog may wait. A storm of firings that the
// log cannot follow loses lines rather than memory.
const maxActivity = 4096

// An activityLog logs each firing, and the start and the end of each run, in one line
// at level info. Observers must not block, and writing a log may, so a goroutine
// writes.
//
// # Concurrency
//
// fired and progress may be called by any goroutine, close once and at the end.
type activityLog struct {
	mu     sync.Mutex
	lines  chan activityLine // nil before open and after close
	lost   int               // lines that did not fit, since the last that did
	done   chan struct{}
	logger *slog.Logger
}

type activityLine struct {
	message string
	attrs   []slog.Attr
	at      time.Time
}

// open begins to log, unless the level of the logger leaves out all of it.
func (a *activityLog) open(logger *slog.Logger) {
	if !logger.Enabled(context.Background(), slog.LevelInfo) {
		return
	}
	lines := make(chan activityLine, maxActivity)
	a.mu.Lock()
	a.lines, a.done, a.logger = lines, make(chan struct{}), logger
	a.mu.Unlock()
	go func() {
		defer close(a.done)
		for l := range lines {
			// The time is that of what happened: the line may have waited.
			r := slog.NewRecord(l.at, slog.LevelInfo, l.message, 0)
			r.AddAttrs(l.attrs...)
			_ = logger.Handler().Handle(context.Background(), r) // as a logger does
		}
	}()
}

// close returns when all lines are written. What happens afterwards is not logged.
func (a *activityLog) close() {
	a.mu.Lock()
	lines, done := a.lines, a.done
	a.lines = nil
	a.mu.Unlock()
	if lines != nil {
		close(lines)
		<-done
	}
}

func (a *activityLog) add(message string, attrs ...slog.Attr) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.lines == nil {
		return
	}
	l := activityLine{message: message, attrs: attrs, at: time.Now()}
	if a.lost > 0 {
		l.attrs = append(l.attrs, slog.Int("linesLostBefore", a.lost))
	}
	select {
	case a.lines <- l:
		a.lost = 0
	default:
		a.lost++
	}
}

// fired logs the outcome of a firing.
func (a *activityLog) fired(f runtime.TriggerFired) {
	attrs := []slog.Attr{slog.String("sentinel", string(f.Sentinel)), slog.String("trigger", f.Type), slog.String("outcome", string(f.Outcome))}
	if f.Run != "" {
		attrs = append(attrs, slog.String("run", string(f.Run)))
	}
	if f.Reason != "" {
		attrs = append(attrs, slog.String("reason", f.Reason))
	}
	message := "trigger fired"
	if f.Outcome == triggers.Overdue {
		message = "expected run did not come"
	}
	a.add(message, attrs...)
}

// progress logs the start and the end of runs, also of children.
func (a *activityLog) progress(p runtime.Progress) {
	attrs := []slog.Attr{slog.String("sentinel", string(p.Sentinel)), slog.String("run", string(p.Run))}
	if p.Root != "" && p.Root != p.Run {
		attrs = append(attrs, slog.String("root", string(p.Root)))
	}
	switch p.Event {
	case runtime.OnRunStart:
		a.add("run started", attrs...)
	case runtime.OnRunEnd:
		attrs = append(attrs, slog.String("status", string(p.Status)), slog.Int64("durationMs", p.Duration.Milliseconds()))
		if p.Reason != "" {
			attrs = append(attrs, slog.String("reason", p.Reason))
		}
		if u := p.Usage; u != nil && *u != (sentinels.Usage{}) {
			attrs = append(attrs, slog.Int64("tokens", u.InputTokens+u.OutputTokens), slog.Float64("costUsd", u.CostUSD))
		}
		if p.Error != nil {
			attrs = append(attrs, slog.String("error", p.Error.Message))
		}
		a.add("run ended", attrs...)
	}
}
