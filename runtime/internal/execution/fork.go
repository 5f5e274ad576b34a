package execution

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/execution/step"
	"github.com/sentinel-runtime/sentinel/runtime/internal/failure"
	"github.com/sentinel-runtime/sentinel/runtime/internal/history"
	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/runtime/revision"
	"github.com/sentinel-runtime/sentinel/runtime/run"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Fork is Runtime.Fork of package runtime.
func (ex *Executor) Fork(ctx context.Context, id sentinels.RunID, opt run.ForkOptions) (sentinels.RunID, error) {
	if opt.Key = given(opt.Key); opt.Key != "" {
		if first, ok, err := ex.findStarted(opt.Key); err != nil || ok {
			return first, err
		}
	}
	info, err := ex.Status(id)
	if err != nil {
		return "", err
	}
	if ex.live(id) != nil { // its newest records may not be committed yet
		if err := ex.opt.Health.Await(ctx, ex.opt.Store.Enqueue(store.Batch{})); err != nil {
			return "", err
		}
	}
	p, err := ex.readOrigin(info, opt.Iteration, opt.Iteration == 0 && opt.From == "")
	if err != nil {
		return "", err
	}
	next, pinned, err := ex.forkedDefinition(p, opt)
	if err != nil {
		return "", err
	}
	start := startOptions{StartOptions: run.StartOptions{
		Workspace: cmp.Or(opt.Workspace, p.begin.Workspace), Event: p.begin.Event, Key: opt.Key, Revision: next.revision, Pinned: pinned, OnInterrupt: p.begin.Interrupt, As: cmp.Or(opt.As, next.maker, p.begin.As),
	}, lenient: true, fork: &journal.Fork{Run: id, By: opt.By}}
	if caller := step.CallerOf(ctx); caller != nil {
		start.caller, _ = ex.caller(caller) // none of another engine
	}
	if err := ex.workspaceIsThere(start.Workspace, id, "name another folder with --workspace DIR"); err != nil {
		return "", err
	}
	if start.Inputs, err = ex.forkedInputs(p.begin, next.def, opt.Inputs); err != nil {
		return "", err
	}
	by := emitsFor(opt.As, opt.Within != nil)
	start.GivenBy, start.inputsBy = by, maps.Clone(p.begin.InputsBy)
	if start.inputsBy == nil {
		start.inputsBy = map[string]string{}
	}
	for name := range opt.Inputs {
		if start.inputsBy[name] = by; by == "" {
			delete(start.inputsBy, name)
		}
	}
	start.Variables, start.inherited = maps.Clone(p.begin.Variables), p.begin.Inherited
	if strings.Contains(string(p.begin.Sentinel), "@") { // of an inline definition, which is not the stored one with its id
		start.identity = p.begin.Sentinel
	}
	start.named = p.begin.Named
	for name := range start.Inputs {
		delete(start.Variables, name)
	}
	if !p.fromStart {
		from, err := topStep(next.def, opt.From)
		if err != nil {
			return "", err
		}
		if start.fork, err = ex.forkAt(p, next, from, opt); err != nil {
			return "", err
		}
	}
	within := opt.Within
	if within != nil {
		if same, err := ex.decided(p, next, start.fork.Given, opt); err != nil {
			return "", err
		} else if same {
			within = nil
		}
	}
	start.Within = ex.both(ex.both(within, p.begin.Within), next.within)
	if err := ex.noteEdits(start.fork, p, next.def, opt); err != nil {
		return "", err
	}
	if start.Durable = opt.Durable; !opt.Force {
		start.Overlap, start.Over = next.def.Concurrency, opt.Over
	}
	return ex.startForCaller(ctx, next.def, start)
}

// decided reports whether what a fork executes is as a person has decided it: the newest revision of the stored
// sentinel from its first step, as a start would execute it, or the rest of the other run as it was. Anything
// else is what the caller makes of it: with other inputs behind the first steps, or in a revision that was
// replaced, an approval that the person requires may be missing. So it is with a child run as it was: the
// approval may have been before it, in the run above. It is not as it was where steps that an agent or a model made were executed
// before, which given has: they may have set the variables.
func (ex *Executor) decided(p *origin, next definitionVersion, given []journal.Given, opt run.ForkOptions) (bool, error) {
	if opt.Edit != nil || opt.Definition != nil {
		return false, nil
	}
	if p.begin.Revision != 0 || next.revision != 0 {
		if !ex.opt.Definitions.Stored(p.begin.Sentinel) { // deleted, so that nothing executes it
			return false, nil
		}
		newest, err := ex.opt.Definitions.OfPerson(p.begin.Sentinel, 0)
		if err != nil || newest.Revision != next.revision {
			return false, err
		}
		if p.fromStart {
			return true, nil
		}
	}
	bySteps := func(g journal.Given) bool { return g.Kind != journal.GivenEvent }
	if p.begin.Within != nil || p.used.within != nil || slices.ContainsFunc(given, bySteps) {
		return false, nil
	}
	return p.begin.Parent == "" && len(opt.Inputs) == 0 && next.hash == p.used.hash, nil
}

