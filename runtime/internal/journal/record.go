// Package journal defines the records of a run's journal and their encoding.
//
// A journal is append-only. The whole state of a run can be rebuilt from its
// journal; that is what durable means in this package.
package journal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/run"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// Format is the newest version of the encoding. A reader refuses a higher one. A record has the
// lowest version that describes it, so that programs before the newest read all others.
const Format = formatLarge

const (
	formatFirst = 1
	formatLarge = 2 // CallEndBody.SetLarge, CallStartBody.BranchLarge
)

// Kind is the kind of a record. The list of kinds is closed and append-only.
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

// A Record is one record of a run's journal. Exactly one of its pointers is
// set, the one that Kind names.
type Record struct {
	Format  int   `json:"v"`
	Kind    Kind  `json:"k"`
	Time    int64 `json:"t"`           // wall clock, microseconds since 1970
	Elapsed int64 `json:"e,omitempty"` // active time of the run in microseconds: the host was up and the run not paused

	// Path is the execution path of the step. Attempts has one attempt number
	// for each enclosing step, outermost first, and the step's own as its last.
	// Both are empty in records that concern the whole run.
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

// A Value is a JSON value. A large one is stored in a blob. Records and states have many
// values, and few of them are large.
type Value struct {
	JSON  json.RawMessage `json:"j,omitempty"`
	*Blob                 // of a large value, else nil
}

// A Blob is a value that is stored beside the journal. Values share it, so it is not
// changed.
type Blob struct {
	Digest string `json:"b"`
	Size   int64  `json:"n,omitempty"` // in bytes
	// Redacted reports that it is a definition of which a secret was removed: it is for people,
	// and is not executed.
	Redacted bool `json:"r,omitempty"`

	// Loaded is the content if it is in memory; else nil. It is not part of the
	// record.
	Loaded json.RawMessage `json:"-"`
}

// Content returns the value as JSON, nil if it is a blob that is not in memory.
func (v Value) Content() json.RawMessage {
	if v.Blob != nil {
		return v.Loaded
	}
	return v.JSON
}

// Len returns the size of the value in bytes.
func (v Value) Len() int64 {
	if v.Blob != nil {
		return v.Size
	}
	return int64(len(v.JSON))
}

// Load returns the value with the content of its blob.
func (v Value) Load(content json.RawMessage) Value {
	blob := *v.Blob
	blob.Loaded = content
	return Value{Blob: &blob}
}

// Unload returns the value as its record has it.
func (v Value) Unload() Value {
	if v.Blob == nil || v.Loaded == nil {
		return v
	}
	return v.Load(nil)
}

// IsRedacted reports whether the value is a definition of which a secret was removed.
func (v Value) IsRedacted() bool { return v.Blob != nil && v.Redacted }

// Empty reports whether there is no value. The JSON value null is not empty.
func (v Value) Empty() bool { return v.JSON == nil && v.Blob == nil }

// RunStartBody is the start of a run.
type RunStartBody struct {
	Sentinel       sentinels.ID               `json:"sentinel"`
	Definition     Value                      `json:"def"` // canonical JSON of the revision that the run starts with
	Hash           string                     `json:"hash"`
	Revision       int                        `json:"rev,omitempty"` // 0: not a stored definition
	Pinned         bool                       `json:"pin,omitempty"`
	Inputs         Value                      `json:"in,omitzero"`
	InputsBy       map[string]string          `json:"inby,omitempty"` // of inputs that an agent or a model gave: by name, which
	GivenBy        string                     `json:"gb,omitempty"`   // agent or model that started the run
	Event          *sentinels.Event           `json:"event,omitempty"`
	Workspace      string                     `json:"ws"`
	Parent         sentinels.RunID            `json:"parent,omitempty"`
	ParentCall     string                     `json:"pcall,omitempty"` // key of the host call that started this run
	Root           sentinels.RunID            `json:"root"`
	Ancestry       []sentinels.ID             `json:"anc,omitempty"`
	Seed           uint64                     `json:"seed"`
	EventCursor    uint64                     `json:"ec"`             // cursor in the event log at the start
	RunEventCursor uint64                     `json:"rc,omitempty"`   // cursor in the log of events of runs
	Hops           int                        `json:"hops,omitempty"` // length of the chain of runs that led to this one, apart from Event
	Path           []string                   `json:"path,omitempty"` // sentinels of the runs counted by Hops
	Interrupt      sentinels.Interrupt        `json:"oi,omitempty"`
	As             string                     `json:"as,omitempty"`    // for whom the run executes
	CausedBy       string                     `json:"cause,omitempty"` // agent or model that started it or is behind the event that did, or behind the run whose step did
	Trigger        string                     `json:"trig,omitempty"`  // name of the trigger that started the run
	Variables      map[string]json.RawMessage `json:"vars,omitempty"`  // set at the start in addition to the inputs
	Inherited      map[string]Value           `json:"inh,omitempty"`   // variables of the parent, of an inline child
	Named          map[sentinels.ID]Value     `json:"named,omitempty"` // canonical JSON of the definitions that {"$ref": id} means, before the stored ones
	Within         []string                   `json:"within,omitzero"` // commands that the run may call; nil for all
	Fork           *Fork                      `json:"fork,omitempty"`
	Overlap        sentinels.Overlap          `json:"over,omitempty"` // with queue and restart, it begins when the active runs of its sentinel have ended
}

// Fork is the origin of a run that was forked from another. It holds a copy of
// everything that the new run needs, so the other run may be deleted.
type Fork struct {
	Run       sentinels.RunID   `json:"run"`
	By        string            `json:"by,omitempty"`
	Given     []Given           `json:"giv,omitempty"`  // to the other run, as far as the fork goes on with it, and by the fork
	Iteration int               `json:"n,omitempty"`    // first iteration of the fork; 0 means the first of all, and the fields below are unset
	From      int               `json:"from,omitempty"` // index of the first step that is executed in it
	Variables map[string]Value  `json:"vars,omitempty"` // before that step
	Last      Value             `json:"last,omitzero"`
	Order     []string          `json:"ord,omitempty"`  // as in IterationEndBody
	Done      []ForkedStep      `json:"done,omitempty"` // the steps before From
	Event     *sentinels.Event  `json:"event,omitempty"`
	EventSeq  uint64            `json:"es,omitempty"`
	RAG       Value             `json:"rag,omitzero"`
	Cursors   map[string]uint64 `json:"ec,omitempty"`

	EventCursor    uint64 `json:"c,omitempty"` // EventCursor of the other run's start
	RunEventCursor uint64 `json:"rc,omitempty"`
	ApprovedBy     string `json:"ap,omitempty"` // who approved a step before that step, in the other run or before it
}

// A ForkedStep is the result of a top-level step of the other run.
type ForkedStep struct {
	Path string      `json:"p"`
	End  StepEndBody `json:"se"`
}

// IterationStartBody is the start of an iteration.
type IterationStartBody struct {
	Iteration  int               `json:"n"`
	Revision   int               `json:"rev,omitempty"`
	Hash       string            `json:"hash"`
	Definition Value             `json:"def,omitzero"` // set if it differs from the previous iteration's
	RAGContext Value             `json:"rag,omitzero"`
	Event      *sentinels.Event  `json:"event,omitempty"` // the event that this iteration handles
	EventSeq   uint64            `json:"es,omitempty"`    // offset of Event in the event log; 0: it started the run
	Pattern    string            `json:"ep,omitempty"`    // of the loop, if EventSeq is set
	Edit       int               `json:"ed,omitempty"`    // number of the run's edit; 0 means that the definition is not an edited one
	Within     []string          `json:"wi,omitzero"`     // bound of the definition, nil for none; it adds to that of the start
	Maker      string            `json:"mk,omitempty"`    // agent that made the definition, if it has a bound
	Reads      map[string]string `json:"rd,omitempty"`    // for people: what that condition read, values shortened
	Check      string            `json:"check,omitempty"` // for people: value of a while loop's condition, as JSON, shortened
	Queued     int64             `json:"qd,omitempty"`    // for people: how long a child run waited for its place before it, in microseconds
}

// StepStartBody is the start of an attempt. A replay uses the values recorded
// here instead of resolving them again.
type StepStartBody struct {
	Type      sentinels.StepType `json:"type"`
	ID        string             `json:"sid,omitempty"`
	Name      string             `json:"name,omitempty"`
	Address   string             `json:"addr"`
	Module    string             `json:"mod"` // digest of the plugin
	Fields    Value              `json:"in"`
	Env       map[string]string  `json:"env,omitempty"` // environment variables of shell lines
	Written   map[string]string  `json:"ref,omitempty"` // for people: the references that they stand for, as written
	Seed      uint64             `json:"seed"`
	ClockBase int64              `json:"clock"`          // microseconds since 1970
	Unknown   []string           `json:"unk,omitempty"`  // references that were left as written
	Unset     []string           `json:"uns,omitempty"`  // references that were null, because the variable has no value yet
	Condition string             `json:"cond,omitempty"` // for people: value of the step's condition, as JSON, shortened
	Reads     map[string]string  `json:"rd,omitempty"`   // for people: what it read
}

// FuncEnd is the function of the call 0 of a step, in which the engine executes its onFailure and its finally. Its
// request is an [Outcome]. The step at [sentinels.EndAddress] is the definition itself.
const FuncEnd = "end"

// An Outcome is how a step or a run ended before its onFailure and finally.
type Outcome struct {
	Status sentinels.Status `json:"status"`
	Reason string           `json:"reason,omitempty"`
	Error  *abi.Error       `json:"error,omitempty"`
	Step   string           `json:"step,omitempty"` // address of the step that failed
	Output json.RawMessage  `json:"output,omitempty"`
}

// CallStartBody is the start of a host call that takes time or acts outside the
// store.
type CallStartBody struct {
	Seq      int    `json:"n"`
	Function string `json:"fn"`
	Hash     string `json:"h"` // of the canonical request, without Added
	Request  Value  `json:"rq"`
	Added    Value  `json:"add,omitzero"`   // added by the host: for llm the system text
	Effect   bool   `json:"eff,omitempty"`  // acts outside the store, so it is in doubt while it has no end
	Safe     bool   `json:"safe,omitempty"` // may be repeated without a decision
	Label    string `json:"l,omitempty"`    // for people: name of the command or event
	Due      int64  `json:"due,omitempty"`  // wait: end, microseconds since 1970
	Cursor   uint64 `json:"ec,omitempty"`   // wait for an event: cursor in the event log
	Position string `json:"pos,omitempty"`  // watch of a file: where it begins
	Block    int    `json:"blk,omitempty"`  // block: ordinal of its first block
	// Branches are the variables that each nested list of a block starts with.
	// More than one list are parallel branches, and one of an isolated block.
	Branches []map[string]json.RawMessage `json:"bv,omitempty"`
	// BranchLarge are, for each of Branches, those whose value is stored in a blob; nil if there is none.
	BranchLarge []map[string]Value `json:"bvl,omitempty"`
	Isolated    bool               `json:"iso,omitempty"` // block: the writes of its branches are not applied
	Child       sentinels.RunID    `json:"child,omitempty"`
	Reserved    *sentinels.Usage   `json:"worst,omitempty"` // llm: reservation until the end is known
	Lowered     bool               `json:"low,omitempty"`   // llm: the budget lowered the limit of the reply to that of Reserved; Label is the model
}

// CallEndBody is the end of a host call. A call that touches nothing outside
// the store has no start; then Function, Label, Hash and Request are set here.
type CallEndBody struct {
	Seq      int                        `json:"n"`
	Function string                     `json:"fn,omitempty"`
	Label    string                     `json:"l,omitempty"`
	Hash     string                     `json:"h,omitempty"`
	Request  Value                      `json:"rq,omitzero"`
	Result   Value                      `json:"ok,omitzero"`
	Error    *abi.Error                 `json:"err,omitempty"`
	Sets     map[string]json.RawMessage `json:"set,omitempty"`  // var: variables that it wrote
	SetLarge map[string]Value           `json:"setl,omitempty"` // var: and those whose value is stored in a blob
	Joined   []int                      `json:"join,omitempty"` // block with several branches: those whose writes were applied
	Blocks   int                        `json:"blk,omitempty"`  // block: number of ordinals that it used
	Child    sentinels.RunID            `json:"child,omitempty"`
	Usage    *sentinels.Usage           `json:"use,omitempty"`
	EventSeq uint64                     `json:"es,omitempty"`  // event wait: offset of the event in the event log
	Hops     int                        `json:"hop,omitempty"` // event wait: length of the event's chain of runs
	Path     []string                   `json:"pth,omitempty"` // event wait: sentinels of the runs counted by Hops
	EventBy  string                     `json:"eb,omitempty"`  // event wait: agent or model that emitted the event
	Event    *sentinels.Event           `json:"ev,omitempty"`  // event wait: the event, if EventBy is set
	Emitted  int64                      `json:"em,omitempty"`  // emit, command: bytes of names and data of the events that it emitted
	Logs     int                        `json:"lg,omitempty"`  // number of log lines of the attempt so far
	Decided  string                     `json:"dec,omitempty"` // how a call in doubt was decided
	Reads    map[string]string          `json:"rd,omitempty"`  // eval: for people, what the expression read
	Said     Value                      `json:"said,omitzero"` // llm: the message as its provider wrote it, which goes back to that one
	Queued   int64                      `json:"qd,omitempty"`  // for people: how long it waited before it began, in microseconds
	Queue    string                     `json:"qr,omitempty"`  // for people: what it waited behind
}

// CheckpointBody is a checkpoint of an attempt. A replay of the attempt begins
// behind it.
type CheckpointBody struct {
	Seq   int    `json:"n"` // number of the checkpoint call
	Hash  string `json:"h"`
	State Value  `json:"state"`
	Block int    `json:"blk"` // next ordinal of a block
	Logs  int    `json:"lg,omitempty"`
	// Bytes of log lines and of stored values so far, which count against the
	// limits of the attempt.
	LogBytes int64 `json:"lgb,omitempty"`
	Stored   int64 `json:"sto,omitempty"`
}

// StepEndBody is the end of a step execution, after its last attempt.
type StepEndBody struct {
	Output   Value      `json:"out,omitzero"`
	Error    *abi.Error `json:"err,omitempty"`
	Skipped  string     `json:"skip,omitempty"` // why the step was skipped: "condition", "error" or "fork"
	Reused   bool       `json:"reu,omitempty"`  // executed by the run that this one was forked from
	Type     string     `json:"type,omitempty"` // set if the step had no attempt
	ID       string     `json:"sid,omitempty"`  // likewise
	Name     string     `json:"name,omitempty"` // likewise
	OutputTo string     `json:"to,omitempty"`
	Value    Value      `json:"val,omitzero"` // of OutputTo, if it is not Output: the parsed text
	Kept     string     `json:"id,omitempty"` // id of the step, if $steps has the output

	Ends sentinels.Status `json:"ends,omitempty"` // the step ended the run with this status; Error is then that of the run

	Condition string            `json:"cond,omitempty"` // of a step that its condition skipped, as in StepStartBody
	Reads     map[string]string `json:"rd,omitempty"`
}

// RetryBody is the end of a failed attempt that another attempt follows.
type RetryBody struct {
	Error      *abi.Error `json:"err"`
	Category   string     `json:"cat"`
	Confidence float64    `json:"conf,omitempty"` // of the category, 0 to 1
	Due        int64      `json:"due"`            // start of the next attempt, microseconds since 1970
	Left       int        `json:"left"`
}

// SignalBody is an input from outside that a replay of the run needs.
type SignalBody struct {
	Type      string              `json:"type"`           // decision, resume, edit, ...
	Call      string              `json:"call,omitempty"` // path!seq of the host call that it answers
	Verdict   string              `json:"verdict,omitempty"`
	By        string              `json:"by,omitempty"`
	At        time.Time           `json:"at,omitzero"`    // decision: when it was made, in UTC
	Asked     time.Time           `json:"asked,omitzero"` // approval: since when it was asked, in UTC
	Comment   string              `json:"comment,omitempty"`
	Result    json.RawMessage     `json:"result,omitempty"`
	Extension *run.LimitExtension `json:"extension,omitempty"` // resume: what it adds to the limits
	Edit      *Edit               `json:"edit,omitempty"`      // edit: the definition from the next iteration on
	Usage     *sentinels.Usage    `json:"use,omitempty"`       // usage: of a model turn that is not a host call of its own
}

// Approves reports whether the signal is an approval.
func (s *SignalBody) Approves() bool { return s.Type == "decision" && s.Verdict == "approve" }

// Edit is a definition that applies to one run only.
type Edit struct {
	Number     int      `json:"n"`             // number of the edit within the run, from 1
	Revision   int      `json:"rev,omitempty"` // revision of the stored sentinel that was edited
	Definition Value    `json:"def"`
	Hash       string   `json:"hash"`
	Within     []string `json:"wi,omitzero"`  // as in IterationStartBody
	Maker      string   `json:"mk,omitempty"` // as in IterationStartBody
	By         string   `json:"by,omitempty"` // agent or model that made the edit; none for a person
	Changes    string   `json:"ch,omitempty"` // by it, as a unified difference, without secrets
}

// StatusBody is a change of a run's status other than its end.
type StatusBody struct {
	Status  sentinels.Status `json:"status"`
	Reason  string           `json:"reason,omitempty"`
	Limit   string           `json:"limit,omitempty"`
	By      string           `json:"by,omitempty"`
	Resumed bool             `json:"resumed,omitempty"` // another process has recovered the run
	With    sentinels.RunID  `json:"with,omitempty"`    // the run was paused together with this one, its ancestor
}

// IterationEndBody is the end of an iteration. It holds the whole state of the
// run, so that recovery starts from it.
type IterationEndBody struct {
	Iteration int                 `json:"n"`
	Variables map[string]Value    `json:"vars,omitempty"`
	Last      Value               `json:"last,omitzero"`
	Order     []string            `json:"ord,omitempty"` // names of the variables that the run has set, the newest last
	Cursors   map[string]uint64   `json:"ec,omitempty"`  // cursor in the event log for each awaited pattern
	Done      bool                `json:"done,omitempty"`
	Usage     sentinels.Usage     `json:"use"`
	Check     string              `json:"check,omitempty"`     // for people: value of an until loop's condition, as JSON, shortened
	Reads     map[string]string   `json:"rd,omitempty"`        // for people: what that condition read
	Steps     int                 `json:"steps"`               // number of step executions of the iteration
	Extension *run.LimitExtension `json:"extension,omitempty"` // sum of what resumes have added so far
	Given     []Given             `json:"giv,omitempty"`       // to the run by agents and models so far

	// The definition of the next iteration, unless a newer revision is stored.
	Revision   int      `json:"rev,omitempty"`
	Edit       int      `json:"ed,omitempty"` // as in IterationStartBody
	Within     []string `json:"wi,omitzero"`  // as in IterationStartBody
	Maker      string   `json:"mk,omitempty"` // as in IterationStartBody
	Hash       string   `json:"hash,omitempty"`
	Definition Value    `json:"def,omitzero"` // unset: the definition of run.start
}

// RunEndBody is the end of a run.
type RunEndBody struct {
	Status sentinels.Status `json:"status"`
	Error  *abi.Error       `json:"err,omitempty"`
	Limit  string           `json:"limit,omitempty"`
	Reason string           `json:"reason,omitempty"`
	Step   string           `json:"step,omitempty"` // address of the step that failed
	// Finally is the error of onFailure or finally, which does not change the other fields.
	Finally *abi.Error `json:"fin,omitempty"`
	// What the end cut off, as in [run.Info].
	By       string           `json:"by,omitempty"`
	PausedBy string           `json:"pb,omitempty"`
	Asked    run.DecisionKind `json:"ask,omitempty"`
}

// Encode encodes a record and sets its Format. JSON values in it stay as they are,
// byte for byte, if they are compact, see [Compact].
func Encode(r *Record) ([]byte, error) {
	r.Format = formatFirst
	if r.CallEnd != nil && len(r.CallEnd.SetLarge) > 0 || r.CallStart != nil && len(r.CallStart.BranchLarge) > 0 {
		r.Format = formatLarge
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(r); err != nil {
		return nil, fmt.Errorf("encode journal record %q: %w", r.Kind, err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// Compact returns a JSON value without white space between its parts, which is the
// form that a record holds. Values of records are compact before they are applied,
// or a run that is recovered would have others. Text that is not JSON is returned as it is.
func Compact(v json.RawMessage) json.RawMessage {
	if strictjson.IsCompact(v) {
		return v
	}
	var b bytes.Buffer
	if json.Compact(&b, v) != nil {
		return v
	}
	return b.Bytes()
}

// Decode decodes a record. A record of a higher format, or without the body
// that its kind names, is an error: a run whose journal has a gap must not be
// recovered.
func Decode(b []byte) (*Record, error) {
	var r Record
	if err := json.Unmarshal(b, &r); err != nil {
		return nil, fmt.Errorf("decode journal record: %w", err)
	}
	if r.Format < 1 || r.Format > Format {
		return nil, fmt.Errorf("decode journal record %q: format %d, this program reads up to %d", r.Kind, r.Format, Format)
	}
	if !r.complete() {
		return nil, fmt.Errorf("decode journal record: kind %q without its body", r.Kind)
	}
	return &r, nil
}

func (r *Record) complete() bool {
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
