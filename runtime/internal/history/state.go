package history

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/internal/lazyregexp"
	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/runtime/run"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// SignalUsed is the type of a signal which notes that a decision was used.
const SignalUsed = "taken"

// KeptPrefix is the beginning of the names under which a scope has the outputs of steps
// with an id, which are not variables.
const KeptPrefix = "steps/"

// SkippedByFork is the reason of a step that stands before the first step of a
// fork and that the other run did not have.
const SkippedByFork = "fork"

// A State is the state of a run after the records that were applied. The zero
// value is the state before the first record. It is not safe for concurrent use.
type State struct {
	Seq     uint64 // number of the newest record, 0 before the first
	Elapsed int64  // active time of the run in microseconds
	Definitions

	Iteration      int   // number of the newest iteration
	IterationEnded int64 // end of the newest iteration that ended, microseconds since 1970
	LoopDone       bool  // the loop reached its end with it
	Open           bool  // the newest iteration has not ended
	ending         bool  // onFailure and finally of the definition are executed, and no iteration is open
	incomplete     bool  // a hole behind the first record, and no iteration.end since

	// Of the open iteration; zero between iterations.
	Event      *sentinels.Event
	EventSeq   uint64 // offset of Event in the event log, 0 if it started the run
	Chain      Chain  // the longest of the events that its steps have waited for
	RAGContext journal.Value
	EventBytes int64             // of the events that it has emitted, names and data
	Steps      int               // step executions that have begun
	FailedStep string            // address of the innermost step that failed, see FailedStep
	Branches   map[string]*Scope // of open parallel blocks, by BranchKey
	Executions Executions        // nil between iterations

	Given     []journal.Given // by agents and models since the start
	Scope     *Scope
	Usage     sentinels.Usage
	Extension run.LimitExtension
	Asked     time.Time                      // since when the first approval of the iteration was asked; zero if none was decided
	Decisions map[string]*journal.SignalBody // not yet used, by CallName; nil if there are none
	Cursors   map[string]uint64              // in the event log, by pattern; nil if there are none
}

// A Chain is the runs that an event has passed through.
type Chain struct {
	Hops int      // number of runs
	Path []string // their sentinels, in order
}

// A GapError reports a journal in which records are missing.
type GapError struct {
	Seq, After uint64 // the record, and the one that was applied before it
	Kind       journal.Kind
}

func (e *GapError) Error() string {
	if e.After == 0 {
		return fmt.Sprintf("the journal begins with record %d, %q, and not with a run.start", e.Seq, e.Kind)
	}
	return fmt.Sprintf("record %d, %q, follows record %d: records are missing", e.Seq, e.Kind, e.After)
}

// A RecordError reports a record that does not fit to those before it.
type RecordError struct {
	Seq  uint64
	Kind journal.Kind
	Text string
}

func (e *RecordError) Error() string { return fmt.Sprintf("record %d, %q: %s", e.Seq, e.Kind, e.Text) }

// Complete reports whether the state is whole. It is not between a hole in the
// journal and the next end of an iteration; the definitions and the limit
// extensions are known even then.
func (s *State) Complete() bool { return s.Seq != 0 && !s.incomplete }

// Apply applies the record with number seq. The caller does not change rec
// afterwards. After an error the state is not to be used.
func (s *State) Apply(seq uint64, rec *journal.Record) error {
	switch {
	case s.Seq == 0:
		if seq != 1 || rec.RunStart == nil {
			return &GapError{seq, 0, rec.Kind}
		}
		s.start(rec.RunStart)
	case rec.RunStart != nil:
		return &RecordError{seq, rec.Kind, "the run has started before"}
	case seq == s.Seq+1:
	case s.Seq == 1 && seq > 1:
		s.incomplete = true
	default:
		return &GapError{seq, s.Seq, rec.Kind}
	}
	s.Seq = seq
	s.Elapsed = max(s.Elapsed, rec.Elapsed)
	before := s.Used.Revision
	s.Definitions.add(rec)
	switch rec.Kind {
	case journal.IterationEnd:
		s.endIteration(rec)
	case journal.IterationStart:
		s.startIteration(rec.IterationStart)
		if b := rec.IterationStart; b.Within != nil && b.Edit == 0 && b.Revision != before {
			s.give(journal.Given{By: maker(b.Maker), Kind: journal.GivenRevision, Number: b.Revision, Before: before})
		}
	case journal.Signal:
		s.signal(rec.Signal)
	case journal.StepStart, journal.CallStart, journal.CallEnd, journal.Checkpoint, journal.Retry, journal.StepEnd:
		if rec.Path == sentinels.EndAddress && !s.Open {
			s.ending = true // after an iteration that has ended
		}
		if (s.Open || s.ending) && !s.incomplete {
			return s.step(rec)
		}
	}
	return nil
}

