package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
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
	rt   *runtime.Runtime
	feed *feed
	view view
	id   sentinels.RunID

	busy   map[string]int // open calls that must not be cut off, by place
	early  early
	prompt *prompt
}

// carryOut begins a run, follows it and says how it ended.
func (a *app) carryOut(ctx context.Context, s *session, told *feed, begin func() (sentinels.RunID, error)) error {
	id, err := begin()
	if err != nil {
		return err
	}
	fl := &follower{app: a, rt: s.host.Runtime(), feed: told, id: id, view: a.newView(id), busy: map[string]int{}, early: early{}}
	stop, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	a.setInterrupt(cancel)
	defer a.setInterrupt(nil)
	out, err := fl.follow(ctx, stop)
	fl.view.close()
	if err != nil {
		return err
	}
	if err := a.showOutcome(out); err != nil {
		return err
	}
	if s.host.Replaying() {
		if err := s.host.WriteDivergences(a.env.Stderr); err != nil {
			return err
		}
	}
	if code := statusCode(out.Status); code != ExitOK {
		return exitError(code)
	}
	return nil
}

// follow returns when the whole run tree has ended, or waits for a person.
// Ending stop stops it; ending ctx lets go of it.
func (f *follower) follow(ctx, stop context.Context) (outcome, error) {
	ended := make(chan runtime.Result, 1)
	failed := make(chan error, 1)
	go func() {
		res, err := f.await(ctx)
		if err != nil {
			failed <- err
			return
		}
		ended <- res
	}()
	stopping := make(chan error, 1)
	second := time.NewTicker(time.Second)
	defer second.Stop()
	soon := time.NewTimer(redraw)
	defer soon.Stop()
	still := time.NewTimer(settle)
	defer still.Stop()
	interrupt := stop.Done()
	defer f.endPrompt()
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
			if out, stuck := f.stuck(); stuck {
				f.showAll()
				return out, nil
			}
		case line, ok := <-f.prompt.lines():
			f.answer(ctx, line, ok)
		case <-interrupt:
			interrupt = nil
			f.endPrompt()
			f.view.hold(true)
			f.app.say("stopping run %s; once more ends at once", shortID(f.id))
			f.view.hold(false)
			go func() { stopping <- f.stopAll(ctx) }()
		case err := <-stopping:
			if err != nil {
				f.app.complain("stop: "+err.Error(), "")
			}
		case res := <-ended:
			f.showAll()
			return outcome{Result: res}, nil
		case err := <-failed:
			f.showAll()
			return outcome{}, err
		}
	}
}

// await waits for the run and then for what it left running, and for runs that
// another process had this one start.
func (f *follower) await(ctx context.Context) (runtime.Result, error) {
	res, err := f.rt.Wait(ctx, f.id)
	for err == nil {
		runs, lookErr := f.rt.Runs(runtime.RunFilter{})
		if lookErr != nil {
			return res, lookErr
		}
		var next sentinels.RunID
		for _, r := range runs {
			if r.Live && !r.Status.Final() {
				next = r.ID
			}
		}
		if next == "" {
			return res, nil
		}
		_, err = f.rt.Wait(ctx, next)
	}
	return res, err
}

// stopAll ends the run tree. Its root may be over while its children go on.
func (f *follower) stopAll(ctx context.Context) error {
	runs, err := f.rt.Runs(runtime.RunFilter{})
	if err != nil {
		return err
	}
	var errs []error
	for i := len(runs) - 1; i >= 0; i-- { // the oldest first: a parent before its children
		if r := runs[i]; r.Live && !r.Status.Final() {
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
	if len(f.busy) > 0 || f.prompt != nil {
		return outcome{}, false
	}
	runs, err := f.rt.Runs(runtime.RunFilter{})
	if err != nil {
		return outcome{}, false // whatever it is, it comes again with the next look
	}
	out := outcome{}
	for _, r := range runs {
		if !r.Live || r.Root != f.id && r.ID != f.id && !sameTree(runs, r, f.id) {
			continue
		}
		if len(r.Asks) > 0 || r.Status == sentinels.StatusPaused && r.Limit != "" {
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

// sameTree reports whether r hangs below the run id, which need not be a root:
// a child can be resumed by itself.
func sameTree(runs []runtime.RunInfo, r runtime.RunInfo, id sentinels.RunID) bool {
	for depth := 0; r.Parent != "" && depth < 64; depth++ {
		if r.Parent == id {
			return true
		}
		up := r.Parent
		r = runtime.RunInfo{}
		for _, p := range runs {
			if p.ID == up {
				r = p
			}
		}
	}
	return false
}
