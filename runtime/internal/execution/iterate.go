package execution

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/external"
	"github.com/sentinel-runtime/sentinel/runtime/internal/clock"
	"github.com/sentinel-runtime/sentinel/runtime/internal/eventlog"
	"github.com/sentinel-runtime/sentinel/runtime/internal/execution/step"
	"github.com/sentinel-runtime/sentinel/runtime/internal/failure"
	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/runtime/run"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/sentinels/reference"
)

// iterate executes iterations until the loop is done. A nil error means that the run is
// completed.
func (r *liveRun) iterate() error {
	r.timeout.arm()
	defer r.timeout.stop()
	defer r.setPlugins(nil)
	if r.ctx.Err() == nil { // else the run is stopped, and nothing is started again
		if err := r.recoverProcesses(); err != nil {
			return err
		}
	}
	open, loopDone := r.interrupted()
	if loopDone {
		return nil
	}
	for {
		if !open {
			more, err := r.nextIteration()
			if err != nil || !more {
				return err
			}
		}
		done, err := r.runIteration()
		open = false
		r.setPlugins(nil)
		if err != nil || done {
			return err
		}
	}
}

// interrupted returns the state that a crash left: open reports that an iteration is to
// be continued, loopDone that the loop had ended and only the run's end record is
// missing.
func (r *liveRun) interrupted() (open, loopDone bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.folded.Open, r.folded.LoopDone && !r.folded.Open
}

// nextIteration decides whether the loop makes another iteration, waits until it is
// due, and begins it. An edit during the wait makes it decide again.
func (r *liveRun) nextIteration() (bool, error) {
	for {
		if err := r.waitWhilePaused(); err != nil {
			return false, err
		}
		next := r.newest()
		p, more, err := r.nextDue(next)
		if errors.Is(err, errEdited) {
			continue
		}
		if err != nil || !more {
			return false, err
		}
		if begun, err := r.beginIteration(next, p); begun || err != nil {
			return begun, err
		}
	}
}

// An iterationEvent is what caused an iteration.
type iterationEvent struct {
	event *sentinels.Event
	seq   uint64            // offset in the event log; 0 if the event started the run
	check string            // value of a while loop's condition, for display
	reads map[string]string // and what it read
}

// nextDue reports whether the loop of next makes one more iteration, and waits until it
// is due. The error errEdited means that next is no longer the newest definition.
func (r *liveRun) nextDue(next definitionVersion) (iterationEvent, bool, error) {
	answers := iterationEvent{event: r.begin.Event}
	def, n := next.def, r.Iteration()
	if fork := r.forkedIteration(); fork != nil { // the loop of the other run had decided on this iteration
		return iterationEvent{event: fork.Event, seq: fork.EventSeq}, true, nil
	}
	switch loop := def.Loop; loop.Type {
	case sentinels.LoopOnce:
		if n >= 1 {
			return answers, false, nil
		}
	case sentinels.LoopCount:
		limit, err := r.countMax(loop)
		if err != nil {
			return answers, false, err
		}
		if n >= limit {
			return answers, false, nil
		}
	case sentinels.LoopWhile:
		ok, value, reads, err := r.check(loop.Check, "loop.check")
		answers.check, answers.reads = value, reads
		if err != nil || !ok {
			return answers, false, err
		}
	case sentinels.LoopContinuous, sentinels.LoopEvent:
		// Nothing else ends these loops, so reaching the limit completes the run.
		if limit := r.maxIterations(def); limit > 0 && n >= limit {
			r.mu.Lock()
			r.info.Limit = run.ReasonMaxIterations
			r.mu.Unlock()
			return answers, false, nil
		}
	}
	if err := r.capIterations(def, n); err != nil {
		return answers, false, err
	}
	err := r.await(next, n, &answers)
	return answers, err == nil, err
}

// await waits until an iteration is due: for the interval of a continuous loop, or for
// an event. It returns errEdited if the definition changes.
func (r *liveRun) await(next definitionVersion, n int, answers *iterationEvent) error {
	loop := next.def.Loop
	interval := r.idleDelay(loop)
	if loop.Type == sentinels.LoopContinuous && n > 0 {
		interval = max(interval, time.Duration(loop.IntervalMs)*time.Millisecond)
	}
	if interval == 0 && loop.Type != sentinels.LoopEvent {
		return nil
	}
	ctx, cancel := r.cancelOnEdit()
	defer cancel()
	if !r.newest().same(next) { // an edit before cancelOnEdit is not signalled
		return errEdited
	}
	if loop.Type != sentinels.LoopEvent {
		if r.idleIterations() >= freeIdle {
			defer r.ShowQueue(&run.QueueWait{Reason: idleReason, Since: r.lastEnd().UTC()})()
		}
		return r.sleep(ctx, r.lastEnd().Add(interval))
	}
	event, seq, err := r.nextEvent(ctx, loop, n)
	if err == nil {
		answers.event, answers.seq = event, seq
	}
	return err
}

