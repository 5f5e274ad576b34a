package sentinels

import (
	"encoding/json"
	"time"
)

// A Definition is one sentinel as its author wrote it. Values are immutable
// after [Decode]; an edit makes a new Definition.
type Definition struct {
	ID          ID       // slug; derived from Name when the file has none
	Name        string   // for display
	Description string   //
	Version     int      // the author's own number, not the revision
	Recipe      string   // context recipe built before each iteration
	RAGSources  []string // or explicit context sources
	Steps       []Step
	OnFailure   []Step  // executed after a run that is not completed
	Finally     []Step  // executed after each run, however it ended
	OnError     OnError // of steps that have none and no nested steps
	Loop        Loop
	Triggers    []Trigger // "trigger" in JSON: one object or a list
	Tools       []string  // a hint of useful commands, not a filter
	Safety      Safety    // timeoutMs at top level is merged in: the smaller wins
	Tags        []string
	IsPublic    bool
	CreatedBy   string
	Inputs      map[string]Input
	Variables   map[string]json.RawMessage // initial values, canonical JSON
	Shell       Interpreter                // of the shell lines of its steps
	Env         map[string]json.RawMessage // variables of the programs of its steps, canonical JSON; see [Environment]
	EnvFiles    []string                   // files in dotenv form with further ones, relative to the workspace
	Workspace   string                     // relative to the file's folder or absolute; empty is the caller's
	Concurrency Overlap                    // what a trigger does while a run is active
	Budget      Budget

	// Notify are the kinds of messages for people about its runs, of [NotifyKinds]. nil is what the
	// host has configured, an empty list none.
	Notify []string

	// Extra are keys of recipes and editors that a run does not use. They are kept
	// as written: "$schema", "ragTemplate", "strategy", "layout", ...
	Extra map[string]json.RawMessage
}

// ID is a definition's slug, ^[a-z0-9][a-z0-9_-]{0,63}$. In the entities that
// other tools export, its key is "uniqueId" (FORMAT.md F2).
type ID string

// StepType is the name of a step type, lower_snake.
type StepType string