func (s *State) start(b *journal.RunStartBody) {
	s.Definitions = newDefinitions(b)
	s.Scope = newScope(b.Inherited, nil, journal.Value{})
	s.Scope.setAll(b.Variables, nil)
	if b.Fork != nil {
		s.Given = slices.Clone(b.Fork.Given)
	}
	if f := b.Fork; f != nil && f.Iteration > 0 {
		s.Scope = newScope(f.Variables, f.Order, f.Last)
		s.Iteration = f.Iteration - 1
		s.Cursors = maps.Clone(f.Cursors)
	}
}

func (s *State) startIteration(b *journal.IterationStartBody) {
	if !b.RAGContext.Empty() {
		s.Scope.remove("ragContext") // a value that a step set holds until the context is built again
	}
	s.Iteration, s.Event, s.EventSeq, s.RAGContext, s.Open = b.Iteration, b.Event, b.EventSeq, b.RAGContext, true
	s.Executions = Executions{}
	if b.EventSeq != 0 {
		s.setCursor(b.Pattern, b.EventSeq)
	}
}

func (s *State) endIteration(rec *journal.Record) {
	b := rec.IterationEnd
	s.Scope = newScope(b.Variables, b.Order, b.Last)
	s.Iteration, s.IterationEnded, s.LoopDone, s.Usage = b.Iteration, rec.Time, b.Done, b.Usage
	s.Open, s.incomplete, s.Executions = false, false, nil
	s.Given = slices.Clone(b.Given)
	s.Event, s.EventSeq, s.Chain, s.RAGContext = nil, 0, Chain{}, journal.Value{}
	s.EventBytes, s.Steps, s.FailedStep = 0, 0, ""
	s.Branches, s.Decisions, s.Cursors, s.Asked = nil, nil, nil, time.Time{}
	if len(b.Cursors) > 0 {
		s.Cursors = maps.Clone(b.Cursors)
	}
	s.Extension = run.LimitExtension{}
	if b.Extension != nil {
		s.Extension = *b.Extension
	}
}

func (s *State) setCursor(pattern string, offset uint64) {
	if s.Cursors == nil {
		s.Cursors = map[string]uint64{}
	}
	s.Cursors[pattern] = offset
}

func (s *State) signal(b *journal.SignalBody) {
	if b.Extension != nil {
		s.Extension.Add(*b.Extension)
	}
	if b.Usage != nil {
		s.Usage.Add(*b.Usage)
	}
	if e := b.Edit; e != nil && e.Changes != "" {
		s.give(journal.Given{By: e.By, Kind: journal.GivenEdit, Changes: e.Changes})
	}
	switch {
	case b.Type == SignalUsed:
		delete(s.Decisions, b.Call)
	case b.Call != "":
		if !b.Asked.IsZero() && (s.Asked.IsZero() || b.Asked.Before(s.Asked)) {
			s.Asked = b.Asked
		}
		if s.Decisions == nil {
			s.Decisions = map[string]*journal.SignalBody{}
		}
		s.Decisions[b.Call] = b
	}
}

// step applies the record of a step of the open iteration.
func (s *State) step(rec *journal.Record) error {
	if rec.Path == "" || len(rec.Attempts) == 0 {
		return &RecordError{s.Seq, rec.Kind, "it names no step"}
	}
	begins, begun := s.Executions.Add(rec)
	if begins {
		s.Steps++
	}
	scope := s.ScopeOf(rec.Path, rec.Attempts)
	switch rec.Kind {
	case journal.CallStart:
		// A decision is used when its call is made again or has ended. Another
		// call of the same name asks again.
		delete(s.Decisions, CallName(rec.Path, rec.CallStart.Seq))
		if begun != nil {
			s.spendReservation(begun)
		}
		s.startBranches(rec, scope)
	case journal.CallEnd:
		delete(s.Decisions, CallName(rec.Path, rec.CallEnd.Seq))
		return s.endCall(rec, begun, scope)
	case journal.StepEnd:
		s.endStep(rec, scope)
	}
	return nil
}

// spendReservation counts the reservation of a model call in doubt as spent: the
// provider may have counted the call.
func (s *State) spendReservation(b *journal.CallStartBody) {
	if b.Reserved != nil {
		s.Usage.Add(*b.Reserved)
	}
}

