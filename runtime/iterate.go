package runtime

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// iterate carries out the run's iterations until its loop is done. A nil error
// is a completed run.
func (r *run) iterate() error {
	r.timeout.arm()
	defer r.timeout.stop()
	if err := r.revive(); err != nil {
		return err
	}
	if r.loopDone {
		return nil
	}
	for {
		if r.hist == nil { // else the iteration that a crash interrupted goes on
			more, err := r.nextIteration()
			if err != nil || !more {
				return err
			}
		}
		done, err := r.oneIteration()
		r.hist = nil
		if err != nil || done {
			return err
		}
	}
}

// nextIteration decides whether there is another pass, waits until it may
// begin, and begins it.
func (r *run) nextIteration() (bool, error) {
	if err := r.gate.pass(r.ctx); err != nil {
		return false, err
	}
	def, revision, err := r.newest()
	if err != nil {
		return false, err
	}
	n := r.passes()
	var event *sentinels.Event
	var eventSeq uint64
	switch loop := def.Loop; loop.Type {
	case sentinels.LoopOnce:
		if n >= 1 {
			return false, nil
		}
	case sentinels.LoopCount:
		limit, err := r.countMax(loop)
		if err != nil {
			return false, err
		}
		if n >= limit {
			return false, nil
		}
	case sentinels.LoopWhile:
		ok, err := r.check(loop.Check, "loop.check")
		if err != nil || !ok {
			return false, err
		}
	case sentinels.LoopContinuous, sentinels.LoopEvent:
		// Nothing else ends these, so the cap is their end and no failure.
		if limit := r.maxIterations(def); limit > 0 && n >= limit {
			r.mu.Lock()
			r.info.Limit = "maxIterations"
			r.mu.Unlock()
			return false, nil
		}
	}
	if err := r.capIterations(def, n); err != nil {
		return false, err
	}
	switch loop := def.Loop; loop.Type {
	case sentinels.LoopContinuous:
		if n > 0 && loop.IntervalMs > 0 {
			if err := r.sleep(r.lastPass().Add(time.Duration(loop.IntervalMs) * time.Millisecond)); err != nil {
				return false, err
			}
		}
	case sentinels.LoopEvent:
		if event, eventSeq, err = r.nextEvent(loop.Event, n); err != nil {
			return false, err
		}
	}
	if event == nil {
		event = r.begin.Event
	}
	return true, r.beginIteration(def, revision, event, eventSeq)
}

// capIterations holds the run to maxIterations: it stops, or pauses until a
// resume brings more room.
func (r *run) capIterations(def *sentinels.Definition, n int) error {
	for {
		limit := r.maxIterations(def)
		if limit <= 0 || n < limit {
			return nil
		}
		if err := r.atLimit(r.ctx, &limitError{"maxIterations", fmt.Sprintf("maxIterations reached: %d passes were made and the loop's end was not", limit)}); err != nil {
			return err
		}
	}
}

func (r *run) maxIterations(def *sentinels.Definition) int {
	if def.Safety.MaxIterations == 0 {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return def.Safety.MaxIterations + r.room.Iterations
}

// atLimit is what happens at a limit: an error that ends the run, or a pause
// and then nil, after which the caller looks at the limit again.
func (r *run) atLimit(ctx context.Context, limit *limitError) error {
	if r.definition().Safety.OnTimeout != sentinels.TimeoutPause {
		return limit
	}
	r.pause("limit "+limit.limit, limit.limit, "")
	return r.gate.pass(ctx)
}

// A timeoutTimer ends or pauses the run when its active time is used up. It is
// armed again when a resume gives more room.
type timeoutTimer struct {
	r *run

	mu    sync.Mutex
	timer *activeTimer
}

func (t *timeoutTimer) arm() {
	r := t.r
	def := r.definition()
	r.mu.Lock()
	due := def.Safety.Timeout() + time.Duration(r.room.TimeoutMs)*time.Millisecond
	r.mu.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.timer != nil {
		t.timer.stop()
	}
	if def.Safety.TimeoutMs == 0 {
		return
	}
	t.timer = r.clock.at(due, func() {
		limit := &limitError{"timeoutMs", fmt.Sprintf("timeoutMs reached: the run was active for %s", due)}
		if r.definition().Safety.OnTimeout != sentinels.TimeoutPause {
			r.cancel(limit)
			return
		}
		r.pause("limit timeoutMs", "timeoutMs", "")
	})
}

func (t *timeoutTimer) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.timer != nil {
		t.timer.stop()
	}
}

