package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sentinel-runtime/sentinel/host/cli/app"
	"github.com/sentinel-runtime/sentinel/host/cli/output"
	"github.com/sentinel-runtime/sentinel/host/process"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// settle is how long a run that waits for a person must be still before this
// process ends: a branch beside the question may be about to go on.
const settle = 300 * time.Millisecond

// A view shows the progress of a run tree.
type view interface {
	show(p runtime.Progress)
	flush() bool // all progress was passed; true if it should be called again soon
	tick()       // a second has passed
	hold(bool)   // a question is on the terminal: draw nothing meanwhile
	close()      // there is no more progress
}

// A follower shows a run until it has ended, or until only a person can help.
type follower struct {
	app     verbs
	session *app.Session
	watch   *runWatch
	view    view
	id      sentinels.RunID
	task    bool // sentinel do: the view is that of a task
	always  *always

	busy    map[string]int // calls in progress that must not be interrupted, by position
	early   early
	halted  bool        // some run of the tree waits or is paused, or was
	notice  chan string // a message of the goroutine that waits; capacity 1
	prompt  *prompt
	decided []*prompt // answered here; a run lists a decision until it has read it
}

// follow returns when the whole run tree has ended, or waits for a person. The end of
// stop stops the tree; the end of ctx only ends following.
func (f *follower) follow(ctx, stop context.Context) (outcome, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	var helpers sync.WaitGroup
	defer helpers.Wait()
	defer cancel(nil)
	defer f.endPrompt(false)
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
		case <-f.watch.progress.more:
			if f.showAll(ctx) {
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
			if out, stuck := f.stuck(ctx); stuck {
				f.showAll(ctx)
				return out, nil
			}
		case line, ok := <-f.prompt.lines():
			f.answer(ctx, line, ok)
		case text := <-f.notice:
			f.message(text)
		case <-f.watch.lost:
			f.message(fmt.Sprintf("some progress of run %s is missing here; `sentinel logs` has it", output.ShortID(f.id)))
		case <-interrupt:
			interrupt = nil
			f.endPrompt(false)
			f.message(fmt.Sprintf("stopping run %s; a second Ctrl-C ends at once", output.ShortID(f.id)))
			helpers.Go(func() {
				if err := f.stopAll(ctx); err != nil {
					failed <- err
				}
			})
		case out := <-ended:
			f.showAll(ctx)
			return out, nil
		case err := <-failed:
			f.showAll(ctx)
			return outcome{}, err
		}
	}
}

// message prints a line between what the view shows. A question that is on the terminal
// is asked again below it.
func (f *follower) message(text string) {
	if f.prompt != nil {
		f.app.PrintErr("\n")
	}
	f.view.hold(true)
	f.app.Info("%s", text)
	if f.prompt != nil {
		f.question(*f.prompt)
		return
	}
	f.view.hold(false)
}

// await waits for the run, then for the runs that this process still executes: children
// that the run left, and runs that other processes started here. Runs in another
// process continue there.
func (f *follower) await(ctx context.Context) (runtime.Result, error) {
	res, err := f.watch.wait(ctx)
	if err != nil || f.session.Process == nil {
		return res, err
	}
	defer f.watch.drain(ctx)
	return res, f.session.Process.Finish(ctx, f.id, func(run sentinels.RunID) {
		select {
		case f.notice <- fmt.Sprintf("run %s, which another process started here, continues; Ctrl-C stops it", run):
		default:
		}
	})
}

// stopAll stops the run tree, whose root may have ended before its children. If
// nothing is left of it, it stops what other processes started here.
func (f *follower) stopAll(ctx context.Context) error {
	runs, err := f.tree(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, r := range slices.Backward(runs) { // the oldest first: a parent before its children
		err := f.session.Call(ctx, "sentinel/stop", map[string]any{"run": r.ID}, nil)
		if code := abi.CodeOf(err); err != nil && code != abi.Conflict && code != abi.NotFound {
			errs = append(errs, err)
		}
	}
	if len(runs) == 0 && f.session.Process != nil {
		errs = append(errs, f.session.Process.StopAll(ctx))
	}
	return errors.Join(errs...)
}

// tree returns the live runs of the tree that have not ended, the newest first, with the
// decisions that were not made here.
func (f *follower) tree(ctx context.Context) ([]runtime.RunInfo, error) {
	runs, err := f.session.Unfinished(ctx)
	var list []runtime.RunInfo
	for _, r := range runs {
		if r.Live && process.InTree(runs, r, f.id) {
			r.Decisions = f.undecided(r)
			list = append(list, r)
		}
	}
	return list, err
}

// showAll shows the progress that has arrived. It reports whether the run made any.
func (f *follower) showAll(ctx context.Context) (moved bool) {
	for _, p := range f.watch.progress.take() {
		if !p.Event.Partial() && p.Event != runtime.OnLog {
			moved = true
		}
		f.count(p)
		for _, p := range f.early.order(p) {
			if p.Root == f.id || p.Run == f.id {
				f.view.show(p)
			}
		}
		if p.Event == runtime.OnStatus {
			f.halted = f.halted || p.Status != sentinels.StatusRunning && p.Status != sentinels.StatusQueued
			f.statusChanged(ctx, p.Run)
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

// stuck reports whether the run can continue only after a decision of a person.
func (f *follower) stuck(ctx context.Context) (outcome, bool) {
	if !f.halted || len(f.busy) > 0 || f.prompt != nil {
		return outcome{}, false
	}
	runs, err := f.tree(ctx)
	if err != nil {
		return outcome{}, false // the next look has it again
	}
	out := outcome{}
	for _, r := range runs {
		if len(r.Decisions) > 0 || r.Status == sentinels.StatusPaused && r.Limit != "" {
			out.open = append(out.open, r)
		}
		if r.ID == f.id {
			out.Result = r.Result()
		}
	}
	if len(out.open) == 0 {
		return outcome{}, false
	}
	if out.Run == "" || out.Status == sentinels.StatusRunning {
		// A run waits if its child does.
		out.ID, out.Run, out.Sentinel, out.Status = f.id, f.id, cmp.Or(out.Sentinel, out.open[0].Sentinel), sentinels.StatusWaiting
	}
	return out, true
}
