package code

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"regexp"
	"strconv"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/internal/filewalk"
	"github.com/sentinel-runtime/sentinel/internal/boundedregexp"
	"github.com/sentinel-runtime/sentinel/internal/lazyregexp"
	"github.com/sentinel-runtime/sentinel/internal/pathtext"
	"github.com/sentinel-runtime/sentinel/sentinels/glob"
)

const (
	maxSearchFile = 8 << 20 // larger files are skipped and counted
	maxPattern    = 1 << 10
	matchLine     = 500 // bytes of one line in a result
)

type searchIn struct {
	Pattern    string `json:"pattern" jsonschema:"regular expression (RE2 syntax) that a line must match"`
	Path       string `json:"path,omitempty" jsonschema:"folder or file to search, the workspace if not given"`
	Glob       string `json:"glob,omitempty" jsonschema:"only files that match this glob (sentinel help globs), such as src/**/*.{ts,tsx}; one without a slash, such as *.go, applies in every folder, and ./*.go in the first"`
	Literal    bool   `json:"literal,omitempty" jsonschema:"the pattern is plain text, not a regular expression"`
	IgnoreCase bool   `json:"ignoreCase,omitempty" jsonschema:"ignore the case of letters"`
	All        bool   `json:"all,omitempty" jsonschema:"search ignored files too"`
	Context    int    `json:"context,omitempty" jsonschema:"lines to show before and after a match" minimum:"0" maximum:"10"`
	MaxResults int    `json:"maxResults,omitempty" jsonschema:"number of matches to return, 100 if not given" minimum:"1" maximum:"1000"`
}

type searchOut struct {
	Matches   []match `json:"matches"`
	Files     int     `json:"files" jsonschema:"number of files that were searched"`
	Skipped   int     `json:"skipped" jsonschema:"number of files that were not searched: binary, too large, unreadable, or for a model with secrets"`
	Truncated bool    `json:"truncated" jsonschema:"there are more matches"`
	Text      string  `json:"text" jsonschema:"the matches as path:line: text"`
}

type match struct {
	Path   string   `json:"path"`
	Line   int      `json:"line"`
	Column int      `json:"column" jsonschema:"byte of the line at which the match begins, from 1"`
	Text   string   `json:"text"`
	Before []string `json:"before,omitempty"`
	After  []string `json:"after,omitempty"`
}

// search reads one file at a time and ends when the result is full, so it needs
// memory for one file and one result.
func (f files) search(ctx context.Context, call *command.Call, in searchIn) (searchOut, error) {
	s, err := newSearcher(in)
	if err != nil {
		return searchOut{}, err
	}
	s.held = call.Peak()
	w, err := f.open(call)
	if err != nil {
		return searchOut{}, err
	}
	defer w.Close()
	start, info, err := w.folder(in.Path)
	if err != nil {
		return searchOut{}, err
	}
	if info.IsDir() {
		_, err = w.walk(ctx, filewalk.Options{Start: start, All: in.All}, func(name string, d fs.DirEntry) error {
			switch {
			case d.IsDir() && s.glob != nil && !s.glob.Reaches(name):
				return fs.SkipDir
			case d.IsDir() || s.glob != nil && !s.glob.Match(w.visibleName(name)):
				return nil
			}
			info, err := d.Info()
			if err != nil {
				s.out.Skipped++
				return nil
			}
			return s.file(ctx, w, name, info)
		})
	} else if err = s.file(ctx, w, start, info); errors.Is(err, fs.SkipAll) {
		err = nil
	}
	s.out.Text = s.text.String()
	return s.out, err
}

// anchors finds the parts of a pattern that can match in a line of a file although
// they do not match in the whole file.
var anchors = lazyregexp.New(`[\^$]|\\[AzZ]`)

// A searcher collects the matches of one search.
type searcher struct {
	re      *boundedregexp.Regexp
	glob    *glob.Pattern // nil: every file
	plain   bool          // no anchors: a line only matches if the whole file does
	max     int
	held    *command.Peak // the file that is searched and the result
	context int
	size    int // bytes of the result so far
	text    strings.Builder
	out     searchOut
}

