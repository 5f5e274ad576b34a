// Package audit writes and reads the audit log: who changed what, and when, as JSON lines
// that are the user's alone.
package audit

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sentinel-runtime/sentinel/host/logfile"
	"github.com/sentinel-runtime/sentinel/internal/regularfile"
	"github.com/sentinel-runtime/sentinel/internal/textcut"
)

// Name is the file in the state folder; older ones beside it have a time at the end.
const Name = "audit/audit.jsonl"

// What is kept: a quarter of a year, or half a million entries of usual size. Beyond that
// the actor with the most loses its oldest entries, so that no actor can have those of
// others removed. Persons lose none while theirs are less than half, however many actors
// there are.
const (
	maxFile    = 16 << 20
	keepFiles  = 8
	maxAge     = 90 * 24 * time.Hour
	maxDetails = 2 << 10
	maxText    = 500
	maxPattern = 256
)

// What is kept of failures that a client can cause as often as it likes, so that it
// cannot have older entries of its own removed: by one that goes through all kinds of
// failures, a week passes before those of today are.
const (
	failureTime  = 10 * time.Minute
	failureKinds = 100 // of one actor in that time
)

// The categories of entries.
const (
	Action   = "action"   // a person changed something
	Agent    = "agent"    // an agent, a step or a model did
	Decision = "decision" // a person decided
	Security = "security" // grants, tokens, and what was denied
)

// An Entry is one line.
type Entry struct {
	Timestamp time.Time       `json:"timestamp"`
	Level     string          `json:"level" jsonschema:"info, or warn if it failed"`
	Category  string          `json:"category" jsonschema:"action, agent, decision or security"`
	Event     string          `json:"event" jsonschema:"command, or what happened"`
	Actor     string          `json:"actor" jsonschema:"user, a persona, agent:NAME, the step or model of a sentinel, or runs for several of them"`
	Outcome   string          `json:"outcome" jsonschema:"ok, or the code of the error"`
	Error     string          `json:"error,omitempty"`
	Details   json.RawMessage `json:"details,omitempty" jsonschema:"parameters; a text if they were cut"`
	Run       string          `json:"run,omitempty"`
	Step      string          `json:"step,omitempty"`
	PID       int             `json:"pid,omitempty" jsonschema:"process that asked, where it is known"`
	Program   string          `json:"program,omitempty" jsonschema:"its executable"`
	Count     int             `json:"count,omitempty" jsonschema:"further failures like the last one that has no count, of which this entry is the only one"`
}

