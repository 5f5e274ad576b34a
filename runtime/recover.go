package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
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
	used, own, err := st.definitions.read(rt)
	if err != nil {
		return nil, err
	}
	def := used.def
	r := rt.newRun(info.ID, begin, def, used.hash, parent, time.Duration(st.elapsed)*time.Microsecond)
	r.info, r.onInterrupt = info, opt.OnInterrupt
	r.revision, r.edit, r.own = used.revision, used.edit, own
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
	if err := r.countCrash(); err != nil {
		return nil, err
	}
	return r, r.interruptedExecutions(ctx)
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

// recovery is what the records of a run come to, taken up one by one.
type recovery struct {
	rt      *Runtime
	info    RunInfo
	seq     uint64
	elapsed int64

	definitions definitionTrail

	scope      *scope
	branches   map[string]*scope // of parallel blocks that are open
	history    *history
	open       bool // an iteration began and did not end
	iteration  int
	event      *sentinels.Event
	eventSeq   uint64 // outbox position of event, 0 if it started the run
	passEnded  int64  // when the newest iteration ended, microseconds since 1970
	done       bool   // the loop reached its end with that iteration
	rag        json.RawMessage
	usage      sentinels.Usage
	room       journal.Room
	failedStep string
	verdicts   map[string]*journal.SignalBody
	cursors    map[string]uint64
}

func (st *recovery) add(rec *journal.Record) error {
	st.elapsed = max(st.elapsed, rec.Elapsed)
	st.definitions.add(rec)
	switch rec.Kind {
	case journal.IterationEnd:
		st.passEnded = rec.Time
		return st.iterationEnd(rec.IterationEnd)
	case journal.IterationStart:
		return st.iterationStart(rec.IterationStart)
	case journal.Signal:
		st.signal(rec.Signal)
		return nil
	}
	if st.history == nil {
		return nil
	}
	// A decision is used up when the call has an answer or is made again: what
	// asks under the same name later asks anew.
	switch {
	case rec.CallEnd != nil:
		delete(st.verdicts, askName(rec.Path, rec.CallEnd.Seq))
	case rec.CallStart != nil:
		delete(st.verdicts, askName(rec.Path, rec.CallStart.Seq))
	}
	again := rec.CallStart != nil && st.started(rec) != nil
	st.history.add(rec)
	if rec.CallStart != nil && again || rec.CallEnd != nil && rec.CallEnd.Decided != "" && rec.CallEnd.Decided != "retry" {
		st.doubted(rec)
	}
	return st.apply(rec)
}

// started returns the start of the call that rec, a call.start or call.end, is
// about, as the records before it have it.
func (st *recovery) started(rec *journal.Record) *journal.CallStartBody {
	var seq int
	if rec.CallStart != nil {
		seq = rec.CallStart.Seq
	} else {
		seq = rec.CallEnd.Seq
	}
	own := len(rec.Attempts) - 1
	if e := st.history.exec(rec.Path, rec.Attempts[:own]); e != nil && e.attempts[rec.Attempts[own]] != nil {
		if c := e.attempts[rec.Attempts[own]].calls[seq]; c != nil {
			return c.start
		}
	}
	return nil
}

// doubted counts the worst case of a model call that was in doubt as spent.
func (st *recovery) doubted(rec *journal.Record) {
	if s := st.started(rec); s != nil && s.Worst != nil {
		st.usage.Add(*s.Worst)
	}
}

func (st *recovery) iterationEnd(b *journal.IterationEndBody) error {
	raw, err := st.rt.load(b.Variables)
	if err != nil {
		return err
	}
	var vars map[string]json.RawMessage
	if err := json.Unmarshal(raw, &vars); err != nil {
		return err
	}
	last, err := st.rt.load(b.Last)
	if err != nil {
		return err
	}
	st.scope.replace(vars, last)
	st.iteration, st.usage, st.open, st.done, st.history = b.Iteration, b.Usage, false, b.Done, nil
	st.room = journal.Room{}
	clear(st.verdicts)
	if b.Room != nil {
		st.room = *b.Room
	}
	for p, n := range b.Cursors {
		st.cursors[p] = n
	}
	return nil
}

func (st *recovery) iterationStart(b *journal.IterationStartBody) error {
	rag, err := st.rt.load(b.RAGContext)
	if err != nil {
		return err
	}
	if rag != nil {
		st.scope.unset("ragContext")
	}
	st.iteration, st.event, st.rag, st.open, st.history = b.Iteration, b.Event, rag, true, newHistory()
	st.eventSeq = b.EventSeq
	return nil
}