// newSearcher compiles the patterns. Its errors name the field.
func newSearcher(in searchIn) (*searcher, error) {
	s := &searcher{max: in.MaxResults, context: in.Context, out: searchOut{Matches: []match{}}}
	if s.max == 0 {
		s.max = 100
	}
	pattern := in.Pattern
	if pattern == "" || len(pattern) > maxPattern {
		return nil, badPattern("pattern", errors.New("must have 1 to 1024 bytes"), "")
	}
	if in.Literal {
		pattern = regexp.QuoteMeta(pattern)
	}
	if in.IgnoreCase {
		pattern = "(?i)" + pattern
	}
	var err error
	if s.re, err = boundedregexp.Compile(pattern, boundedregexp.MaxInstructions); err != nil {
		return nil, badPattern("pattern", err, "set literal to search for it as plain text")
	}
	s.plain = !anchors.MatchString(pattern)
	if in.Glob != "" {
		p, err := glob.ParseSearch(in.Glob)
		if s.glob = &p; err != nil {
			return nil, badPattern("glob", err, "`sentinel help globs` has the syntax")
		}
	}
	return s, nil
}

// file searches one file. It returns [fs.SkipAll] once the result is full.
func (s *searcher) file(ctx context.Context, w *workspace, name string, info fs.FileInfo) error {
	if !info.Mode().IsRegular() {
		return nil
	}
	if w.model && w.rules.Match(name) {
		s.out.Skipped++
		return nil
	}
	if info.Size() <= maxSearchFile {
		if err := s.held.Hold(info.Size() + int64(s.size)); err != nil {
			return err
		}
	}
	data, err := filewalk.ReadFile(w.Root(), name, info, maxSearchFile)
	if err != nil || isBinary(data) || w.model && w.rules.MatchContent(name, data) {
		s.out.Skipped++
		return nil
	}
	if w.model && w.rules.Redact != nil {
		data = w.rules.Redact(data) // else a match would tell what the result does not show
	}
	s.out.Files++
	if s.plain {
		if found, err := s.somewhere(ctx, data); err != nil || !found {
			return err
		}
	}
	lines := splitLines(data)
	for i, line := range lines {
		at, err := s.re.FindIndex(ctx, trimEOL(line))
		if err != nil {
			return err
		}
		if at == nil {
			continue
		}
		m := match{Path: pathtext.Encode(name), Line: i + 1, Column: at[0] + 1, Text: shown(line)}
		for k := max(i-s.context, 0); k < i; k++ {
			m.Before = append(m.Before, shown(lines[k]))
		}
		for k := i + 1; k <= min(i+s.context, len(lines)-1); k++ {
			m.After = append(m.After, shown(lines[k]))
		}
		if !s.add(m) {
			s.out.Truncated = true
			return fs.SkipAll
		}
	}
	return nil
}

// somewhere reports whether a pattern without anchors may match a line of a file. It looks at
// as many lines at once as the matcher takes at full speed.
func (s *searcher) somewhere(ctx context.Context, data []byte) (bool, error) {
	for len(data) > 0 {
		size := min(len(data), s.re.Uninterrupted())
		if end := bytes.LastIndexByte(data[:size], '\n'); end >= 0 {
			size = end + 1
		} else if end = bytes.IndexByte(data[size:], '\n'); end >= 0 { // a longer line
			size += end + 1
		} else {
			size = len(data)
		}
		if found, err := s.re.Match(ctx, data[:size]); found || err != nil {
			return found, err
		}
		data = data[size:]
	}
	return false, nil
}

// add adds a match and reports false if the result is full. Path and lines count
// twice, because they are also in the text for people.
func (s *searcher) add(m match) bool {
	s.size += 100 + 2*jsonSize(m.Path, m.Text) + 2*jsonSize(m.Before...) + 2*jsonSize(m.After...)
	if len(s.out.Matches) == s.max || s.size > maxResult {
		return false
	}
	s.out.Matches = append(s.out.Matches, m)
	writeMatch(&s.text, m)
	return true
}

// writeMatch writes a match in the format of grep: colons for the matching line,
// dashes for those around it.
func writeMatch(b *strings.Builder, m match) {
	for i, l := range m.Before {
		writeLine(b, m.Path, m.Line-len(m.Before)+i, '-', l)
	}
	writeLine(b, m.Path, m.Line, ':', m.Text)
	for i, l := range m.After {
		writeLine(b, m.Path, m.Line+1+i, '-', l)
	}
}

func writeLine(b *strings.Builder, name string, line int, mark byte, text string) {
	b.WriteString(name)
	b.WriteByte(mark)
	b.WriteString(strconv.Itoa(line))
	b.WriteByte(mark)
	b.WriteByte(' ')
	b.WriteString(text)
	b.WriteByte('\n')
}

func trimEOL(line []byte) []byte { return bytes.TrimRight(line, "\r\n") }

// shown returns a line in the form of a result.
func shown(line []byte) string {
	text, _ := clip(trimEOL(line), matchLine)
	return strings.ToValidUTF8(strings.TrimRight(text, "\n"), "\uFFFD")
}
