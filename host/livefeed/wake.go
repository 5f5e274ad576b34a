package livefeed

import "time"

// crowd is how many readers may be woken at once without a rest after it; rest
// is how long publishing goes on before a crowd is woken again. A thousand
// watchers of a busy topic then cost a few wake-ups a reader and rest, each for
// a batch, rather than one for every entry.
const (
	crowd = 64
	rest  = 2 * time.Millisecond
)

// nudge tells the feed's goroutine that there is something to do.
func (f *Feed) nudge() {
	select {
	case f.signal <- struct{}{}:
	default: // it has been told and has not looked yet
	}
}

// wake is the feed's goroutine, from New to Close: it wakes readers, and makes
// entries of gathered text.
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
		if len(readers) > crowd {
			time.Sleep(rest)
		}
		clear(readers) // a reader that has left is not kept alive
	}
}

// waiting appends the readers that have news, and says whether text is being
// gathered.
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