func (st *recovery) signal(b *journal.SignalBody) {
	if b.Room != nil {
		st.room.Iterations += b.Room.Iterations
		st.room.TimeoutMs += b.Room.TimeoutMs
		st.room.CostUSD += b.Room.CostUSD
		st.room.Tokens += b.Room.Tokens
		st.room.Calls += b.Room.Calls
	}
	switch {
	case b.Type == signalTaken:
		delete(st.verdicts, b.Call)
	case b.Call != "":
		st.verdicts[b.Call] = b
	}
}

// apply changes the scopes as the record's happening did, in the same order.
func (st *recovery) apply(rec *journal.Record) error {
	sc := st.scopeOf(rec.Path, rec.Attempts)
	switch rec.Kind {
	case journal.StepEnd:
		out, err := st.rt.load(rec.StepEnd.Output)
		if err != nil {
			return err
		}
		applyEnd(sc, rec.StepEnd, out)
		st.failedStep = failedAt(st.failedStep, addressOf(rec.Path), rec.StepEnd.Error != nil && rec.StepEnd.Skipped == "")
	case journal.CallStart:
		if rec.CallStart.Function == abi.FuncBlock {
			return st.blockStart(rec, sc)
		}
	case journal.CallEnd:
		b := rec.CallEnd
		for name, v := range b.Sets {
			sc.set(name, v)
		}
		if b.Usage != nil {
			st.usage.Add(*b.Usage)
		}
		if b.Blocks > 1 {
			st.blockEnd(rec, sc)
		}
		if b.EventSeq != 0 {
			st.eventPassed(rec)
		}
	}
	return nil
}

func (st *recovery) blockStart(rec *journal.Record, sc *scope) error {
	raw, err := st.rt.load(rec.CallStart.Request)
	if err != nil {
		return err
	}
	var req blockRequest
	if err := strict(raw, &req); err != nil {
		return err
	}
	for i, b := range req.Blocks {
		into := sc
		if len(req.Blocks) > 1 {
			into = sc.branch()
			st.branches[execKey(fmt.Sprintf("%s#%d", rec.Path, rec.CallStart.Block+i), rec.Attempts)] = into
		}
		for name, v := range b.Vars {
			into.set(name, v)
		}
	}
	return nil
}

// blockEnd joins the branches of a parallel block as the live run did.
func (st *recovery) blockEnd(rec *journal.Record, sc *scope) {
	exec := st.history.exec(rec.Path, rec.Attempts[:len(rec.Attempts)-1])
	first := exec.attempts[rec.Attempts[len(rec.Attempts)-1]].calls[rec.CallEnd.Seq].start.Block
	joined := map[int]bool{}
	for _, i := range rec.CallEnd.Joined {
		joined[i] = true
	}
	for i := range rec.CallEnd.Blocks {
		key := execKey(fmt.Sprintf("%s#%d", rec.Path, first+i), rec.Attempts)
		if b := st.branches[key]; b != nil && joined[i] {
			sc.join(b)
		}
		delete(st.branches, key)
	}
}

func (st *recovery) eventPassed(rec *journal.Record) {
	exec := st.history.exec(rec.Path, rec.Attempts[:len(rec.Attempts)-1])
	start := exec.attempts[rec.Attempts[len(rec.Attempts)-1]].calls[rec.CallEnd.Seq].start
	if start != nil {
		st.cursors[start.Label] = max(st.cursors[start.Label], rec.CallEnd.EventSeq)
	}
}

// scopeOf returns the scope a record belongs to: that of the innermost open
// parallel block around its step.
func (st *recovery) scopeOf(path string, attempts []int) *scope {
	for end := len(path); ; {
		at := strings.LastIndexByte(path[:end], '#')
		if at < 0 {
			return st.scope
		}
		stop := strings.IndexByte(path[at:], '.')
		depth := strings.Count(path[:at], "#") + 1
		if stop > 0 && depth <= len(attempts) {
			if sc := st.branches[execKey(path[:at+stop], attempts[:depth])]; sc != nil {
				return sc
			}
		}
		end = at
	}
}

// restoreCalls takes up the calls of an interrupted attempt.
func (a *attempt) restoreCalls(past *attemptHistory) error {
	a.calls, a.talks = map[int]*call{}, map[string]*conversation{}
	if past.checkpoint != nil {
		a.checkpoint = past.checkpoint
		state, err := a.run.rt.load(past.checkpoint.State)
		if err != nil {
			return err
		}
		a.state, a.block = state, past.checkpoint.Block
	}
	for _, seq := range past.order {
		h := past.calls[seq]
		c, result, err := a.restoreCall(seq, h)
		if err != nil {
			return err
		}
		if h.end != nil && h.end.Error == nil && c.function == abi.FuncLLM {
			if err := a.rebuildTalks(c, result); err != nil {
				return err
			}
		}
		if h.start != nil && h.start.Function == abi.FuncBlock {
			a.block = max(a.block, h.start.Block+blocksOf(c))
		}
		if a.checkpoint != nil && seq <= a.checkpoint.Seq {
			continue
		}
		a.calls[seq] = c
	}
	return nil
}

