package triggers

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A Kind implements one type of trigger, and is the only place that describes it:
// lists of kinds are made from a [Set]. One value serves all triggers of its type,
// so it is stateless or safe for concurrent use.
type Kind interface {
	// Describe returns what the format, the schema and listings need to know of the
	// kind. It returns the same description each time.
	Describe() Description
	// Check reports every problem of a trigger of this kind, worded for the
	// author of the definition. It must return for any input.
	Check(t sentinels.Trigger) error
	// Arm prepares a trigger that passed Check. Nothing fires before Run.
	Arm(t sentinels.Trigger, env Env) (Armed, error)
}

// Armed is one trigger of one sentinel, ready to fire.
type Armed interface {
	// Run calls fire for each firing until ctx ends, and then returns nil. An
	// error reports why the trigger cannot continue; the runtime shows it and
	// calls Run again after a delay. Only one goroutine may call fire.
	Run(ctx context.Context, fire FireFunc) error
}

// A Planner is an Armed that knows when it fires next.
type Planner interface {
	// Next returns the next planned time after now, zero if there is none.
	Next(now time.Time) time.Time
}

// An Expecter is a Planner of which a run is expected within a time of each planned time.
type Expecter interface {
	// Expects returns the time, 0 if nothing is expected, and whether the run must have
	// completed by then rather than begun.
	Expects() (within time.Duration, completed bool)
	// Planned returns the first planned time later than after, without jitter; zero if there
	// is none.
	Planned(after time.Time) time.Time
}

// A Receiver is an Armed that fires on requests, which the host passes to it.
// Its Run only waits.
type Receiver interface {
	// Receive checks a request and returns the firings it causes. It has no side
	// effects. Errors are *abi.Error values: denied for a wrong secret or
	// signature. Until the sender has proved that it knows the secret, denied is
	// the only error.
	Receive(r Request) ([]Firing, error)
}

// A Checker is an Armed that may not be able to fire although it was armed.
type Checker interface {
	// Ready returns what is missing for the trigger to fire, nil for nothing. Listings show it in
	// place of the state armed. It is called for each listing.
	Ready() error
}

// A Joiner is an Armed whose firings report the state of something rather than an
// occasion, so that one run for the newest state replaces several. By default a firing
// of it that comes during a run is queued, and joins the one that is queued already.
// The events of other triggers are joined only by a debounce, as a list.
type Joiner interface {
	// Join returns one event for two firings of the trigger, the older one first.
	Join(older, newer *sentinels.Event) (*sentinels.Event, error)
}

// Request is a request from outside the host. Header has canonical keys.
type Request struct {
	Method string
	Header map[string][]string
	Query  map[string][]string
	Body   []byte // at most [MaxBody] bytes
	// Chain returns how many runs led to the request, and their sentinels, if a step of a
	// run sent it; otherwise 0. It may take milliseconds, so it is called for a request that
	// is accepted. Nil is 0.
	Chain func() (hops int, path []string)
	// Charge takes n more bytes of memory from the budget of the body, for what is made of it; an
	// error refuses the request. Nil bounds nothing.
	Charge func(n int) error
	// Accepted is called once the sender has proved who it is, before its firings are admitted, which
	// takes longer. Nil needs no call.
	Accepted func()
}

// MaxBody limits the body of a Request, in bytes.
const MaxBody = 1 << 20

// FireFunc admits a firing. It returns when the outcome is durable. Until then the
// trigger must not continue, so that a crash repeats the firing instead of
// losing it. For a firing with State it may return earlier: State and outcome
// are written in one commit, so a crash restores the old State and the trigger
// fires again. An error means that nothing was decided: fire again later.
type FireFunc func(ctx context.Context, f Firing) (Admission, error)

// A Firing is an occasion on which a trigger may start a run.
type Firing struct {
	// Key is the idempotency key of the firing: a second firing of the trigger
	// with the same key starts nothing. Default: every firing is new.
	Key string
	// Replay is equal for repetitions of one signed request, whatever their keys
	// are: a second firing with it within ReplayFor starts nothing. Default: only
	// Key identifies repetitions.
	Replay    string
	ReplayFor time.Duration
	// At is when the firing was due, or when what it reports happened.
	At time.Time
	// Event is the value of $event in the run.
	Event *sentinels.Event
	// Changed is when the changes that the firing reports were made. Runs that were
	// active then may have made them: if that holds for all of them, the firing
	// continues the chain of these runs (T2.4). Default: no run caused the firing.
	Changed []time.Time
	// Saved says that the firing reports that the definition was saved: if a run did that,
	// the firing continues its chain. Default false.
	Saved bool
	// IgnoreOwn ends a series of firings that report nothing but changes that were
	// made during runs of the sentinel itself (T7.4). Default: only the length of the
	// chain ends it.
	IgnoreOwn bool
	// State is committed together with the outcome and returned in [Env.State].
	// Nil leaves the stored state unchanged.
	State json.RawMessage
	// Missed counts firings that were left out before this one, such as planned
	// times while the host was down.
	Missed int
}

// Outcome is the result of admitting a firing.
type Outcome string

// The outcomes.
const (
	Started   Outcome = "started"
	Queued    Outcome = "queued"    // starts when the runs before it have ended
	Debounced Outcome = "debounced" // waits until firings stop; later ones join it
	Skipped   Outcome = "skipped"   // a run is active and the overlap policy is skip, or runs of the sentinel made the changes
	Filtered  Outcome = "filtered"  // the filter is false
	Duplicate Outcome = "duplicate" // its key, or the same signed request, was admitted before
	// Overdue is not the outcome of a firing: no run began, or none completed, in the time in
	// which one was expected. See [Expecter].
	Overdue Outcome = "overdue"
	Refused Outcome = "refused" // it cannot start a run: the queue is full, a chain of events is too long, the filter fails
)

// Admission reports the outcome of a firing and the reason.
type Admission struct {
	Outcome Outcome         `json:"outcome"`
	Run     sentinels.RunID `json:"run,omitempty"`    // of started and duplicate, if known
	Reason  string          `json:"reason,omitempty"` // text for people
}

// Env is what one armed trigger gets from the runtime.
type Env struct {
	Sentinel  sentinels.ID
	Name      string          // identifies the trigger within its sentinel; edits of other parts keep it
	Revision  int             // of the definition that the trigger belongs to
	Workspace string          // absolute folder that the sentinel works in
	Since     time.Time       // when the trigger was first armed; durable
	Positions []uint64        // of the logs of Events at Since, in the order of [sentinels.PatternsByLog]; durable. A trigger without State reads from behind them
	Starting  bool            // the host has just started; false after an edit
	State     json.RawMessage // State of the newest Firing that had one; nil at first
	Now       func() time.Time
	Events    Events
	Secret    func(name string) (string, bool) // secrets, which definitions name and never contain
	Logger    *slog.Logger
}

// Events is the log of events and that of events of runs. Events of a log are in the order in which they became durable.
// Positions are those of a log.
type Events interface {
	// Next waits for the first event behind position after that matches pattern, which has the patterns of one log, see
	// [sentinels.PatternsByLog], and that [sentinels.TakesEvent] takes, and returns it with its position. lost counts the events
	// behind after that were removed from the log before they were read.
	Next(ctx context.Context, pattern string, source sentinels.EventSource, after uint64) (e sentinels.Event, position uint64, lost int, err error)
}
