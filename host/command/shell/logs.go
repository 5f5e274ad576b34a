package shell

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/internal/boundedregexp"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// logCommands are the family logs/*: the output of executions as it is kept, without
// waiting and without rules.
func (m *Manager) logCommands() []command.Command {
	// Private, because models have code/shell/watch, and every tool costs them tokens.
	read := command.Options{Effect: command.Reads, Idempotent: true, Private: true}
	search := read
	search.Search = true
	return []command.Command{
		command.New("logs/list", "List the executions of a run, whose output is kept.", read, m.logsList),
		command.New("logs/read", "Read the output of an execution, page by page.", read, m.logsRead),
		command.New("logs/tail", "Read the last lines of an execution's output.", read, m.logsTail),
		command.New("logs/search", "Find lines in the output of the executions of a run.", search, m.logsSearch),
	}
}

// Limits of one answer.
const (
	defaultLogLines = 1000
	defaultTail     = 50
	defaultMatches  = 100
	maxMatch        = 16 << 10 // of a line that a search finds, as JSON; the rest is cut
)

type logLine struct {
	LineNumber int    `json:"lineNumber" jsonschema:"from 0, over all streams"`
	Stream     string `json:"stream" jsonschema:"stdout, stderr, or host for a message of the host"`
	Timestamp  int64  `json:"timestamp" jsonschema:"Unix time in milliseconds"`
	Text       string `json:"text"`
	Open       bool   `json:"open,omitempty" jsonschema:"the next line of the stream continues it: the program wrote no line end yet, or a line longer than 32 KiB"`
}

func newLogLine(l stored) logLine {
	return logLine{l.number, streamName(l.stream), l.ms, l.text, l.open}
}

// size returns about how many bytes the line has in JSON.
func (l logLine) size() int { return jsonSize(l.Text) + 100 }

// logTarget names an execution. All fields are optional.
type logTarget struct {
	ExecutionID string          `json:"executionId,omitempty" jsonschema:"what code/shell/execute gave; the newest execution of the run if not given"`
	Run         sentinels.RunID `json:"run,omitempty" jsonschema:"the run; the caller's if not given"`
}

// ofRun returns the executions of a run, oldest first: the caller's own unless another run
// is named, and all for a user who names none. A model sees its own run's only.
func (m *Manager) ofRun(call *command.Call, run sentinels.RunID) ([]*execution, error) {
	if call.By == command.ByModel && run != "" && run != call.Run {
		return nil, &abi.Error{Code: abi.Denied, Field: "run", Permanent: true, Message: fmt.Sprintf("%s: a model reads the output of its own run only", call.Command)}
	}
	all := call.By == command.ByUser && run == ""
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.snapshot(func(e *execution) bool { return all || run == "" && e.belongsTo(call) || run != "" && e.run == run }), nil
}

// logged returns the execution that the parameters name.
func (m *Manager) logged(ctx context.Context, call *command.Call, in logTarget) (*execution, error) {
	if in.ExecutionID == "" {
		list, err := m.ofRun(call, in.Run)
		if err != nil {
			return nil, err
		}
		if len(list) == 0 {
			return nil, &abi.Error{Code: abi.NotFound, Field: "executionId", Permanent: true, Message: call.Command + ": no execution has been started", Hint: "logs/list lists those of a run"}
		}
		return list[len(list)-1], nil
	}
	e, err := m.visible(ctx, call, in.ExecutionID)
	if err != nil {
		return nil, err
	}
	if in.Run != "" && e.run != in.Run {
		return nil, &abi.Error{Code: abi.NotFound, Field: "executionId", Permanent: true, Message: fmt.Sprintf("%s: run %s has no execution %q", call.Command, in.Run, in.ExecutionID)}
	}
	if call.By == command.ByModel && e.run != call.Run {
		return nil, &abi.Error{Code: abi.Denied, Field: "executionId", Permanent: true, Message: fmt.Sprintf("%s: execution %q belongs to another run", call.Command, in.ExecutionID)}
	}
	return e, nil
}

type logsListIn struct {
	Run    sentinels.RunID `json:"run,omitempty" jsonschema:"the run; the caller's if not given"`
	Limit  int             `json:"limit,omitempty" jsonschema:"how many to return, the newest first; 100 if not given" minimum:"1" maximum:"200"`
	Before string          `json:"before,omitempty" jsonschema:"next of the page before: only older ones"`
}

