package serve

import (
	"context"
	"encoding/json"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/sentinel-runtime/sentinel/host/audit"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/plugin"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers"
)

// maxActivity is how many lines of an activityLog may wait. A storm of firings that the
// log cannot follow loses lines rather than memory.
const maxActivity = 4096

// An activityLog logs each firing, the start and the end of each run, each change of a definition
// and of a plugin, and what callers do to runs and triggers, in one line at level info. Observers must not block, and writing a log may, so a goroutine
// writes.
//
// # Concurrency
//
// Its methods but open and close may be called by any goroutine, close once and at the end.
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
	if f.Held > 1 { // hundreds a second; the counts of the trigger have them
		return
	}
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
		if p.Status == sentinels.StatusQueued {
			attrs = append(attrs, slog.String("status", string(p.Status)), slog.String("reason", p.Message))
		}
		a.add("run started", attrs...)
	case runtime.OnRunEnd:
		attrs = append(attrs, slog.String("status", string(p.Status)), slog.Int64("durationMs", p.Duration.Milliseconds()))
		if p.Reason != "" {
			attrs = append(attrs, slog.String("reason", p.Reason))
		}
		if u := p.Usage; u != nil && *u != (sentinels.Usage{}) {
			attrs = append(attrs, slog.Int64("tokens", u.Tokens()), slog.Float64("costUsd", u.CostUSD))
		}
		if p.Error != nil {
			attrs = append(attrs, slog.String("error", p.Error.Message))
		}
		a.add("run ended", attrs...)
	}
}

// defined logs a new revision of a definition, by a command or from a file.
func (a *activityLog) defined(c runtime.DefinitionChange) {
	message := "definition saved"
	if c.Deleted {
		message = "definition deleted"
	}
	a.add(message, texts("sentinel", string(c.ID), "revision", strconv.Itoa(c.Revision), "by", c.By, "file", c.Origin, "note", c.Note)...)
}

// plugged logs the state of a plugin that has changed, by its file: the command that allowed or denied it has a line of its own.
func (a *activityLog) plugged(p plugin.Info) {
	if !p.Trusted {
		a.add("plugin "+string(p.State), texts("plugin", p.Name, "version", p.Version, "by", "file", "file", p.Source, "digest", p.Digest, "problem", p.Problem, "refused", p.Refused)...)
	}
}

// activities are the commands that are logged by what they do, beside those that make revisions.
var activities = map[string]string{
	"sentinel/pause": "paused", "sentinel/resume": "resumed", "sentinel/stop": "stopped", "sentinel/decide": "decided", "sentinel/accept": "definition accepted",
	"ticket/decide": "decided", "plugin/allow": "plugin allowed", "plugin/deny": "plugin denied", "plugin/load": "plugin loaded", "plugin/unload": "plugin unloaded",
}

// recorded logs the call of a command.
func (a *activityLog) recorded(e audit.Entry) {
	message := activities[e.Event]
	if message == "" {
		return
	}
	var of struct{ SentinelID, Run, ID, Name, Decision string }
	_ = json.Unmarshal(e.Details, &of) // what was cut is a text: then the line has no target
	a.add(message, texts("sentinel", of.SentinelID, "run", of.Run, "ticket", of.ID, "plugin", of.Name, "decision", of.Decision, "by", e.Actor)...)
}

// texts returns attributes, given as pairs of name and value, without those that are empty.
func texts(pairs ...string) (attrs []slog.Attr) {
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			attrs = append(attrs, slog.String(pairs[i], pairs[i+1]))
		}
	}
	return attrs
}
