package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers"
)

// A referee observes runs and firings.
type referee struct {
	mu       sync.Mutex
	on, most map[sentinels.ID]int // runs at once
	outcomes map[triggers.Outcome]int
}

// saw reports whether each outcome has happened.
func (r *referee) saw(outcomes []triggers.Outcome) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, o := range outcomes {
		if r.outcomes[o] == 0 {
			return false
		}
	}
	return true
}

func (r *referee) observer() runtime.Observer {
	r.on, r.most, r.outcomes = map[sentinels.ID]int{}, map[sentinels.ID]int{}, map[triggers.Outcome]int{}
	return runtime.Observer{
		Progress: func(p runtime.Progress) {
			r.mu.Lock()
			defer r.mu.Unlock()
			switch p.Event {
			case runtime.OnRunStart:
				r.on[p.Sentinel]++
				r.most[p.Sentinel] = max(r.most[p.Sentinel], r.on[p.Sentinel])
			case runtime.OnRunEnd:
				r.on[p.Sentinel]--
			}
		},
		Trigger: func(f runtime.TriggerFired) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.outcomes[f.Outcome]++
		},
	}
}

// TestTriggerHammer edits, deletes, pauses and disarms sentinels while their
// triggers fire and requests come in. No policy ever lets two runs be on at once,
// and in the end every count comes to what was fired.
func TestTriggerHammer(t *testing.T) {
	span := 3 * time.Second
	if testing.Short() {
		span = 500 * time.Millisecond
	}
	var ref referee
	s := serve(t, store.NewMemory(), runtime.Options{Observer: ref.observer()})
	ids := []sentinels.ID{"skip", "queue", "restart", "mixed"}
	edit := func(id sentinels.ID, rng *rand.Rand) {
		policy := string(id)
		if id == "mixed" {
			policy = []string{"skip", "queue", "restart"}[rng.IntN(3)]
		}
		trigger := []string{
			`[{"type":"test"},{"type":"hook"}]`,
			`[{"type":"hook"},{"type":"event","event":"hammer"},{"type":"test"}]`,
			`[{"type":"test","debounceMs":2,"maxWaitMs":5},{"type":"hook"}]`,
			`{"type":"hook","filter":"$event.n % 2 === 0"}`,
		}[rng.IntN(4)]
		s.saveSteps(t, string(id), `{"type":"pause","durationMs":`+fmt.Sprint(1+rng.IntN(3))+`}`, fmt.Sprintf(`"concurrency":%q,"trigger":%s`, policy, trigger))
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var storm sync.WaitGroup
	// On a slow machine it takes longer until everything has happened once.
	wanted := []triggers.Outcome{triggers.Started, triggers.Queued, triggers.Skipped, triggers.Duplicate, triggers.Filtered}
	storm.Go(func() {
		defer cancel()
		for begin := time.Now(); time.Since(begin) < span || !ref.saw(wanted) && time.Since(begin) < time.Minute; {
			time.Sleep(10 * time.Millisecond)
		}
	})
	// What may happen to who works on what is not there or not armed just now.
	expected := func(err error) bool {
		switch code := abi.CodeOf(err); {
		case err == nil, ctx.Err() != nil, code == abi.Conflict, code == abi.NotFound, code == abi.Unavailable:
			return true
		}
		return errors.Is(err, context.Canceled)
	}
	work := func(seed uint64, do func(rng *rand.Rand, id sentinels.ID) error) {
		storm.Go(func() {
			for rng := rand.New(rand.NewPCG(seed, 1)); ctx.Err() == nil; {
				if err := do(rng, ids[rng.IntN(len(ids))]); !expected(err) {
					t.Errorf("worker %d: %v", seed, err)
				}
			}
		})
	}
	setup := rand.New(rand.NewPCG(9, 9))
	for _, id := range ids {
		edit(id, setup)
	}
	for w := range uint64(2) {
		work(w, func(rng *rand.Rand, id sentinels.ID) error {
			time.Sleep(time.Duration(rng.IntN(3000)) * time.Microsecond)
			switch rng.IntN(12) {
			case 0:
				return s.Delete(ctx, id, runtime.AnyRevision)
			case 1:
				return s.PauseTriggers(ctx, id, runtime.TriggerPause{})
			case 2, 3:
				return s.ResumeTriggers(ctx, id, nil)
			}
			edit(id, rng)
			return nil
		})
	}
	for w := range uint64(3) {
		work(10+w, func(rng *rand.Rand, id sentinels.ID) error {
			_, err := s.Receive(ctx, id, "", triggers.Request{
				Header: map[string][]string{"Key": {fmt.Sprint(rng.IntN(500))}}, Body: fmt.Appendf(nil, `{"n":%d}`, rng.IntN(10)),
			})
			return err
		})
	}
	work(20, func(*rand.Rand, sentinels.ID) error {
		_, err := s.Emit(ctx, sentinels.Event{Name: "hammer", Data: []byte(`{"n":1}`)})
		return err
	})
	work(21, func(rng *rand.Rand, _ sentinels.ID) error {
		time.Sleep(20 * time.Millisecond)
		if _, err := s.Triggers(""); err != nil {
			return err
		}
		s.Disarm()
		return s.Arm(context.Background())
	})
	storm.Wait()
	if t.Failed() {
		return
	}
	for _, id := range ids {
		edit(id, setup)
		if err := s.ResumeTriggers(within(t), id, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Arm(within(t)); err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		until(t, fmt.Sprint(id, " to come to rest"), func() bool {
			infos, err := s.Triggers(id)
			if err != nil {
				t.Fatal(err)
			}
			for _, i := range infos {
				if i.Waiting > 0 {
					return false
				}
			}
			ref.mu.Lock()
			defer ref.mu.Unlock()
			return ref.on[id] == 0
		})
		infos, err := s.Triggers(id)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range infos {
			sums(t, i)
		}
	}
	s.Close() // nothing is reported any more
	for _, id := range ids {
		if most := ref.most[id]; most > 1 { // a slow machine may not get to each
			t.Errorf("%s: %d runs were on at once", id, most)
		}
	}
	t.Logf("outcomes %v", ref.outcomes)
	for _, o := range wanted {
		if ref.outcomes[o] == 0 {
			t.Errorf("nothing was %s", o)
		}
	}
}
