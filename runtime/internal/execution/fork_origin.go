package execution

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/sentinel-runtime/sentinel/runtime/internal/eventlog"
	"github.com/sentinel-runtime/sentinel/runtime/internal/failure"
	"github.com/sentinel-runtime/sentinel/runtime/internal/history"
	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/runtime/run"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// An origin is the run that a fork is made from, and the iteration that the fork begins
// with.
type origin struct {
	history.PastIteration
	info      run.Info
	begin     *journal.RunStartBody
	fromStart bool              // the fork begins with the first iteration, and continues none
	used      definitionVersion // the definition that the iteration used; with fromStart, the one that the run used last
	edits     []journal.Given   // with fromStart: of the definition
}

// readOrigin reads iteration n of a run, 0 for its newest one, or with fromStart only
// the run's start.
func (ex *Executor) readOrigin(info run.Info, n int, fromStart bool) (*origin, error) {
	f := history.Finder{Wanted: n}
	st, err := history.Fold(ex.opt.Store, info.ID, 1, func(seq uint64, rec *journal.Record, st *history.State) error {
		if f.Add(seq, rec, st) {
			return history.ErrStop
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	st.Start.Workspace = info.Workspace
	o := &origin{PastIteration: f.Found, info: info, begin: st.Start, fromStart: fromStart}
	used := f.Found.Used
	switch {
	case fromStart:
		used = st.Used
		if used.Edit != 0 || st.Start.Fork != nil {
			o.edits = slices.DeleteFunc(slices.Clone(st.Given), func(g journal.Given) bool { return g.Kind != journal.GivenEdit })
		}
	case f.Found.Number == 0:
		return nil, noIteration(info, n, f.Kept)
	case f.Found.Start == nil: // n is 0, and the first records of the newest iteration were removed
		return nil, noIteration(info, info.Iteration, f.Kept)
	}
	o.used, err = ex.readDefinition(used, o.begin, ex.opt.Plugins.Types())
	return o, err
}

// Bounds of what agents and models have made of one run, in bytes: a person who decides about the run sees all of it.
const (
	maxChanges = 64 << 10 // of its definition, as a difference
	maxInputs  = 64 << 10 // names and values of its inputs, in runs that ask for an approval
)

// noteEdits adds what agents and models changed in the definition of a fork to what it has of the other run. A fork from
// the start has their edits of that run too, unless it uses another definition.
func (ex *Executor) noteEdits(f *journal.Fork, o *origin, def *sentinels.Definition, opt run.ForkOptions) error {
	if !opt.Latest && opt.Revision == 0 && opt.Definition == nil {
		f.Given = append(f.Given, o.edits...)
	}
	by := emitsFor(opt.As, opt.Within != nil)
	if opt.Edit == nil || by == "" {
		return nil
	}
	text := ex.svc.Redact.Text(sentinels.DiffText(o.used.def, def, "run "+string(o.info.ID), "this run"))
	if err := checkChanges("fork", o.info.ID, f.Given, text); err != nil {
		return err
	}
	f.Given = append(f.Given, journal.Given{By: by, Kind: journal.GivenEdit, Changes: text})
	return nil
}

// checkChanges refuses a further change of a run's definition where a person who decides could not see all of them.
func checkChanges(what string, id sentinels.RunID, before []journal.Given, text string) error {
	size := len(text)
	for _, g := range before {
		size += len(g.Changes)
	}
	if size <= maxChanges {
		return nil
	}
	return &abi.Error{
		Code: abi.Limit, Permanent: true, Message: fmt.Sprintf("%s run %s: what agents and models have changed in its definition is %d bytes as a difference, more than %d: a person who decides about the run has to see all of it", what, id, size, maxChanges),
		Hint: "create a sentinel with the changed definition",
	}
}

// upwards calls fn with a run, and then with those above it until one that retention has removed.
func (ex *Executor) upwards(id sentinels.RunID, fn func(info run.Info) error) error {
	for above := false; id != ""; above = true {
		info, err := ex.Status(id)
		if above && abi.CodeOf(err) == abi.NotFound {
			return nil
		}
		if err != nil {
			return err
		}
		if err := fn(info); err != nil {
			return err
		}
		id = info.Parent
	}
	return nil
}

// concerned calls fn with a run, those above it, and the others of their tree that agents or models gave something: that
// may be part of what the run works with. where says how a run is related, empty for the run itself.
func (ex *Executor) concerned(id sentinels.RunID, fn func(info run.Info, where string) error) error {
	seen := map[sentinels.RunID]bool{}
	var top run.Info
	err := ex.upwards(id, func(info run.Info) error {
		seen[info.ID], top = true, info
		where := ""
		if info.ID != id {
			where = fmt.Sprintf("run %s of %s, above this one", info.ID, info.Sentinel)
		}
		return fn(info, where)
	})
	if err != nil {
		return err
	}
	below, err := ex.below(top.ID)
	if err != nil {
		return err
	}
	for _, info := range below {
		if !seen[info.ID] && len(info.GivenBy) > 0 {
			if err := fn(info, fmt.Sprintf("run %s of %s", info.ID, info.Sentinel)); err != nil && abi.CodeOf(err) != abi.NotFound {
				return err
			}
		}
	}
	return nil
}

// below returns the runs below a run, at most a thousand. It uses the index of children, since a host may have very many runs.
func (ex *Executor) below(id sentinels.RunID) (list []run.Info, err error) {
	const most = 1000
	for next := 0; len(list) < most; next++ {
		children, err := ex.opt.Index.List(run.Filter{Parent: id, Limit: most - len(list)})
		if err != nil {
			return nil, err
		}
		if list = append(list, children...); next == len(list) {
			break
		}
		id = list[next].ID
	}
	return list, nil
}

// given returns what agents and models gave a run after its start.
func (ex *Executor) given(info run.Info) ([]journal.Given, error) {
	if r := ex.live(info.ID); r != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.folded.Given, nil
	}
	if len(info.GivenBy) == 0 {
		return nil, nil
	}
	st, err := history.Fold(ex.opt.Store, info.ID, info.Snapshot, nil)
	if err != nil {
		return nil, err
	}
	return st.Given, nil
}

// AgentChanges is Runtime.AgentChanges of package runtime.
func (ex *Executor) AgentChanges(id sentinels.RunID) (string, error) {
	var all strings.Builder
	err := ex.concerned(id, func(info run.Info, where string) error {
		given, err := ex.given(info)
		if err != nil {
			return err
		}
		text := ex.changes(info, given)
		if text != "" && where != "" {
			fmt.Fprintf(&all, "in %s:\n", where)
		}
		all.WriteString(text)
		return nil
	})
	if err != nil {
		return "", err
	}
	ahead, err := ex.ahead(id)
	return all.String() + ex.changesAhead(ahead), err
}

// changes returns what agents and models changed in the definition of a run, and in the stored sentinel while the run used
// it, as unified differences without secrets.
func (ex *Executor) changes(info run.Info, given []journal.Given) string {
	var all strings.Builder
	for _, g := range given {
		all.WriteString(g.Changes)
		if g.Number == 0 {
			continue
		}
		fmt.Fprintf(&all, "revision %d by %s, executed from iteration %d on:\n", g.Number, g.By, g.Iteration)
		all.WriteString(ex.difference(info.Sentinel, g.Before, g.Number, all.Len()))
	}
	return all.String()
}

// difference returns the unified difference of two revisions without secrets, or its size if it would be too much behind
// a text of so many bytes. A revision that is not kept, or 0, is empty.
func (ex *Executor) difference(id sentinels.ID, before, after, behind int) string {
	var versions [2]*sentinels.Definition
	for i, n := range []int{before, after} {
		if stored, err := ex.opt.Definitions.Revision(id, n); err == nil && !stored.Deleted {
			versions[i] = sentinels.Lenient(stored.Definition, ex.opt.Definitions.DecodeOptions(string(id)))
		}
	}
	text := sentinels.DiffText(versions[0], versions[1], fmt.Sprintf("revision %d", before), fmt.Sprintf("revision %d", after))
	text = ex.svc.Redact.Text(text)
	if behind+len(text) > 2*maxChanges {
		text = fmt.Sprintf("(%d bytes of its difference are not shown, see sentinel diff)\n", len(text))
	}
	return text
}

// GivenInputs is Runtime.GivenInputs of package runtime.
func (ex *Executor) GivenInputs(id sentinels.RunID) (list []run.GivenInput, err error) {
	err = ex.concerned(id, func(info run.Info, where string) error {
		own, err := ex.givenTo(info)
		if err != nil {
			return err
		}
		later, err := ex.given(info)
		if err != nil {
			return err
		}
		for _, g := range later {
			if g.Event != nil {
				in, err := ex.givenEvent(info, g.Event)
				if err != nil {
					return err
				}
				own = append(own, in)
			}
		}
		for _, in := range own {
			in.Of = where
			same := func(o run.GivenInput) bool { return o.Event && bytes.Equal(o.Value, in.Value) }
			if !in.Event || !slices.ContainsFunc(list, same) { // a child handles the event of its parent
				list = append(list, in)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

// checkInputs refuses an approval in a run where the inputs and the event that agents and models gave it, or one above it, are too long
// for a person to see all of them.
func (ex *Executor) checkInputs(id sentinels.RunID) error {
	var given []run.GivenInput
	err := ex.upwards(id, func(info run.Info) error {
		own, err := ex.givenTo(info)
		given = append(given, own...)
		return err
	})
	if err != nil {
		return err
	}
	size := map[sentinels.RunID]int{}
	for _, in := range given {
		if size[in.Run.ID] += len(in.Name) + len(in.Value); size[in.Run.ID] > maxInputs {
			return &abi.Error{
				Code: abi.Limit, Permanent: true, Hint: "start it with shorter inputs, or with a shorter event",
				Message: fmt.Sprintf("the inputs and the event that %s gave run %s of %s are longer than %d bytes: a person who approves has to see all of them",
					in.By, in.Run.ID, in.Run.Sentinel, maxInputs),
			}
		}
	}
	return nil
}

// givenTo returns the inputs of one run that an agent or a model gave, and the events: the one that the run began with, and
// that of its iteration.
func (ex *Executor) givenTo(info run.Info) (list []run.GivenInput, err error) {
	var begin *journal.RunStartBody
	var event *sentinels.Event
	if r := ex.live(info.ID); r != nil { // its first record may not be committed yet
		begin = r.begin
		r.mu.Lock()
		event = r.folded.Event
		r.mu.Unlock()
	} else {
		if begin, err = ex.startOf(info.ID); err != nil {
			return nil, err
		}
		st, err := history.Fold(ex.opt.Store, info.ID, info.Snapshot, nil)
		if err != nil {
			return nil, err
		}
		event = st.Event
	}
	if len(begin.InputsBy) > 0 {
		raw, err := ex.svc.Values.Load(begin.Inputs)
		if err != nil {
			return nil, err
		}
		values := map[string]json.RawMessage{}
		if err := json.Unmarshal(raw, &values); err != nil {
			return nil, fmt.Errorf("inputs of run %s: %w", info.ID, err)
		}
		for _, name := range slices.Sorted(maps.Keys(begin.InputsBy)) {
			list = append(list, run.GivenInput{Run: info, Name: name, By: begin.InputsBy[name], Value: values[name]})
		}
	}
	for _, e := range []*sentinels.Event{begin.Event, event} {
		if eventlog.GivenBy(e) == "" {
			continue
		}
		in, err := ex.givenEvent(info, e)
		if err != nil {
			return nil, err
		}
		list = append(list, in)
	}
	return list, nil
}

// givenEvent returns an event of an agent or a model that a run received.
func (ex *Executor) givenEvent(info run.Info, e *sentinels.Event) (run.GivenInput, error) {
	shown := *e
	shown.Hops, shown.Path = 0, nil // the origin of the question has them
	raw, err := json.Marshal(shown)
	return run.GivenInput{Run: info, Name: e.Name, Event: true, By: eventlog.GivenBy(e), Value: ex.svc.Redact.JSON(raw)}, err
}

// startOf returns the body of the first record of a run, with no field set if retention has removed it.
func (ex *Executor) startOf(id sentinels.RunID) (*journal.RunStartBody, error) {
	begin := &journal.RunStartBody{}
	err := history.Read(ex.opt.Store, id, 1, func(_ uint64, rec *journal.Record) error {
		if rec.RunStart != nil {
			begin = rec.RunStart
		}
		return history.ErrStop
	})
	if errors.Is(err, history.ErrStop) {
		err = nil
	}
	return begin, err
}

// noIteration returns the error for an iteration that does not exist or whose records
// were removed.
func noIteration(info run.Info, n int, kept []int) error {
	if n == 0 || n > info.Iteration {
		e := failure.New(abi.NotFound, "run %s has executed %d iterations", info.ID, info.Iteration)
		if n > 0 {
			e.Message += fmt.Sprintf(", not %d", n)
		}
		return e
	}
	e := failure.New(abi.NotFound, "run %s: the records of iteration %d were removed by retention", info.ID, n)
	if len(kept) > 0 {
		e.Hint = fmt.Sprintf("iterations %d to %d are kept", kept[0], kept[len(kept)-1])
	}
	return e
}

// steps returns the number of the iteration's top-level steps.
func (o *origin) steps() int { return len(o.used.def.Steps) }

// stateBefore folds the records of the run up to the start of top-level step stop in
// the iteration, or to the end of the iteration.
func (ex *Executor) stateBefore(o *origin, stop int) (*history.State, error) {
	index := strconv.Itoa(stop)
	return history.Fold(ex.opt.Store, o.info.ID, max(o.From, 2), func(seq uint64, rec *journal.Record, _ *history.State) error {
		step, _, _ := strings.Cut(rec.Path, "#")
		if seq > o.First && (step == index || rec.Kind == journal.IterationEnd || rec.Kind == journal.RunEnd) {
			return history.ErrStop
		}
		return nil
	})
}

// endStep returns the address of the step of the definition's onFailure or finally that from names, or that has it in it; ""
// if there is none.
func endStep(def *sentinels.Definition, from string) string {
	if strings.HasPrefix(from, sentinels.EndAddress+".") {
		if _, err := def.StepAt(from); err == nil {
			return from
		}
	}
	for _, list := range def.Lists()[1:] {
		for i := range list.Steps {
			if s := &list.Steps[i]; s.ID == from || s.Name == from || within(s, from) {
				return fmt.Sprintf("%s%d", list.Prefix(), i)
			}
		}
	}
	return ""
}

// topStep returns the index of the top-level step that from names by address, id or
// name. Empty means the first step.
func topStep(def *sentinels.Definition, from string) (int, error) {
	if from == "" {
		return 0, nil
	}
	if n, err := strconv.Atoi(from); err == nil {
		if n < 0 || n >= len(def.Steps) {
			return 0, failure.New(abi.NotFound, "fork from step %q: the definition has %d steps, from 0", from, len(def.Steps))
		}
		return n, nil
	}
	for i := range def.Steps {
		if def.Steps[i].ID == from {
			return i, nil
		}
	}
	for i := range def.Steps {
		if def.Steps[i].Name == from {
			return i, nil
		}
	}
	if at := endStep(def, from); at != "" {
		return 0, &abi.Error{Code: abi.BadFields, Field: "from", Message: fmt.Sprintf("fork from step %q: it is part of %s, in onFailure or finally of the definition, with which no iteration begins", from, at),
			Hint: "begin with a step of the definition: they are executed behind it"}
	}
	inner := &abi.Error{Code: abi.BadFields, Field: "from", Message: fmt.Sprintf("fork from step %q: it is a nested step: want a top-level step", from)}
	if _, err := def.StepAt(from); err == nil {
		around, _, _ := strings.Cut(from, ".")
		inner.Hint = "begin with the step around it, " + around
		return 0, inner
	}
	for i := range def.Steps {
		if within(&def.Steps[i], from) {
			inner.Hint = fmt.Sprintf("begin with the step around it, %d", i)
			return 0, inner
		}
	}
	e := failure.New(abi.NotFound, "fork from step %q: want the address, id or name of a step", from)
	e.Field = "from"
	return 0, e
}

// within reports whether a step nested in s has the id or name.
func within(s *sentinels.Step, name string) bool {
	for _, list := range s.Blocks {
		for i := range list {
			if list[i].ID == name || list[i].Name == name || within(&list[i], name) {
				return true
			}
		}
	}
	return false
}
