package command

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/host/principal"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A Command is one named operation on the world. Steps, models (as tools), the
// CLI, HTTP and MCP all call the same value. Make one with [New].
type Command struct {
	Name       string // family/verb: "code/read"
	Summary    string // one sentence, shown to people and models
	Effect     Effect // the most that a call does
	Idempotent bool   // a second call with the same key changes nothing more
	// Reads names, by parameter, the values with which a call only reads; the
	// command as a whole does not. {"operation": {"diff", "log"}}. [Absent] among them is a
	// call without the parameter.
	Reads map[string][]string
	// Repeatable reports whether a call with these parameters may be made twice, although others
	// may not. Nil: none may, unless the command is idempotent.
	Repeatable func(params json.RawMessage) bool
	AsRun      bool     // its work is a run of the engine, which a repeated call finds: never in doubt
	InStore    bool     // its whole effect is in Call.Records: never in doubt
	Shell      []string // parameters that are shell lines
	Raw        []string // parameters handed over as written: references in them are not resolved
	Defines    []string // parameters that hold definitions, parts of them, or name files that do
	// Began reports whether a call with a key, in an attempt of its step, may have had its
	// effect: one that a crash interrupted before that is made again. Nil: that is not known.
	Began func(ctx context.Context, key string, attempt int) (bool, error)

	// Search says that a call matches patterns, which may take long, and changes nothing: it
	// is ended when the process begins to stop.
	Search bool

	// Waits reports whether a call with these parameters may wait for more than this process and its disk: for
	// another host, for a program or a run, or for its turn in a queue of its own. Nil: only one that executes
	// something does. See [Command.MayWait].
	Waits func(params json.RawMessage) bool

	// Private commands are not offered to models by default: a step that wants
	// its model to have one names it, or its own family ("ticket/*"), in tools.
	Private bool
	// ByName commands are private, and no pattern matches them, not even that of
	// their own family: tools must hold the exact name. Commands whose Effect is
	// more than [Changes] are ByName.
	ByName bool
	// Aliases are further accepted names of parameters, alias to real name.
	// They are renamed before validation. A shell line cannot have one: the
	// engine treats it by its name.
	Aliases map[string]string
	// KeyParam is the parameter in which callers may give their idempotency key, empty for
	// none. A caller that gives the key with the request gives it in the parameter, too.
	KeyParam string
	// Timeout holds when the call brings no deadline of its own; 0 is none.
	Timeout time.Duration
	// Version distinguishes commands of a [Source] with the same name. Empty for others.
	Version string

	input, output *lazySchema
	parameters    []string // sorted; nil if only the schema says which there are

	run     func(ctx context.Context, call *Call) (any, error)
	preview func(ctx context.Context, call *Call) (Preview, error) // nil: see Registry.Preview
}

// Input returns the JSON Schema of the parameters, which must not be changed.
func (c Command) Input() json.RawMessage { return c.input.json() }

// Output returns the JSON Schema of the result, which must not be changed; nil if the command
// declares none.
func (c Command) Output() json.RawMessage { return c.output.json() }

// Absent among the values of [Command.Reads] is a call without the parameter.
const Absent = ""

// An Effect is the most that a command does. A pattern in an allow-list matches only what
// reads or changes: whatever it matches, at any depth, executes nothing.
type Effect string

// The effects, from the least to the most.
const (
	Reads   Effect = "reads"   // changes nothing
	Changes Effect = "changes" // writes files, records or messages
	// Executes starts programs, files of the project or definitions: who can write a file
	// decides what such a command does.
	Executes Effect = "executes"
	// Configures changes what this host executes or trusts later, such as definitions.
	Configures Effect = "configures"
	// Decides is a decision that only a person makes: calls of steps, models and agents are
	// refused.
	Decides Effect = "decides"
)

// effects are in ascending order.
var effects = []Effect{Reads, Changes, Executes, Configures, Decides}

// Matchable reports whether patterns may match a command with this effect.
func (e Effect) Matchable() bool { return e == Reads || e == Changes }

// ReadOnly reports whether the command changes nothing.
func (c Command) ReadOnly() bool { return c.Effect == Reads }

// MayWait reports whether a call with these parameters may wait for more than this process and its disk. Such a call
// must not hold what others need to come to their end, and has limits of its own.
func (c Command) MayWait(params json.RawMessage) bool {
	return c.Effect == Executes || c.AsRun || c.Waits != nil && c.Waits(params)
}

// Always is for [Command.Waits] of a command that may wait whatever its parameters are.
func Always(json.RawMessage) bool { return true }

