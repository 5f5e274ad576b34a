package execution

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/definition"
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

// signalEdit is the type of the signal record that contains an edit of the run.
const signalEdit = "edit"

// EditRun is Runtime.EditRun of package runtime.
func (ex *Executor) EditRun(ctx context.Context, id sentinels.RunID, opt run.EditOptions, fn func(*sentinels.Definition) (*sentinels.Definition, error)) (run.Edit, error) {
	if err := ex.opt.Health.Writable(); err != nil {
		return run.Edit{}, err
	}
	for {
		if r := ex.live(id); r != nil {
			return r.editSelf(ctx, opt, fn)
		}
		e, err := ex.editStored(ctx, id, opt, fn)
		// Another caller wrote to the journal meanwhile, or resumed the run.
		if again := errors.Is(err, store.ErrSequence) || errors.Is(err, errTakenOver); !again || ctx.Err() != nil {
			return e, err
		}
	}
}

// edit applies fn to base and returns the edited definition with its record, and the limits that an agent or a
// model raises in a run for a person: they stay as they are, see [Executor.keepLimits].
func (ex *Executor) edit(id sentinels.RunID, begin *journal.RunStartBody, given []journal.Given, base definitionVersion, number int, opt run.EditOptions, fn func(*sentinels.Definition) (*sentinels.Definition, error)) (next definitionVersion, raised []string, rec *journal.Record, err error) {
	// Apply checks against the current step types; those that the run began with may be
	// older.
	def, err := ex.opt.Definitions.Apply(base.def, fn)
	if err != nil {
		return next, nil, nil, err
	}
	if opt.Within != nil {
		if err := definition.CheckSecrets(base.def, def, ex.opt.Plugins.Types()); err != nil {
			return next, nil, nil, err
		}
		if ofPerson(begin) {
			def, raised = def.WithLimitsOf(base.def, ex.defaultLimits())
		}
	}
	canonical, err := json.Marshal(def)
	if err != nil {
		return next, nil, nil, fmt.Errorf("edit run %s: %w", id, err)
	}
	// The next iteration executes it, so every step type has to be live.
	if _, _, err := ex.opt.Definitions.DecodeStored(canonical, def.ID); err != nil {
		return next, nil, nil, err
	}
	if len(canonical) > sentinels.MaxBytes {
		return next, nil, nil, failure.New(abi.Limit, "edit run %s: the definition has %d bytes, more than %d", id, len(canonical), sentinels.MaxBytes)
	}
	next = definitionVersion{def, def.Hash(), base.revision, number, ex.both(opt.Within, base.within), base.maker}
	edit := &journal.Edit{Number: number, Revision: base.revision, Within: next.within, Hash: next.hash}
	if opt.Within != nil {
		next.maker = cmp.Or(revision.AgentOf(opt.By), next.maker)
		edit.By = cmp.Or(revision.AgentOf(opt.By), "model")
		edit.Changes = ex.svc.Redact.Text(sentinels.DiffText(base.def, def, fmt.Sprintf("before edit %d", number), fmt.Sprintf("edit %d", number)))
		if err := checkChanges("edit", id, given, edit.Changes); err != nil {
			return next, nil, nil, err
		}
	}
	edit.Maker = next.maker
	body := &journal.SignalBody{Type: signalEdit, By: opt.By, Comment: opt.Note, Edit: edit}
	edit.Definition, err = ex.svc.Values.Definition(canonical)
	return next, raised, &journal.Record{Kind: journal.Signal, Signal: body}, err
}

// editSelf edits a run that this process executes. Plugins validate the edited steps,
// which may take long. The run continues meanwhile: an iteration that begins before the
// edit is complete uses the definition before it.
func (r *liveRun) editSelf(ctx context.Context, opt run.EditOptions, fn func(*sentinels.Definition) (*sentinels.Definition, error)) (run.Edit, error) {
	r.editing.Lock() // edits are serialized: each is made on the result of the one before
	defer r.editing.Unlock()
	r.mu.Lock()
	number, given := r.folded.Definitions.Edits()+1, r.folded.Given
	r.mu.Unlock()
	next, raised, rec, err := r.ex.edit(r.id, r.begin, given, r.newest(), number, opt, fn)
	if err != nil {
		return run.Edit{}, err
	}
	t, err := r.follow(next, rec)
	if err != nil {
		return run.Edit{}, err
	}
	t.OnDone(func(err error) {
		if err == nil {
			r.Report(run.Progress{Event: run.OnEdit, Revision: next.revision, Edit: next.edit, Message: editMessage(opt)})
		}
	})
	if text, err := json.Marshal(next.def); err == nil { // it has been encoded for the record
		r.expect(text)
	}
	r.wakeForEdit()
	return r.ex.runEdit(r.id, r.begin.Sentinel, next, raised, rec), r.ex.opt.Health.Await(ctx, t)
}

