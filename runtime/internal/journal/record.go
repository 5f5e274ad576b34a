// Package journal is how the engine REMEMBERS: the closed list of record kinds
// that make up a run's history, and their encoding.
//
// A run's journal is append-only. What can be rebuilt from it is the whole
// state of the run: that is the definition of durable here.
package journal

import (
	"encoding/json"
	"fmt"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Format is the number of the encoding. A reader refuses a higher one.
const Format = 1

// Kind names what a record says. The list is closed and append-only.
type Kind string

// The kinds.
const (
	RunStart       Kind = "run.start"
	IterationStart Kind = "iteration.start"
	StepStart      Kind = "step.start"
	CallStart      Kind = "call.start"
	CallEnd        Kind = "call.end"
	Checkpoint     Kind = "checkpoint"
	StepEnd        Kind = "step.end"
	Retry          Kind = "retry"
	Signal         Kind = "signal"
	Status         Kind = "status"
	IterationEnd   Kind = "iteration.end"
	RunEnd         Kind = "run.end"
)

// A Record is one entry of a run's journal. Exactly one of the pointers is set,
// the one that Kind names.
type Record struct {
	Format  int   `json:"v"`
	Kind    Kind  `json:"k"`
	Time    int64 `json:"t"`           // wall clock, microseconds since 1970
	Elapsed int64 `json:"e,omitempty"` // the run's active time, microseconds: host up and not paused

	// Path is the execution path of the step, Attempts the attempt of every
	// enclosing step, outermost first, and last the step's own. Both are empty
	// for records of the run as a whole.
	Path     string `json:"p,omitempty"`
	Attempts []int  `json:"a,omitempty"`

	RunStart       *RunStartBody       `json:"rs,omitempty"`
	IterationStart *IterationStartBody `json:"is,omitempty"`
	StepStart      *StepStartBody      `json:"ss,omitempty"`
	CallStart      *CallStartBody      `json:"cs,omitempty"`
	CallEnd        *CallEndBody        `json:"ce,omitempty"`
	Checkpoint     *CheckpointBody     `json:"cp,omitempty"`
	StepEnd        *StepEndBody        `json:"se,omitempty"`
	Retry          *RetryBody          `json:"re,omitempty"`
	Signal         *SignalBody         `json:"si,omitempty"`
	Status         *StatusBody         `json:"st,omitempty"`
	IterationEnd   *IterationEndBody   `json:"ie,omitempty"`
	RunEnd         *RunEndBody         `json:"rn,omitempty"`
}

// A Value is JSON in the record, or in a blob when it is large.
type Value struct {
	JSON json.RawMessage `json:"j,omitempty"`
	Blob string          `json:"b,omitempty"` // digest
}

// Empty reports whether there is no value at all, which differs from null.
func (v Value) Empty() bool { return v.JSON == nil && v.Blob == "" }

// RunStartBody begins a run.
type RunStartBody struct {
	Sentinel    sentinels.ID               `json:"sentinel"`
	Definition  Value                      `json:"def"` // canonical JSON of the revision it starts with
	Hash        string                     `json:"hash"`
	Revision    int                        `json:"rev,omitempty"` // 0: not a stored definition
	Pinned      bool                       `json:"pin,omitempty"`
	Inputs      Value                      `json:"in,omitzero"`
	Event       *sentinels.Event           `json:"event,omitempty"`
	Workspace   string                     `json:"ws"`
	Parent      sentinels.RunID            `json:"parent,omitempty"`
	ParentCall  string                     `json:"pcall,omitempty"` // key of the spawning call
	Root        sentinels.RunID            `json:"root"`
	Ancestry    []sentinels.ID             `json:"anc,omitempty"`
	Seed        uint64                     `json:"seed"`
	EventCursor uint64                     `json:"ec"`             // outbox position at the start
	Hops        int                        `json:"hops,omitempty"` // runs of the chain that led here otherwise than by the event
	Path        []string                   `json:"path,omitempty"` // and their sentinels
	Interrupt   sentinels.Interrupt        `json:"oi,omitempty"`
	Variables   map[string]json.RawMessage `json:"vars,omitempty"` // given at the start besides inputs
	Fork        *Fork                      `json:"fork,omitempty"`
}

// Fork says which run another one was made from, and all that it took from
// there, so that it does not need the other one any more.
type Fork struct {
	Run       sentinels.RunID   `json:"run"`
	By        string            `json:"by,omitempty"`
	Iteration int               `json:"n,omitempty"`    // begins with this pass; 0: with the first one, with nothing of the rest
	From      int               `json:"from,omitempty"` // index of the first step that is carried out in it
	Variables Value             `json:"vars,omitzero"`  // before that step
	Last      Value             `json:"last,omitzero"`
	Done      Value             `json:"done,omitzero"` // []ForkedStep, those before From
	Event     *sentinels.Event  `json:"event,omitempty"`
	EventSeq  uint64            `json:"es,omitempty"`
	RAG       Value             `json:"rag,omitzero"`
	Cursors   map[string]uint64 `json:"ec,omitempty"`

	EventCursor uint64 `json:"c,omitempty"` // of the other run's start
}

// A ForkedStep is a top-level step that the other run had carried out.
type ForkedStep struct {
	Path string      `json:"p"`
	End  StepEndBody `json:"se"`
}

// IterationStartBody begins a pass over the steps.
type IterationStartBody struct {
	Iteration  int              `json:"n"`
	Revision   int              `json:"rev,omitempty"`
	Hash       string           `json:"hash"`
	Definition Value            `json:"def,omitzero"` // set when it differs from the pass before
	RAGContext Value            `json:"rag,omitzero"`
	Event      *sentinels.Event `json:"event,omitempty"` // the event this pass answers
	EventSeq   uint64           `json:"es,omitempty"`
	Edit       int              `json:"ed,omitempty"` // number of the run's own edit, 0: the definition is not the run's own
}

// StepStartBody begins an attempt. A replay of the attempt uses what it holds
// and resolves nothing again.
type StepStartBody struct {
	Type      sentinels.StepType `json:"type"`
	Name      string             `json:"name,omitempty"`
	Address   string             `json:"addr"`
	Module    string             `json:"mod"` // digest
	Fields    Value              `json:"in"`
	Env       map[string]string  `json:"env,omitempty"` // variables of shell lines
	Seed      uint64             `json:"seed"`
	ClockBase int64              `json:"clock"` // microseconds since 1970
	Unknown   []string           `json:"unk,omitempty"`
}

// CallStartBody begins a host call that takes time or acts outside the store.
type CallStartBody struct {
	Seq      int              `json:"n"`
	Function string           `json:"fn"`
	Hash     string           `json:"h"` // of the canonical request, without what the host added
	Request  Value            `json:"rq"`
	Added    Value            `json:"add,omitzero"`   // what the host added, for llm the system text
	Effect   bool             `json:"eff,omitempty"`  // acts outside the store: in doubt without an end
	Safe     bool             `json:"safe,omitempty"` // may be made again without asking
	Label    string           `json:"l,omitempty"`    // for people: the command's or event's name
	Due      int64            `json:"due,omitempty"`  // wait: microseconds since 1970
	Cursor   uint64           `json:"ec,omitempty"`   // wait for an event: outbox position
	Block    int              `json:"blk,omitempty"`  // block: ordinal of its first block
	Child    sentinels.RunID  `json:"child,omitempty"`
	Worst    *sentinels.Usage `json:"worst,omitempty"` // llm: booked until the end is known
}

// CallEndBody ends a host call. Calls without a start, which touch nothing
// outside the store, carry Function, Label, Hash and Request here.
type CallEndBody struct {
	Seq      int                        `json:"n"`
	Function string                     `json:"fn,omitempty"`
	Label    string                     `json:"l,omitempty"`
	Hash     string                     `json:"h,omitempty"`
	Request  Value                      `json:"rq,omitzero"`
	Result   Value                      `json:"ok,omitzero"`
	Error    *abi.Error                 `json:"err,omitempty"`
	Sets     map[string]json.RawMessage `json:"set,omitempty"`  // var: what it wrote
	Joined   []int                      `json:"join,omitempty"` // block of several: branches whose writes were applied
	Blocks   int                        `json:"blk,omitempty"`  // block: how many ordinals it used
	Child    sentinels.RunID            `json:"child,omitempty"`
	Usage    *sentinels.Usage           `json:"use,omitempty"`
	EventSeq uint64                     `json:"es,omitempty"`  // event wait: the event's outbox position
	Logs     int                        `json:"lg,omitempty"`  // log lines of the attempt so far
	Decided  string                     `json:"dec,omitempty"` // how a call in doubt was decided
}

// CheckpointBody ends what is replayed of an attempt.
type CheckpointBody struct {
	Seq   int    `json:"n"` // number of the checkpoint call itself
	Hash  string `json:"h"`
	State Value  `json:"state"`
	Block int    `json:"blk"` // next block ordinal
	Logs  int    `json:"lg,omitempty"`
}

// StepEndBody ends a step execution, after all its attempts.
type StepEndBody struct {
	Output   Value      `json:"out,omitzero"`
	Error    *abi.Error `json:"err,omitempty"`
	Skipped  string     `json:"skip,omitempty"` // "condition", "error", or "fork": passed over by a fork
	Reused   bool       `json:"reu,omitempty"`  // carried out by the run that this one was made from
	Type     string     `json:"type,omitempty"` // of a step that no attempt began
	Name     string     `json:"name,omitempty"` // likewise
	OutputTo string     `json:"to,omitempty"`
}

// RetryBody ends a failed attempt that will be followed by another.
type RetryBody struct {
	Error    *abi.Error `json:"err"`
	Category string     `json:"cat"`
	Due      int64      `json:"due"` // microseconds since 1970
	Left     int        `json:"left"`
}

// SignalBody is something from outside that the run must see again on replay.
type SignalBody struct {
	Type    string          `json:"type"`           // decision, resume, edit, ...
	Call    string          `json:"call,omitempty"` // path!seq of the call it answers
	Verdict string          `json:"verdict,omitempty"`
	By      string          `json:"by,omitempty"`
	Comment string          `json:"comment,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Room    *Room           `json:"room,omitempty"` // resume: more room at a limit
	Edit    *Edit           `json:"edit,omitempty"` // edit: the definition from the next pass on
}

// Edit is a definition that a run follows alone.
type Edit struct {
	Number     int    `json:"n"`             // counts the run's edits from 1
	Revision   int    `json:"rev,omitempty"` // of the stored sentinel that it was made on
	Definition Value  `json:"def"`
	Hash       string `json:"hash"`
}

// Room is what a resume adds to a run's limits.
type Room struct {
	Iterations int     `json:"iterations,omitempty"`
	TimeoutMs  int64   `json:"timeoutMs,omitempty"`
	CostUSD    float64 `json:"costUsd,omitempty"`
	Tokens     int64   `json:"tokens,omitempty"`
	Calls      int64   `json:"calls,omitempty"`
}

// StatusBody is a change of the run's status that is not its end.
type StatusBody struct {
	Status  sentinels.Status `json:"status"`
	Reason  string           `json:"reason,omitempty"`
	Limit   string           `json:"limit,omitempty"`
	By      string           `json:"by,omitempty"`
	Resumed bool             `json:"resumed,omitempty"` // a new process took the run over
	With    sentinels.RunID  `json:"with,omitempty"`    // paused with the tree below this run
}

// IterationEndBody is the snapshot that recovery starts from.
type IterationEndBody struct {
	Iteration int               `json:"n"`
	Variables Value             `json:"vars"`
	Last      Value             `json:"last,omitzero"`
	Cursors   map[string]uint64 `json:"ec,omitempty"` // outbox position per awaited pattern
	Done      bool              `json:"done,omitempty"`
	Usage     sentinels.Usage   `json:"use"`
	Steps     int               `json:"steps"`          // step executions of the pass
	Room      *Room             `json:"room,omitempty"` // all that resumes have added so far

	// What the next pass goes on from, if no newer revision is stored. Missing
	// in journals of early releases.
	Revision   int    `json:"rev,omitempty"`
	Edit       int    `json:"ed,omitempty"` // as in IterationStartBody
	Hash       string `json:"hash,omitempty"`
	Definition Value  `json:"def,omitzero"` // missing: that of run.start
}

// RunEndBody ends a run.
type RunEndBody struct {
	Status sentinels.Status `json:"status"`
	Error  *abi.Error       `json:"err,omitempty"`
	Limit  string           `json:"limit,omitempty"`
	Reason string           `json:"reason,omitempty"`
	Step   string           `json:"step,omitempty"` // address of the step that failed
}

// Encode writes a record.
func Encode(r *Record) ([]byte, error) {
	r.Format = Format
	b, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encode journal record %q: %w", r.Kind, err)
	}
	return b, nil
}

// Decode reads a record. A record of a later format, or without the body its
// kind names, is an error: better no run than a run with a hole.
func Decode(b []byte) (*Record, error) {
	var r Record
	if err := json.Unmarshal(b, &r); err != nil {
		return nil, fmt.Errorf("decode journal record: %w", err)
	}
	if r.Format < 1 || r.Format > Format {
		return nil, fmt.Errorf("decode journal record %q: format %d, this program reads up to %d", r.Kind, r.Format, Format)
	}
	if !r.whole() {
		return nil, fmt.Errorf("decode journal record: kind %q without its body", r.Kind)
	}
	return &r, nil
}

func (r *Record) whole() bool {
	switch r.Kind {
	case RunStart:
		return r.RunStart != nil
	case IterationStart:
		return r.IterationStart != nil
	case StepStart:
		return r.StepStart != nil
	case CallStart:
		return r.CallStart != nil
	case CallEnd:
		return r.CallEnd != nil
	case Checkpoint:
		return r.Checkpoint != nil
	case StepEnd:
		return r.StepEnd != nil
	case Retry:
		return r.Retry != nil
	case Signal:
		return r.Signal != nil
	case Status:
		return r.Status != nil
	case IterationEnd:
		return r.IterationEnd != nil
	case RunEnd:
		return r.RunEnd != nil
	}
	return false
}