// A loop whose iterations execute no step, because the definition has none any more or no
// condition is true, waits between them: freeIdle of them follow each other at once, then the
// delay doubles from minIdleDelay to maxIdleDelay. An edit ends the wait.
const (
	freeIdle     = 3
	minIdleDelay = 10 * time.Millisecond
	maxIdleDelay = time.Second
)

const idleReason = "its iterations execute no step: there is none, or no condition is true; the loop waits up to 1 s between them"

// idleIterations returns how many iterations in a row have executed no step.
func (r *liveRun) idleIterations() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.idle
}

// idleDelay returns how long the loop waits because its iterations execute nothing, 0 for not
// at all. A loop with a count ends by itself.
func (r *liveRun) idleDelay(loop sentinels.Loop) time.Duration {
	n := r.idleIterations() - freeIdle
	if n < 0 || loop.Type == sentinels.LoopCount {
		return 0
	}
	return min(minIdleDelay<<min(n, 10), maxIdleDelay)
}

// countIdle counts an iteration that has ended, and warns about a loop that executes nothing.
func (r *liveRun) countIdle() {
	r.mu.Lock()
	if r.idle++; r.executed {
		r.idle = 0
	}
	r.executed = false
	idle := r.idle
	r.mu.Unlock()
	if idle == freeIdle {
		r.Report(run.Progress{Event: run.OnLog, Level: "warn", Message: idleReason, Iteration: r.Iteration()})
	}
}

// capIterations enforces maxIterations: at the limit it returns an error, or pauses the
// run until a resume extends the limit.
func (r *liveRun) capIterations(def *sentinels.Definition, n int) error {
	for {
		limit := r.maxIterations(def)
		if limit <= 0 || n < limit {
			return nil
		}
		if err := r.atLimit(r.ctx, &step.LimitError{Limit: run.ReasonMaxIterations, Text: fmt.Sprintf("maxIterations reached: the loop did not end within %d iterations", limit)}); err != nil {
			return err
		}
	}
}

// maxIterations returns the limit with its extensions, 0 for none.
func (r *liveRun) maxIterations(def *sentinels.Definition) int {
	if def.Safety.MaxIterations == 0 {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return def.Safety.MaxIterations + r.folded.Extension.Iterations
}

// atLimit handles a limit that the run has reached. Depending on onTimeout it returns
// the error that ends the run, or pauses the run and returns nil after its resume; the
// caller then checks the limit again.
func (r *liveRun) atLimit(ctx context.Context, limit *step.LimitError) error {
	if r.Definition().Safety.OnTimeout != sentinels.TimeoutPause {
		return limit
	}
	r.pause(limit.Limit, limit.Limit, "")
	return r.WaitWhilePaused(ctx)
}

// A timeoutTimer ends or pauses the run when its active time exceeds timeoutMs. It is
// armed again when a resume extends the limit.
type timeoutTimer struct {
	r *liveRun

	mu    sync.Mutex
	timer *clock.ActiveTimer
}

// arm starts the timer, in place of one that was started before.
func (t *timeoutTimer) arm() {
	r := t.r
	def := r.Definition()
	r.mu.Lock()
	due := def.Safety.Timeout() + time.Duration(r.folded.Extension.TimeoutMs)*time.Millisecond
	r.mu.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.timer != nil {
		t.timer.Stop()
	}
	if def.Safety.TimeoutMs == 0 {
		return
	}
	t.timer = r.clock.At(due, func() {
		limit := &step.LimitError{Limit: run.ReasonTimeout, Text: fmt.Sprintf("timeoutMs reached: the run was active for %s", due)}
		if r.Definition().Safety.OnTimeout != sentinels.TimeoutPause {
			r.cancel(limit)
			return
		}
		r.pause(run.ReasonTimeout, run.ReasonTimeout, "")
	})
}

// stop stops the timer.
func (t *timeoutTimer) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.timer != nil {
		t.timer.Stop()
	}
}

