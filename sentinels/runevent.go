package sentinels

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sentinel-runtime/sentinel/internal/lazyregexp"
)

// RunEventPrefix begins the names of events of runs.
const RunEventPrefix = "sentinel:"

// Words of events of runs, the last part of their names.
const (
	RunStarted     = "started"
	RunPaused      = "paused"
	RunResumed     = "resumed"
	RunWaiting     = "waiting"
	RunCompleted   = "completed"
	RunFailed      = "failed"
	RunStopped     = "stopped"
	RunTimedOut    = "timed_out"
	RunQuarantined = "quarantined"
)

// SentinelOverdue is the word of the event of a trigger whose expected run did not come. Its
// name is that of an event of a run.
const SentinelOverdue = "overdue"

// Words of events of a sentinel that are not of one run. Their names are those of events of runs.
const (
	SentinelRecovered = "recovered" // a run completed, and the one that ended before it did not
	SentinelSkipped   = "skipped"   // a firing was skipped, and the one before it was not
)

// RunEventWords returns the words of events of runs, in the order of a run's life.
func RunEventWords() []string {
	return []string{RunStarted, RunPaused, RunResumed, RunWaiting, RunCompleted, RunFailed, RunStopped, RunTimedOut, RunQuarantined, SentinelOverdue, SentinelRecovered, SentinelSkipped}
}

// RunEventName returns the name of an event of a run: sentinel:ID:WORD.
func RunEventName(id ID, word string) string { return RunEventPrefix + string(id) + ":" + word }

// RunEnded is the word of patterns that match the event of any end of a run: completed, failed,
// stopped or timed_out. No event of the engine has this word.
const RunEnded = "ended"

// engineSource begins the source of events that the engine emits. Sources of other events are
// never given by their emitters and begin otherwise.
const engineSource = "engine/"

// EngineSource returns the source of the events of runs of a sentinel.
func EngineSource(id ID) string { return engineSource + string(id) }

// UnstoredSource returns the source of the events of a run that does not count as one of the stored sentinel with
// its id. It is never an [EngineSource], since ids have no slash.
func UnstoredSource(run RunID) string { return engineSource + "run/" + string(run) }

// FromEngine reports whether the source of an event is that of the engine, so that it is an event of
// a run and not one of the same name that a user, a step or a plugin has emitted.
func FromEngine(source string) bool { return strings.HasPrefix(source, engineSource) }

// EventSource says whose events a pattern of the form sentinel:ID:WORD takes.
type EventSource string

// The sources. Without one, it is the engine where ID names a stored sentinel, see [TakesEvent].
const (
	SourceEngine EventSource = "engine"
	SourceUser   EventSource = "user"
)

// EventSources returns the values of [EventSource] that a definition may have.
func EventSources() []EventSource { return []EventSource{SourceEngine, SourceUser} }

// TakesEvent reports whether a reader of a pattern takes an event that [MatchEvent] matches. Events
// with the form of events of runs come from the engine or from others: without a source, a pattern
// whose word is one of the engine's takes the events of others only if it names one ID, and no
// sentinel with that ID is stored. So no emitter has readers believe that the
// run of a stored sentinel has ended, and neither has a run of another definition with its id. A pattern for all sentinels,
// as messages for people have it, takes the events of that run which do not report success: an agent that edits a run
// would otherwise hide that it fails or asks.
func TakesEvent(pattern string, source EventSource, e *Event, stored func(ID) bool) bool {
	if !IsRunEvent(e.Name) {
		return true
	}
	if FromEngine(e.Source) {
		id, word := runEventParts(e.Name)
		success := word == RunCompleted || word == SentinelRecovered
		return source != SourceUser && (e.Source == EngineSource(ID(id)) || !stored(ID(id)) || !success && ofAll(pattern, e.Name))
	}
	for one := range strings.FieldsSeq(pattern) {
		id, word := runEventParts(one)
		switch {
		case word == RunEnded && !strings.HasSuffix(e.Name, ":"+RunEnded), !MatchEvent(one, e.Name):
		case source == SourceUser:
			return true
		case source == SourceEngine:
		case word != "*" && word != RunEnded && !slices.Contains(RunEventWords(), word):
			return true // the engine emits none
		case id != "*" && !strings.Contains(id, "@") && !stored(ID(id)):
			return true
		}
	}
	return false
}

// ofAll reports whether a pattern that names no sentinel matches an event of a run.
func ofAll(pattern, name string) bool {
	for one := range strings.FieldsSeq(pattern) {
		if id, _ := runEventParts(one); id == "*" && MatchEvent(one, name) {
			return true
		}
	}
	return false
}

// runEventParts returns the second and third part of a name or pattern of [IsRunEvent].
func runEventParts(name string) (id, word string) {
	id, word, _ = strings.Cut(strings.TrimPrefix(name, RunEventPrefix), ":")
	return id, word
}

