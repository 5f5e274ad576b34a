package history

import (
	"slices"
	"strconv"
	"strings"

	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Executions are the step executions of an iteration in the order of their keys, as
// far as a replay of the iteration needs them: those that have not ended, and those
// that have ended in a list of steps that has not. They are a slice because many runs
// wait in their only step, for which a map is several times as large.
type Executions []*Execution

// An Execution is one execution of a step.
type Execution struct {
	Key     string // see [Key]
	Path    string
	Last    int      // newest attempt that started, 0 for none
	Attempt *Attempt // the one that has not ended, nil if there is none
	End     *journal.StepEndBody
	Retry   *journal.RetryBody // attempt Last failed and the next one is due; else nil
	Failed  *abi.Error         // error of the newest attempt that failed

	Category string // of Failed, as it was decided then

	// Step type and digest of the plugin of attempt Last.
	Type   sentinels.StepType
	Module string
}

// An Attempt is one attempt of a step execution.
type Attempt struct {
	Number     int
	Start      *journal.StepStartBody // nil if a hole in the journal hides it
	Elapsed    int64                  // active time of the run at its start, in microseconds
	Calls      []*Call                // in the order of their numbers; those before the checkpoint only if they are model calls
	Checkpoint *journal.CheckpointBody
	Logs       int // log lines so far

	nested bool // it has executed steps in blocks
}

// A Call is one host call of an attempt. A call that does not act outside the
// store has no Start.
type Call struct {
	Seq       int
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

// Get returns a step execution, nil if there is none.
func (x Executions) Get(path string, enclosing []int) *Execution {
	if i, ok := x.find(Key(path, enclosing)); ok {
		return x[i]
	}
	return nil
}

func (x Executions) find(key string) (int, bool) {
	return slices.BinarySearchFunc(x, key, func(e *Execution, key string) int { return strings.Compare(e.Key, key) })
}

// Add adds the record of a step. It reports whether the step begins with it, and
// returns the start that a host call had before, nil if there was none. It ignores
// records of the whole run.
func (x *Executions) Add(rec *journal.Record) (begins bool, begun *journal.CallStartBody) {
	if rec.Path == "" || len(rec.Attempts) == 0 {
		return false, nil
	}
	key := Key(rec.Path, enclosing(rec))
	i, found := x.find(key)
	if begins = !found; begins {
		*x = slices.Insert(*x, i, &Execution{Key: key, Path: rec.Path})
	}
	e := (*x)[i]
	n := own(rec)
	switch rec.Kind {
	case journal.StepStart:
		a := e.attempt(n)
		a.Start, a.Elapsed = rec.StepStart, rec.Elapsed
		e.Last, e.Retry, e.Type, e.Module = n, nil, rec.StepStart.Type, rec.StepStart.Module
	case journal.CallStart:
		a := e.attempt(n)
		c := a.call(rec.CallStart.Seq)
		begun = c.Start
		c.Start, c.StartTime = rec.CallStart, rec.Time
		a.nested = a.nested || rec.CallStart.Function == abi.FuncBlock || rec.CallStart.Function == journal.FuncEnd
	case journal.CallEnd:
		a := e.attempt(n)
		c := a.call(rec.CallEnd.Seq)
		begun = c.Start
		c.End, c.EndTime = unloadCall(rec.CallEnd), rec.Time
		a.Logs = max(a.Logs, c.End.Logs)
		if c.End.Blocks > 0 {
			x.removeNested(e.Path, rec.Attempts)
		}
	case journal.Checkpoint:
		a := e.attempt(n)
		a.Checkpoint = rec.Checkpoint
		a.Logs = max(a.Logs, rec.Checkpoint.Logs)
		a.removeCalls(rec.Checkpoint.Seq)
	case journal.Retry:
		e.Retry, e.Last, e.Failed, e.Category = rec.Retry, n, rec.Retry.Error, rec.Retry.Category
		x.endAttempt(e, rec.Attempts)
	case journal.StepEnd:
		e.End = unloadStep(rec.StepEnd)
		x.endAttempt(e, enclosing(rec))
		x.removeOutput(rec)
	}
	return begins, begun
}

// unloadCall returns the end of a call without the contents of blobs. A replay loads
// what it needs.
func unloadCall(b *journal.CallEndBody) *journal.CallEndBody {
	result, request, said := b.Result.Unload(), b.Request.Unload(), b.Said.Unload()
	if result.Blob == b.Result.Blob && request.Blob == b.Request.Blob && said.Blob == b.Said.Blob {
		return b
	}
	end := *b
	end.Result, end.Request, end.Said = result, request, said
	return &end
}

// unloadStep is unloadCall for the end of a step.
func unloadStep(b *journal.StepEndBody) *journal.StepEndBody {
	output := b.Output.Unload()
	if output.Blob == b.Output.Blob {
		return b
	}
	end := *b
	end.Output = output
	return &end
}

// endAttempt removes the attempt of a step, and what was executed in its blocks:
// nothing of it is replayed.
func (x *Executions) endAttempt(e *Execution, attempts []int) {
	if e.Attempt != nil && e.Attempt.nested {
		x.removeNested(e.Path, attempts)
	}
	e.Attempt = nil
}

// removeNested removes the steps that were executed in the blocks of a step.
// attempts are those around it, perhaps followed by its own.
func (x *Executions) removeNested(path string, attempts []int) {
	suffix := Key("", attempts)
	*x = slices.DeleteFunc(*x, func(e *Execution) bool {
		rest := e.Key[len(e.Path):]
		return len(e.Path) > len(path) && e.Path[len(path)] == '#' && strings.HasPrefix(e.Path, path) &&
			(rest == suffix || strings.HasPrefix(rest, suffix+"@"))
	})
}

// removeOutput removes the output of the step before the one that has ended, if
// both are in a block: the output of a block is that of its last step.
func (x Executions) removeOutput(rec *journal.Record) {
	at := strings.LastIndexByte(rec.Path, '.')
	i, err := strconv.Atoi(rec.Path[at+1:])
	if at < 0 || err != nil || i == 0 {
		return
	}
	before := x.Get(rec.Path[:at+1]+strconv.Itoa(i-1), enclosing(rec))
	if before != nil && before.End != nil {
		end := *before.End // the record itself is not changed
		end.Output = journal.Value{}
		before.End = &end
	}
}

func (e *Execution) attempt(n int) *Attempt {
	if e.Attempt == nil || e.Attempt.Number != n {
		e.Attempt = &Attempt{Number: n}
	}
	return e.Attempt
}

// Clone returns a copy that later records do not change.
func (e *Execution) Clone() *Execution {
	c := *e
	if e.Attempt == nil {
		return &c
	}
	a := *e.Attempt
	a.Calls = make([]*Call, len(e.Attempt.Calls))
	for i, call := range e.Attempt.Calls {
		copied := *call
		a.Calls[i] = &copied
	}
	c.Attempt = &a
	return &c
}

// Call returns the host call with a number, nil if there is none.
func (a *Attempt) Call(seq int) *Call {
	if i, ok := a.find(seq); ok {
		return a.Calls[i]
	}
	return nil
}

func (a *Attempt) find(seq int) (int, bool) {
	if n := len(a.Calls); n == 0 || a.Calls[n-1].Seq < seq { // the usual case
		return n, false
	}
	return slices.BinarySearchFunc(a.Calls, seq, func(c *Call, seq int) int { return c.Seq - seq })
}

func (a *Attempt) call(seq int) *Call {
	i, ok := a.find(seq)
	if !ok {
		a.Calls = slices.Insert(a.Calls, i, &Call{Seq: seq})
	}
	return a.Calls[i]
}

// End returns the call in which onFailure and finally of the step are executed, nil before it.
func (a *Attempt) End() *Call {
	if c := a.Call(0); c != nil && c.Start != nil && c.Start.Function == journal.FuncEnd {
		return c
	}
	return nil
}

// removeCalls removes the calls before a checkpoint, which no replay makes. Those
// of models stay: a conversation continues behind the checkpoint.
func (a *Attempt) removeCalls(checkpoint int) {
	a.Calls = slices.DeleteFunc(a.Calls, func(c *Call) bool {
		return c.Seq <= checkpoint && (c.Start == nil || c.Start.Function != abi.FuncLLM)
	})
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