// A Step is one entry of a step list. Fields and Blocks hold what belongs to
// its type; the other fields are common to all types.
type Step struct {
	Type        StepType
	ID          string // optional, unique in the definition
	Name        string
	Comment     string
	Condition   string // the step is executed only if it is true; empty is true
	OutputTo    string // variable that the output is stored in
	Parse       Parse  // how the text of the output becomes that variable's value; empty: the output itself
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

// Loop defines how often the steps are executed. Type decides which of the other
// fields are used.
type Loop struct {
	Type       LoopType
	Max        json.RawMessage // count: an integer, or a "$reference" to one
	Check      string          // until, while
	IntervalMs int64           // continuous
	Event      string          // event: a pattern
	Source     EventSource     // event: whose events of that form, see [TakesEvent]
}

// LoopType is one of the kinds of loops (FORMAT.md F4).
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

// A Trigger starts runs of a sentinel. [Decode] reports a type that
// [DecodeOptions.Triggers] does not have.
type Trigger struct {
	Type           string
	Event          string          // one pattern or several with a space between, of kinds that require [TriggerEvent]
	CronExpression string          // of kinds that require [TriggerCron]
	Options        json.RawMessage // all other keys of the trigger, read by the package of its type
}

// Safety holds the limits of one run. What a zero value means differs by field.
type Safety struct {
	MaxIterations    int       // of the run; 0: no limit, which until, while, continuous and event loops accept only with TimeoutMs
	TimeoutMs        int64     // active time of the run; 0: no limit
	MaxStepTimeoutMs int64     // of a step that has none, without waits and inner steps; 0: the host's default (30 minutes)
	MaxMemoryMB      int64     // variables, guests and processes of the run; 0: the host's default
	MaxSteps         int       // step executions an iteration; 0: the host's default (10,000)
	FinallyTimeoutMs int64     // active time of onFailure and of finally; 0: DefaultFinally
	OnTimeout        OnTimeout // what happens at a limit; "": stop
	OnInterrupt      Interrupt // for steps that name none; "": what the resume, the start or the host say, else retry if the call may be repeated, else ask
}

// DefaultFinally is the time limit of onFailure and of finally.
const DefaultFinally = 60 * time.Second

// Timeout returns the run's time limit, 0 for none.
func (s Safety) Timeout() time.Duration { return time.Duration(s.TimeoutMs) * time.Millisecond }

// OnTimeout is what happens to a run that reaches a limit.
type OnTimeout string

// The choices at a limit.
const (
	TimeoutStop  OnTimeout = "stop"
	TimeoutPause OnTimeout = "pause"
)

// Interrupt is what happens to a host call that is in doubt after a crash.
type Interrupt string

// The choices for a call in doubt; empty means that the kind of call decides.
const (
	InterruptRetry Interrupt = "retry"
	InterruptFail  Interrupt = "fail"
	InterruptAsk   Interrupt = "ask"
)

// Overlap is what a trigger does while a run of the sentinel is active.
type Overlap string

// The overlap policies.
const (
	OverlapSkip     Overlap = "skip"
	OverlapQueue    Overlap = "queue"
	OverlapParallel Overlap = "parallel"
	OverlapRestart  Overlap = "restart"
)

// The fields of a step, and the keys of a definition, with the steps that are executed after it.
const (
	BlockOnFailure = "onFailure" // unless it is completed
	BlockFinally   = "finally"   // however it ended
)

// OnError is what happens after an error of a step.
type OnError struct {
	Action ErrorAction
	Retry  RetryPolicy // used when Action is retry
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
	MaxRetries  int    // attempts after the first one
	BackoffType string // exponential, linear, none
	BaseDelayMs int64
	MaxDelayMs  int64
	// MaxRetryAfterMs is the longest delay that a server may ask for; an error that asks
	// for more is not retried.
	MaxRetryAfterMs int64
	// When and Unless are conditions on $error, see [ErrorFields]: an error is retried only if
	// When is true and Unless is not. Empty ones leave it to the category.
	When, Unless string
}

// Conditions calls f for the conditions of the policy, with their keys.
func (p RetryPolicy) Conditions(f func(key, source string)) {
	if p.When != "" {
		f("when", p.When)
	}
	if p.Unless != "" {
		f("unless", p.Unless)
	}
}

// Ignored returns a field of the policy that has no effect beside the others, with the
// reason; "" if each has one.
func (p RetryPolicy) Ignored() (field, reason string) {
	switch {
	case p.MaxDelayMs > 0 && p.BaseDelayMs > p.MaxDelayMs:
		return "baseDelayMs", "each delay is maxDelayMs, which is less"
	case p.BackoffType == "none" && p.MaxDelayMs > 0:
		return "maxDelayMs", `with the backoffType "none" each delay is baseDelayMs`
	case p.BackoffType != "" && p.MaxDelayMs > 0 && p.BaseDelayMs == p.MaxDelayMs:
		return "backoffType", "baseDelayMs and maxDelayMs are equal, so each delay is"
	}
	return "", ""
}

// Budget limits the model spend of a run and its child runs. Zero is no limit.
type Budget struct {
	Tokens  int64
	CostUSD float64
	Calls   int64 // model calls
}

// WithLimitsOf returns the definition with each of its limits, those of budget and safety, that is higher than that
// of another definition replaced by the other's, and the fields that were replaced. Of onInterrupt only ask, which
// leaves the decision to a person, replaces another value. defaults are the limits of a definition that sets none; zero is
// no limit. A definition without a replaced field is returned as it is.
func (d *Definition) WithLimitsOf(other *Definition, defaults Safety) (*Definition, []string) {
	out := *d
	var replaced []string
	own, of := &out.Safety, &other.Safety
	note := func(field string, raised bool) {
		if raised {
			replaced = append(replaced, field)
		}
	}
	note("budget.tokens", lower(&out.Budget.Tokens, other.Budget.Tokens, 0))
	note("budget.costUsd", lower(&out.Budget.CostUSD, other.Budget.CostUSD, 0))
	note("budget.calls", lower(&out.Budget.Calls, other.Budget.Calls, 0))
	note("safety.maxIterations", lower(&own.MaxIterations, of.MaxIterations, defaults.MaxIterations))
	note("safety.timeoutMs", lower(&own.TimeoutMs, of.TimeoutMs, defaults.TimeoutMs))
	note("safety.maxStepTimeoutMs", lower(&own.MaxStepTimeoutMs, of.MaxStepTimeoutMs, defaults.MaxStepTimeoutMs))
	note("safety.maxMemoryMb", lower(&own.MaxMemoryMB, of.MaxMemoryMB, defaults.MaxMemoryMB))
	note("safety.maxSteps", lower(&own.MaxSteps, of.MaxSteps, defaults.MaxSteps))
	note("safety.finallyTimeoutMs", lower(&own.FinallyTimeoutMs, of.FinallyTimeoutMs, DefaultFinally.Milliseconds()))
	if own.OnInterrupt != of.OnInterrupt && own.OnInterrupt != InterruptAsk {
		own.OnInterrupt = of.OnInterrupt
		note("safety.onInterrupt", true)
	}
	if replaced == nil {
		return d, nil
	}
	return &out, replaced
}

// lower replaces a limit that is higher than another one, and reports whether it did. Zero means def, or no limit if
// that is zero too.
func lower[T int | int64 | float64](own *T, other, def T) bool {
	have, most := *own, other
	if have == 0 {
		have = def
	}
	if most == 0 {
		most = def
	}
	if most == 0 || have != 0 && have <= most {
		return false
	}
	*own = other
	return true
}

// An Input is one run-time parameter.
type Input struct {
	Type        string // string, number, integer, boolean, array, object; empty is any
	Description string
	Required    bool
	Optional    bool            // "required": false is written: the author expects that it may be empty
	Default     json.RawMessage // nil when there is none
	Enum        []json.RawMessage
}

// Parse is how the text of a step's output becomes the value of its outputTo.
type Parse string

// The ways to parse a text.
const (
	ParseJSON   Parse = "json"   // the text is one JSON value
	ParseLines  Parse = "lines"  // a list of its lines, without line ends
	ParseNumber Parse = "number" // a JSON number with white space around it
	ParseTrim   Parse = "trim"   // the text without white space around it
)

// Reserved are the variable names that no outputTo and no input may use. The
// exception is ragContext, which a step may set, as recipes do with rag/build.
var Reserved = append([]string{"event", "inputs", "iteration", "run", "last", "retry", "ragContext", "steps"}, BuiltIn...)

// BuiltIn are the reserved names that are environment variables in a shell line: the time
// (RFC 3339, UTC), the workspace under two names, the milliseconds that the run was active,
// and who made the definition.
var BuiltIn = []string{"NOW", "WORKSPACE", "PROJECT_ROOT", "ELAPSED_MS", "PERSONA_ID"}
