package eventlog

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// When the log is full, the emitter with the most events, or bytes, loses its oldest one, so
// that no emitter pushes out the events of others; of equal ones the oldest goes, so that with
// one emitter, or many equal ones, the log has the newest events. The audit log keeps its
// lines by the same rule.

// A share is what the log keeps of one emitter.
type share struct {
	count  int
	bytes  int64
	oldest uint64 // offset
}

// shareOf returns for whom an event counts: for the agent or model behind it, or the sentinel
// at the beginning of its chain, because each of them can make sentinels of any id; for others
// its source.
func shareOf(e *sentinels.Event) string {
	switch {
	case e.By != "":
		return e.By
	case len(e.Path) > 0:
		return "sentinel/" + e.Path[0]
	}
	return e.Source
}

// GivenBy returns the agent or model for which an event was emitted, or one of those that a debounce joined with it.
func GivenBy(e *sentinels.Event) string {
	if e == nil {
		return ""
	}
	by := e.By
	for _, other := range e.Batch {
		by = cmp.Or(by, other.By)
	}
	return by
}

// Cause returns the agent or model that alone is behind an event, or behind all those of a debounce; "" for nil.
func Cause(e *sentinels.Event) string {
	if e == nil || slices.ContainsFunc(e.Batch, func(one sentinels.BatchedEvent) bool { return one.By == "" }) {
		return ""
	}
	return e.By
}

// A gap is events that were removed between two that are kept.
type gap struct {
	count int
	mark  uint64 // offset in the store of the record that has the count; 0 without a gap
}

// removed is the record of a gap in the store, in the place of an event.
func (g gap) removed() []byte {
	text, err := json.Marshal(map[string]int{"removed": g.count})
	if err != nil {
		panic(fmt.Errorf("encode gap of the event log: %w", err)) // numbers can always be encoded
	}
	return text
}

// after returns the index in kept of the first event behind an offset. l.mu is held.
func (l *Log) after(offset uint64) int {
	i, found := l.at(offset)
	if found {
		i++
	}
	return i
}

// at returns the index in kept of the event with an offset, or of the one behind. l.mu is held.
func (l *Log) at(offset uint64) (int, bool) {
	return slices.BinarySearchFunc(l.kept, offset, func(e entry, offset uint64) int {
		switch {
		case e.offset < offset:
			return -1
		case e.offset > offset:
			return 1
		}
		return 0
	})
}

// keep adds the newest event. l.mu is held.
func (l *Log) keep(e entry) {
	l.kept = append(l.kept, e)
	l.bytes += e.size
	s := l.shares[e.share]
	if s == nil {
		s = &share{oldest: e.offset}
		l.shares[e.share] = s
	}
	s.count++
	s.bytes += e.size
}

// refuse takes an event out of memory whose commit was refused, with which the record of the
// gap before it was. l.mu is held.
func (l *Log) refuse(i int) {
	if i+1 < len(l.kept) {
		next := &l.kept[i+1].before
		next.count += l.kept[i].before.count
		next.mark = max(next.mark, l.kept[i].before.mark)
	}
	l.forget(i)
}

// forget takes an event out of memory. l.mu is held.
func (l *Log) forget(i int) {
	e := l.kept[i]
	l.bytes -= e.size
	s := l.shares[e.share]
	s.count--
	s.bytes -= e.size
	if i < len(l.kept)/2 { // the oldest ones: move what is before it, not all that is behind
		copy(l.kept[1:i+1], l.kept[:i])
		l.kept[0] = entry{} // the array stays until the slice grows
		l.kept = l.kept[1:]
	} else {
		l.kept = slices.Delete(l.kept, i, i+1)
	}
	if s.count == 0 {
		delete(l.shares, e.share)
	} else if e.offset == s.oldest {
		next := slices.IndexFunc(l.kept[i:], func(other entry) bool { return other.share == e.share })
		s.oldest = l.kept[i+next].offset
	}
}

// shrink removes events until the others fit, and returns the writes for that. The newest one
// stays. l.mu is held.
func (l *Log) shrink() (puts []store.Put) {
	for len(l.kept) > 1 && (len(l.kept) > l.opt.Keep || l.bytes > l.opt.MaxBytes) {
		puts = append(puts, l.remove(l.most())...)
	}
	return puts
}

// most returns the index of the oldest event of the share that has most of what is exceeded.
// l.mu is held.
func (l *Log) most() int {
	var most *share
	for _, s := range l.shares {
		if s.oldest == l.kept[len(l.kept)-1].offset { // its only one is the newest
			continue
		}
		var than int64 = 1
		if most != nil {
			if than = s.bytes - most.bytes; len(l.kept) > l.opt.Keep {
				than = int64(s.count - most.count)
			}
		}
		if than > 0 || than == 0 && s.oldest < most.oldest {
			most = s
		}
	}
	i, _ := l.at(most.oldest)
	return i
}

// remove removes an event, which is not the newest, and returns the writes for that: where
// older ones stay, a record in its place says how many were removed there, so that readers
// learn what they missed also after a restart. l.mu is held.
func (l *Log) remove(i int) (puts []store.Put) {
	e, next := l.kept[i], &l.kept[i+1]
	drop := func(offset uint64) {
		if offset != 0 {
			puts = append(puts, store.Put{Bucket: l.opt.Bucket, Key: Key(offset), Delete: true})
		}
	}
	delete(l.byID, e.identity)
	drop(e.before.mark)
	switch {
	case i == 0:
		drop(e.offset)
		drop(next.before.mark)
		if l.gone = e.offset; next.before.count > 0 {
			l.gone = next.offset - 1
		}
		next.before = gap{}
	default:
		if next.before.mark == 0 {
			next.before.mark = e.offset
		} else {
			drop(e.offset)
		}
		next.before.count += e.before.count + 1
		puts = append(puts, store.Put{Bucket: l.opt.Bucket, Key: Key(next.before.mark), Value: next.before.removed()})
	}
	l.forget(i)
	return puts
}
