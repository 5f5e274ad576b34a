package triggers

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A Kind is one way in which sentinels are started. Values are stateless or
// safe for concurrent use: one serves all triggers of its kind.
type Kind interface {
	// Name is the type that a definition names: "schedule".
	Name() string
	// Check reports everything that is wrong with a trigger of this kind, in
	// words for the author. It must return for any input.
	Check(t sentinels.Trigger) error
	// Arm readies a trigger that passed Check. Nothing fires before Run.
	Arm(t sentinels.Trigger, env Env) (Armed, error)
}

// Armed is one trigger of one sentinel, ready to fire.
type Armed interface {
	// Run calls fire for everything that happens until ctx ends, and then
	// returns nil. An error says why it cannot go on; the runtime shows it and
	// calls Run again after a pause. fire may be called by one goroutine only.
	Run(ctx context.Context, fire Func) error
}

// A Planner is an Armed that knows when it fires next.
type Planner interface {
	// Next returns the next planned time after now, zero if there is none.
	Next(now time.Time) time.Time
}

// A Receiver is an Armed that fires when the host hands it a request from
// outside. Its Run only waits.
type Receiver interface {
	// Receive checks a request and says what it fires. Errors are *abi.Error
	// values: denied for a bad secret or signature.
	Receive(r Request) ([]Fire, error)
}

// Request is what came in from outside. Header has canonical keys.
type Request struct {
	Method string
	Header map[string][]string
	Query  map[string][]string
	Body   []byte // at most [MaxBody] bytes
}

// MaxBody bounds the body of a Request, in bytes.
const MaxBody = 1 << 20

// Func admits what fires. It returns when the outcome is durable; until then
// the trigger must not go on, so that a crash repeats the fire rather than
// losing it. For a fire with State it may return before: the two are kept
// together or not at all, so a crash brings the old State back, and the trigger
// fires again. An error means that nothing was decided: fire again later.
type Func func(ctx context.Context, f Fire) (Admission, error)

// Fire is one occasion to start a run.
type Fire struct {
	// Key makes the fire unique among those of its trigger: a second one with
	// the same key starts nothing. Default: every fire is new.
	Key string
	// At is when it was due, or when what it tells of happened.
	At time.Time
	// Event is what $event is in the run.
	Event *sentinels.Event
	// State is kept together with the outcome and comes back in [Env.State].
	// Nil leaves it as it is.
	State json.RawMessage
	// Missed counts occasions that were left out on the way to this one, such
	// as schedules of the time in which the host was down.
	Missed int
}

// Outcome is what became of a fire.
type Outcome string

// The outcomes.
const (
	Started   Outcome = "started"
	Queued    Outcome = "queued"    // it starts when the run before it has ended
	Debounced Outcome = "debounced" // it waits for quiet; a later one may take its place
	Skipped   Outcome = "skipped"   // a run is on and the policy is skip
	Filtered  Outcome = "filtered"  // the filter said no
	Duplicate Outcome = "duplicate" // a fire with its key was admitted before
	Dropped   Outcome = "dropped"   // a bound was reached: the queue is full, a chain of events too long
)

// Admission says what became of a fire and why.
type Admission struct {
	Outcome Outcome         `json:"outcome"`
	Run     sentinels.RunID `json:"run,omitempty"`    // of started and duplicate, if it is known
	Reason  string          `json:"reason,omitempty"` // in words
}

// Env is the world of one armed trigger.
type Env struct {
	Sentinel  sentinels.ID
	Name      string          // identity of the trigger among those of its sentinel; it outlives edits of other parts
	Revision  int             // of the definition that it comes from
	Workspace string          // absolute folder that the sentinel works in
	Since     time.Time       // when the trigger was armed for the first time, durable
	Position  uint64          // where Events stood then, durable: what a trigger without State has yet to read begins behind it
	Starting  bool            // the host has just started, in contrast to an edit
	State     json.RawMessage // what the newest Fire left; nil at first
	Now       func() time.Time
	Events    Events
	Secret    func(name string) (string, bool) // values that definitions name but never hold
	Logger    *slog.Logger
}

// Events is the log of events in the order in which they became durable.
type Events interface {
	// Next returns the first event behind position after that fits the pattern
	// and its position, waiting for it. lost counts events behind after that
	// were dropped from the log before they were read.
	Next(ctx context.Context, pattern string, after uint64) (e sentinels.Event, position uint64, lost int, err error)
	// Position returns where the log stands now.
	Position() uint64
}

// A Set is the kinds of one runtime. No kind is known globally, so that two
// runtimes in one process may differ.
type Set []Kind

// Kind finds a kind by its name.
func (s Set) Kind(name string) (Kind, bool) {
	for _, k := range s {
		if k.Name() == name {
			return k, true
		}
	}
	return nil, false
}

// Names returns the names of the kinds, in order.
func (s Set) Names() []string {
	names := make([]string, len(s))
	for i, k := range s {
		names[i] = k.Name()
	}
	return names
}

// Check reports what is wrong with a trigger, its common options included.
func (s Set) Check(t sentinels.Trigger) error {
	k, ok := s.Kind(t.Type)
	if !ok {
		return fmt.Errorf("this host has no triggers of type %q", t.Type)
	}
	if _, err := ReadCommon(t); err != nil {
		return err
	}
	return k.Check(t)
}
