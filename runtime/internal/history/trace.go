package history

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/runtime/trace"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A Tracer makes the trace of a run out of its records. The trace is for people: it
// keeps what the state of the run drops, such as times and steps that have ended.
type Tracer struct {
	// Load returns a value. Required.
	Load func(journal.Value) (json.RawMessage, error)
	// Redact removes secrets from a text. Required.
	Redact func(string) string

	Iterations []trace.Iteration // of the records so far

	steps    map[string]*trace.Step    // of the newest iteration, by Key
	attempts map[string]*trace.Attempt // by Key with the own attempt
	calls    map[string]*trace.Call
	record   uint64 // number of the newest record
}

// Add adds the record with number seq. The records of a run are added in their order.
func (t *Tracer) Add(seq uint64, rec *journal.Record) error {
	t.record = seq
	at := time.UnixMicro(rec.Time)
	switch rec.Kind {
	case journal.IterationStart:
		s := rec.IterationStart
		t.Iterations = append(t.Iterations, trace.Iteration{
			Number: s.Iteration, Revision: s.Revision, Edit: s.Edit, Hash: s.Hash, Start: at, Event: s.Event, Check: s.Check, Reads: s.Reads, Steps: []*trace.Step{},
			Queued: float64(s.Queued) / 1000,
		})
		t.steps, t.attempts, t.calls = map[string]*trace.Step{}, map[string]*trace.Attempt{}, map[string]*trace.Call{}
		return nil
	case journal.IterationEnd:
		if it := t.newest(); it != nil {
			it.Done, it.Duration = true, at.Sub(it.Start)
			it.Millis = millis(it.Duration)
			if check := rec.IterationEnd.Check; check != "" {
				it.Check, it.Reads = check, rec.IterationEnd.Reads
			}
		}
		return nil
	}
	if rec.Path == "" || t.newest() == nil || len(rec.Attempts) == 0 {
		return nil
	}
	return t.addStep(rec, at)
}

// newest returns the newest iteration, nil before the first.
func (t *Tracer) newest() *trace.Iteration {
	if n := len(t.Iterations); n > 0 {
		return &t.Iterations[n-1]
	}
	return nil
}

