package livefeed

// found is an entry that was read and not delivered yet. It refers to the ring's
// entry and not to the payload, so that a stalled reader keeps no payload alive.
type found struct {
	entry  *entry
	topics []string
}

// A loss is a gap that is being counted.
type loss struct {
	n    uint64
	text uint64 // how many of n were text
	upTo bool   // n is a bound
	last uint64 // number of the last entry that is missing, as far as known
}

// take returns the next entry if there is one, without waiting.
func (s *Subscription) take() (Entry, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isClosed() {
		return Entry{}, false
	}
	if s.stale {
		s.stale = false
		s.feed.gaps.Add(1)
		return Entry{Cursor: s.feed.at(s.at), Gap: &Gap{Lost: -1}}, true
	}
	for {
		if len(s.ready) == 0 && !s.fill() {
			break
		}
		e, topics := s.ready[0].entry, s.ready[0].topics
		p := e.payload.Load()
		if p != nil && s.missing.n > 0 {
			return s.gap(), true
		}
		s.ready[0] = found{}
		s.ready = s.ready[1:]
		if p == nil { // dropped text, or overwritten since fill
			s.missing.n++
			s.missing.last = e.seq
			if e.text {
				s.missing.text++
			}
			continue
		}
		s.at = e.seq
		return Entry{Cursor: s.feed.at(e.seq), Topic: topics[0], Also: topics[1:], Kind: e.kind, Time: e.time, payload: p}, true
	}
	if s.missing.n > 0 {
		return s.gap(), true
	}
	s.at = s.read
	return Entry{}, false
}

// gap returns an entry with the gap that was counted, and resets the count.
func (s *Subscription) gap() Entry {
	m := s.missing
	s.missing = loss{}
	s.at = max(s.at, m.last)
	s.feed.gaps.Add(1)
	s.feed.lost.Add(m.n)
	return Entry{Cursor: s.feed.at(s.at), Gap: &Gap{Lost: int64(m.n), Text: int64(m.text), UpTo: m.upTo}}
}

// fill reads up to a batch of new entries and counts those that left the ring
// unread. It reports false if there is nothing to read. The caller holds s.mu.
func (s *Subscription) fill() bool {
	f := s.feed
	f.mu.RLock()
	defer f.mu.RUnlock()
	if s.buffer == nil {
		s.buffer = make([]found, 0, batch)
	}
	s.ready = s.buffer // empty, with its full capacity
	s.overrun()
	for len(s.ready) < batch {
		next, ok := s.next()
		if !ok {
			s.read = f.seq
			break
		}
		s.read = next.entry.seq
		s.ready = append(s.ready, next)
	}
	return len(s.ready) > 0
}

// overrun counts the entries that left the ring unread.
func (s *Subscription) overrun() {
	var n uint64
	var lossy []*follow
	upTo := false
	for _, w := range s.follows {
		if w.next >= w.index.dropped {
			continue
		}
		n += w.index.dropped - w.next
		w.next = w.index.dropped
		upTo = upTo || w.index.key.class == "events" && w.pattern != "**" // how many of them matched is unknown
		for _, o := range lossy {
			upTo = upTo || o.index.key.overlaps(w.index.key)
		}
		lossy = append(lossy, w)
	}
	if n == 0 {
		return
	}
	if all := s.feed.gone - min(s.read, s.feed.gone); n > all {
		n = all
	}
	s.read = max(s.read, s.feed.gone)
	s.missing.n += n
	s.missing.upTo = s.missing.upTo || upTo
	s.missing.last = max(s.missing.last, s.feed.gone)
}

// next returns the oldest unread entry with the topics that it matches, and
// advances past it. It looks at each topic, since a subscription has few.
func (s *Subscription) next() (found, bool) {
	var oldest found
	for _, w := range s.follows {
		e := w.head()
		if e == nil {
			continue
		}
		switch {
		case oldest.entry == nil || e.seq < oldest.entry.seq:
			oldest = found{e, w.alone}
		case e.seq == oldest.entry.seq:
			oldest.topics = append(oldest.topics[:len(oldest.topics):len(oldest.topics)], w.topic)
		}
	}
	if oldest.entry == nil {
		return found{}, false
	}
	for _, w := range s.follows {
		if w.head() == oldest.entry {
			w.next++
		}
	}
	return oldest, true
}

// head returns the first unread entry that matches the follow, or nil. It skips
// events that do not match the pattern.
func (w *follow) head() *entry {
	for i := int(w.next - w.index.dropped); i < w.index.items.len(); i++ {
		e := w.index.items.at(i)
		if w.matches(e) {
			return e
		}
		w.next++
	}
	return nil
}
