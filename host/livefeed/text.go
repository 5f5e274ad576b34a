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

// A stream is a model's text on its way in. Its first piece becomes an entry at
// once, so that a watcher sees the model begin; what follows is gathered.
type stream struct {
	progress runtime.Progress // the first of the pieces that are gathered
	text     []byte
}

// gather takes in a piece of text. The caller holds f.mu.
func (f *Feed) gather(p runtime.Progress) {
	if f.closed {
		return
	}
	k := streamKey{p.Run, p.Path}
	s := f.streams[k]
	if s == nil {
		f.streams[k] = &stream{}
		f.putProgress(p)
		f.nudge() // also where nobody follows: the stream's time begins
		return
	}
	if len(s.text) == 0 {
		s.progress = p
	}
	s.text = append(s.text, p.Message...)
	if len(s.text) >= maxGathered {
		f.say(s)
	}
}

// flush makes entries of the text that comes before p: of p's step, or of the
// whole run where p is about that. The caller holds f.mu.
func (f *Feed) flush(p runtime.Progress) {
	if len(f.streams) == 0 {
		return
	}
	if p.Path != "" {
		k := streamKey{p.Run, p.Path}
		if s := f.streams[k]; s != nil {
			f.say(s)
			delete(f.streams, k)
		}
		return
	}
	f.flushWhere(func(k streamKey) bool { return k.run == p.Run })
}

func (f *Feed) flushAll() { f.flushWhere(func(streamKey) bool { return true }) }

// flushWhere ends the streams that fit, in a fixed order.
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
		f.say(f.streams[k])
		delete(f.streams, k)
	}
}

// tick makes entries of all that was gathered, and forgets the streams that
// have been silent since the last tick: the next piece starts one anew. The
// caller holds f.mu.
func (f *Feed) tick() {
	for k, s := range f.streams {
		if len(s.text) == 0 {
			delete(f.streams, k)
			continue
		}
		f.say(s)
	}
}

// say makes an entry of what a stream has gathered.
func (f *Feed) say(s *stream) {
	if len(s.text) == 0 {
		return
	}
	p := s.progress
	p.Message = string(s.text)
	s.text = s.text[:0]
	f.putProgress(p)
}