// beginIteration begins an iteration that uses next. begun is false if an edit was made
// since next was chosen, or the run was paused because a step has no plugin.
func (r *liveRun) beginIteration(next definitionVersion, answers iterationEvent) (begun bool, err error) {
	// The start time is taken before the newest revision is read, so that the iteration
	// uses every revision that was committed before its start.
	at := time.Now()
	if !r.newest().same(next) {
		return false, nil
	}
	view := r.ex.opt.Plugins.View()
	defer func() {
		if !begun {
			view.End()
		}
	}()
	def := r.decodeForView(next.def, view)
	if missing := missingPlugin(def, view); missing != nil {
		r.pauseForPlugin(missing)
		return false, nil
	}
	fork := r.forkedIteration()
	rag, err := r.forkedContext(fork)
	if err == nil && rag == nil {
		rag, err = r.buildContext(def)
	}
	if err != nil {
		return false, err
	}
	done := r.forkedSteps(fork)
	body := &journal.IterationStartBody{Revision: next.revision, Edit: next.edit, Within: next.within, Maker: next.maker, Hash: next.hash, Event: answers.event, EventSeq: answers.seq, Check: answers.check, Reads: answers.reads, Queued: r.queuedFor.Microseconds()}
	r.queuedFor = 0
	// Recorded in every iteration that does not use the first revision, because
	// recovery needs the definition and the records of older iterations are removed.
	if body.Definition, err = r.recordDefinition(next); err != nil {
		return false, err
	}
	if body.RAGContext, err = r.ex.svc.Values.Redacted(rag); err != nil {
		return false, err
	}
	r.mu.Lock()
	edited := r.hash != next.hash
	r.mu.Unlock()
	if edited {
		r.endEditedProcesses(def)
	}
	r.mu.Lock()
	r.def, r.hash, r.revision, r.edit, r.within, r.maker = def, next.hash, next.revision, next.edit, next.within, next.maker
	r.steps, r.emitting = 0, 0
	if answers.seq != 0 {
		body.Pattern = def.Loop.Event
	}
	body.Iteration = r.folded.Iteration + 1
	r.mu.Unlock()
	r.setPlugins(view)
	if edited {
		r.timeout.arm()
		r.openBudget(def)
	}
	records := append([]*journal.Record{{Kind: journal.IterationStart, Time: at.UnixMicro(), IterationStart: body}}, done...)
	ticket := r.Write(step.Commit{Lazy: true}, records...)
	message := r.takeForkMessage(fork)
	r.noteIteration(len(records))
	ticket.OnDone(func(error) {
		r.Report(run.Progress{Event: run.OnIterationStart, Iteration: body.Iteration, Revision: next.revision, Edit: next.edit, Message: message})
	})
	return true, nil
}

// buildContext returns $ragContext for an iteration, nil if the definition has no
// context sources.
func (r *liveRun) buildContext(def *sentinels.Definition) (json.RawMessage, error) {
	if def.Recipe == "" && len(def.RAGSources) == 0 {
		return nil, nil
	}
	if r.ex.opt.Contexts == nil {
		return nil, nil // the embedder has no context sources
	}
	rag, err := r.ex.opt.Contexts.Build(r.ctx, external.ContextRequest{
		Recipe: def.Recipe, Sources: def.RAGSources, Workspace: r.begin.Workspace, Within: r.Within(), Run: r.id, Variables: r.runScope().Variables(),
	})
	if err != nil {
		return nil, fmt.Errorf("build context %q: %w", def.Recipe, err)
	}
	return rag, nil
}

// runIteration executes the steps of the current iteration and ends it. done reports
// that the loop has ended.
func (r *liveRun) runIteration() (done bool, err error) {
	def := r.Definition()
	started := time.Now()
	x := step.NewList(r.ex.svc, r, r.runScope(), def.Steps)
	if _, err := x.RunSteps(r.ctx); err != nil {
		return false, err
	}
	return r.endIteration(def, started)
}

// endIteration evaluates the condition of an until loop and writes the iteration
// snapshot. It is not part of runIteration, so that the stack of a waiting run stays
// small.
func (r *liveRun) endIteration(def *sentinels.Definition, started time.Time) (done bool, err error) {
	var check string
	var reads map[string]string
	if def.Loop.Type == sentinels.LoopUntil {
		if done, check, reads, err = r.check(def.Loop.Check, "loop.check"); err != nil {
			return false, err
		}
	}
	body := &journal.IterationEndBody{Iteration: r.Iteration(), Done: done, Check: check, Reads: reads}
	r.mu.Lock()
	variables, last := maps.Clone(r.folded.Scope.Variables), r.folded.Scope.Last
	body.Order = slices.Clone(r.folded.Scope.Order)
	r.mu.Unlock()
	if body.Variables, err = r.ex.svc.Values.KeepScope(variables); err != nil {
		return false, err
	}
	body.Last = last
	r.snap.Lock()
	defer r.snap.Unlock()
	// The definition that recovery starts from. Newer revisions of a stored sentinel
	// are in the store; an edit of the run is only in the journal.
	now := r.current()
	body.Revision, body.Edit, body.Within, body.Maker, body.Hash = now.revision, now.edit, now.within, now.maker, now.hash
	if body.Definition, err = r.recordDefinition(now); err != nil {
		return false, err
	}
	r.mu.Lock()
	r.info.Crashes = nil
	r.dropUnasked()
	body.Given = r.folded.GivenAtEnd(eventlog.GivenBy(r.folded.Event))
	body.Usage, body.Steps, body.Cursors = r.folded.Usage, r.folded.Steps, maps.Clone(r.folded.Cursors)
	if r.folded.Extension != (run.LimitExtension{}) {
		extension := r.folded.Extension
		body.Extension = &extension
	}
	r.mu.Unlock()
	at := r.ex.svc.Calendar.Now().UnixMicro()
	ticket := r.Write(step.Commit{Lazy: true, Summary: true}, &journal.Record{Kind: journal.IterationEnd, Time: at, IterationEnd: body})
	ticket.OnDone(func(error) {
		r.Report(run.Progress{Event: run.OnIterationEnd, Iteration: body.Iteration, Duration: time.Since(started)})
	})
	r.trimJournal()
	r.countIdle()
	return done, nil
}

