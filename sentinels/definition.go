package sentinels

import (
	"encoding/json"
	"time"
)

// A Definition is one sentinel as its author wrote it. Values are immutable
// after [Decode]; an edit makes a new Definition.
type Definition struct {
	ID          ID       // slug; derived from Name when the file has none
	Name        string   // as people read it
	Description string   //
	Version     int      // the author's own number, not the revision
	Recipe      string   // context recipe built before each iteration
	RAGSources  []string // or explicit context sources
	Steps       []Step
	Loop        Loop
	Triggers    []Trigger // "trigger" in JSON: one object or a list
	Tools       []string  // a hint of useful commands, not a filter
	Safety      Safety    // timeoutMs at top level is merged in: the smaller wins
	Tags        []string
	IsPublic    bool
	CreatedBy   string
	Inputs      map[string]Input
	Workspace   string  // relative to the file's folder or absolute; empty is the caller's
	Concurrency Overlap // what a trigger does while a run is on
	Budget      Budget

	// Extra are keys of a recipe or an editor that mean nothing to a run and
	// are kept as written: "$schema", "ragTemplate", "strategy", "layout", ...
	Extra map[string]json.RawMessage
}

// ID is a definition's slug, ^[a-z0-9][a-z0-9_-]{0,63}$. It is also S002's
// uniqueId.
type ID string

// StepType is the name of a step type, lower_snake.
type StepType string

// A Step is one entry of a step list. Fields and Blocks hold what belongs to
// its type; the rest is common to all types.
type Step struct {
	Type        StepType
	ID          string // optional, unique in the definition
	Name        string
	Condition   string // a guard; empty is true
	OutputTo    string // variable that takes the output
	OnError     OnError
	TimeoutMs   int64 // 0 is the run's maxStepTimeoutMs
	OnInterrupt Interrupt

	// Fields are the type's own fields as written (comments removed, aliases
	// renamed), without those in Blocks. Keys are sorted when written.
	Fields map[string]json.RawMessage
	// Blocks are the nested step lists by their field path: "then", "steps",
	// "branches.0". A "branches" field is several entries.
	Blocks map[string][]Step
}

// Loop says how often the steps are carried out. Kind decides which other
// fields count.
type Loop struct {
	Type       LoopType
	Max        json.RawMessage // count: an integer, or a "$reference" to one
	Check      string          // until, while
	IntervalMs int64           // continuous
	Event      string          // event: a pattern
}

// LoopType is one of the loop kinds of the specification.
type LoopType string

// The loop types.
const (
	LoopOnce       LoopType = "once"
	LoopCount      LoopType = "count"
	LoopUntil      LoopType = "until"
	LoopWhile      LoopType = "while"
	LoopContinuous LoopType = "continuous"
	LoopEvent      LoopType = "event"
)

// A Trigger says what starts a sentinel. Kinds beyond those known to the
// running program are a problem when the definition is decoded.
type Trigger struct {
	Type           string
	Event          string          // event: a pattern
	CronExpression string          // schedule
	Options        json.RawMessage // all other keys of the trigger, for its kind to read
}

// Safety holds the limits of one run. Zero means the host's default.
type Safety struct {
	MaxIterations    int
	TimeoutMs        int64
	MaxStepTimeoutMs int64
	MaxMemoryMB      int64
	MaxSteps         int       // step executions an iteration; default 10,000
	OnTimeout        OnTimeout // what happens at a limit; default stop
	OnInterrupt      Interrupt // default for steps that name none
}

// Timeout returns the run's time limit, 0 for none.
func (s Safety) Timeout() time.Duration { return time.Duration(s.TimeoutMs) * time.Millisecond }

// OnTimeout says what happens to a run that reaches a limit.
type OnTimeout string

// The choices at a limit.
const (
	TimeoutStop  OnTimeout = "stop"
	TimeoutPause OnTimeout = "pause"
)

// Interrupt says what becomes of a call that a crash left in doubt.
type Interrupt string

// The choices for a call in doubt; empty means the call's own kind decides.
const (
	InterruptRetry Interrupt = "retry"
	InterruptFail  Interrupt = "fail"
	InterruptAsk   Interrupt = "ask"
)

// Overlap says what a trigger does while a run of the sentinel is on.
type Overlap string

// The overlap policies.
const (
	OverlapSkip     Overlap = "skip"
	OverlapQueue    Overlap = "queue"
	OverlapParallel Overlap = "parallel"
	OverlapRestart  Overlap = "restart"
)

// OnError says what an error of a step does.
type OnError struct {
	Action ErrorAction
	Retry  RetryPolicy // counts when Action is retry
}

// ErrorAction is fail, skip or retry.
type ErrorAction string

// The error actions; empty is fail.
const (
	ActionFail  ErrorAction = "fail"
	ActionSkip  ErrorAction = "skip"
	ActionRetry ErrorAction = "retry"
)

// RetryPolicy overrides the strategy of the error's category. Zero fields keep
// the category's own value.
type RetryPolicy struct {
	MaxRetries  int    // tries after the first one
	BackoffType string // exponential, linear, none
	BaseDelayMs int64
	MaxDelayMs  int64
}

// Budget caps what a run tree may spend. Zero is no cap.
type Budget struct {
	Tokens  int64
	CostUSD float64
	Calls   int64 // model calls
}

// An Input is one run-time parameter.
type Input struct {
	Type        string // string, number, integer, boolean, array, object; empty is any
	Description string
	Required    bool
	Default     json.RawMessage // nil when there is none
	Enum        []json.RawMessage
}

// Reserved variable names; an outputTo or an input that takes one is refused,
// except that a step may set ragContext, as recipes do with rag/build.
var Reserved = []string{"event", "inputs", "iteration", "run", "last", "retry", "ragContext"}
