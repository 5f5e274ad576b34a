package runtime

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// takeOver carries on a run that another process began, and everything below
// it. Parents come first, so that a child finds its parent's ledger.
func (rt *Runtime) takeOver(ctx context.Context, info RunInfo, parent *run, opt ResumeOptions) error {
	r, err := rt.restore(ctx, info, parent, opt)
	if err != nil {
		return fmt.Errorf("resume run %s: %w", info.ID, err)
	}
	living, over, err := rt.descendants(info.ID)
	if err != nil {
		return err
	}
	if err := rt.adopt(r); err != nil {
		r.setPlugins(nil)
		return err
	}
	if opt.Room != (Room{}) {
		r.addRoom(opt)
	}
	// What is spent must be booked before anybody below spends more.
	r.ledger.charge(info.ID, r.usage)
	for _, c := range over {
		r.ledger.charge(info.ID, c)
	}
	for _, c := range living {
		r.mu.Lock()
		r.children++
		r.mu.Unlock()
		if err := rt.takeOver(ctx, c, r, ResumeOptions{OnInterrupt: opt.OnInterrupt, By: opt.By}); err != nil {
			r.disown()
			rt.log.Error("child run cannot go on", "run", c.ID, "parent", info.ID, "error", err)
		}
	}
	// A child that was paused for itself stays so; everything else runs again.
	body := journal.StatusBody{Status: sentinels.StatusRunning, Resumed: true, By: opt.By}
	if info.Status == sentinels.StatusPaused && parent != nil {
		r.clock.pause()
		r.gate.shut()
		body.Status, body.Reason, body.Limit = info.Status, info.Reason, info.Limit
	}
	r.snap.Lock()
	r.mu.Lock()
	r.info.Asks = nil
	r.mu.Unlock()
	r.setStatus(body, nil)
	r.snap.Unlock()
	go r.main()
	return nil
}

// descendants returns the runs that go on below a run, each once: its children,
// and below those that are over theirs. over is what those that are over have
// spent.
func (rt *Runtime) descendants(id sentinels.RunID) (living []RunInfo, over []sentinels.Usage, err error) {
	children, err := rt.Runs(RunFilter{Parent: id})
	if err != nil {
		return nil, nil, err
	}
	for _, c := range children {
		if !c.Status.Final() {
			living = append(living, c)
			continue
		}
		below, spent, err := rt.descendants(c.ID)
		if err != nil {
			return nil, nil, err
		}
		if len(below) == 0 {
			over = append(over, rt.treeUsage(c))
			continue
		}
		living, over = append(living, below...), append(append(over, c.Usage), spent...)
	}
	return living, over, nil
}

// treeUsage is what a run that is over and its children have spent.
func (rt *Runtime) treeUsage(info RunInfo) sentinels.Usage {
	if res, err := rt.storedResult(info); err == nil {
		return res.Usage
	}
	return info.Usage
}

// restore rebuilds the in-memory side of a run from its journal: the snapshot
// of the last iteration that ended, and the records behind it.
func (rt *Runtime) restore(ctx context.Context, info RunInfo, parent *run, opt ResumeOptions) (*run, error) {
	begin, err := rt.firstRecord(info.ID)
	if err != nil {
		return nil, err
	}
	st := &recovery{rt: rt, info: info, scope: newScope(), branches: map[string]*scope{}, verdicts: map[string]*journal.SignalBody{}, cursors: map[string]uint64{}}
	st.definitions = newDefinitionTrail(begin)
	for name, v := range begin.Variables {
		st.scope.set(name, v)
	}
	from := info.Snapshot
	if from == 0 {
		from = 2
	}
	err = rt.db.Journal(string(info.ID), from, func(seq uint64, raw []byte) error {
		rec, err := journal.Decode(raw)
		if err != nil {
			return fmt.Errorf("record %d: %w", seq, err)
		}
		st.seq = seq
		return st.add(rec)
	})
	if err != nil {
		return nil, err
	}
	view := rt.plugins.pastView(ctx, st.history)
	used, own, err := st.definitions.read(rt, view.types.types)
	if err != nil {
		view.end()
		return nil, err
	}
	def := used.def
	r := rt.newRun(info.ID, begin, def, used.hash, parent, time.Duration(st.elapsed)*time.Microsecond)
	r.info, r.onInterrupt = info, opt.OnInterrupt
	r.revision, r.edit, r.own, r.view = used.revision, used.edit, own, view
	r.sc, r.branches, r.verdicts, r.cursors = st.scope, st.branches, st.verdicts, st.cursors
	r.log.seq = max(st.seq, 1)
	r.kept = []keptIteration{{first: 2}} // all that is left of earlier passes
	r.iteration, r.usage, r.room, r.steps = st.iteration, st.usage, st.room, 0
	r.event, r.ragContext, r.failedStep = st.event, st.rag, st.failedStep
	r.loopDone, r.passEnded = st.done && !st.open, microTime(st.passEnded)
	if st.open {
		r.hist = st.history
		if st.eventSeq != 0 { // the place is kept by what was waited for, not by what came
			r.cursors[def.Loop.Event] = max(r.cursors[def.Loop.Event], st.eventSeq)
		}
	}
	r.ledger.extend(r.id, st.room)
	if err = r.countCrash(); err == nil {
		err = r.interruptedExecutions(ctx)
	}
	if err != nil {
		r.setPlugins(nil)
		return nil, err
	}
	return r, nil
}

func (rt *Runtime) firstRecord(id sentinels.RunID) (*journal.RunStartBody, error) {
	var begin *journal.RunStartBody
	stop := errors.New("stop")
	err := rt.db.Journal(string(id), 1, func(_ uint64, raw []byte) error {
		rec, err := journal.Decode(raw)
		if err != nil {
			return err
		}
		if rec.RunStart == nil {
			return fmt.Errorf("journal begins with %q", rec.Kind)
		}
		begin = rec.RunStart
		return stop
	})
	if err != nil && !errors.Is(err, stop) {
		return nil, err
	}
	if begin == nil {
		return nil, errf(abi.NotFound, "run %s has no journal", id)
	}
	return begin, nil
}
