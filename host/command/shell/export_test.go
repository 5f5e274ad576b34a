package shell

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/redact"
	"github.com/sentinel-runtime/sentinel/sdk/role"
)

// Dir is where the spill files are.
func (m *Manager) Dir() string { return m.opt.Dir }

// Doors for tests of the parts.
type (
	Splitter = splitter
	Spill    = spill
)

var (
	Clean = clean
	Plain = plain
)

// OpenSpill opens the output of an execution as it is in a folder.
func OpenSpill(dir, id string, max int64) (*Spill, error) {
	outputs, err := listOutputs(dir)
	if err != nil {
		return nil, err
	}
	return openSpill(dir, id, max, outputs[id])
}

// NewSplitter is a splitter that removes secrets.
func NewSplitter(r *redact.Redactor) *splitter { return &splitter{redact: r} }

// CompileRules is compileRules with rules that no host has to know.
func CompileRules(rules []Rule) (ruleset, []Rule, error) { return compileRules(rules, nil) }

// Push is splitter.push, with a call of emit for each line.
func (s *splitter) Push(data []byte, emit func(string)) { s.push(data, eachOf(emit)) }

// Flush is splitter.flush.
func (s *splitter) Flush(emit func(string)) { s.flush(eachOf(emit)) }

func eachOf(emit func(string)) emitLines {
	return func(text []byte, lines int, open bool) {
		if lines != linesOf(text, open) || open == bytes.HasSuffix(text, []byte("\n")) {
			panic(fmt.Sprintf("%d lines, open %v: %q", lines, open, text))
		}
		for line := range bytes.Lines(text) {
			emit(strings.TrimSuffix(string(line), "\n"))
		}
	}
}

// Append appends a chunk of whole lines to a spill.
func (s *spill) Append(stream byte, text string) error {
	return s.append(chunk{stream: stream, ms: 1, lines: strings.Count(text, "\n")}, []byte(text))
}

// Read is spill.read.
func (s *spill) Read(from, most int) (lines []stored, err error) {
	for more := true; more && len(lines) < most && err == nil; {
		var next []stored
		next, more, err = s.read(from, most-len(lines))
		if lines = append(lines, next...); len(next) > 0 {
			from = next[len(next)-1].number + 1
		}
	}
	return lines, err
}

// Dropped returns the counts of what is not kept.
func (s *spill) Dropped() (lines int, bytes int64) { return s.dropped(), s.bytes }

// NewestFile is the file that is written to.
func (s *spill) NewestFile() string { return s.path(s.parts[len(s.parts)-1].seq) }

// String returns number, stream and text of a line, and a + if it is open.
func (l stored) String() string {
	text := fmt.Sprintf("%d %c %s", l.number, l.stream, l.text)
	if l.open {
		text += "+"
	}
	return text
}

// ExcerptOf returns the excerpt of lines that are given in blocks of so many.
func ExcerptOf(size, short int, data bool, perBlock int, text string) (excerptText string, dropped int, complete bool) {
	x := excerpt{size: size, short: short, data: data}
	list := slices.Collect(bytes.Lines([]byte(text)))
	for part := range slices.Chunk(list, perBlock) {
		b := block{text: bytes.Join(part, nil)}
		b.stream, b.lines, b.open = 'o', len(part), !bytes.HasSuffix(b.text, []byte("\n"))
		x.add(&b, 0)
	}
	return x.text(), x.dropped, x.complete()
}

// Classify judges one line.
func Classify(s ruleset, text string) (class string, matched, emit bool) {
	list, err := (&Manager{}).verdicts(context.Background(), s, []role.Line{{Text: text, Stream: "stdout"}})
	if err != nil {
		panic(err)
	}
	return list[0].class, list[0].matched, list[0].emit
}

// Summary is the text of a watch.
type Summary = summary

// Add is summary.add.
func (s *summary) Add(text, class string) { s.add(text, class) }

// Skip is summary.skip.
func (s *summary) Skip(lines int) { s.skip(lines) }
