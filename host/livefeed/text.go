package livefeed

import (
	"slices"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// maxGathered is how much text is gathered at most before it becomes an entry,
// bytes.
const maxGathered = 4 << 10

type streamKey struct {
	run  sentinels.RunID
	path string
}

// A stream is a model's text that is being produced. Its first piece becomes an
// entry at once, so that a client sees the model begin. The rest is gathered.
type stream struct {
	progress runtime.Progress // the first of the pieces that are gathered
	text     []byte
}

// gather adds a piece of text to its stream. The caller holds f.mu.
func (f *Feed) gather(p runtime.Progress) {
	if f.closed {
		return
	}
	k := streamKey{p.Run, p.Path}
	s := f.streams[k]
	if s == nil {
		f.streams[k] = &stream{}
		f.putProgress(p)
		f.signalWake() // also without followers: the stream's timer starts
		return
	}
	if len(s.text) == 0 {
		s.progress = p
	}
	s.text = append(s.text, p.Message...)
	if len(s.text) >= maxGathered {
		f.putText(s)
	}
}

// flush publishes the gathered text that precedes p: that of p's step, or of the
// whole run if p is about the run. The caller holds f.mu.
func (f *Feed) flush(p runtime.Progress) {
	if len(f.streams) == 0 {
		return
	}
	if p.Path != "" {
		k := streamKey{p.Run, p.Path}
		if s := f.streams[k]; s != nil {
			f.putText(s)
			delete(f.streams, k)
		}
		return
	}
	f.flushWhere(func(k streamKey) bool { return k.run == p.Run })
}

func (f *Feed) flushAll() { f.flushWhere(func(streamKey) bool { return true }) }

// flushWhere ends the streams that match, in a fixed order.
func (f *Feed) flushWhere(fits func(streamKey) bool) {
	var ended []streamKey
	for k := range f.streams {
		if fits(k) {
			ended = append(ended, k)
		}
	}
	slices.SortFunc(ended, func(a, b streamKey) int {
		return slices.Compare([]string{string(a.run), a.path}, []string{string(b.run), b.path})
	})
	for _, k := range ended {
		f.putText(f.streams[k])
		delete(f.streams, k)
	}
}

// tick publishes all gathered text and deletes the streams without text since
// the last tick; their next piece starts a new one. The caller holds f.mu.
func (f *Feed) tick() {
	for k, s := range f.streams {
		if len(s.text) == 0 {
			delete(f.streams, k)
			continue
		}
		f.putText(s)
	}
}

// putText publishes the gathered text of a stream as an entry.
func (f *Feed) putText(s *stream) {
	if len(s.text) == 0 {
		return
	}
	p := s.progress
	p.Message = string(s.text)
	s.text = s.text[:0]
	f.putProgress(p)
}