// follow records the edit and makes the next iteration use it. Both happen under
// r.snap: an iteration snapshot that is taken later contains the edit, and one that was
// taken before is followed by the edit's record.
func (r *liveRun) follow(next definitionVersion, rec *journal.Record) (*store.Ticket, error) {
	r.snap.Lock()
	defer r.snap.Unlock()
	r.mu.Lock()
	status := r.info.Status
	r.mu.Unlock()
	if status.Final() {
		return nil, failure.New(abi.Conflict, "edit run %s: the run is over: %s", r.id, status)
	}
	// Its record comes first: an iteration that used an edit without a record would not
	// say, after a crash, who made the edit and why.
	t := r.Write(step.Commit{Summary: true}, rec)
	r.mu.Lock()
	r.ownEdit = &next
	r.mu.Unlock()
	return t, nil
}

// editMessage returns author and note of an edit as one line of progress.
func editMessage(opt run.EditOptions) string {
	if opt.By == "" {
		return opt.Note
	}
	if opt.Note == "" {
		return "by " + opt.By
	}
	return "by " + opt.By + ": " + opt.Note
}

// editStored appends an edit to the journal of a run that no process executes. It takes
// effect when the run is resumed.
func (ex *Executor) editStored(ctx context.Context, id sentinels.RunID, opt run.EditOptions, fn func(*sentinels.Definition) (*sentinels.Definition, error)) (run.Edit, error) {
	info, err := ex.Status(id)
	if err != nil {
		return run.Edit{}, err
	}
	if info.Status.Final() {
		return run.Edit{}, failure.New(abi.Conflict, "edit run %s: the run is over: %s", id, info.Status)
	}
	// Read the position first: the edit is only valid if no record follows it.
	seq, _, err := ex.opt.Store.LastSeq(string(id))
	if err != nil {
		return run.Edit{}, err
	}
	st, err := history.Fold(ex.opt.Store, info.ID, info.Snapshot, nil)
	if err != nil {
		return run.Edit{}, err
	}
	base, err := ex.newestOf(&st.Definitions)
	if err != nil {
		return run.Edit{}, err
	}
	next, raised, rec, err := ex.edit(id, st.Start, st.Given, base, st.Edits()+1, opt, fn)
	if err != nil {
		return run.Edit{}, err
	}
	info.Edit = next.edit
	if by := rec.Signal.Edit.By; by != "" && !slices.Contains(info.GivenBy, by) {
		info.GivenBy = append(slices.Clone(info.GivenBy), by)
	}
	if err := ex.appendAfter(ctx, seq, &info, rec); err != nil {
		return run.Edit{}, err
	}
	return ex.runEdit(id, info.Sentinel, next, raised, rec), nil
}

// runEdit returns the result of an edit for its caller.
func (ex *Executor) runEdit(id sentinels.RunID, of sentinels.ID, next definitionVersion, raised []string, rec *journal.Record) run.Edit {
	return run.Edit{Run: id, Sentinel: of, Edit: next.edit, Revision: next.revision, Hash: next.hash, Time: time.UnixMicro(rec.Time).UTC(), Definition: next.def, Kept: raised}
}

// RunDefinition is Runtime.RunDefinition of package runtime.
func (ex *Executor) RunDefinition(id sentinels.RunID) (run.Version, error) {
	c, begin, err := ex.runDefinition(id)
	if err != nil {
		return run.Version{}, err
	}
	return run.Version{Definition: c.def, Revision: c.revision, Edit: c.edit, Within: ex.both(begin.Within, c.within)}, nil
}

// runDefinition returns the definition of the run's next iteration, or the last one
// that a finished run used, and the start of the run.
func (ex *Executor) runDefinition(id sentinels.RunID) (c definitionVersion, begin *journal.RunStartBody, err error) {
	if r := ex.live(id); r != nil {
		return r.newest(), r.begin, nil
	}
	info, err := ex.Status(id)
	if err != nil {
		return c, nil, err
	}
	st, err := history.Fold(ex.opt.Store, info.ID, info.Snapshot, nil)
	if err != nil {
		return c, nil, err
	}
	if info.Status.Final() {
		c, _, err = ex.readDefinitions(&st.Definitions, ex.opt.Plugins.Types())
	} else {
		c, err = ex.newestOf(&st.Definitions)
	}
	return c, st.Start, err
}

// newestOf is [liveRun.newest] for a run that no process executes.
func (ex *Executor) newestOf(d *history.Definitions) (definitionVersion, error) {
	used, own, err := ex.readDefinitions(d, ex.opt.Plugins.Types())
	if err != nil {
		return used, err
	}
	if own != nil {
		used = *own
	}
	return ex.newest(d.Start, used), nil
}
