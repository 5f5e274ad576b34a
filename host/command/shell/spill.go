package shell

import (
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
	"time"

	"github.com/sentinel-runtime/sentinel/internal/regularfile"
)

// stored is one line of output as it is read.
type stored struct {
	number int    // from 0, over all streams
	stream byte   // as that of a chunk
	ms     int64  // Unix time
	text   string // as it is shown and read; see clean
	open   bool   // the stream has no line end behind it
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

// part is one file: chunks with rising line numbers.
type part struct {
	seq  int
	size int64
	next int // number of the first line behind it
	has  extent
	// index has the first chunk, and each that begins indexEvery bytes or more behind the one
	// before it.
	index []mark
}

// mark is the position of a chunk.
type mark struct {
	number int    // of its first line
	offset int64  // in the file
	before extent // of the chunks before it in its part
}

// extent counts output: of stdout, of stderr, and of the messages of the host.
type extent struct {
	bytes, lines [3]int64
}

// extent returns what a chunk has.
func (c *chunk) extent() (x extent) {
	k := kindOf(c.stream)
	x.bytes[k], x.lines[k] = c.size, int64(c.lines)
	return x
}

// minus returns what x has more than y.
func (x extent) minus(y extent) extent {
	for i := range x.bytes {
		x.bytes[i] -= y.bytes[i]
		x.lines[i] -= y.lines[i]
	}
	return x
}

// plus returns both together.
func (x extent) plus(y extent) extent {
	for i := range x.bytes {
		x.bytes[i] += y.bytes[i]
		x.lines[i] += y.lines[i]
	}
	return x
}

// of returns the bytes and lines of the kinds that are wanted.
func (x *extent) of(want [3]bool) (bytes, lines int64) {
	for i, wanted := range want {
		if wanted {
			bytes += x.bytes[i]
			lines += x.lines[i]
		}
	}
	return bytes, lines
}

// allKinds wants each stream and the messages of the host.
var allKinds = [3]bool{true, true, true}

// kindOf returns the place of a stream in an [extent].
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
	tailParts    = 4
	indexEvery   = 16 << 10
	outputSuffix = ".out" // of the names of files
)

// outputFiles are the numbers of the files of one output, in ascending order.
type outputFiles struct {
	parts []int
	lines []int // in the first format, see [spill.convert]
}

// listOutputs returns the files of all outputs in a folder by the id of their execution. It reads the folder once:
// a host that starts opens thousands of outputs, and a listing for each takes time by the square of their number.
func listOutputs(dir string) (map[string]outputFiles, error) {
	// Not filepath.Glob: the folder's path may have characters of a pattern.
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list outputs: %w", err)
	}
	list := map[string]outputFiles{}
	for _, e := range entries {
		base, isOutput := strings.CutSuffix(e.Name(), outputSuffix)
		base, isLines := strings.CutSuffix(base, lineSuffix)
		id, number, numbered := strings.Cut(base, ".")
		seq, err := strconv.Atoi(number)
		if isOutput == isLines || !numbered || err != nil {
			continue
		}
		files := list[id]
		if isOutput {
			files.parts = append(files.parts, seq)
		} else {
			files.lines = append(files.lines, seq)
		}
		list[id] = files
	}
	for _, files := range list {
		slices.Sort(files.parts)
		slices.Sort(files.lines)
	}
	return list, nil
}

// openSpill opens what is on disk, nothing if there is nothing. files are those of the output, see [listOutputs].
func openSpill(dir, id string, max int64, files outputFiles) (*spill, error) {
	s := &spill{dir: dir, id: id, max: max}
	converted, err := s.convert(files.lines)
	if err != nil {
		return nil, fmt.Errorf("open output %q: convert the format of an earlier version: %w", id, err)
	}
	seqs := slices.Concat(files.parts, converted)
	slices.Sort(seqs)
	var messages []string
	for _, seq := range slices.Compact(seqs) {
		message, err := s.load(seq)
		if errors.Is(err, regularfile.ErrKind) || errors.Is(err, errNoOutput) { // this part of the output is lost
			err = os.Rename(s.path(seq), s.path(seq)+setAside)
		}
		if err != nil {
			return nil, fmt.Errorf("open output %q: %w", id, err)
		}
		if message != "" {
			messages = append(messages, message)
		}
	}
	for _, text := range messages {
		// On a full disk the message counts as dropped; the output is read all the same.
		_ = s.append(chunk{stream: 'h', ms: time.Now().UnixMilli(), lines: 1}, []byte(text))
	}
	return s, nil
}

// errNoOutput is the cause of an error about a file that no version of this format has written.
var errNoOutput = errors.New("not a file of output of this format")