func (m *Manager) logsList(_ context.Context, call *command.Call, in logsListIn) (listOut, error) {
	all, err := m.ofRun(call, in.Run)
	if err != nil {
		return listOut{}, err
	}
	return newestOf(all, in.Before, in.Limit)
}

type logsReadIn struct {
	logTarget
	Offset int    `json:"offset,omitempty" jsonschema:"line number to begin at: 0, or the next of an earlier answer" minimum:"0"`
	Limit  int    `json:"limit,omitempty" jsonschema:"how many lines at most, 1000 if not given" minimum:"1" maximum:"5000"`
	Stream string `json:"stream,omitempty" jsonschema:"only lines of this stream; of both, with messages of the host, if not given" enum:"stdout,stderr"`
}

type logsOut struct {
	ExecutionID string    `json:"executionId"`
	Lines       []logLine `json:"lines"`
	Text        string    `json:"text" jsonschema:"the lines as text"`
	Next        int       `json:"next" jsonschema:"line number that reads on"`
	Total       int       `json:"total" jsonschema:"lines that were written so far"`
	Dropped     int       `json:"dropped" jsonschema:"lines of the range that are not kept"`
	Missing     int       `json:"missing" jsonschema:"lines of the whole output that are not kept"`
	Finished    bool      `json:"finished" jsonschema:"the program has ended"`
}

func (m *Manager) logsRead(ctx context.Context, call *command.Call, in logsReadIn) (logsOut, error) {
	e, err := m.logged(ctx, call, in.logTarget)
	if err != nil {
		return logsOut{}, err
	}
	if in.Limit == 0 {
		in.Limit = defaultLogLines
	}
	return e.page(in.Offset, in.Limit, in.Stream, call.Peak())
}

// page returns lines from one on, of one stream or all, as many as one answer has room for, and at least
// one, of 400 KB at most: text and lines have each of them.
func (e *execution) page(from, limit int, stream string, held *command.Peak) (logsOut, error) {
	most := min(limit, batch)
	out := logsOut{ExecutionID: e.id, Lines: []logLine{}, Next: from}
	var text strings.Builder
	for size, done := 0, false; !done; most = min(2*most, batch) {
		lines, v, missing, err := e.read(out.Next, most)
		if err == nil {
			err = held.Hold(bytesOf(lines) + int64(size))
		}
		if err != nil {
			return logsOut{}, err
		}
		out.Missing = missing
		out.Total, out.Finished = v.next, v.State != Running
		for _, l := range lines {
			line, wanted := newLogLine(l), stream == "" || stream == streamName(l.stream)
			if wanted {
				size += line.size() + jsonSize(line.Text)
			}
			if done = len(out.Lines) == limit || size > answerSize && len(out.Lines) > 0; done {
				break
			}
			out.Dropped += l.number - out.Next
			out.Next = l.number + 1
			if wanted {
				out.Lines = append(out.Lines, line)
				text.WriteString(line.Text + "\n")
			}
		}
		done = done || len(out.Lines) == limit
		if !done && !v.more {
			if done = true; out.Next < v.next { // at the end, when the disk refused it
				out.Dropped += v.next - out.Next
				out.Next = v.next
			}
		}
	}
	out.Text = text.String()
	return out, nil
}

type logsTailIn struct {
	logTarget
	Lines int `json:"lines,omitempty" jsonschema:"how many, 50 if not given" minimum:"1" maximum:"5000"`
}

// logsTail begins as far back as one answer has room for.
func (m *Manager) logsTail(ctx context.Context, call *command.Call, in logsTailIn) (logsOut, error) {
	e, err := m.logged(ctx, call, in.logTarget)
	if err != nil {
		return logsOut{}, err
	}
	if in.Lines == 0 {
		in.Lines = defaultTail
	}
	e.mu.Lock()
	end := e.out.next
	e.mu.Unlock()
	held := call.Peak()
	for from := max(end-in.Lines, 0); ; {
		out, err := e.page(from, in.Lines, "", held)
		if err != nil || out.Next >= end || len(out.Lines) == 0 {
			return out, err
		}
		from += max((end-from)/2, 1)
	}
}

