package sentinel

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

const (
	maxShownValue = 16 << 10  // bytes of a value that a status shows in full
	minShownValue = 1 << 10   // the same of a status with many values
	shownValues   = 160 << 10 // bytes of all of them: a step gets 256 KiB at most
	shownTrace    = 50        // trace entries of a status
)

type statusIn struct {
	targetIn
	After uint64 `json:"after,omitempty" jsonschema:"a traceCursor: the 50 trace entries behind it, not the newest"`
	Brief bool   `json:"brief,omitempty" jsonschema:"leave out definition, current step, variables and trace"`
}

// statusOut is a handle: a run, its definition and its state. A sentinel that never ran
// has the last two.
type statusOut struct {
	ID         sentinels.RunID `json:"id,omitempty"`
	Run        sentinels.RunID `json:"run,omitempty" jsonschema:"equal to id"`
	Definition json.RawMessage `json:"definition,omitempty" jsonschema:"what its next iteration uses"`
	State      state           `json:"state"`
}

type state struct {
	runtime.RunInfo
	CurrentStepIndex *int                       `json:"currentStepIndex,omitempty" jsonschema:"index of the top-level step that executes, comes next or failed"`
	CurrentStep      *currentStep               `json:"currentStep,omitempty" jsonschema:"the innermost step that executes, comes next or failed"`
	LastStepAt       int64                      `json:"lastStepAt,omitempty" jsonschema:"when a step ended last, milliseconds since 1970"`
	Variables        map[string]json.RawMessage `json:"variables,omitempty" jsonschema:"as they are now; of a value over 16 KB, or of the longest where there are many, {bytes, start}"`
	Trace            []traceEntry               `json:"trace,omitempty" jsonschema:"steps that ended, the newest last, at most 50"`
	TraceTotal       int                        `json:"traceTotal" jsonschema:"how many such steps the journal still has"`
	TraceCursor      uint64                     `json:"traceCursor,omitempty" jsonschema:"of the last entry: give it as after"`
	NextFire         *time.Time                 `json:"nextFire,omitempty" jsonschema:"when a trigger of the sentinel fires next"`
}

type currentStep struct {
	ID      string             `json:"id,omitempty"`
	Type    sentinels.StepType `json:"type,omitempty"`
	Address string             `json:"address"`
}

// A traceEntry is one step that ended.
type traceEntry struct {
	StepIndex  int                `json:"stepIndex" jsonschema:"of the top-level step that it is or is in"`
	Address    string             `json:"address"`
	StepType   sentinels.StepType `json:"stepType,omitempty"`
	ID         string             `json:"id,omitempty"`
	Iteration  int                `json:"iteration"`
	DurationMs float64            `json:"durationMs"`
	Success    bool               `json:"success"`
	Skipped    string             `json:"skipped,omitempty" jsonschema:"why it was skipped"`
	Output     json.RawMessage    `json:"output,omitempty"`
	Error      *abi.Error         `json:"error,omitempty"`
}

// status shows where a run stands. A sentinel without a run is idle.
func (f family) status(_ context.Context, call *command.Call, in statusIn) (statusOut, error) {
	info, err := f.target(in.targetIn, true)
	if err != nil {
		idle, stored := f.idle(in)
		if in.Run == "" && abi.CodeOf(err) == abi.NotFound && stored == nil {
			return idle, nil
		}
		return statusOut{}, err
	}
	out := statusOut{ID: info.ID, Run: info.ID, State: state{RunInfo: info}}
	out.State.NextFire = f.nextFire(info.Sentinel)
	if in.Brief {
		return out, nil
	}
	v, err := f.read(found{info.Sentinel, info.ID})
	if err == nil {
		out.Definition, err = v.def.MarshalJSON()
		if refused := call.Count(int64(len(out.Definition))); refused != nil {
			return statusOut{}, refused
		}
	}
	if err != nil { // such as of a plugin that is gone; the state is to be had all the same
		v.def = &sentinels.Definition{}
		out.State.Warnings = append(slices.Clone(out.State.Warnings), fmt.Sprintf("its definition cannot be read: %v", err))
	}
	if out.State.Variables, err = f.rt.Variables(info.ID); err != nil {
		return out, err
	}
	variables := map[string]*shownValue{}
	for name, value := range out.State.Variables {
		variables[name], out.State.Variables[name] = newShownValue(value), nil // not held while the journal is read
	}
	outputs, err := f.addTrace(&out.State, info.ID, in.After, v.def.Steps)
	if err != nil {
		return out, err
	}
	out.State.show(variables, outputs)
	return out, nil
}

// idle is the status of a sentinel that has no run.
func (f family) idle(in statusIn) (statusOut, error) {
	s, err := f.rt.Definition(sentinels.ID(in.SentinelID))
	if err != nil {
		return statusOut{}, err
	}
	out := statusOut{Definition: s.Definition, State: state{RunInfo: runtime.RunInfo{Sentinel: s.ID, Status: "idle", Revision: s.Revision, Hash: s.Hash}}}
	if def, err := f.rt.Decoded(s); err == nil {
		out.State.Name = def.Name
	}
	p, paused, err := f.rt.PauseOfTriggers(s.ID)
	if err != nil {
		return statusOut{}, err
	}
	if paused {
		out.State.Status, out.State.Reason = sentinels.StatusPaused, pausedReason(p.Until)
	}
	out.State.NextFire = f.nextFire(s.ID)
	return out, nil
}