// Options configure a log.
type Options struct {
	// Redact removes secrets from JSON. Default: nothing is removed.
	Redact func(json []byte) []byte
	// Logger receives the first of a series of failures. Default discards.
	Logger *slog.Logger
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

// A Log appends entries. An entry that cannot be written never stops what it is about; it
// is counted and logged.
//
// # Concurrency
//
// Safe for concurrent use, also by several processes: an entry is one write.
type Log struct {
	path string
	opt  Options

	mu     sync.Mutex
	w      *logfile.Writer
	failed atomic.Uint64
	broken bool

	failures map[failure]*Entry // of the current period, Count is what was not written; nil outside of one
	kinds    map[string]int     // of failures, by share
}

// A failure is what equal failures have in common.
type failure struct{ actor, program, event, outcome string }

// runs is the share of all steps and models: an agent can make sentinels of any name, and
// so actors.
const runs = "runs"

// shareOf returns whose share of the log an actor's entries count for.
func shareOf(actor string) string {
	if strings.Contains(actor, " of ") { // no name of a principal has a space
		return runs
	}
	return actor
}

// isPerson reports whether a share is that of a person, and not of an agent or a viewer, of
// steps and models, or of clients without a token.
func isPerson(share string) bool {
	return share != runs && share != "unknown" && !strings.Contains(share, ":")
}

// shareOfLine is shareOf for a line of the log. Within a text of JSON the quotes of the
// field would be escaped, and what a client chose of an entry comes after its actor.
func shareOfLine(line []byte) string {
	_, rest, _ := bytes.Cut(line, []byte(`"actor":"`))
	actor, _, _ := bytes.Cut(rest, []byte(`"`))
	return shareOf(string(actor))
}

// New returns the log of a state folder. The file is created by the first entry.
func New(state string, opt Options) *Log {
	if opt.Redact == nil {
		opt.Redact = func(b []byte) []byte { return b }
	}
	if opt.Logger == nil {
		opt.Logger = slog.New(slog.DiscardHandler)
	}
	if opt.Now == nil {
		opt.Now = time.Now
	}
	return &Log{path: filepath.Join(state, Name), opt: opt}
}

// text removes secrets from text.
func (l *Log) text(s string) string {
	quoted, _ := json.Marshal(s) // a text is valid JSON
	var clean string
	if json.Unmarshal(l.opt.Redact(quoted), &clean) != nil {
		return "" // what it holds is not known
	}
	return clean
}

// Write appends an entry. Timestamp is set, long details become a text that is cut.
func (l *Log) Write(e Entry) {
	if e.Timestamp.IsZero() {
		e.Timestamp = l.opt.Now().UTC()
	}
	e.Error = textcut.Mark(l.text(e.Error), maxText)
	e.Details = l.opt.Redact(bytes.Clone(e.Details))
	if len(e.Details) > maxDetails || len(e.Details) > 0 && !json.Valid(e.Details) {
		e.Details, _ = json.Marshal(textcut.Mark(string(e.Details), maxDetails))
	}
	line, err := json.Marshal(e)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil && l.w == nil {
		l.w, err = logfile.Open(l.path, logfile.Options{Size: maxFile, Keep: keepFiles, Age: maxAge, Now: l.opt.Now, Owner: shareOfLine, Reserved: isPerson})
	}
	if err == nil {
		_, err = l.w.Write(append(line, '\n'))
	}
	if err != nil {
		l.failed.Add(1)
		if !l.broken {
			l.opt.Logger.Error("the audit log cannot be written; actions go on and are not recorded", "error", err)
		}
	}
	l.broken = err != nil
}

// WriteFailure is Write for the failures of clients that are no persons: who may do little
// must not be able to fill the log. The first of an actor, program, event and outcome in a period
// is written, cut to its beginning, and at the end of the period one entry has the number of
// the others. Those of an actor beyond [failureKinds] are counted together.
func (l *Log) WriteFailure(e Entry) {
	l.mu.Lock()
	kind := failure{e.Actor, e.Program, e.Event, e.Outcome}
	share := shareOf(e.Actor)
	if l.failures[kind] == nil && l.kinds[share] >= failureKinds {
		kind = failure{actor: share}
		e = Entry{Level: e.Level, Category: e.Category, Event: "other", Actor: share, Outcome: "several"}
	}
	before := l.failures[kind]
	if before != nil {
		before.Timestamp, before.PID = l.opt.Now().UTC(), e.PID
		before.Count++
	} else {
		if l.failures == nil {
			l.failures, l.kinds = map[failure]*Entry{}, map[string]int{}
			time.AfterFunc(failureTime, l.endPeriod)
		}
		l.kinds[share]++
		l.failures[kind] = &Entry{Level: e.Level, Category: e.Category, Event: e.Event, Actor: e.Actor, Outcome: e.Outcome, Program: e.Program}
	}
	l.mu.Unlock()
	if before == nil {
		if len(e.Details) > maxText {
			e.Details, _ = json.Marshal(textcut.Mark(string(l.opt.Redact(bytes.Clone(e.Details))), maxText))
		}
		l.Write(e)
	}
}

// endPeriod writes the numbers of failures.
func (l *Log) endPeriod() {
	l.mu.Lock()
	ended := l.failures
	l.failures, l.kinds = nil, nil
	l.mu.Unlock()
	for _, e := range ended {
		if e.Count > 0 {
			l.Write(*e)
		}
	}
}

// Failed returns how many entries could not be written.
func (l *Log) Failed() uint64 { return l.failed.Load() }

// Close closes the file. It is idempotent.
func (l *Log) Close() error {
	l.endPeriod()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.w == nil {
		return nil
	}
	return l.w.Close()
}

// A Query selects entries.
type Query struct {
	Since  time.Time // zero: all
	Actor  string    // exactly; "" is everybody
	Event  string    // a pattern as of path.Match, such as "ticket/*", of at most 256 bytes; "" is every event
	Before string    // Next of the page before; "" is the newest entries
	Limit  int       // at most so many; 0 is 100
	// Hold counts the bytes of the entries that are held; its error ends the read. Default none.
	Hold func(bytes int64) error
}

func (q Query) matches(e *Entry) bool {
	if q.Actor != "" && q.Actor != e.Actor {
		return false
	}
	ok, _ := path.Match(q.Event, e.Event)
	return q.Event == "" || ok
}

// A Page has entries, the newest first.
type Page struct {
	Entries []Entry
	Next    string // there are older ones: [Query.Before] of the next page
	Damaged int    // lines of the files read that are not entries
}

// A placedEntry has the digest of its line, which is its position: files are renamed and lose
// lines, but a line stays as it is.
type placedEntry struct {
	entry  Entry
	digest string
	size   int64 // of the line
}

func sizeOf(list []placedEntry) (bytes int64) {
	for _, e := range list {
		bytes += e.size
	}
	return bytes
}

func digestOf(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

// Read returns entries of the log in a state folder, the newest first. Lines that are not
// entries are skipped and counted: a crash may leave half a line. If the entry at which the page
// before ended is no longer kept, neither are older ones, and the page is empty. Read ends with ctx.
func Read(ctx context.Context, state string, q Query) (Page, error) {
	out := Page{Entries: []Entry{}}
	if len(q.Event) > maxPattern {
		return out, fmt.Errorf("event %.80q: longer than %d bytes", q.Event, maxPattern)
	}
	if _, err := path.Match(q.Event, ""); err != nil {
		return out, fmt.Errorf("event %.80q: %w", q.Event, err)
	}
	if q.Limit <= 0 {
		q.Limit = 100
	}
	current := filepath.Join(state, Name)
	older, err := filepath.Glob(escapeGlob(current) + ".*")
	if err != nil {
		return out, err
	}
	slices.Sort(older)
	slices.Reverse(older)
	var list []placedEntry
	held := int64(0) // bytes of list
	if hold := q.Hold; hold != nil {
		q.Hold = func(bytes int64) error { return hold(held + bytes) }
	}
	for _, name := range append([]string{current}, older...) {
		// One more than fits shows whether there is a further page.
		part, found, bad, err := readFile(ctx, name, q, q.Limit+1-len(list))
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // it was rotated away meanwhile
			return out, err
		}
		out.Damaged += bad
		if q.Before != "" && !found {
			continue // all of it was on earlier pages
		}
		q.Before = ""
		held += sizeOf(part)
		if list = append(list, part...); len(list) > q.Limit {
			list = list[:q.Limit]
			out.Next = list[q.Limit-1].digest
			break
		}
	}
	if q.Before != "" {
		return out, fmt.Errorf("before %.80q: not the next of a page, or its entry is no longer kept", q.Before)
	}
	for _, l := range list {
		out.Entries = append(out.Entries, l.entry)
	}
	return out, nil
}

// escapeGlob quotes what has a meaning in patterns.
func escapeGlob(name string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(name)
}

// readFile returns the newest entries of one file that match, the newest first: with a position,
// those before it, and whether the file has it.
func readFile(ctx context.Context, name string, q Query, limit int) (list []placedEntry, found bool, damaged int, err error) {
	f, _, err := regularfile.Open(name)
	if err != nil {
		return nil, false, 0, err
	}
	defer f.Close()
	lines, size := bufio.NewReaderSize(f, 64<<10), int64(0)
	for !found {
		if ctx.Err() != nil {
			return nil, false, 0, context.Cause(ctx)
		}
		text, err := lines.ReadBytes('\n')
		if err != nil && err != io.EOF {
			return nil, false, 0, err
		}
		var e Entry
		switch {
		case len(bytes.TrimSpace(text)) == 0:
		case json.Unmarshal(text, &e) != nil:
			damaged++
		case e.Timestamp.Before(q.Since), !q.matches(&e):
		default:
			digest := digestOf(text)
			if found = digest == q.Before; found {
				break // what is behind it was on earlier pages
			}
			list = append(list, placedEntry{e, digest, int64(len(text))})
			size += int64(len(text))
			if len(list) > 2*limit {
				list = slices.Delete(list, 0, len(list)-limit)
				size = sizeOf(list)
			}
			if q.Hold != nil {
				if err := q.Hold(size); err != nil {
					return nil, false, 0, err
				}
			}
		}
		if err == io.EOF {
			break
		}
	}
	list = list[max(0, len(list)-limit):]
	slices.Reverse(list)
	return list, found, damaged, nil
}
