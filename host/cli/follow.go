package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// settle is how long a run that waits for a person must be still before this
// process ends: a branch beside the question may be about to go on.
const settle = 300 * time.Millisecond

// A view shows a run tree as it goes on.
type view interface {
	show(p runtime.Progress)
	flush() bool // nothing more for now; true if it wants to be called once more soon
	tick()       // a second has passed
	hold(bool)   // a person is asked: draw nothing meanwhile
	close()      // nothing more comes
}

// A follower carries a run out to its end, or to where only a person can help.
type follower struct {
	app  *app
	door *door // nil when another process carries the run out
	rt   carrier
	feed *feed
	view view
	id   sentinels.RunID

	busy   map[string]int // open calls that must not be cut off, by place
	early  early
	halted bool        // some run of the tree waits or is paused, or was
	notice chan string // what the wait for the end has to say; capacity 1
	prompt *prompt
}

// carryOut begins a run, follows it and says how it ended.
func (a *app) carryOut(ctx context.Context, s *session, told *feed, begin func() (sentinels.RunID, error)) error {
	out, err := a.carry(ctx, s, told, begin)
	if err != nil {
		return err
	}
	if err := a.showOutcome(out); err != nil {
		return err
	}
	if s.host.Replaying() {
		if err := s.host.WriteDivergences(a.errs.stream()); err != nil {
			return err
		}
	}
	if code := statusCode(out.Status); code != ExitOK {
		return exitError(code)
	}
	return nil
}

// carry begins a run and follows it. Meanwhile Ctrl-C stops the run in place of
// the program, and other processes may bring runs of their own.
func (a *app) carry(ctx context.Context, s *session, told *feed, begin func() (sentinels.RunID, error)) (outcome, error) {
	stop, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	a.setInterrupt(cancel)
	defer a.setInterrupt(nil)
	s.door.open()
	defer s.door.shut()
	id, err := begin()
	if err != nil {
		return outcome{}, err
	}
	f := &follower{
		app: a, door: s.door, rt: s.host.Runtime(), feed: told, id: id, view: a.newView(id),
		busy: map[string]int{}, early: early{}, notice: make(chan string, 1),
	}
	defer f.view.close()
	return f.follow(ctx, stop)
}

// follow returns when the whole run tree has ended, or waits for a person.
// Ending stop stops it; ending ctx lets go of it.
func (f *follower) follow(ctx, stop context.Context) (outcome, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	var helpers sync.WaitGroup
	defer helpers.Wait()
	defer cancel(nil)
	defer f.endPrompt()
	ended := make(chan outcome, 1)
	failed := make(chan error, 2)
	helpers.Go(func() {
		if res, err := f.await(ctx); err != nil {
			failed <- err
		} else {
			ended <- outcome{Result: res}
		}
	})
	second := time.NewTicker(time.Second)
	defer second.Stop()
	soon := time.NewTimer(redraw)
	defer soon.Stop()
	still := time.NewTimer(settle)
	defer still.Stop()
	interrupt := stop.Done()
	for {
		select {
		case <-f.feed.more:
			if f.showAll() {
				still.Reset(settle)
			}
			if f.view.flush() {
				soon.Reset(redraw)
			}
		case <-soon.C:
			f.view.flush()
		case <-second.C:
			f.view.tick()
			still.Reset(settle)
		case <-still.C:
			if interrupt == nil {
				break // it is being stopped
			}
			if out, stuck := f.stuck(); stuck {
				f.showAll()
				return out, nil
			}
		case line, ok := <-f.prompt.lines():
			f.answer(ctx, line, ok)
		case text := <-f.notice:
			f.tell(text)
		case <-interrupt:
			interrupt = nil
			f.endPrompt()
			f.tell(fmt.Sprintf("stopping run %s; once more ends at once", shortID(f.id)))
			helpers.Go(func() {
				if err := f.stopAll(ctx); err != nil {
					failed <- err
				}
			})
		case out := <-ended:
			f.showAll()
			return out, nil
		case err := <-failed:
			f.showAll()
			return outcome{}, err
		}
	}
}

// tell says something between what the view shows.
func (f *follower) tell(text string) {
	f.view.hold(true)
	f.app.say("%s", text)
	f.view.hold(false)
}

// await waits for the run and then for what it left running, and for runs that
// another process had this one start, unless those wait for a person. A server
// keeps what is left over, so there only the run itself is waited for.
func (f *follower) await(ctx context.Context) (runtime.Result, error) {
	res, err := f.rt.Wait(ctx, f.id)
	for err == nil && f.door != nil {
		// Whoever came in before the door is shut is waited for, and opens it again.
		f.door.shut()
		next, foreign, lookErr := f.left()
		if lookErr != nil || next == "" {
			return res, lookErr
		}
		f.door.open()
		if foreign {
			select {
			case f.notice <- fmt.Sprintf("run %s, which another process started here, goes on; Ctrl-C stops it", next):
			default:
			}
		}
		_, err = f.rt.Wait(ctx, next)
	}
	return res, err
}

