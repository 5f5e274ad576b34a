package runtime_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers"
)

// fakeTriggers are the kinds of triggers of the engine tests: "test" fires what a test passes
// it, "list" a list of its own whose place it keeps, "event" what is in the log,
// "hook" what it receives.
type fakeTriggers struct {
	mu    sync.Mutex
	armed map[sentinels.ID][]*fakeArmed // of "test", in order; the newest arming
	envs  []triggers.Env                // of every arming
	fail  error                         // what Run of a "test" fails with
	runs  int                           // how often one was run
}

func (k *fakeTriggers) set() triggers.Set {
	var set triggers.Set
	for _, name := range []string{"test", "list", "event", "hook", "immediate", "manual"} {
		set = append(set, fakeKind{k, name})
	}
	return set
}

type fakeKind struct {
	*fakeTriggers
	name string
}

type fakeOptions struct {
	Tag  string `json:"tag"`
	N    int    `json:"n"`
	Bad  string `json:"bad"` // refused: "check" or "arm"
	Name string `json:"name"`
}

func (k fakeKind) Describe() triggers.Description {
	d := triggers.Description{Name: k.name}
	if k.name == "event" {
		d.Field = sentinels.TriggerEvent
	}
	return d
}

func (k fakeKind) Check(t sentinels.Trigger) error {
	var o fakeOptions
	if err := triggers.ReadOptions(t, &o); err != nil {
		return err
	}
	if o.Bad == "check" {
		return errors.New("it is bad")
	}
	return nil
}

func (k fakeKind) Arm(t sentinels.Trigger, env triggers.Env) (triggers.Armed, error) {
	a := &fakeArmed{kind: k, env: env, pattern: t.Event, requests: make(chan fireRequest)}
	if err := triggers.ReadOptions(t, &a.opt); err != nil {
		return nil, err
	}
	if a.opt.Bad == "arm" {
		return nil, errors.New("it cannot be armed")
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.envs = append(k.envs, env)
	if k.armed == nil {
		k.armed = map[sentinels.ID][]*fakeArmed{}
	}
	if list := k.armed[env.Sentinel]; len(list) > 0 && list[0].env.Revision != env.Revision {
		k.armed[env.Sentinel] = nil
	}
	k.armed[env.Sentinel] = append(k.armed[env.Sentinel], a)
	if k.name == "hook" {
		return fakeHook{a}, nil
	}
	return a, nil
}

type fireRequest struct {
	fire  triggers.Firing
	reply chan<- fireAnswer
}

type fireAnswer struct {
	adm triggers.Admission
	err error
}

// fakeArmed is one armed trigger of a fake kind.
type fakeArmed struct {
	kind     fakeKind
	env      triggers.Env
	opt      fakeOptions
	pattern  string
	requests chan fireRequest
}

func (a *fakeArmed) Run(ctx context.Context, fire triggers.FireFunc) error {
	a.kind.mu.Lock()
	a.kind.runs++
	fail := a.kind.fail
	a.kind.mu.Unlock()
	if fail != nil {
		return fail
	}
	switch a.kind.name {
	case "list":
		return a.runList(ctx, fire)
	case "event":
		return a.runEvents(ctx, fire)
	}
	for {
		select {
		case ask := <-a.requests:
			adm, err := fire(ctx, ask.fire)
			ask.reply <- fireAnswer{adm, err}
		case <-ctx.Done():
			return nil
		}
	}
}

// runList fires n things with keys, as a schedule does.
func (a *fakeArmed) runList(ctx context.Context, fire triggers.FireFunc) error {
	at := 0
	if a.env.State != nil {
		if err := json.Unmarshal(a.env.State, &at); err != nil {
			return err
		}
	}
	for ; at < a.opt.N; at++ {
		f := triggers.Firing{Key: fmt.Sprint(at), State: fmt.Append(nil, at+1), Event: &sentinels.Event{Name: "list", Data: fmt.Appendf(nil, `{"n":%d}`, at)}}
		if _, err := fire(ctx, f); err != nil {
			return err
		}
	}
	<-ctx.Done()
	return nil
}

func (a *fakeArmed) runEvents(ctx context.Context, fire triggers.FireFunc) error {
	at := a.env.Positions[0]
	if a.env.State != nil {
		if err := json.Unmarshal(a.env.State, &at); err != nil {
			return err
		}
	}
	for {
		e, n, lost, err := a.env.Events.Next(ctx, a.pattern, "", at)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		at = n
		if _, err := fire(ctx, triggers.Firing{Key: e.ID, Event: &e, State: fmt.Append(nil, n), Missed: lost}); err != nil {
			return err
		}
	}
}

func (a *fakeArmed) Next(now time.Time) time.Time {
	if a.opt.N == 0 {
		return time.Time{}
	}
	return now.Add(time.Duration(a.opt.N) * time.Hour)
}

// fakeHook takes requests: their body is the data of an event, a header the key.
type fakeHook struct{ *fakeArmed }

func (h fakeHook) Receive(r triggers.Request) ([]triggers.Firing, error) {
	if string(r.Body) == "forged" {
		return nil, &abi.Error{Code: abi.Denied, Message: "the signature is wrong"}
	}
	return []triggers.Firing{{Key: r.Header["Key"][0], Event: &sentinels.Event{Name: "hook", Data: r.Body}}}, nil
}

// fire lets the nth fake trigger of a sentinel fire, waiting for it to be run.
func (k *fakeTriggers) fire(t testing.TB, id sentinels.ID, nth int, f triggers.Firing) triggers.Admission {
	t.Helper()
	adm, err := k.tryFire(within(t), id, nth, f)
	if err != nil {
		t.Fatal(err)
	}
	return adm
}

func (k *fakeTriggers) tryFire(ctx context.Context, id sentinels.ID, nth int, f triggers.Firing) (triggers.Admission, error) {
	reply := make(chan fireAnswer, 1)
	for {
		k.mu.Lock()
		list := k.armed[id]
		k.mu.Unlock()
		if nth < len(list) {
			select {
			case list[nth].requests <- fireRequest{f, reply}:
				a := <-reply
				return a.adm, a.err
			case <-time.After(2 * time.Millisecond): // it may have been armed again
			case <-ctx.Done():
				return triggers.Admission{}, context.Cause(ctx)
			}
			continue
		}
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			return triggers.Admission{}, context.Cause(ctx)
		}
	}
}

