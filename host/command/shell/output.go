package shell

import (
	"bufio"
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
	rest []byte // of a line
	fill bool   // a line is under way, so that what follows needs no time

	scratch []byte
}

// A section is a part of an output.
type section struct {
	text   string // if it is no file
	file   *os.File
	offset int64 // in the file
	end    int64
	size   int64 // of what is read of it
	index  []mark
	before sizes // of its first line
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
		if p.lines == 0 || p.last < o.next {
			continue
		}
		first := p.index[0].number
		if first > o.next {
			o.gap(first - o.next)
		}
		f, _, err := regularfile.Open(e.out.path(p.seq))
		if errors.Is(err, fs.ErrNotExist) { // removed by another program: as if it was dropped
			o.gap(p.lines)
			o.next = p.last + 1
			continue
		}
		if err != nil {
			return false, nil, fmt.Errorf("read output %q: %w", e.id, err)
		}
		o.files = append(o.files, f)
		s := section{file: f, offset: p.index[0].offset, end: p.size, index: slices.Clone(p.index)}
		s.size = o.sum(p.sizes)
		if o.next > first { // a part of it was read
			if s, err = o.from(s, p.sizes, o.next); err != nil {
				return false, nil, err
			}
		}
		o.sections = append(o.sections, s)
		o.next = p.last + 1
	}
	if over && o.next < e.out.next { // when the disk refused it
		o.gap(e.out.next - o.next)
		o.next = e.out.next
	}
	return over, changed, nil
}

// gap adds a line about lines that are not kept.
func (o *Output) gap(lines int) {
	text := fmt.Sprintf("[%d lines of output are not kept]\n", lines)
	o.sections = append(o.sections, section{text: text, size: int64(len(text))})
}

func (o *Output) sum(n sizes) (sum int64) {
	for i, wanted := range o.want {
		if wanted {
			sum += n[i]
		}
	}
	return sum
}

// from returns a section without the lines before a number.
func (o *Output) from(s section, all sizes, number int) (section, error) {
	k, found := slices.BinarySearchFunc(s.index, number, func(m mark, number int) int { return m.number - number })
	if !found {
		k = max(k-1, 0)
	}
	s.offset, s.before = s.index[k].offset, s.index[k].before
	in := bufio.NewReaderSize(io.NewSectionReader(s.file, s.offset, s.end-s.offset), 64<<10)
	for s.offset < s.end {
		line, err := readLine(in, &o.scratch)
		if err != nil {
			return s, fmt.Errorf("read output %q: %w", o.e.id, err)
		}
		if l, raw, ok := cutLine(line); ok {
			if l.number >= number {
				break
			}
			s.before[kindOf(l.stream)] += l.size(len(raw))
		}
		s.offset += int64(len(line)) + 1
	}
	left := all
	for i := range left {
		left[i] -= s.before[i]
	}
	s.size = o.sum(left)
	return s, nil
}

// readLine reads a line without its end. It is valid until the next call.
func readLine(in *bufio.Reader, scratch *[]byte) ([]byte, error) {
	line, err := in.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		*scratch = append((*scratch)[:0], line...)
		for errors.Is(err, bufio.ErrBufferFull) {
			line, err = in.ReadSlice('\n')
			*scratch = append(*scratch, line...)
		}
		line = *scratch
	}
	if err != nil {
		return nil, err
	}
	return line[:len(line)-1], nil
}

// Read implements [io.Reader]. The error at the end is io.EOF, also while the execution goes on.
func (o *Output) Read(p []byte) (n int, err error) {
	for n < len(p) {
		if len(o.rest) > 0 {
			k := copy(p[n:], o.rest)
			o.rest, n = o.rest[k:], n+k
			continue
		}
		if o.at == len(o.sections) {
			break
		}
		s := &o.sections[o.at]
		if s.file == nil {
			o.rest, s.text = []byte(s.text), ""
			o.at++
			continue
		}
		if o.in == nil {
			o.in = bufio.NewReaderSize(io.NewSectionReader(s.file, s.offset, s.end-s.offset), 64<<10)
		}
		line, err := readLine(o.in, &o.scratch)
		if errors.Is(err, io.EOF) {
			o.in = nil
			o.at++
			continue
		}
		if err != nil {
			return n, fmt.Errorf("read output %q: %w", o.e.id, err)
		}
		n += o.put(p[n:], line)
	}
	if n == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

// put writes what is wanted of a line, and keeps in rest what has no room.
func (o *Output) put(p []byte, line []byte) (n int) {
	l, raw, ok := cutLine(line)
	if !ok || !o.want[kindOf(l.stream)] {
		return 0
	}
	add := func(data []byte) {
		k := 0
		if len(o.rest) == 0 {
			k = copy(p[n:], data)
			n += k
		}
		o.rest = append(o.rest, data[k:]...)
	}
	o.rest = o.rest[:0:0]
	if o.opt.Times && !o.fill {
		add(time.UnixMilli(l.ms).UTC().AppendFormat(nil, "2006-01-02T15:04:05.000Z "))
	}
	add(raw)
	if !l.open {
		add([]byte{'\n'})
	}
	o.fill = l.open
	return n
}

// Skip leaves out bytes of what would be read next. It is for outputs without times.
func (o *Output) Skip(bytes int64) error {
	for bytes > 0 && o.at < len(o.sections) {
		s := &o.sections[o.at]
		if o.in == nil && len(o.rest) == 0 && bytes >= s.size {
			bytes -= s.size
			o.at++
			continue
		}
		if o.in == nil && s.file != nil { // begin at the last mark before
			k, found := slices.BinarySearchFunc(s.index, bytes, func(m mark, bytes int64) int {
				return int(max(min(o.sum(m.before)-o.sum(s.before)-bytes, 1), -1))
			})
			if !found {
				k--
			}
			if k >= 0 && s.index[k].offset > s.offset {
				bytes -= o.sum(s.index[k].before) - o.sum(s.before)
				s.size -= o.sum(s.index[k].before) - o.sum(s.before)
				s.offset, s.before = s.index[k].offset, s.index[k].before
			}
		}
		if _, err := io.CopyN(io.Discard, o, bytes); err != nil && !errors.Is(err, io.EOF) {
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
			begins, err := o.begins(s, s.index[k].offset, end)
			if err != nil {
				return err
			}
			if len(begins) >= left {
				s.offset = begins[len(begins)-left]
				o.sections = o.sections[i:]
				return nil
			}
			left -= len(begins)
		}
	}
	return nil
}

// begins returns where wanted lines begin in a part of a section.
func (o *Output) begins(s *section, from, to int64) (list []int64, err error) {
	in := bufio.NewReaderSize(io.NewSectionReader(s.file, from, to-from), 64<<10)
	for from < to {
		line, err := readLine(in, &o.scratch)
		if err != nil {
			return nil, fmt.Errorf("read output %q: %w", o.e.id, err)
		}
		if l, _, ok := cutLine(line); ok && o.want[kindOf(l.stream)] {
			list = append(list, from)
		}
		from += int64(len(line)) + 1
	}
	return list, nil
}

// Follow waits until there is more to read, and reports false when the execution is over and
// everything was read.
func (o *Output) Follow(ctx context.Context) (bool, error) {
	for {
		if err := o.Close(); err != nil {
			return false, err
		}
		o.at, o.in = 0, nil
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
		n += p.sizes.sum()
	}
	return n
}
