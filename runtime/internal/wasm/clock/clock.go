package clock

import (
	"crypto/sha256"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"time"
)

// tick is how far a guest's clock advances at each reading.
const tick = time.Microsecond

// epoch is the start of a clock without a start time.
var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// Clock is the time and the randomness of one instance, ABI clause A7. The wall
// clock starts again with each call. The monotonic clock never goes back during the
// life of the instance, because the timers of guests depend on it.
//
// # Concurrency
//
// Like its instance, it serves one call at a time.
type Clock struct {
	wall time.Time
	mono time.Duration
	rand *rand.ChaCha8

	slept    time.Duration // by the guest in this call, on this clock
	maxSleep time.Duration // see SetMaxSleep
	overrun  func()        // unwinds the guest when slept exceeds maxSleep
	check    func()        // unwinds the guest if the call has ended
}

// New returns a clock. overrun unwinds the guest when it sleeps longer than allowed,
// and check unwinds it if its call has ended.
func New(overrun, check func()) *Clock { return &Clock{overrun: overrun, check: check} }

// SetMaxSleep sets how long the guest may sleep on this clock in a call.
func (c *Clock) SetMaxSleep(d time.Duration) { c.maxSleep = d }

// MaxSleep returns how long the guest may sleep on this clock in a call.
func (c *Clock) MaxSleep() time.Duration { return c.maxSleep }

// Begin starts the clock and the random stream of a phase. Initialisation and call
// are two phases, with different random numbers.
func (c *Clock) Begin(seed uint64, phase string, base time.Time) {
	if base.IsZero() {
		base = epoch // year 1 does not fit into the guest's nanoseconds
	}
	c.wall, c.slept = base, 0
	c.mono += time.Millisecond // a guest must not see zero
	var key [8]byte
	binary.LittleEndian.PutUint64(key[:], seed)
	c.rand = rand.NewChaCha8(sha256.Sum256(append(key[:], phase...)))
}

func (c *Clock) advance(d time.Duration) {
	c.wall = c.wall.Add(d)
	c.mono += d
}

// AdvanceTo advances the wall clock to t, unless t is in its past.
func (c *Clock) AdvanceTo(t time.Time) {
	if d := t.Sub(c.wall); d > 0 {
		c.advance(d)
	}
}

// Walltime returns the wall clock in seconds and nanoseconds, and advances the clocks.
func (c *Clock) Walltime() (sec int64, nsec int32) {
	c.advance(tick)
	return c.wall.Unix(), int32(c.wall.Nanosecond())
}

// Nanotime returns the monotonic clock in nanoseconds, and advances the clocks.
func (c *Clock) Nanotime() int64 {
	c.advance(tick)
	return int64(c.mono)
}

// Yield advances the clocks by one tick.
func (c *Clock) Yield() { c.advance(tick) }

// Nanosleep advances the clocks and takes no real time. A negative duration is an
// unsigned one that overflowed.
func (c *Clock) Nanosleep(ns int64) {
	d := time.Duration(ns)
	if d < 0 || d > c.maxSleep-c.slept {
		c.overrun()
		return
	}
	c.slept += d
	c.advance(d)
}

// randomChunk is how many random bytes are generated between two checks for the end
// of the call. A guest may request as many as it has memory, at 1 ns a byte.
const randomChunk = 1 << 20

// Read fills p from the random stream of the seed.
func (c *Clock) Read(p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		c.check()
		var k int
		k, err = c.rand.Read(p[n:min(n+randomChunk, len(p))])
		n += k
	}
	return n, err
}

var _ io.Reader = (*Clock)(nil)