// nextFire returns when a trigger of the sentinel fires next, nil without a schedule.
func (f family) nextFire(id sentinels.ID) (next *time.Time) {
	list, err := f.rt.Triggers(id)
	if err != nil {
		return nil // only runs of it are known: it was never stored
	}
	for _, t := range list {
		if !t.Next.IsZero() && (next == nil || t.Next.Before(*next)) {
			next = &t.Next
		}
	}
	return next
}

// addTrace adds the entries behind record number after, without one the newest, and the step of
// the newest iteration that failed or executes, or between two steps, such as of a paused run, the
// one that comes next. It returns the outputs of the entries, which are not set.
func (f family) addTrace(s *state, id sentinels.RunID, after uint64, steps []sentinels.Step) (outputs []*shownValue, err error) {
	type numbered struct {
		traceEntry
		record uint64
		output func() (json.RawMessage, error)
	}
	var ends []numbered // in the order of the ends: a step that contains others ends behind them
	var current *currentStep
	newest, next := 0, 0
	open, err := f.rt.TraceEnds(id, func(it *runtime.TraceIteration, step *runtime.TraceStep, output func() (json.RawMessage, error)) error {
		if it.Number != newest {
			newest, next, current = it.Number, 0, nil
		}
		next = max(next, topIndex(step.Address)+1)
		if s.Status.Final() && s.Step != "" && step.Address == s.Step {
			current = &currentStep{step.ID, step.Type, step.Address}
		}
		s.LastStepAt = max(s.LastStepAt, step.Start.Add(time.Duration(step.Millis*float64(time.Millisecond))).UnixMilli())
		if s.TraceTotal++; step.Record <= after || after > 0 && len(ends) == shownTrace {
			return nil
		}
		if len(ends) == shownTrace {
			ends = slices.Delete(ends, 0, 1)
		}
		ends = append(ends, numbered{traceEntry{
			StepIndex: topIndex(step.Address), Address: step.Address, StepType: step.Type, ID: step.ID, Iteration: it.Number,
			DurationMs: step.Millis, Success: step.Error == nil, Skipped: step.Skipped, Error: step.Error,
		}, step.Record, output})
		return nil
	})
	if err != nil {
		return nil, err
	}
	s.TraceCursor = after
	for _, e := range ends {
		output, err := e.output()
		if err != nil {
			return nil, err
		}
		outputs = append(outputs, newShownValue(output))
		s.Trace, s.TraceCursor = append(s.Trace, e.traceEntry), e.record
	}
	if open == nil {
		return outputs, nil
	}
	if open.Number != newest {
		next, current = 0, nil
	}
	open.Walk(func(step *runtime.TraceStep) {
		if !step.Ended && !s.Status.Final() || s.Status.Final() && s.Step != "" && step.Address == s.Step {
			current = &currentStep{step.ID, step.Type, step.Address}
		}
	})
	if current == nil && !s.Status.Final() && !open.Done && next < len(steps) {
		current = &currentStep{steps[next].ID, steps[next].Type, strconv.Itoa(next)}
	}
	if current != nil {
		n := topIndex(current.Address)
		s.CurrentStep, s.CurrentStepIndex = current, &n
	}
	return outputs, nil
}

// topIndex returns the index of the top-level step that an address leads into.
func topIndex(address string) int {
	first, _, _ := strings.Cut(address, ".")
	n, err := strconv.Atoi(first)
	if err != nil {
		return -1
	}
	return n
}

// A shownValue is a value of a status. Of one that is never shown in full only its start is kept.
type shownValue struct {
	whole json.RawMessage // nil if it has more than maxShownValue bytes
	bytes int
	start string
}

func newShownValue(value json.RawMessage) *shownValue {
	v := &shownValue{whole: value, bytes: len(value)}
	if len(value) <= minShownValue {
		return v
	}
	var text string
	if json.Unmarshal(value, &text) != nil {
		text = string(value) // no text: the start of its JSON
	}
	end := min(minShownValue, len(text))
	for !utf8.ValidString(text[:end]) && end > minShownValue-utf8.UTFMax {
		end--
	}
	v.start = strings.Clone(text[:end])
	if len(value) > maxShownValue {
		v.whole = nil
	}
	return v
}

// json returns the value, or the size and the start of one that exceeds limit bytes.
func (v *shownValue) json(limit int) json.RawMessage {
	if v.bytes <= limit {
		return v.whole
	}
	short, err := json.Marshal(struct {
		Bytes int    `json:"bytes"`
		Start string `json:"start"`
	}{v.bytes, v.start})
	if err != nil {
		return nil // cannot happen: a number and a text
	}
	return short
}

// show sets the variables and the outputs of the trace. Long ones are replaced by their size and
// their start, where there are many values also shorter ones.
func (s *state) show(variables map[string]*shownValue, outputs []*shownValue) {
	limit := maxShownValue
	for size := shownValues + 1; size > shownValues && limit > minShownValue; limit /= 2 {
		size = 0
		for _, v := range variables {
			size += min(v.bytes, limit)
		}
		for _, v := range outputs {
			size += min(v.bytes, limit)
		}
	}
	limit *= 2 // of the last round
	for name, v := range variables {
		s.Variables[name] = v.json(limit)
	}
	for i, v := range outputs {
		s.Trace[i].Output = v.json(limit)
	}
}
