package livefeed

import "time"

// After waking more than wakeBurst readers at once, the feed waits for wakePause.
// With a thousand readers of a busy topic, each then wakes once for a batch
// rather than for every entry.
const (
	wakeBurst = 64
	wakePause = 2 * time.Millisecond
)

// signalWake wakes the feed's goroutine.
func (f *Feed) signalWake() {
	select {
	case f.signal <- struct{}{}:
	default: // already signaled
	}
}

// wake is the feed's goroutine, from New to Close: it wakes readers and publishes
// gathered text.
func (f *Feed) wake() {
	defer close(f.ended)
	timer := time.NewTimer(f.opt.TextEvery)
	timer.Stop()
	defer timer.Stop()
	gathering := false // the timer runs
	var readers []*Subscription
	for {
		select {
		case <-f.done:
			return
		case <-timer.C:
			gathering = false
			f.mu.Lock()
			f.tick()
			f.mu.Unlock()
		case <-f.signal:
		}
		var streams bool
		readers, streams = f.waiting(readers[:0])
		if streams && !gathering {
			gathering = true
			timer.Reset(f.opt.TextEvery)
		}
		for _, s := range readers {
			s.rouse()
		}
		if len(readers) > wakeBurst {
			time.Sleep(wakePause)
		}
		clear(readers) // keep no closed subscription alive
	}
}

// waiting appends the readers that have new entries, and reports whether text is
// being gathered.
func (f *Feed) waiting(readers []*Subscription) ([]*Subscription, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, x := range f.dirty {
		x.dirty = false
		for s := range x.followers {
			readers = append(readers, s)
		}
		f.forget(x)
	}
	clear(f.dirty)
	f.dirty = f.dirty[:0]
	return readers, len(f.streams) > 0
}