// A Call is one call of a command. Params are valid under the command's schema
// when the command sees them.
type Call struct {
	Command   string
	Params    json.RawMessage
	By        By
	Step      bool            // with ByModel: a step of a definition with a bound made the call, and no model chose it
	As        string          // name of the agent, or the persona of the person or run; empty for none
	Run       sentinels.RunID // empty when no run called
	Sender    sentinels.RunID // without Run: the run whose step started the process that called; empty for none
	Root      sentinels.RunID // with Run: the run at the top of its tree of parents
	Sentinel  sentinels.ID
	Path      string            // execution path of the calling step
	StepName  string            // its name or id, for people
	Iteration int               // of the run, from 1; 0 if it is not known
	Attempt   int               // attempt of the calling step, from 1
	Key       string            // idempotency key: equal for every repetition of this call; commands see one that no other caller can choose
	Workspace string            // absolute folder the files and processes of the call live in
	Env       map[string]string // variables for the shell lines of this call
	// Environment is what the definition of the run says about the environment of its
	// programs, and the secrets that the calling step names itself.
	Environment sentinels.Environment
	Deadline    time.Time // zero is none; ctx has it too
	Records     Records   // nil unless the command needs the store
	Tools       []string  // with ByModel: the step's allow-list; nil allows every public command
	// Within is a further allow-list, of a run whose definition comes from a model or an
	// agent, or was the value of a variable; nil for other runs.
	Within   []string
	Repeated bool // a crash interrupted the call of a run: it may have had its effect
	// Queue calls wait, which returns when the command may begin, and shows the reason in the
	// run that calls. Nil for other callers; see [Call.InQueue].
	Queue func(ctx context.Context, reason string, wait func() error) error
	// MayExecute says, with ByModel, that Tools holds a command which executes
	// code. [Registry.Call] sets it.
	MayExecute bool
	// Redact takes the values of secrets out of JSON, or of a text, for callers whose results
	// are without them; nil for others. What selects, sorts and matches for such a caller is
	// the redacted text: else a parameter would confirm what the result does not show.
	Redact func([]byte) []byte
	// Hashes returns what such a caller gets for a hash of a definition, see [Call.HashOf]; nil for others.
	Hashes func(hash string) string
	// Charge counts bytes of what the answer is made of, as they are read, for a caller whose answers
	// share memory; its error ends the call. Nil for others. See [Call.Page].
	Charge func(bytes int64) error
	// Busy waits until ctx ends for the place that a caller needs for work which keeps a processor busy, and
	// returns the function that gives it back, which may be called again and is not nil with an error. A call
	// of a command that waits, see [Command.MayWait], has no place otherwise. Nil: none is needed. See [Call.Work].
	Busy func(ctx context.Context) (done func(), err error)

	registry *Registry // set by [Registry.Call]
	base     string    // likewise: a folder from which Workspace is reached without links, empty if that does not matter
}

// Work is Busy, for all callers: a command that waits calls it before each part that keeps a processor busy.
func (c *Call) Work(ctx context.Context) (done func(), err error) {
	if c.Busy == nil {
		return func() {}, nil
	}
	return c.Busy(ctx)
}

// Visible returns a text as the caller sees it.
func (c *Call) Visible(text string) string {
	if c.Redact == nil {
		return text
	}
	return string(c.Redact([]byte(text)))
}

// InQueue calls wait, which returns when the command may begin: as much as a limit allows
// executes.
func (c *Call) InQueue(ctx context.Context, reason string, wait func() error) error {
	if c.Queue == nil {
		return wait()
	}
	return c.Queue(ctx, reason, wait)
}

// By says who wants a call.
type By string

// The callers.
const (
	ByStep  By = "step"
	ByModel By = "model" // held to the step's tools, and to the write rules for models
	ByUser  By = "user"  // CLI, API
	ByAgent By = "agent" // API, with the token of an agent: it decides nothing for a person
)

// CallerOf returns the caller of a request that a principal makes. A viewer is one of those
// who decide nothing, too; that it only reads is for the door to see.
func CallerOf(p principal.Principal) (by By, as string) {
	if p.Kind == principal.Agent || p.Kind == principal.Viewer {
		return ByAgent, p.Name
	}
	return ByUser, p.Name
}

// caller returns the caller as a part of a sentence.
func (c *Call) caller() string {
	switch {
	case c.By != ByAgent:
		return "a " + string(c.By)
	case c.As == principal.BelowStep:
		return "an agent: a process below a step is one whatever its token"
	case c.As == principal.Unknown:
		return "an agent: the process that asks has ended, or its parents cannot be seen"
	}
	return "an agent"
}

// Held reports whether files and tickets hold the caller to the rules for models: it is
// one, or an agent with a token.
func (c *Call) Held() bool { return c.By == ByModel || c.By == ByAgent }

