package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/history"
	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// signalEdit is the type of the signal that holds a run's own edit.
const signalEdit = "edit"

// EditRunOptions say what an edit of one run is.
type EditRunOptions struct {
	// ExpectHash is the hash of the definition that the edit was made on; the
	// error conflict names the one that is in force. Default: any.
	ExpectHash string
	// By says who makes the edit. Default empty: not known.
	By string
	// Note says why. Default empty.
	Note string
}

// A RunEdit is an edit of one run.
type RunEdit struct {
	Run        sentinels.RunID       `json:"run"`
	Sentinel   sentinels.ID          `json:"sentinel"`
	Edit       int                   `json:"edit"`               // counts the run's edits from 1
	Revision   int                   `json:"revision,omitempty"` // of the stored sentinel that it was made on, 0 for none
	Hash       string                `json:"hash"`
	Time       time.Time             `json:"time"`
	Definition *sentinels.Definition `json:"-"`
}

// EditRun gives one run a definition of its own, which it follows from its next
// iteration on in place of the stored sentinel; the current iteration is
// untouched. fn gets what the next iteration would use and returns another
// definition, which is checked whole. fn may be called more than once and must
// not change what it is given.
//
// The edit is in the run's journal when EditRun returns, whether this process
// executes the run or none does. For a run that has ended the error is conflict.
func (rt *Runtime) EditRun(ctx context.Context, id sentinels.RunID, opt EditRunOptions, fn func(*sentinels.Definition) (*sentinels.Definition, error)) (RunEdit, error) {
	if err := rt.writable(); err != nil {
		return RunEdit{}, err
	}
	for {
		if r := rt.live(id); r != nil {
			return r.editSelf(ctx, opt, fn)
		}
		e, err := rt.editStored(ctx, id, opt, fn)
		// Another caller wrote to the journal meanwhile, or resumed the run.
		if again := errors.Is(err, store.ErrSequence) || errors.Is(err, errTakenOver); !again || ctx.Err() != nil {
			return e, err
		}
	}
}

// edit makes the run's next own definition out of base.
func (rt *Runtime) edit(id sentinels.RunID, base chosen, number int, opt EditRunOptions, fn func(*sentinels.Definition) (*sentinels.Definition, error)) (chosen, *journal.Record, error) {
	if opt.ExpectHash != "" && opt.ExpectHash != base.hash {
		return chosen{}, nil, &abi.Error{Code: abi.Conflict, Hint: "read the run's definition again and repeat the edit on it",
			Message: fmt.Sprintf("edit run %s: definition conflict: have hash %.12s, current is %.12s", id, opt.ExpectHash, base.hash)}
	}
	// Checked against the step types of now: what a run began with may be older.
	def, err := rt.apply(base.def, fn)
	if err != nil {
		return chosen{}, nil, err
	}
	canonical, err := json.Marshal(def)
	if err != nil {
		return chosen{}, nil, fmt.Errorf("edit run %s: %w", id, err)
	}
	if len(canonical) > sentinels.MaxBytes {
		return chosen{}, nil, errf(abi.Limit, "edit run %s: the definition has %d bytes, more than %d", id, len(canonical), sentinels.MaxBytes)
	}
	next := chosen{def, def.Hash(), base.revision, number}
	body := &journal.SignalBody{Type: signalEdit, By: opt.By, Comment: opt.Note, Edit: &journal.Edit{Number: number, Revision: base.revision, Hash: next.hash}}
	body.Edit.Definition, err = rt.value(canonical)
	return next, &journal.Record{Kind: journal.Signal, Signal: body}, err
}

// editSelf edits a run that this process executes. Making the edit may take
// as long as its plugins need to look at their steps; the run continues meanwhile,
// and an iteration that begins before the edit is whole does not wait for it.
func (r *run) editSelf(ctx context.Context, opt EditRunOptions, fn func(*sentinels.Definition) (*sentinels.Definition, error)) (RunEdit, error) {
	r.editing.Lock() // one edit after the other: each is made on the one before
	defer r.editing.Unlock()
	r.mu.Lock()
	number := r.edits() + 1
	r.mu.Unlock()
	next, rec, err := r.rt.edit(r.id, r.newest(), number, opt, fn)
	if err != nil {
		return RunEdit{}, err
	}
	t, err := r.follow(next, rec)
	if err != nil {
		return RunEdit{}, err
	}
	t.OnDone(func(err error) {
		if err == nil {
			r.report(Progress{Event: OnEdit, Revision: next.revision, Edit: next.edit, Message: editMessage(opt)})
		}
	})
	r.edited()
	return r.rt.runEdit(r.id, r.begin.Sentinel, next, rec), r.rt.await(ctx, t)
}