func (t *Tracer) addStep(rec *journal.Record, at time.Time) error {
	step := t.step(rec.Path, rec.Attempts[:len(rec.Attempts)-1], at)
	var err error
	switch rec.Kind {
	case journal.StepStart:
		a := t.attempt(step, rec, at)
		s := rec.StepStart
		step.Type, step.ID, step.Name, step.Address = s.Type, s.ID, s.Name, s.Address
		step.Condition, step.Reads = s.Condition, s.Reads
		a.Module, a.Unknown, a.Unset = s.Module, s.Unknown, s.Unset
		a.Fields, err = t.Load(s.Fields)
		for name, value := range s.Env {
			if a.Env == nil {
				a.Env = make(map[string]string, len(s.Env))
			}
			a.Env[name] = t.Redact(value)
		}
	case journal.CallStart:
		s := rec.CallStart
		c := t.call(t.attempt(step, rec, at), rec, s.Seq, at)
		c.Function, c.Label, c.Child = s.Function, s.Label, s.Child
		c.Request, err = t.Load(s.Request)
		if rec.Path == sentinels.EndAddress {
			step.Type = sentinels.BlockFinally
		}
	case journal.CallEnd:
		err = t.callEnd(t.attempt(step, rec, at), rec, at)
		if rec.Path == sentinels.EndAddress { // the definition itself, which has no end of a step
			step.Ended, step.Error, step.Duration = true, rec.CallEnd.Error, at.Sub(step.Start)
			step.Millis = millis(step.Duration)
		}
	case journal.Checkpoint:
		c := t.call(t.attempt(step, rec, at), rec, rec.Checkpoint.Seq, at)
		c.Function, c.Ended = abi.FuncCheckpoint, true
		c.Request, err = t.Load(rec.Checkpoint.State)
	case journal.Retry:
		a := t.attempt(step, rec, at)
		a.Error, a.RetryAt, a.Category, a.Confidence = rec.Retry.Error, time.UnixMicro(rec.Retry.Due), rec.Retry.Category, rec.Retry.Confidence
		a.Duration = at.Sub(a.Start)
		a.Millis = millis(a.Duration)
	case journal.StepEnd:
		s := rec.StepEnd
		if step.Type == "" {
			step.Type, step.ID, step.Name = sentinels.StepType(s.Type), s.ID, s.Name
		}
		step.Ended, step.Error, step.Skipped, step.Duration = true, s.Error, s.Skipped, at.Sub(step.Start)
		step.Reused, step.Record, step.Ends = s.Reused, t.record, s.Ends
		if s.Condition != "" {
			step.Condition, step.Reads = s.Condition, s.Reads
		}
		step.Millis, step.OutputTo = millis(step.Duration), s.OutputTo
		if n := len(step.Attempts); n > 0 {
			last := step.Attempts[n-1]
			last.Error, last.Duration = s.Error, at.Sub(last.Start)
			last.Millis = millis(last.Duration)
		}
		if s.Ends != "" {
			t.newest().Stop()
		}
		step.Output, err = t.Load(s.Output)
	}
	return err
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func (t *Tracer) step(path string, enclosing []int, at time.Time) *trace.Step {
	key := Key(path, enclosing)
	if s := t.steps[key]; s != nil {
		return s
	}
	s := &trace.Step{Path: path, Address: sentinels.PathAddress(path), Start: at}
	t.steps[key] = s
	if a := t.above(path, enclosing); a != nil {
		a.Steps = append(a.Steps, s)
		return s
	}
	it := t.newest()
	it.Steps = append(it.Steps, s)
	return s
}

// above returns the attempt that a nested step belongs to: that of the step whose block it is in.
// It is nil for others.
func (t *Tracer) above(path string, enclosing []int) *trace.Attempt {
	if i := strings.LastIndexByte(path, '#'); i > 0 && len(enclosing) > 0 {
		return t.attempts[Key(path[:i], enclosing)]
	}
	return nil
}

func (t *Tracer) attempt(step *trace.Step, rec *journal.Record, at time.Time) *trace.Attempt {
	key := Key(rec.Path, rec.Attempts)
	if a := t.attempts[key]; a != nil {
		return a
	}
	a := &trace.Attempt{Number: rec.Attempts[len(rec.Attempts)-1], Start: at}
	t.attempts[key] = a
	step.Attempts = append(step.Attempts, a)
	return a
}

func (t *Tracer) call(a *trace.Attempt, rec *journal.Record, seq int, at time.Time) *trace.Call {
	key := callKey(rec, seq)
	if c := t.calls[key]; c != nil {
		return c
	}
	c := &trace.Call{Number: seq, Start: at}
	t.calls[key] = c
	a.Calls = append(a.Calls, c)
	return c
}

func callKey(rec *journal.Record, seq int) string {
	return fmt.Sprintf("%s!%d", Key(rec.Path, rec.Attempts), seq)
}

func (t *Tracer) callEnd(a *trace.Attempt, rec *journal.Record, at time.Time) error {
	e := rec.CallEnd
	c := t.call(a, rec, e.Seq, at)
	if e.Function != "" {
		c.Function, c.Label = e.Function, e.Label
		var err error
		if c.Request, err = t.Load(e.Request); err != nil {
			return err
		}
	}
	c.Ended, c.Error, c.Usage, c.Decided, c.Duration = true, e.Error, e.Usage, e.Decided, at.Sub(c.Start)
	c.Millis, c.Reads = millis(c.Duration), e.Reads
	c.Queued, c.Queue = float64(e.Queued)/1000, e.Queue
	if e.Child != "" {
		c.Child = e.Child
	}
	var err error
	c.Result, err = t.Load(e.Result)
	return err
}
