package livefeed

// textShare is the inverse of the share of the ring's bounds that pieces of a
// model's text keep under pressure: 4 is a quarter.
const textShare = 4

// slots is how many positions the ring has for each entry that it may keep. The
// additional ones are for texts whose payload was dropped early.
const slots = 2

// evict drops entries until the rest is within bounds: first a model's text where
// it uses more than its share, then the oldest. The caller holds f.mu.
func (f *Feed) evict() {
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

// dropText drops the payload of the oldest text. The entry keeps its position, so
// that readers can count it as lost.
func (f *Feed) dropText() { f.release(f.texts.pop()) }

// release drops the payload of an entry and subtracts its size.
func (f *Feed) release(e *entry) {
	p := e.payload.Swap(nil)
	f.live--
	f.bytes -= p.size
	if p.text {
		f.text -= p.size
	}
}

// dropOldest removes the oldest entry from the ring. An index without entries and
// followers is deleted, because there is one for every run.
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