// forkedDefinition returns the definition that the fork begins with, and whether the
// fork is pinned to it.
func (ex *Executor) forkedDefinition(p *origin, opt run.ForkOptions) (definitionVersion, bool, error) {
	id := p.begin.Sentinel
	next, pinned := p.used, true
	if next.edit != 0 {
		next.revision, next.edit = 0, 0 // an edit of the other run is not a stored revision
	}
	var err error
	stored := revision.Stored{}
	switch {
	case moreThanOne(opt.Latest, opt.Revision != 0, opt.Definition != nil):
		return next, false, failure.New(abi.BadFields, "fork run %s: latest, a revision and a definition exclude each other", p.info.ID)
	case opt.Definition != nil:
		if opt.Definition.ID != id {
			return next, false, failure.New(abi.BadFields, "fork run %s: the definition has the id %q, the run has %q", p.info.ID, opt.Definition.ID, id)
		}
		next = definitionVersion{def: opt.Definition, hash: opt.Definition.Hash()}
	case opt.Latest:
		stored, err = ex.opt.Definitions.Get(id)
		pinned = p.begin.Pinned
	case opt.Revision != 0:
		stored, err = ex.opt.Definitions.Revision(id, opt.Revision)
	}
	if err != nil {
		return next, false, fmt.Errorf("fork run %s: %w", p.info.ID, err)
	}
	if stored.Revision != 0 {
		def, err := ex.opt.Definitions.Decoded(stored)
		if err != nil {
			return next, false, fmt.Errorf("fork run %s: %w", p.info.ID, err)
		}
		next = definitionVersion{def: def, hash: stored.Hash, revision: stored.Revision, within: stored.Within, maker: stored.Agent()}
	}
	if opt.Edit != nil {
		def, err := ex.opt.Definitions.Apply(next.def, opt.Edit)
		if err != nil {
			return next, false, err
		}
		next = definitionVersion{def: def, hash: def.Hash(), within: next.within, maker: next.maker}
	}
	return next, pinned, nil
}

// moreThanOne reports whether more than one of the options is set.
func moreThanOne(set ...bool) bool {
	n := 0
	for _, b := range set {
		if b {
			n++
		}
	}
	return n > 1
}

// forkedInputs returns the inputs of the other run, replaced one by one by those given.
// The other run may have inputs that the definition no longer names; they remain
// variables. An input that is given must be in the definition.
func (ex *Executor) forkedInputs(begin *journal.RunStartBody, def *sentinels.Definition, given map[string]json.RawMessage) (map[string]json.RawMessage, error) {
	inputs := map[string]json.RawMessage{}
	raw, err := ex.svc.Values.Load(begin.Inputs)
	if err != nil {
		return nil, err
	}
	if raw != nil {
		if err := json.Unmarshal(raw, &inputs); err != nil {
			return nil, fmt.Errorf("inputs of the run: %w", err)
		}
	}
	for _, p := range def.CheckGiven(fmt.Sprintf("sentinel %q", def.ID), given, false) {
		if p.Kind == sentinels.KindUnknown {
			return nil, &abi.Error{Code: abi.BadFields, Field: p.Path, Message: p.Message, Hint: p.Hint}
		}
	}
	maps.Copy(inputs, given)
	return inputs, nil
}