type logsSearchIn struct {
	logTarget
	Pattern    string `json:"pattern" jsonschema:"regular expression (RE2 syntax) that a line must match, at most 1 KiB and 10,000 instructions when compiled"`
	Literal    bool   `json:"literal,omitempty" jsonschema:"the pattern is plain text, not a regular expression"`
	IgnoreCase bool   `json:"ignoreCase,omitempty" jsonschema:"ignore the case of letters"`
	MaxResults int    `json:"maxResults,omitempty" jsonschema:"number of matches to return, 100 if not given" minimum:"1" maximum:"1000"`
}

type logMatch struct {
	ExecutionID string `json:"executionId"`
	logLine
}

type logsSearchOut struct {
	Matches    []logMatch `json:"matches" jsonschema:"those of the newest execution first"`
	Text       string     `json:"text" jsonschema:"the matches as executionId:lineNumber: text"`
	Executions int        `json:"executions" jsonschema:"number of executions that were searched"`
	Truncated  bool       `json:"truncated" jsonschema:"there are more matches"`
	Missing    int        `json:"missing" jsonschema:"lines of these executions that are not kept, so they were not searched"`
	Warning    string     `json:"warning,omitempty" jsonschema:"what was not searched"`
}

func (m *Manager) logsSearch(ctx context.Context, call *command.Call, in logsSearchIn) (logsSearchOut, error) {
	source := in.Pattern
	if in.Literal {
		source = regexp.QuoteMeta(source)
	}
	if in.IgnoreCase {
		source = "(?i)" + source
	}
	pattern, err := boundedregexp.Compile(source, boundedregexp.MaxInstructions)
	if err != nil || in.Pattern == "" || len(in.Pattern) > maxSearch {
		if err == nil {
			err = fmt.Errorf("want 1 to %d bytes", maxSearch)
		}
		return logsSearchOut{}, &abi.Error{Code: abi.BadFields, Permanent: true, Field: "pattern", Message: fmt.Sprintf("%s: pattern: %v", call.Command, err), Hint: "for plain text, give literal"}
	}
	var list []*execution
	if in.ExecutionID != "" {
		var one *execution
		one, err = m.logged(ctx, call, in.logTarget)
		list = []*execution{one}
	} else {
		list, err = m.ofRun(call, in.Run)
	}
	if err != nil {
		return logsSearchOut{}, err
	}
	if in.MaxResults == 0 {
		in.MaxResults = defaultMatches
	}
	out := logsSearchOut{Matches: []logMatch{}}
	size, held := 0, call.Peak()
	for i := len(list) - 1; i >= 0 && !out.Truncated; i-- {
		out.Executions++
		missing, err := list[i].match(ctx, pattern, func(l logLine) bool {
			if size += 2*l.size() + len(list[i].id); len(out.Matches) == in.MaxResults || size > answerSize {
				out.Truncated = true
				return false
			}
			out.Matches = append(out.Matches, logMatch{list[i].id, l})
			out.Text += fmt.Sprintf("%s:%d: %s\n", list[i].id, l.LineNumber, l.Text)
			return true
		}, func(bytes int64) error { return held.Hold(bytes + int64(size)) })
		if err != nil {
			return logsSearchOut{}, err
		}
		out.Missing += missing
	}
	if out.Missing > 0 {
		out.Warning = fmt.Sprintf("%d lines were not searched: of a large output only the beginning and the end are kept; to search all of it, "+
			"write it to a file (command | tee FILE) and search that", out.Missing)
	}
	return out, nil
}

// maxSearch bounds a pattern, in bytes.
const maxSearch = 1 << 10

// match passes the lines that match to found, until it returns false, and the size of the lines that
// it holds to hold. missing is how many lines are not kept: none of them is found.
func (e *execution) match(ctx context.Context, pattern *boundedregexp.Regexp, found func(logLine) bool, hold func(bytes int64) error) (missing int, err error) {
	for at := 0; ; {
		lines, now, missing, err := e.read(at, batch)
		if err == nil {
			err = hold(bytesOf(lines))
		}
		if err != nil {
			return 0, err
		}
		for _, l := range lines {
			at = l.number + 1
			matches, err := pattern.MatchString(ctx, l.text)
			if err != nil {
				return 0, fmt.Errorf("search output %q: %w", e.id, err)
			}
			if jsonSize(l.text) > maxMatch {
				l.text = cutJSON(l.text, maxMatch) + lineCut
			}
			if matches && !found(newLogLine(l)) {
				return missing, nil
			}
		}
		if !now.more {
			return missing, nil
		}
	}
}
