package shell

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/internal/regularfile"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// OutputOptions say what of an output is read.
type OutputOptions struct {
	Stream string // stdout or stderr; empty for both, with the messages of the host
	Tail   int    // the last so many lines; 0 for all
	Times  bool   // each line begins with its time, in UTC
}

// wants are the places in [sizes] of what is read.
func (o OutputOptions) wants() (list [3]bool, err error) {
	switch o.Stream {
	case "":
		return [3]bool{true, true, true}, nil
	case "stdout":
		return [3]bool{true, false, false}, nil
	case "stderr":
		return [3]bool{false, true, false}, nil
	}
	return list, &abi.Error{Code: abi.BadFields, Field: "stream", Permanent: true, Message: fmt.Sprintf("stream %q: must be stdout or stderr", o.Stream)}
}

// An Output reads what an execution has written, as bytes and in the order in which it was read: what
// is kept when it is opened, and with [Output.Follow] what is written later. Where bytes are not kept,
// a line says how many. It is used by one goroutine.
type Output struct {
	e    *execution
	opt  OutputOptions
	want [3]bool

	sections []section
	next     int // number of the first line that no section has
	files    []*os.File

	at   int // section that is read
	in   *bufio.Reader
	left int64  // bytes of the chunk that is read
	rest []byte // that were read and not returned
	fill bool   // a line is under way, so that what follows needs no time
}

// A section is a part of an output.
type section struct {
	text   string // if it is no file
	file   *os.File
	offset int64 // of a chunk in the file
	end    int64
	skip   int   // lines to leave out, of the first chunk that is wanted
	size   int64 // of what is read of it
	index  []mark
	before extent // of its first chunk
}

// OpenOutput opens the output of an execution that the caller may read.
func (m *Manager) OpenOutput(ctx context.Context, call *command.Call, id string, opt OutputOptions) (*Output, error) {
	want, err := opt.wants()
	if err != nil {
		return nil, err
	}
	e, err := m.visible(ctx, call, id)
	if err != nil {
		return nil, err
	}
	o := &Output{e: e, opt: opt, want: want}
	if _, _, err := o.more(0); err != nil {
		return nil, errors.Join(err, o.Close())
	}
	if opt.Tail > 0 {
		if err := o.tail(); err != nil {
			return nil, errors.Join(err, o.Close())
		}
	}
	return o, nil
}

// Close closes the files.
func (o *Output) Close() error {
	var errs []error
	for _, f := range o.files {
		errs = append(errs, f.Close())
	}
	o.files, o.sections = nil, nil
	return errors.Join(errs...)
}

// Size returns how many bytes [Output.Read] gives in all, without [OutputOptions.Times].
func (o *Output) Size() (size int64) {
	for _, s := range o.sections {
		size += s.size
	}
	return size
}

// more adds the lines from a number on that no section has yet. It reports whether the execution is
// over, and returns what is closed when there is something new.
func (o *Output) more(from int) (over bool, changed <-chan struct{}, err error) {
	e := o.e
	e.mu.Lock()
	defer e.mu.Unlock()
	over, changed = e.child == nil && e.rec.State != Running, e.changed
	o.next = from
	for _, p := range e.out.parts {
		if len(p.index) == 0 || p.next <= o.next {
			continue
		}
		first := p.index[0].number
		if first > o.next {
			o.gap(first - o.next)
		}
		f, _, err := regularfile.Open(e.out.path(p.seq))
		if errors.Is(err, fs.ErrNotExist) { // removed by another program: as if it was dropped
			o.gap(p.next - max(first, o.next))
			o.next = p.next
			continue
		}
		if err != nil {
			return false, nil, fmt.Errorf("read output %q: %w", e.id, err)
		}
		o.files = append(o.files, f)
		s := section{file: f, offset: p.index[0].offset, end: p.size, index: slices.Clone(p.index)}
		if o.next > first { // a part of it was read
			if err := s.from(o.next); err != nil {
				return false, nil, fmt.Errorf("read output %q: %w", e.id, err)
			}
		}
		left := p.has.minus(s.before)
		s.size, _ = left.of(o.want)
		o.sections = append(o.sections, s)
		o.next = p.next
	}
	if over && o.next < e.out.next { // when the disk refused it
		o.gap(e.out.next - o.next)
		o.next = e.out.next
	}
	return over, changed, nil
}

// gap adds a line about lines that are not kept. Their bytes are known where these lines are all that
// was dropped; the size of what another program removed is not.
func (o *Output) gap(lines int) {
	text := fmt.Sprintf("[%d lines of output are not kept]\n", lines)
	if out := o.e.out; lines == out.dropped() {
		text = fmt.Sprintf("[%d lines of output are not kept: %d bytes]\n", lines, out.bytes)
	}
	o.sections = append(o.sections, section{text: text, size: int64(len(text))})
}

// from leaves out the chunks before the line with a number. Each read ends behind a chunk, so the line
// is the first of one.
func (s *section) from(number int) error {
	begin := markBefore(s.index, number)
	s.offset, s.before = begin.offset, begin.before
	in := scan{from: s.file, at: s.offset, end: s.end}
	for {
		c, _, ok, err := in.next()
		if err != nil || !ok || c.number >= number {
			return err
		}
		s.offset = in.at
		s.before = s.before.plus(c.extent())
	}
}

