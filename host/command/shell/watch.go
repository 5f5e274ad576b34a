package shell

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/internal/termtext"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sdk/role"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// A Line is one line of output as it is handed out.
type Line struct {
	Text           string `json:"text"`
	Classification string `json:"classification" enum:"error,warning,info,success,verbose"`
	LineNumber     int    `json:"lineNumber" jsonschema:"from 0, over all streams"`
	Stream         string `json:"stream" jsonschema:"stdout, stderr, file, or host for a word of the host"`
	Timestamp      int64  `json:"timestamp" jsonschema:"Unix time in milliseconds"`
}

// WatchRequest is the request of clause A6.5 of sdk/ABI.md, and a cursor.
type WatchRequest struct {
	ExecutionID string `json:"executionId" jsonschema:"what code/shell/execute gave"`
	Rules       []Rule `json:"rules,omitempty" jsonschema:"rules for this watch; those of the execution if not given"`
	Until       string `json:"until,omitempty" jsonschema:"finished (the default): the end; error: the first line classified so; match: the first line that a rule emits" enum:"finished,error,match"`
	TimeoutMs   int64  `json:"timeoutMs,omitempty" jsonschema:"time limit; reaching it is the error timeout" minimum:"0"`
	Cursor      *int   `json:"cursor,omitempty" jsonschema:"line number to read from, page by page; if not given, after the last watch of the run" minimum:"0"`
}

// WatchAnswer is the answer to a [WatchRequest]. Lines are all of the range that no rule
// suppresses; if they exceed one answer, a watch with the cursor From reads them page by
// page.
type WatchAnswer struct {
	ExecutionID string `json:"executionId"`
	Lines       []Line `json:"lines"`
	Text        string `json:"text" jsonschema:"the lines as text, at most 32 KiB: all if they fit; else errors and three lines around each, then warnings and three lines around each, then the last 50, with [n lines left out] where lines are missing"`
	Finished    bool   `json:"finished"`
	Success     *bool  `json:"success,omitempty" jsonschema:"once finished: exit code 0"`
	ExitCode    *int   `json:"exitCode,omitempty"`
	Signal      string `json:"signal,omitempty" jsonschema:"what ended it, if a signal did"`
	TimedOut    bool   `json:"timedOut,omitempty"`
	Lost        bool   `json:"lost,omitempty" jsonschema:"the host stopped while it ran; its exit code is not known"`
	ZeroBytes   int64  `json:"zeroBytes,omitempty" jsonschema:"once finished: zero bytes that it wrote; lines are without them"`
	Dropped     int    `json:"dropped" jsonschema:"lines of the range that are not in lines: not kept, or cut from this answer"`
	From        int    `json:"from" jsonschema:"line number at which the range begins"`
	Cursor      int    `json:"cursor" jsonschema:"line number that reads on"`
}

// Watch blocks until the request's condition holds or the execution has ended.
// Request and answer are clause A6.5 of sdk/ABI.md. The time limit is the caller's, by ctx.
func (m *Manager) Watch(ctx context.Context, run sentinels.RunID, request json.RawMessage) (json.RawMessage, error) {
	var q WatchRequest
	err := strictjson.Decode(request, &q, strictjson.Limits{})
	if err == nil && !slices.Contains([]string{"", "finished", "error", "match"}, q.Until) {
		err = fmt.Errorf("field \"until\": must be finished, error or match, not %q", q.Until)
	}
	if err == nil && q.Cursor != nil && *q.Cursor < 0 {
		err = errors.New(`field "cursor": must not be negative`)
	}
	if err != nil {
		return nil, &abi.Error{Code: abi.BadFields, Permanent: true, Message: "watch: " + err.Error()}
	}
	a, err := m.watch(ctx, &command.Call{By: command.ByStep, Run: run}, q)
	if err != nil {
		return nil, err
	}
	return json.Marshal(a)
}

// batch is how many lines are read from disk at a time.
const batch = 1024