// fired is a fire with a number for the run to wait for.
func fired(n int) triggers.Firing {
	return triggers.Firing{Event: &sentinels.Event{Name: "test", Data: fmt.Appendf(nil, `{"n":%d}`, n)}}
}

// A serving is a runtime whose triggers are armed.
type serving struct {
	*runtime.Runtime
	*fakeTriggers
	w *fakeHost
}

// serve opens a runtime on db and arms it; runs of an earlier process go on.
func serve(t testing.TB, db store.Store, opt runtime.Options) serving {
	t.Helper()
	s := serving{fakeTriggers: new(fakeTriggers), w: newFakeHost()}
	opt.Triggers = s.set()
	s.Runtime = open(t, s.w, db, opt)
	infos, err := s.Runs(runtime.RunFilter{})
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range infos {
		if !info.Status.Final() && info.Parent == "" {
			if err := s.Resume(within(t), info.ID, runtime.ResumeOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := s.Arm(within(t)); err != nil {
		t.Fatal(err)
	}
	return s
}

// save stores a definition that waits for the event "end" with each fire's
// number, unless steps are given.
func (s serving) save(t testing.TB, id, rest string) runtime.Stored {
	t.Helper()
	return s.saveSteps(t, id, `{"type":"pause","event":"end"}`, rest)
}

func (s serving) saveSteps(t testing.TB, id, steps, rest string) runtime.Stored {
	t.Helper()
	src := fmt.Sprintf(`{"id":%q,"name":%q,"loop":{"type":"once"},"steps":[%s],%s}`, id, id, steps, rest)
	stored, err := s.Save(within(t), decode(t, s.Runtime, src), runtime.AnyRevision)
	if err != nil {
		t.Fatal(err)
	}
	return stored
}

// info is that of the nth trigger.
func (s serving) info(t testing.TB, id sentinels.ID, nth int) runtime.TriggerInfo {
	t.Helper()
	infos, err := s.Triggers(id)
	if err != nil {
		t.Fatal(err)
	}
	return infos[nth]
}

// order returns the numbers of the fires whose runs there are, the oldest first.
func (s serving) order(t testing.TB, id sentinels.ID) []int {
	t.Helper()
	infos, err := s.Runs(runtime.RunFilter{Sentinel: id})
	if err != nil {
		t.Fatal(err)
	}
	out := []int{}
	for i := len(infos) - 1; i >= 0; i-- {
		out = append(out, s.number(t, infos[i].ID))
	}
	return out
}

// number is that of the fire that started a run.
func (s serving) number(t testing.TB, run sentinels.RunID) int {
	t.Helper()
	var e *sentinels.Event
	until(t, "the start of a run to be durable", func() (ok bool) {
		var err error
		e, err = runtime.StartEvent(s.Runtime, run)
		return err == nil
	})
	var data struct{ N int }
	if e != nil {
		if err := json.Unmarshal(e.Data, &data); err != nil {
			t.Fatal(err)
		}
	}
	return data.N
}

// end lets the active run end.
func (s serving) end(t testing.TB, run sentinels.RunID) {
	t.Helper()
	emit(t, s.Runtime, "end", "")
	if res := wait(t, s.Runtime, run); !res.Status.Final() {
		t.Fatalf("run %s is %s", run, res.Status)
	}
}

// sums checks that the counts of a trigger come to what it fired.
func sums(t testing.TB, i runtime.TriggerInfo) {
	t.Helper()
	n := i.Started + i.Skipped + i.Filtered + i.Coalesced + i.Duplicates + i.Refused + uint64(i.Waiting)
	if n != i.Fired {
		t.Errorf("trigger %s of %s: the outcomes come to %d, it fired %d: %+v", i.Name, i.Sentinel, n, i.Fired, i)
	}
}

var errLost = errors.New("the watch is lost")
