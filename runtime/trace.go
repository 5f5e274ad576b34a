package runtime

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/history"
	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A Trace is what a run did, as far as its journal still has it.
type Trace struct {
	Run        RunInfo          `json:"run"`
	Iterations []TraceIteration `json:"iterations"`
}

// A TraceIteration is one iteration over the steps.
type TraceIteration struct {
	Number   int              `json:"number"`
	Revision int              `json:"revision,omitempty"` // 0: the definition is not stored
	Edit     int              `json:"edit,omitempty"`     // number of the run's own edit, made on that revision
	Hash     string           `json:"hash"`
	Start    time.Time        `json:"start"`
	Duration time.Duration    `json:"-"` // 0 while it continues
	Millis   float64          `json:"durationMs,omitempty"`
	Event    *sentinels.Event `json:"event,omitempty"`
	Done     bool             `json:"done"`            // it has ended
	Check    string           `json:"check,omitempty"` // value of the loop's condition, as JSON, shortened: before a while iteration, after an until iteration
	Steps    []*TraceStep     `json:"steps"`
}

// A TraceStep is one step execution.
type TraceStep struct {
	Address   string             `json:"address"`
	Path      string             `json:"path"`
	Type      sentinels.StepType `json:"type,omitempty"`
	Name      string             `json:"name,omitempty"`
	Start     time.Time          `json:"start"`
	Duration  time.Duration      `json:"-"`
	Millis    float64            `json:"durationMs,omitempty"`
	Skipped   string             `json:"skipped,omitempty"`
	Condition string             `json:"condition,omitempty"` // value of its condition, as JSON, shortened
	Error     *abi.Error         `json:"error,omitempty"`
	Output    json.RawMessage    `json:"output,omitempty"`
	OutputTo  string             `json:"outputTo,omitempty"` // the variable that Output became, once it ended
	Ended     bool               `json:"ended"`
	Reused    bool               `json:"reused,omitempty"` // executed by the run that this one was forked from
	Attempts  []*TraceAttempt    `json:"attempts,omitempty"`
}

// A TraceAttempt is one attempt of a step execution.
type TraceAttempt struct {
	Number   int             `json:"number"`
	Start    time.Time       `json:"start"`
	Duration time.Duration   `json:"-"`
	Millis   float64         `json:"durationMs,omitempty"`
	Module   string          `json:"module,omitempty"` // digest of the plugin
	Fields   json.RawMessage `json:"fields,omitempty"` // as resolved
	Unknown  []string        `json:"unknown,omitempty"`
	Error    *abi.Error      `json:"error,omitempty"`
	RetryAt  time.Time       `json:"retryAt,omitzero"`
	Category string          `json:"category,omitempty"`
	Calls    []*TraceCall    `json:"calls,omitempty"`
	Steps    []*TraceStep    `json:"steps,omitempty"` // nested
}

// A TraceCall is one host call.
type TraceCall struct {
	Number   int              `json:"number"`
	Function string           `json:"function"`
	Label    string           `json:"label,omitempty"`
	Start    time.Time        `json:"start"`
	Duration time.Duration    `json:"-"`
	Millis   float64          `json:"durationMs,omitempty"`
	Ended    bool             `json:"ended"`
	Error    *abi.Error       `json:"error,omitempty"`
	Usage    *sentinels.Usage `json:"usage,omitempty"`
	Child    sentinels.RunID  `json:"child,omitempty"`
	Decided  string           `json:"decided,omitempty"` // after a crash: how
	Request  json.RawMessage  `json:"request,omitempty"`
	Result   json.RawMessage  `json:"result,omitempty"`
}

// State says in a word how the step stands.
func (s *TraceStep) State() string {
	switch {
	case s.Reused:
		return "reused"
	case s.Skipped != "":
		return "skipped"
	case s.Error != nil:
		return "failed"
	case s.Ended:
		return "ok"
	}
	return "running"
}