// load reads the headers of a file to build its index. A chunk that a killed process or a crash of
// the machine left unfinished keeps the bytes that it has. What stands behind a damaged header is cut
// off. message says how many bytes are missing.
func (s *spill) load(seq int) (message string, err error) {
	f, info, err := regularfile.Open(s.path(seq))
	if err != nil {
		return "", err
	}
	defer f.Close()
	p := &part{seq: seq}
	if info.Size() < fileHeader { // the process was killed between making the file and writing to it
		s.parts = append(s.parts, p)
		return "", os.Truncate(s.path(seq), 0)
	}
	var head [fileHeader]byte
	if _, err := f.ReadAt(head[:], 0); err != nil {
		return "", err
	}
	dropped, ok := cutFileHeader(head[:])
	if !ok {
		return "", errNoOutput
	}
	s.parts = append(s.parts, p)
	s.bytes, p.size = dropped, fileHeader
	in := scan{from: f, at: fileHeader, end: info.Size()}
	for {
		c, offset, ok, err := in.next()
		if err != nil {
			return "", err
		}
		if !ok || c.number < s.next {
			break
		}
		if in.at > in.end {
			return s.finish(f, p, c, in.end-offset)
		}
		s.count(p, &c)
	}
	missing := info.Size() - p.size
	if missing == 0 {
		return "", nil
	}
	if missing > chunkHeader { // more than an unfinished header
		message = fmt.Sprintf("[%d bytes of stored output are damaged and were left out]\n", missing)
	}
	return message, os.Truncate(s.path(seq), p.size)
}

// finish keeps the beginning of a chunk that has fewer bytes than its header says.
func (s *spill) finish(from io.ReaderAt, p *part, c chunk, has int64) (message string, err error) {
	message = fmt.Sprintf("[%d bytes of output are missing here: the host was stopped while it stored them]\n", c.size-has)
	if has == 0 {
		return message, os.Truncate(s.path(p.seq), p.size)
	}
	text := make([]byte, has)
	if _, err := from.ReadAt(text, p.size+chunkHeader); err != nil {
		return "", err
	}
	c.open = text[has-1] != '\n'
	c.lines, c.size = linesOf(text, c.open), has
	f, err := regularfile.OpenFile(s.path(p.seq), os.O_WRONLY, 0)
	if err != nil {
		return "", err
	}
	_, err = f.WriteAt(appendChunkHeader(nil, &c), p.size)
	s.count(p, &c)
	return message, errors.Join(err, f.Close())
}

// count adds a chunk that is at the end of a part.
func (s *spill) count(p *part, c *chunk) {
	if n := len(p.index); n == 0 || p.size-p.index[n-1].offset >= indexEvery {
		p.index = append(p.index, mark{c.number, p.size, p.has})
	}
	p.has = p.has.plus(c.extent())
	p.size += chunkHeader + c.size
	p.next = c.next()
	s.next = p.next
	s.kept += c.lines
}

// path names the file of a part.
func (s *spill) path(seq int) string {
	return filepath.Join(s.dir, fmt.Sprintf("%s.%d%s", s.id, seq, outputSuffix))
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

// append numbers the lines of a text and writes them, with the stream, the time and the rest of c. If
// the disk refuses, they count as dropped: a full disk must not stop the program that writes.
func (s *spill) append(c chunk, text []byte) error {
	var problem error
	for len(text) > 0 {
		p, room, err := s.current()
		if err != nil {
			problem = err
		}
		one, piece := c, text[:beginning(text, min(room-chunkHeader, maxChunk))]
		if len(piece) < len(text) {
			one.lines, one.open = linesOf(piece, false), false
		}
		one.number, one.size = s.next, int64(len(piece))
		if err == nil {
			err = s.write(p, &one, piece)
		}
		if err != nil {
			problem = err
			s.bytes += one.size
			s.next = one.next()
		} else {
			s.count(p, &one)
		}
		text, c.lines = text[len(piece):], c.lines-one.lines
	}
	return problem
}

// beginning returns how many bytes at the beginning of text are whole lines of at most so many bytes
// together: one line at least, and all of text if it has but one.
func beginning(text []byte, most int64) int {
	if int64(len(text)) <= most {
		return len(text)
	}
	if i := bytes.LastIndexByte(text[:max(most, 0)], '\n'); i >= 0 {
		return i + 1
	}
	if i := bytes.IndexByte(text, '\n'); i >= 0 {
		return i + 1
	}
	return len(text)
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
		bytes, lines := old.has.of(allKinds)
		s.kept -= int(lines)
		s.bytes += bytes
	}
	p := &part{seq: last.seq + 1}
	s.parts = append(s.parts, p)
	return p, s.max / 2 / tailParts, nil
}

