package runtime

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/sentinel-runtime/sentinel/runtime/internal/history"
	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// The past of a run is one of its iterations, as its journal has it.
type past struct {
	info   RunInfo
	begin  *journal.RunStartBody
	fresh  bool // no iteration is wanted: the run from its start
	number int
	start  *journal.IterationStartBody
	used   chosen
	from   uint64 // place of the record that the iteration's variables are known from, 1 for the run's start
	first  uint64 // place of the iteration's first record
	ends   map[int]*journal.StepEndBody
}

// readIteration finds iteration n of a run, 0 for its newest. With fresh none is wanted,
// and used is what the run used last.
func (rt *Runtime) readIteration(info RunInfo, n int, fresh bool) (*past, error) {
	p := &past{info: info, fresh: fresh, ends: map[int]*journal.StepEndBody{}}
	var used history.Definition
	var kept []int // iterations that are kept from their start
	known, knownFrom := 0, uint64(1)
	st, err := rt.fold(info.ID, 1, func(seq uint64, rec *journal.Record, st *history.State) error {
		switch {
		case rec.RunStart != nil:
			if f := rec.RunStart.Fork; f != nil && f.Iteration > 0 {
				known = f.Iteration - 1
			}
		case rec.IterationStart != nil:
			b := rec.IterationStart
			p.start = nil
			if b.Iteration != known+1 {
				return nil // what stood before it went with retention
			}
			if kept = append(kept, b.Iteration); n == 0 || b.Iteration == n {
				p.number, p.start, p.from, p.first = b.Iteration, b, knownFrom, seq
				used = st.DefinitionOf(b)
				clear(p.ends)
			}
		case rec.IterationEnd != nil:
			known, knownFrom = rec.IterationEnd.Iteration, seq
			if n == p.number && n != 0 {
				return errEnough
			}
		case p.start != nil && rec.StepEnd != nil:
			if i, err := strconv.Atoi(rec.Path); err == nil {
				p.ends[i] = rec.StepEnd
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	p.begin = st.Start
	switch {
	case fresh:
		used = st.Used
	case p.first == 0:
		return nil, noIteration(info, n, kept)
	}
	if p.start == nil && !fresh { // n is 0, and the newest iteration is not there from its beginning
		return nil, noIteration(info, info.Iteration, kept)
	}
	p.used, err = rt.readDefinition(used, p.begin.Sentinel, rt.Types())
	return p, err
}

func noIteration(info RunInfo, n int, kept []int) error {
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

// last is the number of the iteration's steps, as a place behind all of them.
func (p *past) last() int { return len(p.used.def.Steps) }

// stateBefore rebuilds the run as it stood in the iteration before top-level step stop
// began, or where its records end.
func (rt *Runtime) stateBefore(p *past, stop int) (*history.State, error) {
	place := strconv.Itoa(stop)
	return rt.fold(p.info.ID, max(p.from, 2), func(seq uint64, rec *journal.Record, _ *history.State) error {
		step, _, _ := strings.Cut(rec.Path, "#")
		if seq > p.first && (step == place || rec.Kind == journal.IterationEnd || rec.Kind == journal.RunEnd) {
			return errEnough
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

// alignSteps says for each step of next which step of before it is, -1 for
// none: the one with its id, else with its name, else the same one, else the
// one in its place if neither has steps that the other lacks.
func alignSteps(before, next []sentinels.Step) []int {
	at := make([]int, len(next))
	taken := make([]bool, len(before))
	for i := range at {
		at[i] = -1
	}
	match := func(same func(a, b *sentinels.Step) bool) {
		for i := range next {
			for j := 0; at[i] < 0 && j < len(before); j++ {
				if !taken[j] && same(&before[j], &next[i]) {
					at[i], taken[j] = j, true
				}
			}
		}
	}
	match(func(a, b *sentinels.Step) bool { return b.ID != "" && a.ID == b.ID })
	match(func(a, b *sentinels.Step) bool { return b.ID == "" && a.ID == "" && b.Name != "" && a.Name == b.Name })
	match(func(a, b *sentinels.Step) bool { return reflect.DeepEqual(a, b) })
	if len(before) == len(next) {
		for i := range next {
			if at[i] < 0 && !taken[i] {
				at[i] = i
			}
		}
	}
	return at
}