// Walk calls fn for every step of the iteration, nested ones behind the step they
// are nested in.
func (it *TraceIteration) Walk(fn func(*TraceStep)) { walkSteps(it.Steps, fn) }

func walkSteps(steps []*TraceStep, fn func(*TraceStep)) {
	for _, s := range steps {
		fn(s)
		for _, a := range s.Attempts {
			walkSteps(a.Steps, fn)
		}
	}
}

// Trace reads what a run did from its journal.
func (rt *Runtime) Trace(id sentinels.RunID) (*Trace, error) {
	info, err := rt.Status(id)
	if err != nil {
		return nil, err
	}
	b := &traceBuilder{rt: rt, trace: &Trace{Run: info}}
	err = rt.db.Journal(string(id), 1, func(seq uint64, raw []byte) error {
		rec, err := journal.Decode(raw)
		if err != nil {
			return fmt.Errorf("record %d of run %s: %w", seq, id, err)
		}
		return b.add(rec)
	})
	return b.trace, err
}

// TraceOpen reads only the iteration that a run is in, nil between two of them:
// of a run with a long history it costs a small part of [Runtime.Trace].
func (rt *Runtime) TraceOpen(id sentinels.RunID) (*TraceIteration, error) {
	info, err := rt.Status(id)
	if err != nil {
		return nil, err
	}
	b := &traceBuilder{rt: rt, trace: &Trace{}}
	err = rt.db.Journal(string(id), max(info.Snapshot, 1), func(seq uint64, raw []byte) error {
		rec, err := journal.Decode(raw)
		if err != nil {
			return fmt.Errorf("record %d of run %s: %w", seq, id, err)
		}
		return b.add(rec)
	})
	if it := b.iteration(); err == nil && it != nil && !it.Done {
		return it, nil
	}
	return nil, err
}

type traceBuilder struct {
	rt       *Runtime
	trace    *Trace
	steps    map[string]*TraceStep    // by execKey
	attempts map[string]*TraceAttempt // by execKey with the own attempt
	calls    map[string]*TraceCall
}

func (b *traceBuilder) add(rec *journal.Record) error {
	at := microTime(rec.Time)
	switch rec.Kind {
	case journal.IterationStart:
		s := rec.IterationStart
		b.trace.Iterations = append(b.trace.Iterations, TraceIteration{
			Number: s.Iteration, Revision: s.Revision, Edit: s.Edit, Hash: s.Hash, Start: at, Event: s.Event, Check: s.Check, Steps: []*TraceStep{},
		})
		b.steps, b.attempts, b.calls = map[string]*TraceStep{}, map[string]*TraceAttempt{}, map[string]*TraceCall{}
		return nil
	case journal.IterationEnd:
		if it := b.iteration(); it != nil {
			it.Done, it.Duration = true, at.Sub(it.Start)
			it.Millis = millis(it.Duration)
			if check := rec.IterationEnd.Check; check != "" {
				it.Check = check
			}
		}
		return nil
	}
	if rec.Path == "" || b.iteration() == nil || len(rec.Attempts) == 0 {
		return nil
	}
	return b.addStep(rec, at)
}

func (b *traceBuilder) iteration() *TraceIteration {
	if n := len(b.trace.Iterations); n > 0 {
		return &b.trace.Iterations[n-1]
	}
	return nil
}