// Read implements [io.Reader]. The error at the end is io.EOF, also while the execution goes on.
func (o *Output) Read(p []byte) (n int, err error) {
	for n < len(p) {
		switch {
		case len(o.rest) > 0:
			k := copy(p[n:], o.rest)
			o.rest, n = o.rest[k:], n+k
			continue
		case o.left > 0:
			k, err := o.in.Read(p[n:min(len(p), n+int(min(o.left, 1<<30)))])
			o.left, n = o.left-int64(k), n+k
			if err != nil {
				return n, o.failed(err)
			}
			continue
		}
		if more, err := o.nextChunk(); err != nil {
			return n, o.failed(err)
		} else if !more {
			break
		}
	}
	if n == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

func (o *Output) failed(err error) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF // the file was made shorter by another program
	}
	return fmt.Errorf("read output %q: %w", o.e.id, err)
}

// stamped returns lines with their time before each.
func (o *Output) stamped(c *chunk, text []byte) []byte {
	stamp := time.UnixMilli(c.ms).UTC().AppendFormat(nil, "2006-01-02T15:04:05.000Z ")
	out := make([]byte, 0, len(text)+c.lines*len(stamp))
	for line := range bytes.Lines(text) {
		if !o.fill {
			out = append(out, stamp...)
		}
		out = append(out, line...)
		o.fill = line[len(line)-1] != '\n'
	}
	return out
}

// nextChunk goes to the next wanted chunk, or to the text of a section. more is false at the end.
func (o *Output) nextChunk() (more bool, err error) {
	for o.at < len(o.sections) {
		s := &o.sections[o.at]
		if s.file == nil {
			o.rest, s.text = []byte(s.text), ""
			o.at++
			return true, nil
		}
		if s.offset >= s.end {
			o.in = nil
			o.at++
			continue
		}
		if o.in == nil {
			o.in = bufio.NewReaderSize(io.NewSectionReader(s.file, s.offset, s.end-s.offset), 64<<10)
		}
		head, err := o.in.Peek(chunkHeader)
		if err != nil {
			return false, err
		}
		c, ok := cutChunkHeader(head)
		if !ok {
			return false, errNoOutput
		}
		if _, err := o.in.Discard(chunkHeader); err != nil {
			return false, err
		}
		s.offset += chunkHeader + c.size
		switch {
		case !o.want[kindOf(c.stream)]:
			if _, err := o.in.Discard(int(c.size)); err != nil {
				return false, err
			}
			continue
		case !o.opt.Times && s.skip == 0:
			o.left = c.size
			return true, nil
		}
		text := make([]byte, c.size)
		if _, err := io.ReadFull(o.in, text); err != nil {
			return false, err
		}
		o.rest, s.skip = afterLines(text, s.skip), 0
		if o.opt.Times {
			o.rest = o.stamped(&c, o.rest)
		}
		return true, nil
	}
	return false, nil
}

// Skip leaves out bytes of what would be read next. It is for outputs without times.
func (o *Output) Skip(count int64) error {
	for count > 0 && o.at < len(o.sections) {
		s := &o.sections[o.at]
		if o.in == nil && len(o.rest) == 0 && count >= s.size {
			count -= s.size
			o.at++
			continue
		}
		if o.in == nil && s.file != nil { // begin at the last mark before
			behind := func(m mark) int64 {
				x := m.before.minus(s.before)
				n, _ := x.of(o.want)
				return n
			}
			k, found := slices.BinarySearchFunc(s.index, count, func(m mark, count int64) int { return cmp.Compare(behind(m), count) })
			if !found {
				k--
			}
			if k >= 0 && s.index[k].offset > s.offset {
				n := behind(s.index[k])
				count, s.size = count-n, s.size-n
				s.offset, s.before = s.index[k].offset, s.index[k].before
			}
		}
		if _, err := io.CopyN(io.Discard, o, count); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		return nil
	}
	return nil
}

// tail leaves out all but the last lines.
func (o *Output) tail() error {
	left := o.opt.Tail
	for i := len(o.sections) - 1; i >= 0; i-- {
		s := &o.sections[i]
		if s.file == nil {
			continue
		}
		for k := len(s.index) - 1; k >= 0; k-- {
			end := s.end
			if k+1 < len(s.index) {
				end = s.index[k+1].offset
			}
			chunks, err := o.wanted(s, s.index[k].offset, end)
			if err != nil {
				return fmt.Errorf("read output %q: %w", o.e.id, err)
			}
			for _, c := range slices.Backward(chunks) {
				if c.lines >= left {
					s.offset, s.skip = c.offset, c.lines-left
					o.sections = o.sections[i:]
					return nil
				}
				left -= c.lines
			}
		}
	}
	return nil
}

// A wantedChunk is where a chunk begins, and how many lines it has.
type wantedChunk struct {
	offset int64
	lines  int
}

// wanted returns the wanted chunks in a part of a section.
func (o *Output) wanted(s *section, from, to int64) (list []wantedChunk, err error) {
	in := scan{from: s.file, at: from, end: to}
	for {
		c, offset, ok, err := in.next()
		if err != nil || !ok {
			return list, err
		}
		if o.want[kindOf(c.stream)] {
			list = append(list, wantedChunk{offset - chunkHeader, c.lines})
		}
	}
}

// Follow waits until there is more to read, and reports false when the execution is over and
// everything was read.
func (o *Output) Follow(ctx context.Context) (bool, error) {
	for {
		if err := o.Close(); err != nil {
			return false, err
		}
		o.at, o.in, o.left = 0, nil, 0
		over, changed, err := o.more(o.next)
		if err != nil || len(o.sections) > 0 {
			return err == nil, err
		}
		if over {
			return false, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}

// bytesKept returns how many bytes of output are on disk.
func (s *spill) bytesKept() (n int64) {
	for _, p := range s.parts {
		bytes, _ := p.has.of(allKinds)
		n += bytes
	}
	return n
}
