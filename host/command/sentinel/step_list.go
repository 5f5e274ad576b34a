package sentinel

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// maxInFlight is how many runs of a sentinel a list of its steps looks into,
// the newest first: each costs reading its open iteration.
const maxInFlight = 20

// stepsOut is what step/list answers.
type stepsOut struct {
	SentinelID sentinels.ID    `json:"sentinelId"`
	Run        sentinels.RunID `json:"run,omitempty" jsonschema:"the run whose steps these are"`
	Revision   int             `json:"revision"`
	Edit       int             `json:"edit,omitempty" jsonschema:"number of the run's own edit"`
	Hash       string          `json:"hash"`
	Steps      []stepLine      `json:"steps"`
	Runs       int             `json:"runs" jsonschema:"how many runs are on"`
}

// A stepLine is one step with how it stands. Last and what goes with it are of
// one run, InFlight of all that are on.
type stepLine struct {
	Address  string             `json:"address"`
	Type     sentinels.StepType `json:"type"`
	ID       string             `json:"id,omitempty"`
	Name     string             `json:"name,omitempty"`
	Step     json.RawMessage    `json:"step"`
	Last     string             `json:"last,omitempty" jsonschema:"how it ended last in the newest run: ok, failed, skipped or running"`
	Error    *abi.Error         `json:"error,omitempty" jsonschema:"why it failed"`
	LastAt   *time.Time         `json:"lastAt,omitempty" jsonschema:"when that began"`
	Millis   float64            `json:"durationMs,omitempty"`
	InFlight []inFlight         `json:"inFlight,omitempty" jsonschema:"runs that are at this step now, at most 20"`
}

// An inFlight is an active execution of a step.
type inFlight struct {
	Run       sentinels.RunID `json:"run"`
	Iteration int             `json:"iteration"`
	Attempt   int             `json:"attempt,omitempty"`
	Since     time.Time       `json:"since"`
	WaitsFor  string          `json:"waitsFor,omitempty" jsonschema:"the host call under way: its function, and the command's or event's name"`
}

// stepList shows the steps of a sentinel or of one run, and how each stands.
func (f family) stepList(_ context.Context, call *command.Call, in idIn) (stepsOut, error) {
	t, err := f.find(in.SentinelID)
	if err != nil {
		return stepsOut{}, err
	}
	v, err := f.read(t)
	if err != nil {
		return stepsOut{}, err
	}
	out := stepsOut{SentinelID: t.id, Run: t.run, Revision: v.revision, Edit: v.edit, Hash: v.hash, Steps: []stepLine{}}
	eachOf(v.def, func(address string, s *sentinels.Step) {
		raw, bad := s.MarshalJSON()
		if bad = cmp.Or(bad, call.Count(int64(len(raw)+len(s.Name)))); bad != nil {
			err = cmp.Or(err, bad)
			return
		}
		out.Steps = append(out.Steps, stepLine{Address: address, Type: s.Type, ID: s.ID, Name: s.Name, Step: raw})
	})
	if err != nil {
		return out, err
	}
	return out, f.states(t, v, &out)
}

// states adds how the steps ended last, and what goes on.
func (f family) states(t found, v version, out *stepsOut) error {
	newest, on, err := f.runsOf(t)
	if err != nil || newest == nil { // it never ran: there is no state
		return err
	}
	lines := map[string]*stepLine{}
	for i := range out.Steps {
		lines[out.Steps[i].Address] = &out.Steps[i]
	}
	if err := f.lastOf(newest, v, lines); err != nil {
		return err
	}
	out.Runs = len(on)
	for _, run := range on[:min(len(on), maxInFlight)] {
		open, err := f.rt.TraceOpen(run.ID)
		if abi.CodeOf(err) == abi.NotFound { // it went with retention since
			continue
		}
		if err != nil {
			return err
		}
		// An iteration of another revision may have another step at an address.
		if open == nil || open.Hash != v.hash {
			continue
		}
		open.Walk(func(s *runtime.TraceStep) {
			if line := lines[s.Address]; line != nil && !s.Ended {
				line.InFlight = append(line.InFlight, flying(run.ID, open.Number, s))
			}
		})
	}
	return nil
}

// flying describes a step that goes on; of its calls the one that has no end is
// what it waits for.
func flying(run sentinels.RunID, iteration int, s *runtime.TraceStep) inFlight {
	x := inFlight{Run: run, Iteration: iteration, Since: s.Start}
	if n := len(s.Attempts); n > 0 {
		a := s.Attempts[n-1]
		x.Attempt = a.Number
		for _, c := range a.Calls {
			if !c.Ended {
				x.WaitsFor = c.Function
				if c.Label != "" {
					x.WaitsFor += " " + c.Label
				}
			}
		}
	}
	return x
}

// runsOf returns the newest run and those that are on, the newest first.
func (f family) runsOf(t found) (newest *runtime.RunInfo, on []runtime.RunInfo, err error) {
	if t.run != "" {
		info, err := f.rt.Status(t.run)
		if err == nil && !info.Status.Final() {
			on = append(on, info)
		}
		return &info, on, err
	}
	last, err := f.rt.Runs(runtime.RunFilter{Sentinel: t.id, OfStored: true, Limit: 1})
	if err != nil || len(last) == 0 {
		return nil, nil, err
	}
	on, err = f.rt.Runs(runtime.RunFilter{Sentinel: t.id, OfStored: true, Statuses: runtime.Unfinished()})
	return &last[0], on, err
}

// lastOf adds how each step ended in the newest iteration of a run that had it:
// of an iteration that goes on, the steps it has come to.
func (f family) lastOf(run *runtime.RunInfo, v version, lines map[string]*stepLine) error {
	// Two iterations: the open one has come to some of the steps only.
	var before, newest map[string]stepLine
	number := 0
	begin := func(it *runtime.TraceIteration) {
		if it.Number != number {
			before, newest, number = newest, map[string]stepLine{}, it.Number
		}
	}
	add := func(it *runtime.TraceIteration, s *runtime.TraceStep) {
		// In an iteration of another definition an address may be another step.
		if lines[s.Address] != nil && it.Hash == v.hash {
			at := s.Start
			newest[s.Address] = stepLine{Last: s.State(), Error: s.Error, LastAt: &at, Millis: s.Millis}
		}
	}
	open, err := f.rt.TraceEnds(run.ID, func(it *runtime.TraceIteration, s *runtime.TraceStep, _ func() (json.RawMessage, error)) error {
		begin(it)
		add(it, s)
		return nil
	})
	if err != nil {
		return err
	}
	if open != nil {
		begin(open)
		open.Walk(func(s *runtime.TraceStep) { add(open, s) })
	}
	for _, last := range []map[string]stepLine{before, newest} {
		for address, l := range last {
			line := lines[address]
			line.Last, line.Error, line.LastAt, line.Millis = l.Last, l.Error, l.LastAt, l.Millis
		}
	}
	return nil
}