// write appends a chunk to a part's file at its known size, so that the remains
// of a failed write are overwritten. It begins the file with its header.
func (s *spill) write(p *part, c *chunk, text []byte) error {
	f, err := regularfile.OpenFile(s.path(p.seq), os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	s.buffer = s.buffer[:0]
	if p.size == 0 {
		s.buffer = appendFileHeader(s.buffer, s.bytes)
	}
	begin := int64(len(s.buffer))
	s.buffer = append(appendChunkHeader(s.buffer, c), text...)
	_, err = f.WriteAt(s.buffer, p.size)
	if err != nil {
		err = errors.Join(err, f.Truncate(p.size))
	} else {
		p.size += begin
	}
	return errors.Join(err, f.Close())
}

// block is lines of a chunk, with their bytes.
type block struct {
	chunk
	text []byte
}

// How much is read from disk at a time, in bytes: for a page of lines, which most often begins in a
// chunk with a mark, and for all of an output.
const (
	readPage = maxChunk + chunkHeader
	readAll  = 8 * maxChunk
)

// blocks returns the chunks with lines from a number on, as far as about size bytes have them; none
// at the end. Numbers that are left out were dropped. follow is what is on disk behind them.
func (s *spill) blocks(from int, size int64) (list []block, follow extent, err error) {
	for i, p := range s.parts {
		if p.next <= from || len(p.index) == 0 {
			continue
		}
		if list, follow, err = s.blocksOf(p, from, size); err != nil {
			return nil, follow, fmt.Errorf("read output %q: %w", s.id, err)
		}
		for _, later := range s.parts[i+1:] {
			follow = follow.plus(later.has)
		}
		break
	}
	return list, follow, nil
}

// blocksOf starts at the last indexed chunk before from, so a page deep in a long output costs no
// more than one at its beginning.
func (s *spill) blocksOf(p *part, from int, size int64) (list []block, follow extent, err error) {
	f, _, err := regularfile.Open(s.path(p.seq))
	if err != nil {
		return nil, follow, err
	}
	defer f.Close()
	first := markBefore(p.index, from)
	at := first.offset
	size = min(p.size-at, size)
	data := make([]byte, size)
	for {
		if _, err := f.ReadAt(data, at); err != nil {
			return nil, follow, err
		}
		follow = p.has.minus(first.before)
		in := scan{from: bytes.NewReader(data), end: size, window: data}
		for {
			c, offset, ok, err := in.next()
			if err != nil || !ok || in.at > size {
				break
			}
			follow = follow.minus(c.extent())
			if c.next() <= from {
				continue
			}
			b := block{c, data[offset:in.at]}
			if skip := from - c.number; skip > 0 {
				b.text = afterLines(b.text, skip)
				b.number, b.lines, b.size = from, c.lines-skip, int64(len(b.text))
			}
			list = append(list, b)
		}
		switch {
		case len(list) > 0:
			return list, follow, nil
		case at+size == p.size:
			return nil, follow, fmt.Errorf("%s: line %d: %w", s.path(p.seq), from, errNoOutput) // changed by another program
		}
		// The chunk is larger, or the part before it is.
		size = min(p.size-at, 2*size)
		data = make([]byte, size)
	}
}

// markBefore returns the last mark at or before a line, or else the first one.
func markBefore(index []mark, number int) mark {
	k, found := slices.BinarySearchFunc(index, number, func(m mark, number int) int { return cmp.Compare(m.number, number) })
	if !found {
		k = max(k-1, 0)
	}
	return index[k]
}

// readBytes is how many bytes of text a read returns, and a page more: its lines may have 32 KiB each.
const readBytes = 512 << 10

// read returns at most that many lines with numbers from from on. more says that a bound ended
// it, and not the end of what is kept.
func (s *spill) read(from, most int) (lines []stored, more bool, err error) {
	for size := 0; len(lines) < most && size < readBytes; {
		list, _, err := s.blocks(from, readPage)
		if err != nil || len(list) == 0 {
			return lines, false, err
		}
		for i := range list {
			lines = list[i].appendLines(lines, most)
			from = list[i].next()
			size += len(list[i].text)
		}
	}
	return lines, true, nil
}

// appendLines appends the lines of a block, until the list has so many.
func (b *block) appendLines(list []stored, most int) []stored {
	rest := b.text
	list = slices.Grow(list, min(b.lines, most-len(list)))
	for i := 0; i < b.lines && len(list) < most; i++ {
		l := stored{number: b.number + i, stream: b.stream, ms: b.ms}
		line, after, closed := bytes.Cut(rest, []byte{'\n'})
		if l.open = !closed; closed {
			line = bytes.TrimRight(line, "\r") // a line of Windows ends with \r\n
		}
		l.text, rest = clean(line), after
		list = append(list, l)
	}
	return list
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
