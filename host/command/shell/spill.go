package shell

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/sentinel-runtime/sentinel/internal/regularfile"
)

// stored is one line of output as the spill file has it.
type stored struct {
	number int    // from 0, over all streams
	stream byte   // 'o' stdout, 'e' stderr, 'h' a message of the host
	ms     int64  // Unix time
	raw    string // as it was written, without secrets
	text   string // raw as it is shown and read; see clean
	open   bool   // the stream has no line end behind it; see emitLine
}

// spill keeps the beginning and the end of an output on disk: the first half
// of its size in one file, the newest part in up to four more; what lies
// between is dropped and counted. Its owner serialises access.
type spill struct {
	dir, id string
	max     int64 // bytes on disk, roughly
	parts   []*part
	next    int    // number of the next line
	kept    int    // lines on disk
	bytes   int64  // of output that were dropped
	buffer  []byte // of append
}

// part is one file: lines with rising numbers.
type part struct {
	seq   int
	size  int64
	last  int // number of its last line
	lines int
	sizes sizes
	index []mark // each 128th line
}

// mark is the position of a line.
type mark struct {
	number int
	offset int64 // in the file
	before sizes // of the lines before it in its part
}

// sizes are bytes of output: of stdout, of stderr, and of the messages of the host.
type sizes [3]int64

func (n sizes) sum() int64 { return n[0] + n[1] + n[2] }

// size returns how many bytes of output a line of so many bytes is.
func (l *stored) size(bytes int) int64 {
	if l.open {
		return int64(bytes)
	}
	return int64(bytes) + 1 // its line end
}

// kindOf returns the place of a stream in [sizes].
func kindOf(stream byte) int {
	switch stream {
	case 'o':
		return 0
	case 'e':
		return 1
	}
	return 2
}

const (
	tailParts  = 4
	indexEvery = 128
)

// openSpill opens what is on disk, nothing if there is nothing.
func openSpill(dir, id string, max int64) (*spill, error) {
	s := &spill{dir: dir, id: id, max: max}
	// Not filepath.Glob: the folder's path may have characters of a pattern.
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("open output %q: %w", id, err)
	}
	var seqs []int
	for _, e := range entries {
		rest, ours := strings.CutPrefix(e.Name(), id+".")
		middle, isLog := strings.CutSuffix(rest, ".log")
		if n, err := strconv.Atoi(middle); ours && isLog && err == nil {
			seqs = append(seqs, n)
		}
	}
	slices.Sort(seqs)
	for _, seq := range seqs {
		err := s.load(seq)
		if errors.Is(err, regularfile.ErrKind) { // a pipe or a folder: this part of the output is lost
			err = os.Rename(s.path(seq), s.path(seq)+setAside)
		}
		if err != nil {
			return nil, fmt.Errorf("open output %q: %w", id, err)
		}
	}
	return s, nil
}

// load reads one file to rebuild its index. A torn last line, left by a crash
// of the machine, is cut off.
func (s *spill) load(seq int) error {
	data, err := regularfile.Read(s.path(seq), regularfile.Unlimited)
	if err != nil {
		return err
	}
	p := &part{seq: seq}
	for {
		line, _, ok := bytes.Cut(data[p.size:], []byte("\n"))
		if !ok {
			break
		}
		if n, header := bytes.CutPrefix(line, []byte("#")); header {
			s.bytes, _ = strconv.ParseInt(string(n), 10, 64)
		} else if l, raw, ok := cutLine(line); ok {
			p.add(&l, len(raw), p.size)
			s.next = l.number + 1
			s.kept++
		}
		p.size += int64(len(line)) + 1
	}
	if p.size < int64(len(data)) {
		if err := os.Truncate(s.path(seq), p.size); err != nil {
			return err
		}
	}
	s.parts = append(s.parts, p)
	return nil
}

// add counts a line of so many bytes that begins at offset.
func (p *part) add(l *stored, bytes int, offset int64) {
	if p.lines%indexEvery == 0 {
		p.index = append(p.index, mark{l.number, offset, p.sizes})
	}
	p.last = l.number
	p.lines++
	p.sizes[kindOf(l.stream)] += l.size(bytes)
}

// path names the file of a part.
func (s *spill) path(seq int) string {
	return filepath.Join(s.dir, fmt.Sprintf("%s.%d.log", s.id, seq))
}

// size returns the bytes on disk.
func (s *spill) size() int64 {
	var n int64
	for _, p := range s.parts {
		n += p.size
	}
	return n
}

// dropped returns how many lines are not on disk any more.
func (s *spill) dropped() int { return s.next - s.kept }

// append numbers lines and writes them. If the disk refuses, they count as
// dropped: a full disk must not stop the program that writes.
func (s *spill) append(lines []stored) error {
	var problem error
	for len(lines) > 0 {
		p, room, err := s.current()
		if err != nil {
			problem = err
		}
		text := s.buffer[:0]
		n := 0
		before := *p
		for n < len(lines) && (int64(len(text)) < room || n == 0) {
			lines[n].number = s.next
			p.add(&lines[n], len(lines[n].raw), p.size+int64(len(text)))
			text = appendLine(text, lines[n])
			s.next++
			n++
		}
		if err == nil {
			err = s.write(p, text)
		}
		if err != nil {
			problem = err
			s.bytes += p.sizes.sum() - before.sizes.sum()
			*p = before
		} else {
			p.size += int64(len(text))
			s.kept += n
		}
		lines, s.buffer = lines[n:], text
	}
	return problem
}