// newest returns the definition for the next pass: the stored one's newest
// revision, unless the run is pinned or was started from a definition that is
// not stored.
func (r *run) newest() (*sentinels.Definition, int, error) {
	r.mu.Lock()
	def, revision := r.def, r.revision
	r.mu.Unlock()
	if revision == 0 || r.begin.Pinned {
		return def, revision, nil
	}
	stored, err := r.rt.Definition(r.begin.Sentinel)
	if err != nil || stored.Revision == revision {
		return def, revision, nil //nolint:nilerr // a deleted definition: the run goes on with what it has
	}
	next, err := r.rt.Decoded(stored)
	if err != nil {
		r.rt.log.Warn("newest revision cannot be used, the run keeps its own", "run", r.id, "revision", stored.Revision, "error", err)
		return def, revision, nil
	}
	return next, stored.Revision, nil
}

func (r *run) beginIteration(def *sentinels.Definition, revision int, event *sentinels.Event, eventSeq uint64) error {
	rag, err := r.buildContext(def)
	if err != nil {
		return err
	}
	body := &journal.IterationStartBody{Revision: revision, Event: event, EventSeq: eventSeq}
	r.mu.Lock()
	edited := r.def != def
	if def != r.def {
		r.hash = def.Hash() // of a large definition it takes longer than a step
	}
	r.def, r.revision = def, revision
	// Said in every pass that does not use the first revision: records of older
	// passes go, and recovery must find the one in use.
	changed := r.hash != r.begin.Hash
	r.iteration++
	if rag != nil {
		r.sc.unset("ragContext") // one that a step made holds until it is built anew
	}
	r.event, r.heard, r.ragContext, r.steps = event, chain{}, rag, 0
	if eventSeq != 0 {
		r.cursors[def.Loop.Event] = eventSeq
	}
	body.Iteration, body.Hash = r.iteration, r.hash
	r.mu.Unlock()
	if changed {
		canonical, err := json.Marshal(def)
		if err != nil {
			return err
		}
		if body.Definition, err = r.rt.value(canonical); err != nil {
			return err
		}
	}
	if body.RAGContext, err = r.rt.value(rag); err != nil {
		return err
	}
	if edited {
		r.timeout.arm()
		r.ledger.cap(r, def.Budget)
	}
	ticket := r.write(writeOptions{lazy: true}, &journal.Record{Kind: journal.IterationStart, IterationStart: body})
	r.noteIteration(body.Iteration)
	ticket.OnDone(func(error) { r.tell(Progress{Event: OnIterationStart, Iteration: body.Iteration, Revision: revision}) })
	return nil
}

// buildContext makes $ragContext for a pass.
func (r *run) buildContext(def *sentinels.Definition) (json.RawMessage, error) {
	if def.Recipe == "" && len(def.RAGSources) == 0 {
		return nil, nil
	}
	if r.rt.opt.Contexts == nil {
		return nil, nil // an embedder without context sources: the recipe is a hint to nobody
	}
	rag, err := r.rt.opt.Contexts.Build(r.ctx, ContextRequest{
		Recipe: def.Recipe, Sources: def.RAGSources, Workspace: r.begin.Workspace, Run: r.id, Variables: r.sc.snapshot(),
	})
	if err != nil {
		return nil, fmt.Errorf("build context %q: %w", def.Recipe, err)
	}
	return rag, nil
}