// check evaluates a condition of the run itself, such as loop.check. A condition that
// cannot be evaluated is an error of the run, not false. value and reads are for display.
func (r *liveRun) check(source, field string) (truth bool, value string, reads map[string]string, err error) {
	vars := step.ConditionVars(r.Lookup(r.runScope(), nil))
	v, err := r.ex.svc.Conditions.Eval(r.ctx, r.EmitsFor(), source, vars)
	if err != nil {
		e := *failure.From(err, abi.Plugin)
		e.Field, e.Message = field, field+": "+e.Message
		return false, "", nil, &e
	}
	reads = r.ex.svc.ReadsIn(source, vars)
	r.warnUndefined(field, reads)
	return v.Truthy, r.ex.svc.ConditionText(v), reads, nil
}

// warnUndefined warns once about a loop condition that reads nothing which has a value:
// such a loop runs until a limit.
func (r *liveRun) warnUndefined(field string, reads map[string]string) {
	for _, text := range reads {
		if text != "undefined" {
			return
		}
	}
	if len(reads) == 0 || r.Iteration() == 0 { // a while loop may begin with nothing
		return
	}
	warning := field + ": nothing that it reads has a value: " + strings.Join(slices.Sorted(maps.Keys(reads)), ", ")
	r.mu.Lock()
	known := slices.Contains(r.info.Warnings, warning)
	if !known {
		r.info.Warnings = append(slices.Clip(r.info.Warnings), warning)
	}
	r.mu.Unlock()
	if !known {
		r.Report(run.Progress{Event: run.OnLog, Level: "warn", Message: warning, Iteration: r.Iteration()})
	}
}

// countMax resolves loop.max.
func (r *liveRun) countMax(loop sentinels.Loop) (int, error) {
	raw, _, err := reference.Resolve(loop.Max, r.Lookup(r.runScope(), nil))
	if err != nil {
		return 0, err
	}
	var n float64
	if json.Unmarshal(raw, &n) != nil || n != float64(int(n)) || n < 0 {
		return 0, &abi.Error{Code: abi.BadFields, Field: "loop.max", Message: fmt.Sprintf("invalid loop.max %s: want a whole number", raw)}
	}
	return int(n), nil
}

// lastEnd returns when the newest iteration ended, in calendar time.
func (r *liveRun) lastEnd() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return time.UnixMicro(r.folded.IterationEnded)
}

// sleep waits until a time of the calendar, and then while the run is paused.
func (r *liveRun) sleep(ctx context.Context, until time.Time) error {
	if err := r.ex.svc.Calendar.WaitFor(ctx, until); err != nil {
		return err
	}
	return r.WaitWhilePaused(ctx)
}

// nextEvent waits for the event that the next iteration answers. The first iteration
// answers the event that started the run, if it matches.
func (r *liveRun) nextEvent(ctx context.Context, loop sentinels.Loop, n int) (*sentinels.Event, uint64, error) {
	pattern, svc := loop.Event, r.ex.svc
	if n == 0 && r.begin.Event != nil && sentinels.MatchEvent(pattern, r.begin.Event.Name) && svc.Takes(pattern, loop.Source, r.begin.Event) {
		return r.begin.Event, 0, nil
	}
	for after := r.Cursor(pattern); ; {
		m, err := svc.EventLog(pattern).Wait(ctx, pattern, after)
		if err != nil {
			return nil, 0, err
		}
		if after = m.Offset; sentinels.FromEngine(m.Event.Source) && slices.Contains(m.Event.Path, string(r.begin.Sentinel)) {
			continue // its own runs do not start its iterations
		}
		if !svc.Takes(pattern, loop.Source, &m.Event) {
			continue
		}
		return &m.Event, m.Offset, r.WaitWhilePaused(ctx)
	}
}

// Cursor implements [step.State].
func (r *liveRun) Cursor(pattern string) uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n, ok := r.folded.Cursors[pattern]; ok {
		return n
	}
	if sentinels.IsRunEvent(pattern) {
		return r.begin.RunEventCursor
	}
	return r.begin.EventCursor
}
