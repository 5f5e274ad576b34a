package livefeed

// textShare is the part of the ring's room that a model's text in pieces may
// keep when room is short: one in so many.
const textShare = 4

// slots is how many places the ring has for each entry it may keep: what is
// beyond are places of texts that were let go of early.
const slots = 2

// makeRoom lets entries go until the rest is within bounds: a model's text first,
// where it takes more than its share, then the oldest. The caller holds f.mu.
func (f *Feed) makeRoom() {
	for f.live > f.opt.Entries || f.bytes > f.opt.Bytes {
		if f.texts.len() > f.opt.Entries/textShare || f.text > f.opt.Bytes/textShare {
			f.dropText()
		} else {
			f.dropOldest()
		}
	}
	for f.ring.len() > slots*f.opt.Entries {
		f.dropOldest()
	}
}

// dropText takes the oldest text out of its entry. The entry keeps its place, so
// that a reader who comes by can count it.
func (f *Feed) dropText() { f.release(f.texts.pop()) }

// release counts an entry's payload out and forgets it.
func (f *Feed) release(e *entry) {
	p := e.payload.Swap(nil)
	f.live--
	f.bytes -= p.size
	if p.text {
		f.text -= p.size
	}
}

// dropOldest takes the oldest entry out of the ring. An index that has neither
// entries nor followers any more is forgotten: there is one for every run.
func (f *Feed) dropOldest() {
	e := f.ring.pop()
	if f.texts.len() > 0 && f.texts.at(0) == e {
		f.texts.pop()
	}
	if e.payload.Load() != nil {
		f.release(e)
	}
	f.gone = e.seq
	for _, x := range e.indexes {
		if x == nil {
			break
		}
		x.items.pop() // e: an index has the ring's order
		x.dropped++
		x.lastGone = e.seq
		f.forget(x)
	}
}

func (f *Feed) forget(x *index) {
	if x.items.len() == 0 && len(x.followers) == 0 && !x.dirty {
		delete(f.indexes, x.key)
	}
}