// PatternsByLog returns the patterns of a trigger that each of the two logs of events has: first those of other events,
// then those of [IsRunEvent]. A log without a pattern is left out.
func PatternsByLog(patterns string) []string {
	var runs, others []string
	for one := range strings.FieldsSeq(patterns) {
		if IsRunEvent(one) {
			runs = append(runs, one)
		} else {
			others = append(others, one)
		}
	}
	list := []string{strings.Join(others, " "), strings.Join(runs, " ")}
	return slices.DeleteFunc(list, func(of string) bool { return of == "" })
}

// IsRunEvent reports whether a name, or each of the patterns of one log, has the form of events of runs: it has
// three parts, and the first is "sentinel". Only such patterns match events with such a name.
func IsRunEvent(name string) bool {
	first, _, _ := strings.Cut(name, " ") // the others have the same form
	rest, ok := strings.CutPrefix(first, RunEventPrefix)
	id, word, more := strings.Cut(rest, ":")
	return ok && more && id != "" && id != "**" && word != "" && word != "**" && !strings.Contains(word, ":")
}

// missesRuns reports whether a pattern looks like one of events of runs and is none.
func missesRuns(pattern string) bool {
	return strings.HasPrefix(pattern, RunEventPrefix) && strings.HasSuffix(pattern, ":**")
}

// alternativesPattern matches alternatives of other systems in a pattern of events.
var alternativesPattern = lazyregexp.New(`\{([^{}]*,[^{}]*)\}`)

// maxEventName limits the name of an event, in bytes.
const maxEventName = 128

// eventNamePattern keeps wildcards and blanks out of names: a pattern must never be able to mean itself.
var eventNamePattern = lazyregexp.New(`^[A-Za-z0-9_.-]+(:[A-Za-z0-9_.-]+)*$`)

// CheckEventName returns what is wrong with the name of an event that a step or a caller emits, and what to do about it.
func CheckEventName(name string) (problem, hint string) {
	if len(name) > maxEventName {
		return fmt.Sprintf("event name of %d bytes: want at most %d", len(name), maxEventName), "put what it is about into data"
	}
	if eventNamePattern.MatchString(name) {
		return "", ""
	}
	switch names := alternatives(name); {
	case names != nil:
		hint = "write a step for each: " + quotedList(names, " and ")
	case strings.Contains(name, "*"):
		hint = "write a whole name: one event has one name, and only a pattern of a trigger or a wait matches several"
	case eventNamePattern.MatchString(eventName(name)):
		hint = "write " + quoted(eventName(name))
	default:
		hint = "such as git:push; a value that may have other characters belongs into data"
	}
	return fmt.Sprintf("invalid event name %q: want parts of letters, digits, _, . and - between colons", name), hint
}

// eventName returns a name without what the name of an event does not have.
func eventName(text string) string {
	plain := strings.NewReplacer("{", "", "}", "").Replace(text)
	return strings.Trim(strings.Join(strings.Fields(plain), "-"), ":")
}

// alternatives returns the names of a pattern with alternatives in braces, nil without them.
func alternatives(pattern string) (names []string) {
	m := alternativesPattern.FindStringSubmatchIndex(pattern)
	if m == nil {
		return nil
	}
	for word := range strings.SplitSeq(pattern[m[2]:m[3]], ",") {
		if len(names) >= maxPatterns {
			break // as long as a list may be
		}
		name := pattern[:m[0]] + strings.TrimSpace(word) + pattern[m[1]:]
		if more := alternatives(name); more != nil {
			names = append(names, more...)
		} else {
			names = append(names, name)
		}
	}
	return names[:min(len(names), maxPatterns)]
}

// bracesText is the warning of a pattern with alternatives in braces.
const bracesText = "braces have no meaning in a pattern of events, so %q matches only an event with this name"

const (
	missesRunsText = "%q matches no events of runs"
	missesRunsHint = "their names have three parts: write sentinel:*:* for all, sentinel:ID:* for those of a sentinel"
)

// RunEventSchema returns the JSON Schema of the data of the events of runs with a name or pattern.
func RunEventSchema(name string) json.RawMessage {
	switch name[strings.LastIndex(name, ":")+1:] {
	case SentinelOverdue:
		return json.RawMessage(overdueEventSchema)
	case SentinelRecovered:
		return json.RawMessage(recoveredEventSchema)
	case SentinelSkipped:
		return json.RawMessage(skippedEventSchema)
	}
	return json.RawMessage(runEventSchema)
}

