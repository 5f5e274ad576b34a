package shell

import (
	"context"

	"github.com/sentinel-runtime/sentinel/host/redact"
	"github.com/sentinel-runtime/sentinel/sdk/role"
)

// Dir is where the spill files are.
func (m *Manager) Dir() string { return m.opt.Dir }

// Doors for tests of the parts.
type (
	Splitter = splitter
	Stored   = stored
)

var (
	Clean      = clean
	OpenSpill  = openSpill
	ParseLine  = parseLine
	AppendLine = appendLine
)

// NewSplitter is a splitter that removes secrets.
func NewSplitter(r *redact.Redactor) *splitter { return &splitter{redact: r} }

// CompileRules is compileRules with rules that no host has to know.
func CompileRules(rules []Rule) (ruleset, []Rule, error) { return compileRules(rules, nil) }

// Push is splitter.push.
func (s *splitter) Push(data []byte, emit func(string)) {
	s.push(data, func(text string, _ bool) { emit(text) })
}

// Flush is splitter.flush.
func (s *splitter) Flush(emit func(string)) {
	s.flush(func(text string, _ bool) { emit(text) })
}

// Append is spill.append.
func (s *spill) Append(lines []stored) error { return s.append(lines) }

// Read is spill.read.
func (s *spill) Read(from, most int) ([]stored, error) { return s.read(from, most) }

// Dropped returns the counts of what is not kept.
func (s *spill) Dropped() (lines int, bytes int64) { return s.dropped(), s.bytes }

// NewestFile is the file that is written to.
func (s *spill) NewestFile() string { return s.path(s.parts[len(s.parts)-1].seq) }

// NewStored makes a line.
func NewStored(stream byte, text string) stored { return stored{stream: stream, raw: text} }

// Text is the text of a line.
func (l stored) Text() string { return l.text }

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
