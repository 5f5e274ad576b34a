package execution

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/sentinel-runtime/sentinel/runtime/internal/history"
	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/runtime/run"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// An origin is the run that a fork is made from, and the iteration that it begins
// with.
type origin struct {
	history.PastIteration
	info      run.Info
	begin     *journal.RunStartBody
	fromStart bool              // no iteration is wanted: the run from its start
	used      definitionVersion // by the iteration; with fresh by the newest one
}

// readOrigin finds iteration n of a run, 0 for its newest.
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
	o := &origin{PastIteration: f.Found, info: info, begin: st.Start, fromStart: fromStart}
	used := f.Found.Used
	switch {
	case fromStart:
		used = st.Used
	case f.Found.Number == 0:
		return nil, noIteration(info, n, f.Kept)
	case f.Found.Start == nil: // n is 0, and the newest iteration is not kept from its start
		return nil, noIteration(info, info.Iteration, f.Kept)
	}
	o.used, err = ex.readDefinition(used, o.begin.Sentinel, ex.opt.Plugins.Types())
	return o, err
}

func noIteration(info run.Info, n int, kept []int) error {
	if n == 0 || n > info.Iteration {
		e := errf(abi.NotFound, "run %s has made %d iterations", info.ID, info.Iteration)
		if n > 0 {
			e.Message += fmt.Sprintf(", not %d", n)
		}
		return e
	}
	e := errf(abi.NotFound, "run %s has no records of iteration %d any more: they went with retention", info.ID, n)
	if len(kept) > 0 {
		e.Hint = fmt.Sprintf("iterations %d to %d are kept", kept[0], kept[len(kept)-1])
	}
	return e
}

// steps is the number of the iteration's top-level steps.
func (o *origin) steps() int { return len(o.used.def.Steps) }

// stateBefore folds the records of the run up to the start of top-level step stop in
// the iteration, or to the last one.
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

// topStep finds the top-level step that from names: an address, an id, a name;
// empty is the first.
func topStep(def *sentinels.Definition, from string) (int, error) {
	if from == "" {
		return 0, nil
	}
	if n, err := strconv.Atoi(from); err == nil {
		if n < 0 || n >= len(def.Steps) {
			return 0, errf(abi.NotFound, "fork from step %q: the definition has %d steps, from 0", from, len(def.Steps))
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
	inner := &abi.Error{Code: abi.BadFields, Field: "from", Message: fmt.Sprintf("fork from step %q: it is nested, and a run can begin only with a top-level step", from)}
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
	e := errf(abi.NotFound, "fork from step %q: no step has that address, id or name", from)
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
