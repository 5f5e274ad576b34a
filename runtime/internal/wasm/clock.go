package wasm

import (
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"
	"time"
)

// tick is how far a guest's clock moves at each reading.
const tick = time.Microsecond

// epoch is where a clock starts that no attempt has set.
var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// clock is the time and chance of one instance, ABI clause A7. Like the
// instance it serves one call at a time.
//
// The wall clock starts anew with each attempt; the monotonic one never goes
// back while the instance lives, as guests' timers need it.
type clock struct {
	wall time.Time
	mono time.Duration
	rand *rand.ChaCha8

	slept    time.Duration // by the guest, on this clock, in this call
	maxSleep time.Duration
	overrun  func() // ends the call when slept passes maxSleep
	check    func() // leaves the guest if the call is over
}

// begin starts the clock and the random stream of a phase. The phases of one
// attempt, initialisation and the call itself, draw different numbers.
func (c *clock) begin(seed uint64, phase string, base time.Time) {
	if base.IsZero() {
		base = epoch // year 1 does not fit into the guest's nanoseconds
	}
	c.wall, c.slept = base, 0
	c.mono += time.Millisecond // a guest must not see zero
	var key [8]byte
	binary.LittleEndian.PutUint64(key[:], seed)
	c.rand = rand.NewChaCha8(sha256.Sum256(append(key[:], phase...)))
}

func (c *clock) advance(d time.Duration) {
	c.wall = c.wall.Add(d)
	c.mono += d
}

// jump moves the clock to t unless that is in its past.
func (c *clock) jump(t time.Time) {
	if d := t.Sub(c.wall); d > 0 {
		c.advance(d)
	}
}

// The functions below are what the engine calls for WASI.

func (c *clock) walltime() (sec int64, nsec int32) {
	c.advance(tick)
	return c.wall.Unix(), int32(c.wall.Nanosecond())
}

func (c *clock) nanotime() int64 {
	c.advance(tick)
	return int64(c.mono)
}

// nanosleep takes no real time. A negative duration is an unsigned one that
// overflowed: as good as for ever.
func (c *clock) nanosleep(ns int64) {
	d := time.Duration(ns)
	if d < 0 || d > c.maxSleep-c.slept {
		c.overrun()
		return
	}
	c.slept += d
	c.advance(d)
}

// randomChunk is how many random bytes are made between two looks at whether the
// call is over: a guest may ask for as many as it has memory, at 1 ns a byte.
const randomChunk = 1 << 20

// Read fills p from the seeded stream.
func (c *clock) Read(p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		c.check()
		var k int
		k, err = c.rand.Read(p[n:min(n+randomChunk, len(p))])
		n += k
	}
	return n, err
}