func (a *attempt) restoreCall(seq int, h *callHistory) (*call, json.RawMessage, error) {
	c := &call{seq: seq, start: h.start, done: make(chan struct{})}
	kept := journal.Value{}
	switch {
	case h.start != nil:
		c.function, c.hash, kept = h.start.Function, h.start.Hash, h.start.Request
	case h.end != nil:
		c.function, c.hash, kept = h.end.Function, h.end.Hash, h.end.Request
	}
	var err error
	if c.request, err = a.run.rt.load(kept); err != nil {
		return nil, nil, err
	}
	if h.end == nil {
		return c, nil, nil
	}
	result, err := a.run.rt.load(h.end.Result)
	if err != nil {
		return nil, nil, err
	}
	c.answer(result, h.end.Error, microTime(h.endTime))
	return c, result, nil
}

func blocksOf(c *call) int {
	var req blockRequest
	if json.Unmarshal(c.request, &req) != nil {
		return 1
	}
	return len(req.Blocks)
}

// resumeCall takes up the work behind a call that a crash cut off.
func (a *attempt) resumeCall(ctx context.Context, c *call) error {
	switch c.function {
	case abi.FuncCommand:
		if !c.start.Effect {
			a.perform(ctx, c, nil, a.doCommand)
			return nil
		}
		a.doubt(ctx, c, a.doCommand)
	case abi.FuncLLM:
		// The server may have counted the turn, so its worst case is spent,
		// whatever is decided; making it again books it once more.
		worst := *c.start.Worst
		a.run.ledger.charge(a.run.id, worst)
		a.run.mu.Lock()
		a.run.usage.Add(worst)
		a.run.mu.Unlock()
		a.doubt(ctx, c, func(ctx context.Context, c *call) (callEnd, error) {
			a.run.ledger.rebook(a.run, worst)
			return a.doLLM(ctx, c)
		})
	case abi.FuncWatch:
		a.perform(ctx, c, nil, a.doWatch)
	case abi.FuncBlock:
		c.resumed = true
		a.perform(ctx, c, nil, a.doBlock)
	case abi.FuncWait:
		a.perform(ctx, c, nil, a.doWait)
	case abi.FuncHTTP:
		if !c.start.Effect {
			a.perform(ctx, c, nil, a.doHTTP)
			return nil
		}
		a.doubt(ctx, c, a.doHTTP)
	default:
		return errf(abi.Internal, "call %d of step %s, %s, has no end and cannot be taken up", c.seq, a.address, c.function)
	}
	return nil
}

// countCrash counts a crash against every step that was executing when the host
// went down, and not against those that only waited.
func (r *run) countCrash() error {
	if r.hist == nil {
		r.info.Crashes = nil
	}
	if r.hist == nil || !r.rt.unclean {
		return nil
	}
	asked := map[string]bool{}
	for _, q := range r.info.Asks {
		asked[q.Call] = true
	}
	crashes := map[string]int{} // a step that ended since is blamed no more
	for key, e := range r.hist.execs {
		path, _, _ := strings.Cut(key, "@")
		if e.end != nil || e.last == 0 {
			continue
		}
		crashes[path] = max(crashes[path], r.info.Crashes[path])
		if a := e.attempts[e.last]; e.retry == nil && a != nil && a.executing(path, asked) {
			crashes[path] = r.info.Crashes[path] + 1
		}
	}
	r.info.Crashes = crashes
	return nil
}

// executing reports whether the attempt did something itself when its records
// stop: its guest ran, or an effect was under way about which nobody was asked.
func (a *attemptHistory) executing(path string, asked map[string]bool) bool {
	for seq, c := range a.calls {
		if c.end == nil && c.start != nil {
			return c.start.Effect && !asked[askName(path, seq)]
		}
	}
	return true
}

// poisoned says whether a step took the process down too often to try it again.
func (r *run) poisoned(path, address string) error {
	r.mu.Lock()
	n := r.info.Crashes[path]
	r.mu.Unlock()
	if n < r.rt.limits.Crashes {
		return nil
	}
	return &quarantineError{&abi.Error{Code: abi.Limit, Permanent: true,
		Message: fmt.Sprintf("step %s was executing at %d crashes of the host, so the run is quarantined", address, n),
		Hint:    "look at the step's trace; start the sentinel again when its cause is mended",
	}}
}
