package runtime

import (
	"strconv"
	"strings"

	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// history is what the journal holds of the iteration that a crash interrupted,
// by step execution. A run that was never interrupted has none.
type history struct {
	execs map[string]*execHistory
}

type execHistory struct {
	end      *journal.StepEndBody
	attempts map[int]*attemptHistory
	last     int                // newest attempt that started
	retry    *journal.RetryBody // set when attempt last failed and another is due
	failed   *abi.Error         // error of the newest attempt that failed
}

type attemptHistory struct {
	start      *journal.StepStartBody
	elapsed    int64 // active time of the run when it started, microseconds
	calls      map[int]*callHistory
	order      []int // of calls, as they began
	checkpoint *journal.CheckpointBody
	logs       int
}

type callHistory struct {
	start     *journal.CallStartBody
	startTime int64
	end       *journal.CallEndBody
	endTime   int64
}

// execKey names a step execution: its path and the attempts around it, because
// the result of an earlier attempt never answers a later one.
func execKey(path string, enclosing []int) string {
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

func newHistory() *history { return &history{execs: map[string]*execHistory{}} }

func (h *history) exec(path string, enclosing []int) *execHistory {
	if h == nil {
		return nil
	}
	return h.execs[execKey(path, enclosing)]
}

func (h *history) make(path string, enclosing []int) *execHistory {
	key := execKey(path, enclosing)
	e := h.execs[key]
	if e == nil {
		e = &execHistory{attempts: map[int]*attemptHistory{}}
		h.execs[key] = e
	}
	return e
}

func (e *execHistory) attempt(n int) *attemptHistory {
	a := e.attempts[n]
	if a == nil {
		a = &attemptHistory{calls: map[int]*callHistory{}}
		e.attempts[n] = a
	}
	return a
}

func (a *attemptHistory) call(seq int) *callHistory {
	c := a.calls[seq]
	if c == nil {
		c = &callHistory{}
		a.calls[seq] = c
		a.order = append(a.order, seq)
	}
	return c
}

// add takes up one record of the interrupted iteration. Records without a path
// concern the run and are not its business.
func (h *history) add(r *journal.Record) {
	if r.Path == "" || len(r.Attempts) == 0 {
		return
	}
	enclosing, own := r.Attempts[:len(r.Attempts)-1], r.Attempts[len(r.Attempts)-1]
	e := h.make(r.Path, enclosing)
	switch r.Kind {
	case journal.StepStart:
		a := e.attempt(own)
		a.start, a.elapsed = r.StepStart, r.Elapsed
		e.last, e.retry = own, nil
	case journal.CallStart:
		c := e.attempt(own).call(r.CallStart.Seq)
		c.start, c.startTime = r.CallStart, r.Time
	case journal.CallEnd:
		a := e.attempt(own)
		c := a.call(r.CallEnd.Seq)
		c.end, c.endTime = r.CallEnd, r.Time
		a.logs = max(a.logs, r.CallEnd.Logs)
	case journal.Checkpoint:
		a := e.attempt(own)
		a.checkpoint = r.Checkpoint
		a.logs = max(a.logs, r.Checkpoint.Logs)
	case journal.Retry:
		e.retry, e.last, e.failed = r.Retry, own, r.Retry.Error
	case journal.StepEnd:
		e.end = r.StepEnd
	}
}

// doubtful reports whether it cannot be known if a call without an end was made.
func (c *callHistory) doubtful() bool { return c.start.Effect || c.start.Function == abi.FuncLLM }
