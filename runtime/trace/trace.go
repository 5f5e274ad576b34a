// Package trace describes what a run did: its iterations, steps, attempts and host
// calls, as far as the journal of the run still has them.
//
// [github.com/sentinel-runtime/sentinel/runtime.Runtime.Trace] reads it. Durations are
// wall-clock time, in JSON in milliseconds.
package trace

import (
	"cmp"
	"encoding/json"
	"time"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// An Iteration is one iteration over the steps.
type Iteration struct {
	Number   int               `json:"number"`
	Revision int               `json:"revision,omitempty"` // 0: the definition is not stored
	Edit     int               `json:"edit,omitempty"`     // number of the run's own edit, made on that revision
	Hash     string            `json:"hash"`
	Start    time.Time         `json:"start"`
	Duration time.Duration     `json:"-"` // 0 while it continues
	Millis   float64           `json:"durationMs,omitempty"`
	Event    *sentinels.Event  `json:"event,omitempty"`
	Done     bool              `json:"done"`               // it has ended
	Check    string            `json:"check,omitempty"`    // value of the loop's condition, as JSON, shortened: before a while iteration, after an until iteration
	Reads    map[string]string `json:"reads,omitempty"`    // what that condition read: values as JSON, shortened, or undefined
	Queued   float64           `json:"queuedMs,omitempty"` // before the first iteration of a child run: how long it waited for its place, in milliseconds
	Steps    []*Step           `json:"steps"`
}

// A Step is one step execution.
type Step struct {
	Address   string             `json:"address"`
	Path      string             `json:"path"`
	Type      sentinels.StepType `json:"type,omitempty"`
	ID        string             `json:"id,omitempty"`
	Name      string             `json:"name,omitempty"`
	Record    uint64             `json:"record,omitempty"` // number of the record that ended it
	Start     time.Time          `json:"start"`
	Duration  time.Duration      `json:"-"`
	Millis    float64            `json:"durationMs,omitempty"`
	Skipped   string             `json:"skipped,omitempty"`
	Condition string             `json:"condition,omitempty"` // value of its condition, as JSON, shortened
	Reads     map[string]string  `json:"reads,omitempty"`     // what it read, as in Iteration
	Error     *abi.Error         `json:"error,omitempty"`
	Output    json.RawMessage    `json:"output,omitempty"`
	OutputTo  string             `json:"outputTo,omitempty"` // the variable that Output became, once it ended
	Ended     bool               `json:"ended"`
	Ends      sentinels.Status   `json:"ends,omitempty"`      // it ended the run, with this status
	StoppedBy string             `json:"stoppedBy,omitempty"` // id or address of the step that ended the run while this one was executed
	Reused    bool               `json:"reused,omitempty"`    // executed by the run that this one was forked from
	Attempts  []*Attempt         `json:"attempts,omitempty"`
}

// An Attempt is one attempt of a step execution.
type Attempt struct {
	Number     int               `json:"number"`
	Start      time.Time         `json:"start"`
	Duration   time.Duration     `json:"-"`
	Millis     float64           `json:"durationMs,omitempty"`
	Module     string            `json:"module,omitempty"`  // digest of the plugin
	Fields     json.RawMessage   `json:"fields,omitempty"`  // as resolved
	Env        map[string]string `json:"env,omitempty"`     // values of the references in shell lines, as environment variables
	Unknown    []string          `json:"unknown,omitempty"` // references that were left as written
	Unset      []string          `json:"unset,omitempty"`   // references that were null, because the variable has no value yet
	Error      *abi.Error        `json:"error,omitempty"`
	RetryAt    time.Time         `json:"retryAt,omitzero"`
	Category   string            `json:"category,omitempty"`
	Confidence float64           `json:"confidence,omitempty"` // of the category, 0 to 1
	Calls      []*Call           `json:"calls,omitempty"`
	Steps      []*Step           `json:"steps,omitempty"` // nested
}

// A Call is one host call.
type Call struct {
	Number   int               `json:"number"`
	Function string            `json:"function"`
	Label    string            `json:"label,omitempty"`
	Start    time.Time         `json:"start"`
	Duration time.Duration     `json:"-"`
	Millis   float64           `json:"durationMs,omitempty"`
	Ended    bool              `json:"ended"`
	Error    *abi.Error        `json:"error,omitempty"`
	Usage    *sentinels.Usage  `json:"usage,omitempty"`
	Child    sentinels.RunID   `json:"child,omitempty"`
	Decided  string            `json:"decided,omitempty"`  // after a crash: how
	Reads    map[string]string `json:"reads,omitempty"`    // eval: what the expression read, as in Iteration
	Queued   float64           `json:"queuedMs,omitempty"` // how long it waited before it began, in milliseconds; part of its duration
	Queue    string            `json:"queue,omitempty"`    // what it waited behind
	Request  json.RawMessage   `json:"request,omitempty"`
	Result   json.RawMessage   `json:"result,omitempty"`
}

// State returns how the step stands, in a word: reused, skipped, stopped (it ended the run, or another step did while it was executed), failed, ok or running.
func (s *Step) State() string {
	switch {
	case s.Reused:
		return "reused"
	case s.Skipped != "":
		return "skipped"
	case s.Ends != "":
		return "stopped"
	case s.Error != nil:
		return "failed"
	case s.Ended:
		return "ok"
	case s.StoppedBy != "":
		return "stopped"
	}
	return "running"
}

// Walk calls fn for every step of the iteration, nested ones behind the step they
// are nested in.
func (it *Iteration) Walk(fn func(*Step)) { walkSteps(it.Steps, fn) }

func walkSteps(steps []*Step, fn func(*Step)) {
	for _, s := range steps {
		fn(s)
		for _, a := range s.Attempts {
			walkSteps(a.Steps, fn)
		}
	}
}

// Stop marks the steps that were executed when a step of the iteration ended the run: those around it and those beside it,
// which have no end of their own.
func (it *Iteration) Stop() {
	var stop *Step
	it.Walk(func(s *Step) {
		if s.Ends != "" {
			stop = s
		}
	})
	if stop == nil {
		return
	}
	at, by := stop.Start.Add(stop.Duration), cmp.Or(stop.ID, stop.Address)
	it.Walk(func(s *Step) {
		if !s.Ended && !s.Start.After(at) {
			s.StoppedBy = by
		}
	})
}

// Join puts two parts of a trace together: more begins where list ended, perhaps within an
// iteration and within steps of it.
func Join(list, more []Iteration) []Iteration {
	for i := range more {
		if n := len(list); n > 0 && list[n-1].Number == more[i].Number {
			it := &list[n-1]
			steps := it.Steps
			if more[i].Done {
				*it = more[i]
			}
			it.Steps = joinSteps(steps, more[i].Steps)
			it.Stop()
			continue
		}
		list = append(list, more[i])
	}
	return list
}

func joinSteps(list, more []*Step) []*Step {
	for _, s := range more {
		i := len(list) - 1
		for i >= 0 && (list[i].Ended || list[i].Path != s.Path) {
			i--
		}
		if i < 0 {
			list = append(list, s)
			continue
		}
		before := list[i]
		attempts := before.Attempts
		for _, a := range s.Attempts {
			attempts = joinAttempt(attempts, a)
		}
		if s.Ended {
			condition, reads := before.Condition, before.Reads
			*before = *s
			if before.Condition == "" {
				before.Condition, before.Reads = condition, reads
			}
		}
		before.Attempts = attempts
	}
	return list
}

func joinAttempt(list []*Attempt, a *Attempt) []*Attempt {
	for _, before := range list {
		if before.Number != a.Number {
			continue
		}
		before.Error, before.RetryAt, before.Category, before.Confidence = a.Error, a.RetryAt, a.Category, a.Confidence
		before.Duration, before.Millis = a.Duration, a.Millis
		for _, c := range a.Calls {
			before.Calls = joinCall(before.Calls, c)
		}
		before.Steps = joinSteps(before.Steps, a.Steps)
		return list
	}
	return append(list, a)
}

func joinCall(list []*Call, c *Call) []*Call {
	for i := len(list) - 1; i >= 0; i-- {
		if list[i].Number != c.Number {
			continue
		}
		if c.Ended {
			request := list[i].Request
			if *list[i] = *c; c.Request == nil {
				list[i].Request = request
			}
		}
		return list
	}
	return append(list, c)
}