func (b *traceBuilder) addStep(rec *journal.Record, at time.Time) error {
	step := b.step(rec.Path, rec.Attempts[:len(rec.Attempts)-1], at)
	var err error
	switch rec.Kind {
	case journal.StepStart:
		a := b.attempt(step, rec, at)
		s := rec.StepStart
		step.Type, step.Name, step.Address = s.Type, s.Name, s.Address
		step.Condition = s.Condition
		a.Module, a.Unknown = s.Module, s.Unknown
		a.Fields, err = b.rt.load(s.Fields)
	case journal.CallStart:
		s := rec.CallStart
		c := b.call(b.attempt(step, rec, at), rec, s.Seq, at)
		c.Function, c.Label, c.Child = s.Function, s.Label, s.Child
		c.Request, err = b.rt.load(s.Request)
	case journal.CallEnd:
		err = b.callEnd(b.attempt(step, rec, at), rec, at)
	case journal.Checkpoint:
		c := b.call(b.attempt(step, rec, at), rec, rec.Checkpoint.Seq, at)
		c.Function, c.Ended = abi.FuncCheckpoint, true
		c.Request, err = b.rt.load(rec.Checkpoint.State)
	case journal.Retry:
		a := b.attempt(step, rec, at)
		a.Error, a.RetryAt, a.Category = rec.Retry.Error, microTime(rec.Retry.Due), rec.Retry.Category
		a.Duration = at.Sub(a.Start)
		a.Millis = millis(a.Duration)
	case journal.StepEnd:
		s := rec.StepEnd
		if step.Type == "" {
			step.Type, step.Name = sentinels.StepType(s.Type), s.Name
		}
		step.Ended, step.Error, step.Skipped, step.Duration = true, s.Error, s.Skipped, at.Sub(step.Start)
		step.Reused = s.Reused
		if s.Condition != "" {
			step.Condition = s.Condition
		}
		step.Millis, step.OutputTo = millis(step.Duration), s.OutputTo
		if n := len(step.Attempts); n > 0 {
			last := step.Attempts[n-1]
			last.Error, last.Duration = s.Error, at.Sub(last.Start)
			last.Millis = millis(last.Duration)
		}
		step.Output, err = b.rt.load(s.Output)
	}
	return err
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func (b *traceBuilder) step(path string, enclosing []int, at time.Time) *TraceStep {
	key := history.Key(path, enclosing)
	if s := b.steps[key]; s != nil {
		return s
	}
	s := &TraceStep{Path: path, Address: history.Address(path), Start: at}
	b.steps[key] = s
	// A nested step belongs to the attempt of the step whose block it is in.
	if i := strings.LastIndexByte(path, '#'); i > 0 && len(enclosing) > 0 {
		if a := b.attempts[history.Key(path[:i], enclosing)]; a != nil {
			a.Steps = append(a.Steps, s)
			return s
		}
	}
	it := b.iteration()
	it.Steps = append(it.Steps, s)
	return s
}

func (b *traceBuilder) attempt(step *TraceStep, rec *journal.Record, at time.Time) *TraceAttempt {
	key := history.Key(rec.Path, rec.Attempts)
	if a := b.attempts[key]; a != nil {
		return a
	}
	a := &TraceAttempt{Number: rec.Attempts[len(rec.Attempts)-1], Start: at}
	b.attempts[key] = a
	step.Attempts = append(step.Attempts, a)
	return a
}

func (b *traceBuilder) call(a *TraceAttempt, rec *journal.Record, seq int, at time.Time) *TraceCall {
	key := fmt.Sprintf("%s!%d", history.Key(rec.Path, rec.Attempts), seq)
	if c := b.calls[key]; c != nil {
		return c
	}
	c := &TraceCall{Number: seq, Start: at}
	b.calls[key] = c
	a.Calls = append(a.Calls, c)
	return c
}

func (b *traceBuilder) callEnd(a *TraceAttempt, rec *journal.Record, at time.Time) error {
	e := rec.CallEnd
	c := b.call(a, rec, e.Seq, at)
	if e.Function != "" {
		c.Function, c.Label = e.Function, e.Label
		var err error
		if c.Request, err = b.rt.load(e.Request); err != nil {
			return err
		}
	}
	c.Ended, c.Error, c.Usage, c.Decided, c.Duration = true, e.Error, e.Usage, e.Decided, at.Sub(c.Start)
	c.Millis = millis(c.Duration)
	if e.Child != "" {
		c.Child = e.Child
	}
	var err error
	c.Result, err = b.rt.load(e.Result)
	return err
}