// HeldBytes is how many bytes of documents or events one call of a held caller reads. Its answer says that
// there is more.
const HeldBytes = 8 << 20

// Bounded reports whether the caller is held, or a run whose definition has a bound.
func (c *Call) Bounded() bool { return c.Held() || c.Within != nil }

// TokenMissing returns the error of a call that needs the token of a claim on a ticket and has
// none.
func (c *Call) TokenMissing() error {
	return &abi.Error{Code: abi.BadFields, Permanent: true, Field: "token", Message: c.Command + ": token is missing: it is in the answer of ticket/claim"}
}

// Who returns for whom the call is made, as records have it: "user", "ann" for a
// person's persona, "agent:ci" for a token of an agent, or the step or model of a
// sentinel. Only the token says what an agent is called.
func (c *Call) Who() string {
	switch {
	case c.By == ByAgent:
		return string(ByAgent) + ":" + c.As
	case c.By != ByUser && c.forAgent():
		return c.As // a definition that an agent started may have any id
	case c.By != ByUser:
		return string(c.By) + " of " + string(c.Sentinel)
	case c.As != "":
		return c.As
	}
	return string(ByUser)
}

// HashOf returns a hash of a definition as the caller knows it from results. What a caller gives is compared with that,
// and never with the hash itself, which who knows all but a secret can compute for each guess of it.
func (c *Call) HashOf(hash string) string {
	if c.Hashes == nil {
		return hash
	}
	return c.Hashes(hash)
}

// Named returns who calls, and beside it the name that the caller gave itself: "agent:ci/worker-3".
// Only a person is known by that name alone: records show who did something, and none but a
// person takes the name of one.
func (c *Call) Named(name string) string {
	switch {
	case name == "":
		return c.Who()
	case c.By == ByUser:
		return name
	}
	return c.Who() + "/" + name
}

// OwnClaims reports whether the caller reports about a claim on a ticket only if it is its own:
// a model, an agent, or a step of a run that an agent started.
func (c *Call) OwnClaims() bool { return c.Held() || c.By == ByStep && c.forAgent() }

// Claimant returns whose a claim on a ticket is that the call makes: an agent's, with the runs
// that it started; that of a tree of runs, whose steps and models share it; or a person's.
func (c *Call) Claimant() string {
	switch {
	case c.By != ByAgent && c.By != ByUser && c.forAgent():
		return c.As
	case c.Root != "":
		return "run " + string(c.Root)
	}
	return c.Who()
}

// EmitsFor returns the agent or model behind an event that the call emits, see
// [sentinels.Event].
func (c *Call) EmitsFor() string {
	switch {
	case c.By == ByAgent, c.forAgent():
		return c.Who()
	case c.Within != nil:
		return string(ByModel)
	}
	return ""
}

// Share returns the agent or model whose share of what the host keeps the call counts for, "" for a
// person and the steps of their definitions.
func (c *Call) Share() string {
	if c.By == ByModel {
		return cmp.Or(c.EmitsFor(), string(ByModel))
	}
	return c.EmitsFor()
}

// ForAgent reports whether an agent calls, or a step or model of a run that executes for one.
func (c *Call) ForAgent() bool { return c.By == ByAgent || c.By != ByUser && c.forAgent() }

// forAgent reports whether the run that calls executes for an agent.
func (c *Call) forAgent() bool { return strings.HasPrefix(c.As, string(ByAgent)+":") }

// Records are documents in the host's store as one call sees them: its own
// writes at once, and all of them become durable together when it succeeds.
type Records interface {
	Get(ctx context.Context, collection, id string) (sentinels.Document, error)
	// List returns at most as many documents as q says. next is not empty if it ended before, since one
	// call of its caller may not read more: List goes on behind that id.
	List(ctx context.Context, collection string, q Query) (docs []sentinels.Document, next string, err error)
	// Put writes data. expect is the revision it was made on, 0 for a new
	// document, or sentinels.AnyRevision.
	Put(ctx context.Context, collection, id string, data json.RawMessage, expect uint64) (sentinels.Document, error)
	Delete(ctx context.Context, collection, id string, expect uint64) error
	// Emit puts an event into the log when the writes become durable. It needs
	// an ID, the same for every repetition of the call.
	Emit(ctx context.Context, e sentinels.Event) error
}

// A Query selects documents of a collection, in the order of their ids.
type Query struct {
	Filter  map[string]json.RawMessage // top-level field equals value, or fulfils conditions such as {"$gt": 1}, see CheckFilter
	After   string                     // ids greater than this one
	Limit   int                        // 0 is 100; at most 1,000
	Reverse bool
}
