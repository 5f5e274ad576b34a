package cron

import (
	"crypto/sha256"
	"encoding/binary"
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
	// Wake is the longest time that a trigger sleeps before it reads the clock
	// again, which may have been set. Default 30 s.
	Wake time.Duration
}

// Kind is the trigger kind "schedule".
//
// # Concurrency
//
// Safe for concurrent use. Each trigger has one goroutine, that of Run.
type Kind struct {
	opt        Options
	clockJumps clockJumps
}

// New returns the trigger kind.
func New(opt Options) *Kind {
	if opt.Wake <= 0 {
		opt.Wake = 30 * time.Second
	}
	return &Kind{opt: opt}
}

// Describe describes the kind "schedule".
func (*Kind) Describe() triggers.Description {
	return triggers.Description{
		Name: "schedule", Aliases: []string{"cron"}, Field: sentinels.TriggerCron, Fires: "at planned times", Options: options{},
		Warnings: optionWarnings,
		Event:    "name schedule; data {scheduled: planned time in RFC 3339, without jitter; fired: the time; missed: number of planned times left out since the previous firing; expression}",
		Data:     []string{"scheduled", "fired", "missed", "expression"},
	}
}

// CatchUp is the policy for planned times in a downtime: the host was down, the
// triggers were paused, or the machine slept.
type CatchUp string

// The catch-up policies.
const (
	CatchUpNone CatchUp = "none" // fire none of them
	CatchUpLast CatchUp = "last" // fire the newest
	CatchUpAll  CatchUp = "all"  // fire the newest [maxCatchUp], in order
)

// maxCatchUp limits how many planned times "all" fires at once.
const maxCatchUp = 100

// Limits of the options.
const (
	maxJitter = 24 * time.Hour
	maxWindow = 366 * 24 * time.Hour
)

// options are the options of a schedule, clause T4 of TRIGGERS.md.
type options struct {
	// TimeZone is the zone of the fields. Default: the zone of the host.
	TimeZone string  `json:"timeZone,omitempty" doc:"zone of the IANA database, such as Europe/Berlin" default:"the zone of the host"`
	CatchUp  CatchUp `json:"catchUp,omitempty" doc:"which planned times of a downtime fire late" default:"last" enum:"none,last,all"` // default [CatchUpLast]
	// CatchUpWindowMs is how old a planned time may be to fire late. Default 0, no
	// limit.
	CatchUpWindowMs int64 `json:"catchUpWindowMs,omitempty" doc:"how old a planned time may be to fire late, in ms" default:"0, no limit"`
	// JitterMs is the longest random delay of a firing. Default 0.
	JitterMs int64 `json:"jitterMs,omitempty" doc:"longest delay of a firing, 0 to 86400000 ms" default:"0"`
	// ExpectWithinMs is the time after each planned time in which Expect must happen. Default 0,
	// nothing is expected.
	ExpectWithinMs int64  `json:"expectWithinMs,omitempty" doc:"time after each planned time in which a run must begin or complete, else the event sentinel:ID:overdue reports it; 1000 to 31622400000 ms" default:"0, none"`
	Expect         string `json:"expect,omitempty" doc:"what must happen within expectWithinMs" default:"started" enum:"started,completed"`
}

// What a schedule expects of a run.
const (
	expectStarted   = "started"
	expectCompleted = "completed"
)

func (o options) window() time.Duration { return time.Duration(o.CatchUpWindowMs) * time.Millisecond }
func (o options) jitter() time.Duration { return time.Duration(o.JitterMs) * time.Millisecond }

// read reads a trigger and returns all its problems in one error.
func read(t sentinels.Trigger, since time.Time) (o options, p plan, err error) {
	var problems []error
	if err := triggers.ReadOptions(t, &o); err != nil {
		problems = append(problems, err)
	}
	report := func(format string, args ...any) {
		problems = append(problems, fmt.Errorf(`trigger "schedule": `+format, args...))
	}
	var zone *time.Location
	if o.TimeZone != "" {
		if zone, err = loadZone(o.TimeZone); err != nil {
			report("timeZone: %w", err)
		}
	}
	switch o.CatchUp {
	case "":
		o.CatchUp = CatchUpLast
	case CatchUpNone, CatchUpLast, CatchUpAll:
	default:
		report("invalid catchUp %q: want none, last or all", o.CatchUp)
	}
	if o.window() < 0 || o.CatchUpWindowMs > maxWindow.Milliseconds() {
		report("invalid catchUpWindowMs %d: want 1 to %d, or 0 for no limit", o.CatchUpWindowMs, maxWindow.Milliseconds())
	}
	if o.JitterMs < 0 || o.JitterMs > maxJitter.Milliseconds() {
		report("invalid jitterMs %d: want 0 to %d", o.JitterMs, maxJitter.Milliseconds())
	}
	switch within := time.Duration(o.ExpectWithinMs) * time.Millisecond; {
	case o.Expect != "" && o.Expect != expectStarted && o.Expect != expectCompleted:
		report("invalid expect %q: want %s or %s", o.Expect, expectStarted, expectCompleted)
	case o.ExpectWithinMs == 0 && o.Expect != "":
		report("expect needs expectWithinMs")
	case o.ExpectWithinMs != 0 && (within < time.Second || within > maxWindow):
		report("invalid expectWithinMs %d: want 1000 to %d, or 0 to expect nothing", o.ExpectWithinMs, maxWindow.Milliseconds())
	case o.ExpectWithinMs != 0 && within <= o.jitter():
		report("expectWithinMs %d is not more than jitterMs %d, by which a run may begin later", o.ExpectWithinMs, o.JitterMs)
	}
	if p, err = parse(t.CronExpression, zone, since); err != nil {
		problems = append(problems, err)
	}
	return o, p, errors.Join(problems...)
}

// optionWarnings returns the warnings of the expression, and options without an effect.
func optionWarnings(t sentinels.Trigger) []string {
	list := warnings(t.CronExpression)
	var o options
	if triggers.ReadOptions(t, &o) != nil {
		return list // which Check reports
	}
	text, own, _ := cutZone(t.CronExpression)
	if _, every := cutEvery(text); every && (o.TimeZone != "" || own != nil) {
		list = append(list, "the time zone has no effect on @every, which counts elapsed time")
	}
	if o.CatchUp == CatchUpNone && o.CatchUpWindowMs > 0 {
		list = append(list, `catchUpWindowMs has no effect with the catchUp "none"`)
	}
	return list
}

// Check reports problems of the expression and the options of t.
func (*Kind) Check(t sentinels.Trigger) error {
	_, _, err := read(t, time.Time{})
	return err
}

// Arm prepares a trigger. It fires the planned times after the newest firing in
// the state, or after Env.Since without a state.
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
	if v, ok := p.(interval); ok {
		v.since = v.since.Add(v.offset(string(env.Sentinel), env.Name))
		p = v
	}
	base, err := readState(env.State, env.Since)
	if err != nil {
		return nil, err
	}
	return &armed{kind: k, opt: o, plan: p, env: env, expression: t.CronExpression, base: base}, nil
}

// number returns a number that is the same for the same parts.
func number(parts ...string) uint64 {
	sum, err := hex.DecodeString(digest(parts...))
	if err != nil {
		panic(fmt.Errorf("decode digest: %w", err)) // digest returns hex
	}
	return binary.BigEndian.Uint64(sum)
}

// digest returns the first 16 bytes of a SHA-256 of parts, in hex. The length
// prefixes make the concatenation unambiguous.
func digest(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

var _ triggers.Kind = (*Kind)(nil)
