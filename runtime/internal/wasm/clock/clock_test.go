package clock_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm/clock"
)

// start is the start time of an attempt.
var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// TestRandom: the random stream depends on the seed and the phase alone.
func TestRandom(t *testing.T) {
	draw := func(seed uint64, phase string, base time.Time) []byte {
		c := clock.New(func() {}, func() {})
		c.Begin(1, "init", time.Time{})
		c.Begin(seed, phase, base)
		b := make([]byte, 16)
		if n, err := c.Read(b); n != len(b) || err != nil {
			t.Fatalf("Read: %d, %v", n, err)
		}
		return b
	}
	first := draw(7, "run", start)
	if !bytes.Equal(first, draw(7, "run", start.Add(time.Hour))) {
		t.Error("another start time changes the random stream")
	}
	if bytes.Equal(first, draw(8, "run", start)) || bytes.Equal(first, draw(7, "init", start)) {
		t.Error("another seed or phase has the same random stream")
	}
}

// TestReadings: each reading advances the clocks, the wall clock follows host calls,
// and the monotonic clock never goes back.
func TestReadings(t *testing.T) {
	c := clock.New(func() {}, func() {})
	c.Begin(1, "run", start)
	wall := func() time.Time { sec, nsec := c.Walltime(); return time.Unix(sec, int64(nsec)) }
	first, mono := wall(), c.Nanotime()
	if !first.After(start) || mono <= 0 || !wall().After(first) || c.Nanotime() <= mono {
		t.Error("a reading did not advance the clocks")
	}
	c.AdvanceTo(start.Add(time.Hour))
	c.AdvanceTo(start)
	if at := wall().Sub(start); at < time.Hour || at > time.Hour+time.Second {
		t.Errorf("after a host call of an hour the clock is at %s", at)
	}
	mono = c.Nanotime()
	c.Begin(1, "run", start)
	if wall().After(start.Add(time.Second)) || c.Nanotime() <= mono {
		t.Error("the next call does not start at its own time, or the monotonic clock went back")
	}
}

// TestSleep: a sleep takes no real time, and all sleeps of a call together are
// limited.
func TestSleep(t *testing.T) {
	overruns := 0
	c := clock.New(func() { overruns++ }, func() {})
	c.SetMaxSleep(time.Hour)
	c.Begin(1, "run", start)
	before := c.Nanotime()
	c.Nanosleep(int64(40 * time.Minute))
	if slept := time.Duration(c.Nanotime() - before); overruns != 0 || slept < 40*time.Minute {
		t.Errorf("a sleep of 40 minutes advanced the clock by %s, %d overruns", slept, overruns)
	}
	c.Nanosleep(int64(40 * time.Minute))
	c.Nanosleep(-1)
	if overruns != 2 {
		t.Errorf("%d overruns, want 2: one beyond the limit and one that overflowed", overruns)
	}
}