// follow writes the edit down and has the next iteration use it. Both happen under
// the lock of snapshots: one that is taken later holds the edit, and the records
// behind one that was taken before do.
func (r *run) follow(next chosen, rec *journal.Record) (ticket, error) {
	r.snap.Lock()
	defer r.snap.Unlock()
	r.mu.Lock()
	status := r.info.Status
	r.mu.Unlock()
	if status.Final() {
		return nil, errf(abi.Conflict, "edit run %s: it is over: %s", r.id, status)
	}
	// First in memory, so that the summary has it. An iteration that begins at once
	// says the definition itself: its record may come before that of the edit.
	r.mu.Lock()
	r.own = &next
	r.mu.Unlock()
	return r.write(writeOptions{info: true}, rec), nil
}

// editMessage says who and why in one line of progress.
func editMessage(opt EditRunOptions) string {
	if opt.By == "" {
		return opt.Note
	}
	if opt.Note == "" {
		return "by " + opt.By
	}
	return "by " + opt.By + ": " + opt.Note
}

// editStored writes an edit to the journal of a run that no process
// executes. A resumed run follows it.
func (rt *Runtime) editStored(ctx context.Context, id sentinels.RunID, opt EditRunOptions, fn func(*sentinels.Definition) (*sentinels.Definition, error)) (RunEdit, error) {
	info, err := rt.Status(id)
	if err != nil {
		return RunEdit{}, err
	}
	if info.Status.Final() {
		return RunEdit{}, errf(abi.Conflict, "edit run %s: it is over: %s", id, info.Status)
	}
	// Before anything is read: an edit is made on what the journal says up to here.
	seq, _, err := rt.db.LastSeq(string(id))
	if err != nil {
		return RunEdit{}, err
	}
	st, err := rt.fold(info.ID, info.Snapshot, nil)
	if err != nil {
		return RunEdit{}, err
	}
	base, err := rt.newestOf(&st.Definitions)
	if err != nil {
		return RunEdit{}, err
	}
	next, rec, err := rt.edit(id, base, st.Edits()+1, opt, fn)
	if err != nil {
		return RunEdit{}, err
	}
	info.Edit = next.edit
	if err := rt.appendBehind(ctx, seq, &info, rec); err != nil {
		return RunEdit{}, err
	}
	return rt.runEdit(id, info.Sentinel, next, rec), nil
}

// runEdit is what the caller of an edit receives.
func (rt *Runtime) runEdit(id sentinels.RunID, of sentinels.ID, next chosen, rec *journal.Record) RunEdit {
	return RunEdit{Run: id, Sentinel: of, Edit: next.edit, Revision: next.revision, Hash: next.hash, Time: time.UnixMicro(rec.Time).UTC(), Definition: next.def}
}

// RunDefinition returns the definition that a run's next iteration uses, for a
// run that is over the one it used last. revision is that of the stored
// sentinel, 0 if there is none; edit numbers the run's own edits, 0 if it
// follows the stored sentinel.
func (rt *Runtime) RunDefinition(id sentinels.RunID) (def *sentinels.Definition, revision, edit int, err error) {
	c, err := rt.runDefinition(id)
	return c.def, c.revision, c.edit, err
}

func (rt *Runtime) runDefinition(id sentinels.RunID) (chosen, error) {
	if r := rt.live(id); r != nil {
		return r.newest(), nil
	}
	info, err := rt.Status(id)
	if err != nil {
		return chosen{}, err
	}
	st, err := rt.fold(info.ID, info.Snapshot, nil)
	if err != nil {
		return chosen{}, err
	}
	if info.Status.Final() {
		used, _, err := rt.readDefinitions(&st.Definitions, rt.Types())
		return used, err
	}
	return rt.newestOf(&st.Definitions)
}

// newestOf is [run.newest] for a run that no process executes.
func (rt *Runtime) newestOf(d *history.Definitions) (chosen, error) {
	used, own, err := rt.readDefinitions(d, rt.Types())
	if err != nil {
		return used, err
	}
	// Not a run that could be executed: only what newest reads.
	r := &run{rt: rt, begin: d.Start, def: used.def, hash: used.hash, revision: used.revision, edit: used.edit, own: own}
	return r.newest(), nil
}
