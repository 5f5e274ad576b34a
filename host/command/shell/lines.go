package shell

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"

	"github.com/sentinel-runtime/sentinel/internal/regularfile"
)

// lineSuffix ends the names of files of the first format, which has a line of text for each line of
// output: number, stream, time and bytes between tabs. The letter of the stream is a capital if the
// line is open. A line #n says how many bytes were dropped before the file.
const lineSuffix = ".log"

// convert writes the files of the first format as those of this one, and removes them. A process that
// is killed meanwhile leaves a file in one of the two formats, or in both. It returns the numbers of those
// that are in this format now.
func (s *spill) convert(seqs []int) (converted []int, err error) {
	for _, seq := range seqs {
		old, to := fmt.Sprintf("%s/%s.%d%s", s.dir, s.id, seq, lineSuffix), s.path(seq)
		if _, err := os.Lstat(to); errors.Is(err, fs.ErrNotExist) {
			lines, err := regularfile.Read(old, regularfile.Unlimited)
			if errors.Is(err, regularfile.ErrKind) { // a pipe or a folder: this part of the output is lost
				if err := os.Rename(old, old+setAside); err != nil {
					return nil, err
				}
				continue
			}
			if err == nil {
				err = regularfile.WriteFile(to+".tmp", chunksOf(lines), 0o600)
			}
			if err == nil {
				err = os.Rename(to+".tmp", to)
			}
			if err != nil {
				return nil, err
			}
		}
		if err := os.Remove(old); err != nil {
			return nil, err
		}
		converted = append(converted, seq)
	}
	return converted, nil
}

// chunksOf returns the content of a file of the first format in this one. A line that a crash left
// unfinished, and one that is not of the format, is left out.
func chunksOf(lines []byte) []byte {
	var dropped int64
	var out, text []byte
	c := chunk{}
	flush := func() {
		if c.lines > 0 {
			c.size = int64(len(text))
			out = append(appendChunkHeader(out, &c), text...)
		}
		c, text = chunk{}, text[:0]
	}
	for {
		line, rest, ok := bytes.Cut(lines, []byte{'\n'})
		if !ok {
			break
		}
		lines = rest
		if n, header := bytes.CutPrefix(line, []byte{'#'}); header {
			dropped, _ = strconv.ParseInt(string(n), 10, 64)
			continue
		}
		l, raw, ok := cutLine(line)
		if !ok {
			continue
		}
		if c.lines > 0 && (l.number != c.next() || l.stream != c.stream || l.ms != c.ms || c.open || len(text)+len(raw) > maxChunk) {
			flush()
		}
		if c.lines == 0 {
			c.number, c.stream, c.ms = l.number, l.stream, l.ms
		}
		text = append(text, raw...)
		c.lines++
		if c.open = l.open; !l.open {
			text = append(text, '\n')
		}
	}
	flush()
	return append(appendFileHeader(nil, max(dropped, 0)), out...)
}

// cutLine reads a line of the first format.
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
	return l, raw, l.stream == 'o' || l.stream == 'e' || l.stream == 'h'
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