// current returns the part to write to and its room in bytes, rotating if the
// newest is full.
func (s *spill) current() (*part, int64, error) {
	if len(s.parts) == 0 {
		s.parts = append(s.parts, &part{})
	}
	last := s.parts[len(s.parts)-1]
	limit := s.max / 2
	if last.seq > 0 {
		limit = s.max / 2 / tailParts
	}
	if last.size < limit {
		return last, limit - last.size, nil
	}
	if len(s.parts) > tailParts {
		old := s.parts[1]
		if err := os.Remove(s.path(old.seq)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return last, 1 << 20, err
		}
		s.parts = slices.Delete(s.parts, 1, 2)
		s.kept -= old.lines
		s.bytes += old.sizes.sum()
	}
	p := &part{seq: last.seq + 1}
	s.parts = append(s.parts, p)
	header := fmt.Appendf(nil, "#%d\n", s.bytes)
	if err := s.write(p, header); err != nil {
		return p, limit, err
	}
	p.size = int64(len(header))
	return p, s.max / 2 / tailParts, nil
}

// write appends text to a part's file at its known size, so that the remains
// of a failed write are overwritten.
func (s *spill) write(p *part, text []byte) error {
	f, err := regularfile.OpenFile(s.path(p.seq), os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(text, p.size)
	if err != nil {
		err = errors.Join(err, f.Truncate(p.size))
	}
	return errors.Join(err, f.Close())
}

// read returns at most that many lines with numbers from from on. Numbers that
// are left out were dropped.
func (s *spill) read(from, most int) (lines []stored, err error) {
	for _, p := range s.parts {
		if p.lines == 0 || p.last < from {
			continue
		}
		got, err := s.readPart(p, from, most-len(lines))
		if err != nil {
			return lines, fmt.Errorf("read output %q: %w", s.id, err)
		}
		if lines = append(lines, got...); len(lines) == most {
			break
		}
	}
	return lines, nil
}

// readPart starts at the last indexed line before from, so a page deep in a long
// output costs no more than one at its beginning.
func (s *spill) readPart(p *part, from, most int) ([]stored, error) {
	f, _, err := regularfile.Open(s.path(p.seq))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	k, found := slices.BinarySearchFunc(p.index, from, func(m mark, number int) int { return cmp.Compare(m.number, number) })
	if !found {
		k = max(k-1, 0)
	}
	offset := p.index[k].offset
	r := bufio.NewReaderSize(io.NewSectionReader(f, offset, p.size-offset), 64<<10)
	var lines []stored
	for len(lines) < most {
		line, err := r.ReadBytes('\n')
		if err == io.EOF {
			break
		}
		if err != nil {
			return lines, err
		}
		if l, ok := parseLine(line[:len(line)-1]); ok && l.number >= from {
			lines = append(lines, l)
		}
	}
	return lines, nil
}

// remove deletes every file.
func (s *spill) remove() error {
	var problems []error
	for _, p := range s.parts {
		if err := os.Remove(s.path(p.seq)); err != nil && !errors.Is(err, os.ErrNotExist) {
			problems = append(problems, err)
		}
	}
	return errors.Join(problems...)
}

// appendLine writes a line as number, stream, time and bytes between tabs. The letter
// of the stream is a capital if the line is open.
func appendLine(b []byte, l stored) []byte {
	b = strconv.AppendInt(b, int64(l.number), 10)
	stream := l.stream
	if l.open {
		stream -= 'a' - 'A'
	}
	b = append(b, '\t', stream, '\t')
	b = strconv.AppendInt(b, l.ms, 10)
	b = append(b, '\t')
	b = append(b, l.raw...)
	return append(b, '\n')
}

// parseLine reverses [appendLine] without the line end.
func parseLine(line []byte) (stored, bool) {
	l, raw, ok := cutLine(line)
	if !ok {
		return stored{}, false
	}
	l.raw = string(raw)
	if !l.open {
		raw = bytes.TrimRight(raw, "\r") // a line of Windows ends with \r\n
	}
	l.text = clean(raw)
	return l, true
}

// cutLine is parseLine without the text.
func cutLine(line []byte) (l stored, raw []byte, ok bool) {
	number, rest, _ := bytes.Cut(line, []byte("\t"))
	stream, rest, _ := bytes.Cut(rest, []byte("\t"))
	ms, raw, ok := bytes.Cut(rest, []byte("\t"))
	if !ok || len(stream) != 1 {
		return stored{}, nil, false
	}
	n, valid := parseInt(number)
	t, valid2 := parseInt(ms)
	if !valid || !valid2 {
		return stored{}, nil, false
	}
	l = stored{number: int(n), stream: stream[0], ms: t}
	if l.stream >= 'A' && l.stream <= 'Z' {
		l.stream, l.open = l.stream+'a'-'A', true
	}
	return l, raw, true
}

// parseInt reads the digits of a number of at most 18 digits.
func parseInt(digits []byte) (n int64, ok bool) {
	for _, d := range digits {
		if d < '0' || d > '9' {
			return 0, false
		}
		n = 10*n + int64(d-'0')
	}
	return n, len(digits) > 0 && len(digits) <= 18
}
