package cron

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers"
)

// Options configure the kind. The zero value works.
type Options struct {
	// Wake is the longest that a trigger sleeps before it looks at the clock
	// again, which may have been set. Default 30 s.
	Wake time.Duration
}

// Kind is the trigger kind "schedule".
//
// # Concurrency
//
// Safe for concurrent use. Each trigger has one goroutine, that of Run.
type Kind struct {
	opt   Options
	jumps jumps
}

// New makes the trigger kind.
func New(opt Options) *Kind {
	if opt.Wake <= 0 {
		opt.Wake = 30 * time.Second
	}
	return &Kind{opt: opt}
}

// Name is "schedule".
func (*Kind) Name() string { return "schedule" }

// CatchUp says what becomes of planned times that passed while nothing could
// fire: the host was down, the triggers were paused, the machine slept.
type CatchUp string

// The ways to catch up.
const (
	CatchUpNone CatchUp = "none" // nothing is made up for
	CatchUpLast CatchUp = "last" // the newest is
	CatchUpAll  CatchUp = "all"  // the newest [maxCatchUp] are, in order
)

// maxCatchUp is how many planned times "all" makes up for at once.
const maxCatchUp = 100

// Bounds of the options.
const (
	maxJitter = 24 * time.Hour
	maxWindow = 366 * 24 * time.Hour
)

// options are those of a schedule, clause T4 of TRIGGERS.md.
type options struct {
	// TimeZone is the zone of the fields. Default: that of the host.
	TimeZone string  `json:"timeZone,omitempty"`
	CatchUp  CatchUp `json:"catchUp,omitempty"` // default [CatchUpLast]
	// CatchUpWindowMs bounds how old a planned time may be that is made up for.
	// Default 0, no bound.
	CatchUpWindowMs int64 `json:"catchUpWindowMs,omitempty"`
	// JitterMs spreads fires, in ms behind the planned time. Default 0.
	JitterMs int64 `json:"jitterMs,omitempty"`
}

func (o options) window() time.Duration { return time.Duration(o.CatchUpWindowMs) * time.Millisecond }
func (o options) jitter() time.Duration { return time.Duration(o.JitterMs) * time.Millisecond }

// read checks all of a trigger and returns every problem there is.
func read(t sentinels.Trigger, since time.Time) (o options, p plan, err error) {
	if err := triggers.ReadOptions(t, &o); err != nil {
		return o, nil, err
	}
	var problems []error
	wrong := func(format string, args ...any) {
		problems = append(problems, fmt.Errorf(`trigger "schedule": `+format, args...))
	}
	var zone *time.Location
	if o.TimeZone != "" {
		if zone, err = loadZone(o.TimeZone); err != nil {
			wrong("timeZone: %w", err)
		}
	}
	switch o.CatchUp {
	case "":
		o.CatchUp = CatchUpLast
	case CatchUpNone, CatchUpLast, CatchUpAll:
	default:
		wrong("catchUp is %q, it can be none, last or all", o.CatchUp)
	}
	if o.window() < 0 || o.CatchUpWindowMs > maxWindow.Milliseconds() {
		wrong("catchUpWindowMs is %d, it can be 1 to %d, or 0 for no bound", o.CatchUpWindowMs, maxWindow.Milliseconds())
	}
	if o.JitterMs < 0 || o.JitterMs > maxJitter.Milliseconds() {
		wrong("jitterMs is %d, it can be 0 to %d", o.JitterMs, maxJitter.Milliseconds())
	}
	if p, err = parse(t.CronExpression, zone, since); err != nil {
		problems = append(problems, err)
	}
	return o, p, errors.Join(problems...)
}

// Check reports what is wrong with the expression and the options of t.
func (*Kind) Check(t sentinels.Trigger) error {
	_, _, err := read(t, time.Time{})
	return err
}

// Arm readies a trigger. What it has yet to fire begins behind the newest
// planned time in the state, or behind Env.Since without one.
func (k *Kind) Arm(t sentinels.Trigger, env triggers.Env) (triggers.Armed, error) {
	if env.Logger == nil {
		env.Logger = slog.New(slog.DiscardHandler)
	}
	if env.Now == nil {
		env.Now = time.Now
	}
	if env.Since.IsZero() {
		env.Since = env.Now()
	}
	o, p, err := read(t, env.Since)
	if err != nil {
		return nil, err
	}
	base, err := readState(env.State, env.Since)
	if err != nil {
		return nil, err
	}
	return &armed{kind: k, opt: o, plan: p, env: env, expression: t.CronExpression, base: base}, nil
}

// stable is 16 bytes of text that are the same for the same parts.
func stable(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

var _ triggers.Kind = (*Kind)(nil)