// forkAt returns the record of a fork that begins in the middle of an iteration. All values are stored again, because
// retention may remove the other run.
func (ex *Executor) forkAt(p *origin, next definitionVersion, from int, opt run.ForkOptions) (f *journal.Fork, err error) {
	f = &journal.Fork{
		Run: p.info.ID, By: opt.By, Iteration: p.Number, From: from, Event: p.Start.Event, EventSeq: p.Start.EventSeq,
	}
	steps := sentinels.AlignSteps(p.used.def.Steps, next.def.Steps)
	stop := p.steps() // the variables are those before this step of the other run
	for _, was := range steps[from:] {
		if was >= 0 {
			stop = was
			break
		}
	}
	given, err := ex.approvedBefore(p, stop)
	if err != nil {
		return nil, err
	}
	if opt.AskAgain && given.by != "" {
		return nil, &abi.Error{
			Code: abi.Denied, Permanent: true, Field: "from", Message: fmt.Sprintf("fork run %s: %s was approved by %s for that run only", p.info.ID, given.where, given.by), Hint: given.hint,
		}
	}
	done, err := ex.doneSteps(p, next.def, steps[:from], opt.From)
	if err != nil {
		return nil, err
	}
	st, err := ex.stateBefore(p, stop)
	if err != nil {
		return nil, err
	}
	rag, err := ex.svc.Values.Load(st.RAGContext)
	if err != nil {
		return nil, err
	}
	if next.def.Recipe != p.used.def.Recipe || !slices.Equal(next.def.RAGSources, p.used.def.RAGSources) {
		rag = nil // it is built again
	}
	if err := ex.svc.Values.LoadScope(st.Scope); err != nil {
		return nil, err
	}
	vars := st.Scope.Variables
	if vars == nil {
		vars = map[string]journal.Value{}
	}
	for name, v := range opt.Inputs { // an input is a variable too
		if vars[name], err = ex.svc.Values.Keep(v); err != nil {
			return nil, err
		}
	}
	if f.Variables, err = ex.svc.Values.KeepScope(vars); err != nil {
		return nil, err
	}
	f.Given = slices.Clone(st.Given)
	f.Last, f.Order = st.Scope.Last, slices.Clone(st.Scope.Order)
	for _, name := range slices.Sorted(maps.Keys(opt.Inputs)) {
		f.Order = append(slices.DeleteFunc(f.Order, func(n string) bool { return n == name }), name)
	}
	if f.RAG, err = ex.svc.Values.Redacted(rag); err != nil {
		return nil, err
	}
	f.Done, f.Cursors, f.EventCursor, f.RunEventCursor = done, st.Cursors, p.begin.EventCursor, p.begin.RunEventCursor
	f.ApprovedBy = given.by
	return f, nil
}

// An approval is one that a fork would use: a person gave it before the place of the fork, for another run.
type approval struct {
	by    string // empty: there is none
	where string
	hint  string
}

// approvedBefore returns an approval before top-level step stop of the iteration: in a step of the iteration or of an
// earlier one, in a run that one of these steps started or set off, or in one whose event they waited for.
func (ex *Executor) approvedBefore(p *origin, stop int) (approval, error) {
	const again = "start the sentinel again, which asks again; a person may begin here"
	found, after := approval{}, false // after: one was given behind the place
	first := 1
	if f := p.begin.Fork; f != nil {
		first = max(f.Iteration, 1)
		if f.ApprovedBy != "" && (stop > 0 || p.Number > 1) {
			return approval{f.ApprovedBy, "a step before those of the run", again}, nil
		}
	}
	place := time.Time{} // when the steps before the place had ended
	iteration := 0
	kept := true                     // the records of all iterations
	heard := map[sentinels.ID]bool{} // whose runs led to the events that the steps before the place waited for
	_, err := history.Fold(ex.opt.Store, p.info.ID, 1, func(_ uint64, rec *journal.Record, _ *history.State) error {
		switch sig := rec.Signal; {
		case rec.IterationStart != nil:
			if iteration == 0 {
				kept = rec.IterationStart.Iteration <= first
			}
			iteration = rec.IterationStart.Iteration
			if iteration == p.Number {
				place = time.UnixMicro(rec.Time)
			}
		case iteration == p.Number && rec.StepEnd != nil:
			if n, err := strconv.Atoi(rec.Path); err == nil && n < stop { // of a top-level step
				place = time.UnixMicro(rec.Time)
			}
		case rec.CallEnd != nil && rec.CallEnd.EventSeq > 0 && iteration <= p.Number:
			if n, ok := topOf(rec.Path); iteration < p.Number || ok && n < stop {
				for _, id := range rec.CallEnd.Path {
					heard[sentinels.ID(id)] = true
				}
			}
		case sig == nil || !sig.Approves():
		case found.by != "":
		case iteration < p.Number:
			found = approval{sig.By, fmt.Sprintf("iteration %d", iteration), again}
		case iteration == p.Number:
			if n, ok := topOf(sig.Call); ok && n < stop {
				found = approval{sig.By, fmt.Sprintf("step %d before step %d", n, stop),
					fmt.Sprintf("begin with step %d at the latest, which asks again; a person may begin behind it", n)}
			}
			after = true
		default: // behind the place
			after = true
		}
		return nil
	})
	if err != nil || found.by != "" {
		return found, err
	}
	if p.info.ApprovedBy != "" && (!after || !kept) { // its record is not kept
		return approval{p.info.ApprovedBy, "an earlier step", again}, nil
	}
	tree, err := ex.opt.Index.List(run.Filter{Root: p.info.Root, Since: p.info.CreatedAt})
	if err != nil {
		return found, err
	}
	below := map[sentinels.RunID]bool{p.info.ID: true}
	slices.SortFunc(tree, func(a, b run.Info) int { return a.CreatedAt.Compare(b.CreatedAt) }) // parents first
	for _, child := range tree {
		// A child of the run itself that began behind the place is asked for again.
		if !below[child.Parent] || child.Parent == p.info.ID && child.CreatedAt.After(place) {
			continue
		}
		below[child.ID] = true
		if child.ApprovedBy != "" {
			return approval{child.ApprovedBy, fmt.Sprintf("a step of its child %s, run %s,", child.Sentinel, child.ID), again}, nil
		}
	}
	other, err := ex.approvedElsewhere(p, place, heard)
	if other == nil || err != nil {
		return found, err
	}
	return approval{other.ApprovedBy, fmt.Sprintf("a step of run %s of %s, which the run started or waited for,", other.ID, other.Sentinel), again}, nil
}