const runEventSchema = `{
  "type": "object",
  "properties": {
    "run": {"type": "string", "description": "Id of the run."},
    "sentinel": {"type": "string", "description": "Id of its sentinel; parent@address for an inline definition."},
    "parent": {"type": "string", "description": "Id of the run that started it by a step; absent without one."},
    "status": {"type": "string", "enum": ["running", "queued", "paused", "waiting", "quarantined", "completed", "failed", "stopped", "timed_out"], "description": "Status of the run: running after started and resumed, or queued while it waits for its turn."},
    "reason": {"type": "string", "description": "The limit that it reached, such as budget.tokens, or who paused it; absent without one."},
    "error": {"type": "object", "description": "Why it failed, was stopped or timed out: {code, message, hint?, ...}; absent without one."},
    "iterations": {"type": "integer", "description": "Iterations that it has begun."},
    "durationMs": {"type": "integer", "description": "Time in which it was executed."},
    "usage": {"type": "object", "description": "What models have used, with its children: {inputTokens, outputTokens, costUsd, calls}."}
  },
  "required": ["run", "sentinel", "status", "iterations", "durationMs", "usage"],
  "additionalProperties": false
}`

const overdueEventSchema = `{
  "type": "object",
  "properties": {
    "sentinel": {"type": "string", "description": "Id of the sentinel."},
    "trigger": {"type": "string", "description": "Name of the trigger that expected a run."},
    "status": {"type": "string", "enum": ["overdue"], "description": "In place of the status of a run."},
    "planned": {"type": "string", "description": "The planned time, RFC 3339."},
    "withinMs": {"type": "integer", "description": "The time after it in which a run was expected."},
    "expect": {"type": "string", "enum": ["started", "completed"], "description": "What the run should have done by then."},
    "reason": {"type": "string", "description": "Why no run came, as far as it is known."},
    "run": {"type": "string", "description": "Id of a run that began and did not complete in time; absent without one."}
  },
  "required": ["sentinel", "trigger", "status", "planned", "withinMs", "expect", "reason"],
  "additionalProperties": false
}`

const recoveredEventSchema = `{
  "type": "object",
  "properties": {
    "sentinel": {"type": "string", "description": "Id of the sentinel."},
    "status": {"type": "string", "enum": ["recovered"], "description": "In place of the status of a run."},
    "run": {"type": "string", "description": "Id of the run that completed."},
    "after": {"type": "string", "description": "Id of the run before it that failed or timed out."}
  },
  "required": ["sentinel", "status", "run", "after"],
  "additionalProperties": false
}`

const skippedEventSchema = `{
  "type": "object",
  "properties": {
    "sentinel": {"type": "string", "description": "Id of the sentinel."},
    "trigger": {"type": "string", "description": "Name of the trigger whose firing was skipped."},
    "status": {"type": "string", "enum": ["skipped"], "description": "In place of the status of a run."},
    "since": {"type": "string", "description": "When the firing was due, RFC 3339."},
    "reason": {"type": "string", "description": "Why it was skipped."},
    "run": {"type": "string", "description": "Id of the run because of which it was skipped; absent without one."}
  },
  "required": ["sentinel", "trigger", "status", "since", "reason"],
  "additionalProperties": false
}`

// otherRunWords are words of other systems for the events of runs, in the form of fold, with ours.
var otherRunWords = map[string]string{
	"failure": RunFailed, "error": RunFailed, "errored": RunFailed, "crashed": RunFailed, "broken": RunFailed,
	"success": RunCompleted, "successful": RunCompleted, "succeeded": RunCompleted, "succeed": RunCompleted, "ok": RunCompleted, "passed": RunCompleted,
	"done": RunCompleted + " " + RunEnded, "finished": RunCompleted + " " + RunEnded, "finish": RunCompleted + " " + RunEnded,
	"begin": RunStarted, "began": RunStarted, "begun": RunStarted, "running": RunStarted, "run": RunStarted,
	"cancelled": RunStopped, "canceled": RunStopped, "aborted": RunStopped, "killed": RunStopped,
	"timeout": RunTimedOut, "late": SentinelOverdue, "missed": SentinelOverdue, "fixed": SentinelRecovered,
}

// CheckRunPattern returns what is probably a mistake in a pattern of events of runs, "" for nothing: a
// word that is similar to one of the engine's, or means the same. Any other word is that of an event of a user.
func CheckRunPattern(pattern string) (problem, hint string) {
	if !IsRunEvent(pattern) {
		return "", ""
	}
	_, word := runEventParts(pattern)
	words := append(RunEventWords(), RunEnded)
	if word == "*" || slices.Contains(words, word) {
		return "", ""
	}
	near := Suggest(word, words)
	if other := otherRunWords[fold(word)]; other != "" {
		near = strings.Fields(other)
	}
	if len(near) == 0 {
		return "", ""
	}
	return "runs have no event " + strconv.Quote(word), "did you mean " + quotedList(near, " or ") + `? For an event that an emit step has named so, write "source": "user" beside it`
}