// left returns a run that this process still carries out, one of its own tree
// first.
func (f *follower) left() (next sentinels.RunID, foreign bool, err error) {
	runs, err := f.rt.Runs(runtime.RunFilter{})
	for _, r := range runs {
		if !r.Live || r.Status.Final() {
			continue
		}
		if sameTree(runs, r, f.id) {
			return r.ID, false, err
		}
		if r.Status == sentinels.StatusRunning {
			next, foreign = r.ID, true
		}
	}
	for _, id := range f.door.inside() {
		if r, lookErr := f.rt.Status(id); lookErr == nil && r.Live && r.Status == sentinels.StatusRunning {
			next, foreign = id, true
		}
	}
	return next, foreign, err
}

// stopAll ends the run tree. Its root may be over while its children go on. Once
// none of it is left, it ends what other processes started here.
func (f *follower) stopAll(ctx context.Context) error {
	runs, err := f.rt.Runs(runtime.RunFilter{})
	if err != nil {
		return err
	}
	mine := slices.ContainsFunc(runs, func(r runtime.RunInfo) bool { return r.Live && !r.Status.Final() && sameTree(runs, r, f.id) })
	var errs []error
	for i := len(runs) - 1; i >= 0; i-- { // the oldest first: a parent before its children
		if r := runs[i]; r.Live && !r.Status.Final() && (!mine || sameTree(runs, r, f.id)) {
			if err := f.rt.Stop(ctx, r.ID); err != nil && abi.CodeOf(err) != abi.Conflict {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}

// showAll shows what came in. It reports whether any of it says that the run
// goes on.
func (f *follower) showAll() (moved bool) {
	for _, p := range f.feed.take() {
		if p.Event != runtime.OnText && p.Event != runtime.OnLog {
			moved = true
		}
		f.count(p)
		for _, p := range f.early.order(p) {
			if p.Root == f.id || p.Run == f.id {
				f.view.show(p)
			}
		}
		if p.Event == runtime.OnStatus {
			f.halted = f.halted || p.Status != sentinels.StatusRunning
			f.statusChanged(p.Run)
		}
	}
	return moved
}

// count keeps the calls that are under way. One that only waits may be left,
// for a resume waits on; one that works must not.
func (f *follower) count(p runtime.Progress) {
	switch p.Function {
	case abi.FuncCommand, abi.FuncLLM, abi.FuncHTTP, abi.FuncWatch:
	default:
		return
	}
	key := strings.Join([]string{string(p.Run), p.Path, fmt.Sprint(p.Attempt), p.Function, p.Label}, "\x00")
	switch p.Event {
	case runtime.OnCallStart:
		f.busy[key]++
	case runtime.OnCallEnd:
		if f.busy[key]--; f.busy[key] <= 0 {
			delete(f.busy, key)
		}
	}
}

// stuck reports whether nothing but a person brings the run on.
func (f *follower) stuck() (outcome, bool) {
	if !f.halted || len(f.busy) > 0 || f.prompt != nil {
		return outcome{}, false
	}
	runs, err := f.rt.Runs(runtime.RunFilter{})
	if err != nil {
		return outcome{}, false // whatever it is, it comes again with the next look
	}
	out := outcome{}
	for _, r := range runs {
		if !r.Live || !sameTree(runs, r, f.id) {
			continue
		}
		if len(r.Decisions) > 0 || r.Status == sentinels.StatusPaused && r.Limit != "" {
			out.open = append(out.open, r)
		}
		if r.ID == f.id {
			out.Result = runtime.Result{Run: r.ID, Sentinel: r.Sentinel, Status: r.Status, Iterations: r.Iteration, Millis: r.Elapsed, Usage: r.Usage, Limit: r.Limit}
		}
	}
	if len(out.open) == 0 {
		return outcome{}, false
	}
	if out.Run == "" || out.Status == sentinels.StatusRunning {
		// A run whose child waits, waits.
		out.Run, out.Sentinel, out.Status = f.id, cmp.Or(out.Sentinel, out.open[0].Sentinel), sentinels.StatusWaiting
	}
	return out, true
}

// sameTree reports whether r is the run id or hangs below it; that need not be a
// root, for a child can be resumed by itself.
func sameTree(runs []runtime.RunInfo, r runtime.RunInfo, id sentinels.RunID) bool {
	for range 64 { // deeper than runs can be nested
		if r.ID == id || r.Parent == id || r.Root == id {
			return true
		}
		up := slices.IndexFunc(runs, func(p runtime.RunInfo) bool { return p.ID == r.Parent })
		if up < 0 {
			return false
		}
		r = runs[up]
	}
	return false
}
