package history

import (
	"slices"
	"strconv"
	"strings"

	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Executions are the step executions of an iteration by their [Key].
type Executions map[string]*Execution

// An Execution is one execution of a step, with all its attempts.
type Execution struct {
	Path     string
	Last     int // newest attempt that started, 0 for none
	Attempts map[int]*Attempt
	End      *journal.StepEndBody // nil while it executes
	Retry    *journal.RetryBody   // attempt Last failed and the next one is due; else nil
	Failed   *abi.Error           // error of the newest attempt that failed
}

// An Attempt is one attempt of a step execution.
type Attempt struct {
	Start      *journal.StepStartBody
	Elapsed    int64 // active time of the run at its start, in microseconds
	Calls      map[int]*Call
	Order      []int // numbers of the calls in the order in which they began
	Checkpoint *journal.CheckpointBody
	Logs       int // log lines so far
}

// A Call is one host call of an attempt. A call that does not act outside the
// store has no Start.
type Call struct {
	Start     *journal.CallStartBody
	StartTime int64 // microseconds since 1970
	End       *journal.CallEndBody
	EndTime   int64
}

// InDoubt reports whether a call without an end may have acted.
func (c *Call) InDoubt() bool {
	return c.Start != nil && c.End == nil && (c.Start.Effect || c.Start.Function == abi.FuncLLM)
}

// Key identifies a step execution of an iteration: its path, and the attempts of
// the steps around it, because an attempt never uses what another attempt did.
func Key(path string, enclosing []int) string {
	if len(enclosing) == 0 {
		return path
	}
	var b strings.Builder
	b.WriteString(path)
	for _, a := range enclosing {
		b.WriteByte('@')
		b.WriteString(strconv.Itoa(a))
	}
	return b.String()
}

// BranchKey identifies the scope of a parallel branch: the ordinal of its block
// within the step, and the attempts around and of the step.
func BranchKey(path string, ordinal int, attempts []int) string {
	return Key(path+"#"+strconv.Itoa(ordinal), attempts)
}

// CallName names a host call to people: the path of its step and its number. It
// is used again by the next attempt and in the next iteration.
func CallName(path string, seq int) string { return path + "!" + strconv.Itoa(seq) }

// Address returns the address in the definition of the step at an execution
// path, which is the path without the ordinals of blocks.
func Address(path string) string {
	var b strings.Builder
	ordinal := false
	for _, r := range path {
		switch {
		case r == '#':
			ordinal = true
		case r == '.':
			ordinal = false
			b.WriteRune(r)
		case !ordinal:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// Get returns a step execution, nil if there is none.
func (x Executions) Get(path string, enclosing []int) *Execution { return x[Key(path, enclosing)] }

// Call returns the host call that rec, a call.start or call.end, belongs to. It
// is nil if the records before rec do not have it.
func (x Executions) Call(rec *journal.Record) *Call {
	e := x.Get(rec.Path, enclosing(rec))
	if e == nil {
		return nil
	}
	a := e.Attempts[own(rec)]
	if a == nil {
		return nil
	}
	if rec.CallStart != nil {
		return a.Calls[rec.CallStart.Seq]
	}
	return a.Calls[rec.CallEnd.Seq]
}

// Add adds the record of a step. It ignores records of the whole run.
func (x Executions) Add(rec *journal.Record) {
	if rec.Path == "" || len(rec.Attempts) == 0 {
		return
	}
	key := Key(rec.Path, enclosing(rec))
	e := x[key]
	if e == nil {
		e = &Execution{Path: rec.Path, Attempts: map[int]*Attempt{}}
		x[key] = e
	}
	n := own(rec)
	switch rec.Kind {
	case journal.StepStart:
		a := e.attempt(n)
		a.Start, a.Elapsed = rec.StepStart, rec.Elapsed
		e.Last, e.Retry = n, nil
	case journal.CallStart:
		c := e.attempt(n).call(rec.CallStart.Seq)
		c.Start, c.StartTime = rec.CallStart, rec.Time
	case journal.CallEnd:
		a := e.attempt(n)
		c := a.call(rec.CallEnd.Seq)
		c.End, c.EndTime = rec.CallEnd, rec.Time
		a.Logs = max(a.Logs, rec.CallEnd.Logs)
	case journal.Checkpoint:
		a := e.attempt(n)
		a.Checkpoint = rec.Checkpoint
		a.Logs = max(a.Logs, rec.Checkpoint.Logs)
	case journal.Retry:
		e.Retry, e.Last, e.Failed = rec.Retry, n, rec.Retry.Error
	case journal.StepEnd:
		e.End = rec.StepEnd
	}
}

func (e *Execution) attempt(n int) *Attempt {
	a := e.Attempts[n]
	if a == nil {
		a = &Attempt{Calls: map[int]*Call{}}
		e.Attempts[n] = a
	}
	return a
}

func (a *Attempt) call(seq int) *Call {
	c := a.Calls[seq]
	if c == nil {
		c = &Call{}
		a.Calls[seq] = c
		a.Order = append(a.Order, seq)
	}
	return c
}

// Newest returns the newest attempt of an execution that has not ended and does
// not wait for its next attempt; nil if there is none.
func (e *Execution) Newest() *Attempt {
	if e.End != nil || e.Retry != nil {
		return nil
	}
	return e.Attempts[e.Last]
}

// enclosing returns the attempts of the steps around the step of a record.
func enclosing(rec *journal.Record) []int {
	return slices.Clip(rec.Attempts[:max(len(rec.Attempts)-1, 0)])
}

// own returns the attempt of the step of a record, 0 for none.
func own(rec *journal.Record) int {
	if len(rec.Attempts) == 0 {
		return 0
	}
	return rec.Attempts[len(rec.Attempts)-1]
}