// watch is Watch on Go values. A watch of the owning run without a cursor goes
// on where the one before ended. The start of what was handed out last is in
// the record, so after a crash those lines come again rather than never.
func (m *Manager) watch(ctx context.Context, call *command.Call, q WatchRequest) (WatchAnswer, error) {
	e, err := m.visible(ctx, call, q.ExecutionID)
	if err != nil {
		return WatchAnswer{}, err
	}
	set, _, err := compileRules(q.Rules, m.knownClassifier)
	if err != nil {
		return WatchAnswer{}, err
	}
	c := collector{size: answerSize, held: call.Peak(), work: call.Work, paged: q.Cursor != nil}
	if q.Cursor != nil {
		return e.follow(ctx, *q.Cursor, q.Until, set, c)
	}
	if call.Run == "" || call.Run != e.run {
		return e.follow(ctx, 0, q.Until, set, c)
	}
	e.mu.Lock()
	from := e.cursor
	e.mu.Unlock()
	a, err := e.follow(ctx, from, q.Until, set, c)
	if err != nil {
		return WatchAnswer{}, err
	}
	return a, e.deliver(ctx, from, a.Cursor)
}

// follow reads lines from one on into c until the condition holds or the
// execution has ended. Without own rules it uses those of the execution, as
// they are when a line is read.
func (e *execution) follow(ctx context.Context, from int, until string, own ruleset, c collector) (WatchAnswer, error) {
	at, done := from, func() {}
	defer func() { done() }()
	for {
		var err error
		if c.work != nil {
			if done, err = c.work(ctx); err != nil {
				return WatchAnswer{}, err
			}
		}
		lines, set, now, changed, err := e.look(at)
		if err == nil {
			err = c.held.Hold(bytesOf(lines) + 2*int64(c.headSize+c.tailSize))
		}
		if err != nil {
			return WatchAnswer{}, err
		}
		if own != nil {
			set = own
		}
		stop := false
		var verdicts []verdict
		for i, l := range lines {
			if len(verdicts) == 0 { // a watch that stops early does not judge the rest
				verdicts, err = e.m.verdicts(ctx, set, given(lines[i:min(len(lines), i+role.MaxLines)]))
				if err != nil {
					return WatchAnswer{}, e.interrupted(err)
				}
			}
			v := verdicts[0]
			verdicts = verdicts[1:]
			if l.number > at {
				c.skip(l.number - at)
				at = l.number
			}
			if !c.add(l, v) {
				stop = true // the page is full; this line opens the next
				break
			}
			at = l.number + 1
			if v.matched && (until == "error" && v.class == classError || until == "match" && v.emit) {
				stop = true
				break
			}
		}
		if !stop && !now.more && at < now.next {
			c.skip(now.next - at) // at the end, when the disk refused it
			at = now.next
		}
		finished := now.State != Running && !stop && !now.more
		if stop || finished {
			return c.answer(e.id, from, at, finished, now.Record), nil
		}
		done()
		if now.more {
			continue
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return WatchAnswer{}, e.interrupted(ctx.Err())
		}
	}
}

// interrupted is the error of a watch whose context has ended.
func (e *execution) interrupted(err error) error {
	return fmt.Errorf("watch execution %q: %w", e.id, err)
}

// given returns lines as rules judge them: as a terminal shows them.
func given(lines []stored) []role.Line {
	out := make([]role.Line, len(lines))
	for i, l := range lines {
		out[i] = role.Line{Text: termtext.Overwrite(l.text), Stream: streamName(l.stream)}
	}
	return out
}

// view is an execution at one moment.
type view struct {
	Record
	next int  // number of the next line
	more bool // there may be more lines than were read
}

// look reads the next lines and what else is known at the same moment.
func (e *execution) look(at int) (lines []stored, rules ruleset, v view, changed <-chan struct{}, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	lines, more, err := e.out.read(at, batch)
	return lines, e.rules, view{e.rec, e.out.next, more}, e.changed, err
}

// read returns lines from one on, at most so many, where the execution stands, and how many of its
// lines are not kept.
func (e *execution) read(from, most int) (lines []stored, v view, missing int, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	lines, more, err := e.out.read(from, most)
	return lines, view{e.rec, e.out.next, more}, e.out.dropped(), err
}

