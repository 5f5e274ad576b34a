package abitest

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// timeChecks are about clause A7, with guests that use WASI: clock, sleep and random
// numbers are the only sources of nondeterminism.
var timeChecks = []check{
	{"A7.1", "the clock begins with the attempt, advances at each reading and is set to the end of a call", with("clock", func(j *judge) {
		c := j.clocks()
		if d := c["wall"].Sub(epoch); d < 0 || d > time.Second {
			j.faultf("the clock begins %s after the attempt", d)
		}
		if d := c["wall2"].Sub(c["wall"]); d != time.Microsecond {
			j.faultf("a reading advances the clock by %s, want 1µs", d)
		}
		if !c["mono2"].After(c["mono"]) {
			j.faultf("the monotonic clock does not advance")
		}
		if d := c["called"].Sub(epoch.Add(90 * time.Minute)); d < 0 || d > time.Second {
			j.faultf("after a call that ended at 90 minutes the clock is %s off", d)
		}
	})},
	{"A7.1", "a sleep advances the clocks and takes no real time", with("clock", func(j *judge) {
		began := time.Now()
		c := j.clocks()
		if d := c["slept"].Sub(c["called"]); d < time.Hour || d > time.Hour+time.Second {
			j.faultf("a sleep of an hour advanced the clock by %s", d)
		}
		if d := c["mono3"].Sub(c["mono2"]); d < time.Hour {
			j.faultf("a sleep of an hour advanced the monotonic clock by %s", d)
		}
		if took := time.Since(began); took > 10*time.Minute {
			j.faultf("it took %s", took)
		}
	})},
	{"A7.1", "equal attempts read equal clocks", with("clock", func(j *judge) {
		a, b := j.clocks(), j.clocks()
		for key := range a {
			if !a[key].Equal(b[key]) {
				j.faultf("%s is %s, then %s", key, a[key], b[key])
			}
		}
	})},
	{"A7.1", "equal seeds give equal random numbers, other seeds others", with("random", func(j *judge) {
		seen := map[string]uint64{}
		for seed := range uint64(8) {
			first, second := j.drawn(seed), j.drawn(seed)
			if first != second {
				j.faultf("seed %d gives %s, then %s", seed, first, second)
			}
			if other, ok := seen[first]; ok {
				j.faultf("seeds %d and %d give the same numbers: %s", other, seed, first)
			}
			seen[first] = seed
		}
	})},
}

// clocks runs the guest clock and returns its readings.
func (j *judge) clocks() map[string]time.Time {
	got, err := j.raw(Invocation{Compute: 2 * time.Hour, Call: func(_ context.Context, _ string, request []byte) (Reply, error) {
		if want := ` {"expression":"1"}`; string(request) != want {
			j.faultf("the request is %q, want %q", request, want)
		}
		return Reply{Body: []byte(`{"ok":1}`), Now: epoch.Add(90 * time.Minute)}, nil
	}}, `{}`)
	if err != nil {
		j.fatalf("the guest ended with %s", errorText(err))
	}
	m, _ := got.(map[string]any)
	clocks := map[string]time.Time{}
	for key, v := range m {
		number, _ := v.(json.Number)
		ns, err := number.Int64()
		if err != nil {
			j.fatalf("%s is %v", key, v)
		}
		clocks[key] = time.Unix(0, ns)
	}
	if len(clocks) != 7 {
		j.fatalf("%d clocks were read, want 7: %s", len(clocks), encode(got))
	}
	return clocks
}

// drawn runs the guest random and returns its request and its output.
func (j *judge) drawn(seed uint64) string {
	var request string
	got, err := j.raw(Invocation{Seed: seed, Call: func(_ context.Context, _ string, text []byte) (Reply, error) {
		request = string(text)
		return Reply{Body: []byte(`{"ok":1}`), Now: epoch.Add(time.Minute)}, nil
	}}, `{}`)
	if err != nil {
		j.fatalf("the guest ended with %s", errorText(err))
	}
	return fmt.Sprintf("%s %s", request, encode(got))
}