func (s *State) startBranches(rec *journal.Record, scope *Scope) {
	b := rec.CallStart
	if b.Function != abi.FuncBlock && b.Function != journal.FuncEnd {
		return
	}
	for i, variables := range b.Branches {
		into := scope
		if len(b.Branches) > 1 || b.Isolated {
			into = scope.newBranch()
			if s.Branches == nil {
				s.Branches = map[string]*Scope{}
			}
			s.Branches[BranchKey(rec.Path, b.Block+i, rec.Attempts)] = into
		}
		var large map[string]journal.Value
		if i < len(b.BranchLarge) {
			large = b.BranchLarge[i]
		}
		into.setAll(variables, large)
	}
}

func (s *State) endCall(rec *journal.Record, begun *journal.CallStartBody, scope *Scope) error {
	b := rec.CallEnd
	if b.Decided != "" && b.Decided != "retry" && begun != nil {
		s.spendReservation(begun)
	}
	scope.setAll(b.Sets, b.SetLarge)
	s.EventBytes += b.Emitted
	if b.Usage != nil {
		s.Usage.Add(*b.Usage)
	}
	if (b.Blocks > 1 || b.EventSeq != 0) && begun == nil {
		return &RecordError{s.Seq, rec.Kind, fmt.Sprintf("call %d of step %s has no start", b.Seq, rec.Path)}
	}
	if b.Blocks > 1 || begun != nil && begun.Isolated {
		s.joinBranches(rec, begun, scope)
	}
	if b.EventSeq != 0 {
		s.setCursor(begun.Label, max(s.Cursors[begun.Label], b.EventSeq))
		if b.Hops > s.Chain.Hops {
			s.Chain = Chain{b.Hops, b.Path}
		}
		if b.EventBy != "" {
			s.give(journal.Given{By: b.EventBy, Kind: journal.GivenEvent, Event: b.Event})
		}
	}
	return nil
}

func (s *State) joinBranches(rec *journal.Record, begun *journal.CallStartBody, scope *Scope) {
	joined := map[int]bool{}
	for _, i := range rec.CallEnd.Joined {
		joined[i] = true
	}
	for i := range begun.Branches {
		key := BranchKey(rec.Path, begun.Block+i, rec.Attempts)
		if b := s.Branches[key]; b != nil && joined[i] {
			scope.join(b)
		}
		delete(s.Branches, key)
	}
}

func (s *State) endStep(rec *journal.Record, scope *Scope) {
	b := rec.StepEnd
	if ChangesScope(b) {
		value := b.Output
		if !b.Value.Empty() {
			value = b.Value
		}
		scope.set(b.OutputTo, value)
		scope.Last = value
		if b.Kept != "" {
			scope.set(KeptPrefix+b.Kept, b.Output)
		}
	}
	if strings.HasPrefix(rec.Path, sentinels.EndAddress+"#") {
		return // after the run
	}
	s.FailedStep = FailedStep(s.FailedStep, sentinels.PathAddress(rec.Path), b.Error != nil && b.Skipped == "")
}

// ChangesScope reports whether the end of a step sets variables.
func ChangesScope(b *journal.StepEndBody) bool {
	return b.Ends == "" && b.Skipped != "condition" && b.Skipped != SkippedByFork && (b.Error == nil || b.Skipped != "")
}

// inEnd matches the address of a step in the list onFailure or finally of another one.
var inEnd = lazyregexp.New(`[0-9]\.(onFailure|finally)\.[0-9]`)

// FailedStep returns the address of the innermost step that failed after the end
// of the step at address; empty if a step around it has succeeded since. A failure in onFailure or
// finally is reported, and changes neither the error nor its place.
func FailedStep(before, address string, failed bool) string {
	switch {
	case failed && inEnd.MatchString(address):
	case failed && before == "":
		return address
	case !failed && (before == address || strings.HasPrefix(before, address+".")):
		return ""
	}
	return before
}

// ScopeOf returns the scope of a step: that of the innermost open parallel branch
// around it.
func (s *State) ScopeOf(path string, attempts []int) *Scope {
	for end := len(path); ; {
		at := strings.LastIndexByte(path[:end], '#')
		if at < 0 {
			return s.Scope
		}
		stop := strings.IndexByte(path[at:], '.')
		depth := strings.Count(path[:at], "#") + 1
		if stop > 0 && depth <= len(attempts) {
			if scope := s.Branches[Key(path[:at+stop], attempts[:depth])]; scope != nil {
				return scope
			}
		}
		end = at
	}
}