// bytesOf returns how many bytes the texts of lines have.
func bytesOf(lines []stored) (bytes int64) {
	for i := range lines {
		bytes += int64(len(lines[i].text))
	}
	return bytes
}

// deliver moves the cursor of the run's watches past the lines that are returned.
func (e *execution) deliver(ctx context.Context, from, to int) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.cursor = max(e.cursor, to)
	if e.rec.Cursor >= from {
		return nil
	}
	e.rec.Cursor = from
	return e.save(ctx)
}

// answerSize bounds the lines of one answer, as JSON; with the text they are below the
// 256 KiB of sdk/ABI.md A8.
const answerSize = 160 << 10

// collector gathers the lines of an answer: page by page, all until it is
// full; else the first quarter and the newest rest.
type collector struct {
	size       int // bytes in JSON
	held       *command.Peak
	work       func(context.Context) (func(), error) // see [command.Call.Work]; nil if the work is the host's
	paged      bool
	head, tail []Line
	headSize   int
	tailSize   int
	text       summary
	dropped    int // lines that are not on disk
	cut        int // lines that did not fit
}

// add takes a line and reports false if the page is full.
func (c *collector) add(l stored, v verdict) bool {
	if !v.emit {
		return true
	}
	l.text = termtext.Overwrite(l.text)
	line := Line{Text: l.text, Classification: v.class, LineNumber: l.number, Stream: streamName(l.stream), Timestamp: l.ms}
	size := lineSize(line)
	if most := c.size / 2; size > most { // one line, however long, leaves room for others
		line.Text = cutJSON(l.text, most-200) + lineCut
		size = lineSize(line)
	}
	limit := c.size / 4
	if c.paged {
		limit = c.size
	}
	switch {
	case len(c.tail) == 0 && c.headSize+size <= limit || len(c.head) == 0:
		c.head = append(c.head, line)
		c.headSize += size
	case c.paged:
		return false
	default:
		c.tail = append(c.tail, line)
		c.tailSize += size
		for c.tailSize > c.size-c.size/4 && len(c.tail) > 1 {
			c.tailSize -= lineSize(c.tail[0])
			c.tail = c.tail[1:]
			c.cut++
		}
	}
	c.text.add(l.text, v.class)
	return true
}

// skip counts lines that are not on disk.
func (c *collector) skip(lines int) {
	c.dropped += lines
	c.text.skip(lines)
}

// lineSize is what a line takes in the lines of an answer.
func lineSize(l Line) int { return 140 + jsonSize(l.Text) }

// answer puts the collected lines in order and adds how the program ended.
func (c *collector) answer(id string, from, at int, finished bool, r Record) WatchAnswer {
	a := WatchAnswer{ExecutionID: id, From: from, Cursor: at, Finished: finished, Dropped: c.dropped + c.cut, Text: c.text.String()}
	if finished {
		ok := r.ExitCode != nil && *r.ExitCode == 0 && !r.TimedOut
		a.Success, a.ExitCode, a.Signal, a.TimedOut, a.Lost, a.ZeroBytes = &ok, r.ExitCode, r.Signal, r.TimedOut, r.State == Lost, r.ZeroBytes
	}
	a.Lines = slices.Concat(c.head, c.tail)
	if a.Lines == nil {
		a.Lines = []Line{}
	}
	return a
}

// streamName writes out the letter that the spill file has.
func streamName(b byte) string {
	switch b {
	case 'o':
		return "stdout"
	case 'e':
		return "stderr"
	case 'f':
		return "file"
	}
	return "host"
}

// jsonSize returns how many bytes s takes in JSON, without quotes.
func jsonSize[T string | []byte](s T) int {
	n := len(s)
	for i := range len(s) {
		n += int(jsonMore[s[i]])
	}
	return n
}

// jsonMore is how many bytes more than one a byte takes in JSON.
var jsonMore = [256]uint8{'"': 1, '\\': 1, '\t': 1, '\n': 1, '<': 5, '>': 5, '&': 5}