// approvedElsewhere returns a run of another tree in which a person approved something, and that the run set off before
// the place, by a command, a request or an event; or one of the sentinels in heard whose events it waited for. It returns
// nil if there is none.
func (ex *Executor) approvedElsewhere(p *origin, place time.Time, heard map[sentinels.ID]bool) (*run.Info, error) {
	list, err := ex.opt.Index.List(run.Filter{Since: p.info.CreatedAt})
	if err != nil {
		return nil, err
	}
	for _, other := range list {
		if other.ApprovedBy == "" || other.Root == p.info.Root || other.CreatedAt.After(place) {
			continue
		}
		begin, err := ex.startOf(other.Root)
		if err != nil {
			return nil, err
		}
		way := begin.Path
		if begin.Event != nil {
			way = append(slices.Clone(way), begin.Event.Path...)
		}
		if slices.Contains(way, string(p.info.Sentinel)) {
			return &other, nil
		}
	}
	for id := range heard {
		runs, err := ex.opt.Index.List(run.Filter{Sentinel: id})
		if err != nil {
			return nil, err
		}
		for _, other := range runs { // one that loops may have begun before
			if other.ApprovedBy != "" && other.Root != p.info.Root && !other.UpdatedAt.Before(p.info.CreatedAt) {
				return &other, nil
			}
		}
	}
	return nil, nil
}

// topOf returns the index of the top-level step that makes a host call, or whose nested step does; ok is false for one in
// onFailure or finally of the definition.
func topOf(call string) (n int, ok bool) {
	n, err := strconv.Atoi(call[:strings.IndexAny(call+"!", "#!")])
	return n, err == nil
}

// doneSteps returns the end records of the steps before the first one to execute. Steps
// that the other run had must have ended there.
func (ex *Executor) doneSteps(p *origin, def *sentinels.Definition, steps []int, wanted string) ([]journal.ForkedStep, error) {
	var done []journal.ForkedStep
	for i, was := range steps {
		end := journal.StepEndBody{Skipped: history.SkippedByFork}
		if was >= 0 {
			before := p.Ends[was]
			if before == nil || before.Ends != "" || before.Error != nil && before.Skipped == "" {
				return nil, &abi.Error{Code: abi.Conflict, Message: fmt.Sprintf("fork run %s: iteration %d had not completed step %d, which is before step %q", p.info.ID, p.Number, i, wanted),
					Hint: fmt.Sprintf("begin with step %d at the latest", i)}
			}
			out, err := ex.svc.Values.Load(before.Output)
			if err != nil {
				return nil, err
			}
			end = journal.StepEndBody{Error: before.Error, Skipped: before.Skipped}
			if end.Output, err = ex.svc.Values.Redacted(out); err != nil {
				return nil, err
			}
		}
		end.Reused, end.Type, end.ID, end.Name = true, string(def.Steps[i].Type), def.Steps[i].ID, def.Steps[i].Name
		done = append(done, journal.ForkedStep{Path: fmt.Sprint(i), End: end})
	}
	return done, nil
}