// oneIteration carries out the steps of the current pass and ends it. done says
// that the loop has reached its end.
func (r *run) oneIteration() (done bool, err error) {
	def := r.definition()
	started := time.Now()
	x := &stepList{run: r, sc: r.sc, steps: def.Steps}
	if _, err := x.carryOut(r.ctx); err != nil {
		return false, err
	}
	return r.endIteration(def, started)
}

// endIteration asks the loop whether it is done and takes the snapshot. It is
// no part of oneIteration, whose frame is there while steps wait.
func (r *run) endIteration(def *sentinels.Definition, started time.Time) (done bool, err error) {
	if def.Loop.Type == sentinels.LoopUntil {
		if done, err = r.check(def.Loop.Check, "loop.check"); err != nil {
			return false, err
		}
	}
	body := &journal.IterationEndBody{Iteration: r.passes(), Done: done}
	vars, err := json.Marshal(r.sc.snapshot())
	if err != nil {
		return false, fmt.Errorf("encode variables: %w", err)
	}
	if body.Variables, err = r.rt.value(vars); err != nil {
		return false, err
	}
	if body.Last, err = r.rt.value(r.sc.lastValue()); err != nil {
		return false, err
	}
	r.snap.Lock()
	defer r.snap.Unlock()
	r.mu.Lock()
	r.passEnded, r.info.Crashes = time.Now(), nil
	body.Usage, body.Steps = r.usage, r.steps
	if r.room != (journal.Room{}) {
		room := r.room
		body.Room = &room
	}
	body.Cursors = make(map[string]uint64, len(r.cursors))
	for p, n := range r.cursors {
		body.Cursors[p] = n
	}
	r.mu.Unlock()
	ticket := r.write(writeOptions{lazy: true, info: true}, &journal.Record{Kind: journal.IterationEnd, IterationEnd: body})
	ticket.OnDone(func(error) {
		r.tell(Progress{Event: OnIterationEnd, Iteration: body.Iteration, Duration: time.Since(started)})
	})
	r.retain()
	return done, nil
}

// check evaluates a condition of the run itself. Whatever goes wrong is an
// error of the run, never false.
func (r *run) check(source, field string) (bool, error) {
	v, err := r.rt.cond.Eval(r.ctx, source, r.conditionVars(r.sc, nil))
	if err != nil {
		e := *asError(err, abi.Plugin)
		e.Field, e.Message = field, field+": "+e.Message
		return false, &e
	}
	return v.Truthy, nil
}

func (r *run) countMax(loop sentinels.Loop) (int, error) {
	raw, _, err := sentinels.Resolve(loop.Max, r.lookup(r.sc, nil))
	if err != nil {
		return 0, err
	}
	var n float64
	if json.Unmarshal(raw, &n) != nil || n != float64(int(n)) || n < 0 {
		return 0, &abi.Error{Code: abi.BadFields, Field: "loop.max", Message: fmt.Sprintf("loop.max: %s is no whole number", raw)}
	}
	return int(n), nil
}

// lastPass returns when the newest pass ended: the interval of a continuous
// loop is calendar time.
func (r *run) lastPass() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.passEnded
}

func (r *run) sleep(until time.Time) error {
	t := time.NewTimer(time.Until(until))
	defer t.Stop()
	select {
	case <-t.C:
		return r.gate.pass(r.ctx)
	case <-r.ctx.Done():
		return context.Cause(r.ctx)
	}
}

// nextEvent waits for the event that the next pass answers. The event that
// started the run, if it fits, is answered by the first.
func (r *run) nextEvent(pattern string, n int) (*sentinels.Event, uint64, error) {
	if n == 0 && r.begin.Event != nil && sentinels.MatchEvent(pattern, r.begin.Event.Name) {
		return r.begin.Event, 0, nil
	}
	e, seq, err := r.rt.events.next(r.ctx, pattern, r.cursor(pattern))
	if err != nil {
		return nil, 0, err
	}
	return &e, seq, r.gate.pass(r.ctx)
}

// cursor returns where in the outbox the run looks for the pattern next.
func (r *run) cursor(pattern string) uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n, ok := r.cursors[pattern]; ok {
		return n
	}
	return r.begin.EventCursor
}
