package external

import (
	"context"
	"encoding/json"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/document"
	"github.com/sentinel-runtime/sentinel/runtime/plugin"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Commands are the commands of the host, which steps call by name. The host implements
// it with its registry.
//
// Call is safe for concurrent use, honours ctx, and returns errors of type *abi.Error
// where a code is known.
type Commands interface {
	Lookup(name string) (CommandInfo, bool)
	// Tools returns what a model may be offered: the public commands that one
	// of the patterns names ("code/read", "code/*"), in the order of their names.
	Tools(patterns []string) []CommandInfo
	// Call calls a command. An error in whose chain is syscall.EMFILE or ENFILE
	// means that nothing was done because no file could be opened: Call is called
	// again later with the same call.
	Call(ctx context.Context, call CommandCall) (json.RawMessage, error)
}

// Checks find the problems of definitions that depend on what the host has: commands and
// their parameters, tools, models, stored sentinels. Nested definitions are given on their
// own, and paths are those of the stored form.
//
// The methods are safe for concurrent use and make no requests.
type Checks interface {
	// Definition returns all problems. The definition may have others: a step may lack
	// fields or have a type that is not in types. If ctx ends before, there may be more.
	Definition(ctx context.Context, d *sentinels.Definition, types *sentinels.TypeSet) sentinels.Problems
	// Absent returns those of kind [sentinels.KindAbsent]. It is called at every start.
	Absent(d *sentinels.Definition, types *sentinels.TypeSet) sentinels.Problems
	// Environment returns the problems of the environment of the programs of a definition, those
	// in it included: secrets that owner may not use, of kind [sentinels.KindAbsent], and warnings.
	// Owner is the identity of the run, or the id of the definition.
	Environment(owner sentinels.ID, d *sentinels.Definition, types *sentinels.TypeSet) sentinels.Problems
}

// CommandInfo describes a command to the engine.
type CommandInfo struct {
	Name       string
	Summary    string
	Input      json.RawMessage // JSON Schema of the parameters
	ReadOnly   bool            // repeating it after a crash is safe
	Idempotent bool            // a call that is repeated with its key has its effect once
	Private    bool            // matched neither by "*" nor by the pattern of a family above its own
	ByName     bool            // matched by no pattern: it executes code, or writes files that others execute
	// Reads names, by parameter, the values with which a call only reads; "" is a call without
	// the parameter.
	Reads map[string][]string
	// Repeatable reports whether a call with these parameters may be made again after a crash.
	// Nil: it may if the command is ReadOnly or Idempotent.
	Repeatable func(params json.RawMessage) bool
	AsRun      bool     // its work is a run, which a repeated call finds: it is never in doubt
	InStore    bool     // it writes only CommandCall.Documents, which commit with its answer
	Shell      []string // parameters that are shell lines
	Raw        []string // parameters whose references are not resolved
	// Defines names parameters that hold definitions, parts of them, or the files that do. What
	// comes of one that the calling step does not write itself is bounded.
	Defines []string
	// Began reports whether a call with a key, in an attempt of its step, may have had its
	// effect. A call that a crash
	// interrupted and that has had none, such as one in a queue, is made again without a
	// decision. Nil: that is not known.
	Began func(ctx context.Context, key string, attempt int) (bool, error)
}

// NamedBy reports whether one of the patterns names the command: its own name;
// unless it is ByName, the family it is in with "/*"; and for one that is not
// private, a family above and "*".
func (info CommandInfo) NamedBy(patterns []string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		family, ok := strings.CutSuffix(pattern, "/*")
		switch {
		case pattern == info.Name:
			return true
		case info.ByName:
			return false
		case pattern == "*":
			return !info.Private
		case !ok || family == "" || !strings.HasPrefix(info.Name, family+"/"):
			return false
		}
		return !info.Private || path.Dir(info.Name) == family
	})
}

// TypeEntry returns the entry of a bound, as in CommandCall.Within, that lets steps of a type use
// the hosts, secrets and folders which their plugin was granted. It is the name of no command, and
// no pattern includes it.
func TypeEntry(t sentinels.StepType) string { return "type:" + string(t) }

// Both returns the commands and types that two bounds allow, nil if neither is one. Names and patterns
// that both have are kept as they are; all else becomes names. commands may be nil.
func Both(commands Commands, a, b []string) []string {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	out := []string{} // allows nothing, while nil allows everything
	for _, name := range a {
		if slices.Contains(b, name) {
			out = append(out, name)
		}
	}
	if commands == nil || len(out) == len(a) {
		return out
	}
	for _, info := range commands.Tools(a) {
		if info.NamedBy(b) && !slices.Contains(out, info.Name) {
			out = append(out, info.Name)
		}
	}
	return out
}

// OnlyReads reports whether a call with these parameters only reads.
func (info CommandInfo) OnlyReads(raw json.RawMessage) bool {
	if len(info.Reads) == 0 {
		return false
	}
	var params map[string]any
	if json.Unmarshal(raw, &params) != nil {
		return false
	}
	for name, values := range info.Reads {
		v, given := params[name]
		text, isText := v.(string)
		if (isText || !given) && slices.Contains(values, text) {
			return true
		}
	}
	return false
}

// MayRepeat reports whether a call with these parameters may be made again after a crash without
// a decision.
func (info CommandInfo) MayRepeat(params json.RawMessage) bool {
	return info.ReadOnly || info.Idempotent || info.Repeatable != nil && info.Repeatable(params)
}

// A CommandCall is one call of a command. host/command.Call mirrors it.
type CommandCall struct {
	Command string
	Params  json.RawMessage
	ByModel bool
	Tools   []string // with ByModel: the step's allow-list, nil for every public command
	// Within is the allow-list of a run whose definition comes from a model or an agent, or
	// was the value of a variable: its steps call commands as a model does. nil for other runs.
	Within    []string
	Repeated  bool // a crash interrupted the call: it may have had its effect
	Run       sentinels.RunID
	Root      sentinels.RunID // the run at the top of the tree of parents
	Sentinel  sentinels.ID
	As        string // for whom the run executes
	Path      string
	StepName  string // the step's name or id, for people
	Iteration int    // of the run; 0 for a call that starts a lost process again
	Attempt   int
	Key       string
	Workspace string
	Env       map[string]string
	// Environment is what the definition of the run says, and the secrets that the step names.
	Environment sentinels.Environment
	Deadline    time.Time
	Documents   *document.Tx // nil unless the command is InStore
	// Queue calls wait, which returns when the command may begin: as much as a limit allows
	// executes. The run holds no execution slot meanwhile, its status and the trace have the
	// reason, and the time does not count for time limits of the step.
	Queue func(ctx context.Context, reason string, wait func() error) error
}

// Models execute turns of language models.
type Models interface {
	// Quote returns what a turn may cost at most, and with which model, before
	// it is made. Priced is false for a model whose price is not known.
	Quote(ctx context.Context, turn sentinels.Turn) (ModelQuote, error)
	// Turn executes a turn. delta, if not nil, receives the text as it arrives; it may
	// block the stream and is not called after Turn has returned.
	Turn(ctx context.Context, turn sentinels.Turn, delta func(text string)) (sentinels.Reply, error)
}

// ModelQuote is the maximum usage of one turn.
type ModelQuote struct {
	Provider  string
	Model     string
	Worst     sentinels.Usage
	OutputUSD float64 // price of one output token, part of Worst.CostUSD
	Priced    bool
	Excess    int64 // estimated tokens of the input that the window has no room for; 0 if none or unknown
}

// Executions are the shell executions that commands started for a run.
type Executions interface {
	// Watch blocks until the condition of the request holds. Request and
	// answer are clause A6.5 of sdk/ABI.md.
	Watch(ctx context.Context, run sentinels.RunID, request json.RawMessage) (json.RawMessage, error)
	// FileStart returns the position at which a watch of a file begins. It is recorded
	// before the watch, so that one which a crash interrupts begins there again.
	FileStart(ctx context.Context, watch FileWatch) (position string, err error)
	// WatchFile blocks until the condition of the request holds or Due is closed,
	// which is a result too.
	WatchFile(ctx context.Context, watch FileWatch) (json.RawMessage, error)
	// EndRun ends every process tree the run started and returns when they
	// are gone. It is called when a run ends or stops.
	EndRun(ctx context.Context, run sentinels.RunID) error
	// EndBackground ends the process trees that were started to end with a loop, by steps whose execution path ends
	// chooses, and returns when they are gone. It is called when a step of type loop ends, and when an edit of the
	// definition takes effect.
	EndBackground(ctx context.Context, run sentinels.RunID, ends func(path string) bool) error
	// Interrupted returns the executions of the run that were under way when
	// the process that had started them died; their trees are ended when it
	// returns. The calls that started them are in doubt.
	Interrupted(ctx context.Context, run sentinels.RunID) ([]InterruptedExecution, error)
	// Memory returns the resident bytes of the run's process trees, and the execution
	// path of the step that started the largest one.
	Memory(run sentinels.RunID) (bytes int64, largest string)
}

// A FileWatch is a watch of a file that grows. Request is clause A6.5 of sdk/ABI.md.
type FileWatch struct {
	Run       sentinels.RunID
	Workspace string // of the run; the file is in it
	Request   json.RawMessage
	Within    []string        // as in CommandCall: what is read must be within it
	Position  string          // from FileStart
	Due       <-chan struct{} // closed at the time limit of the request
}

// An InterruptedExecution is an execution whose process died with the host. Execution
// is its id, which the call that started it has returned as "executionId".
type InterruptedExecution struct {
	Execution string
	Path      string // execution path of the step that started it
}

// Contexts builds $ragContext before an iteration.
type Contexts interface {
	Build(ctx context.Context, request ContextRequest) (json.RawMessage, error)
}

// ContextRequest describes the context that a definition requests.
type ContextRequest struct {
	Recipe    string
	Sources   []string
	Workspace string
	Within    []string // as in CommandCall
	Run       sentinels.RunID
	Variables map[string]json.RawMessage
}

// HTTP makes a plugin's outgoing request (clause A6.13), within its grant.
type HTTP interface {
	Do(ctx context.Context, call PluginCall) (json.RawMessage, error)
}

// Folders reads and writes the files of a plugin's folders (clause A6.16),
// within its grant.
type Folders interface {
	Do(ctx context.Context, call PluginCall) (json.RawMessage, error)
}

// A PluginCall is a request of a plugin itself rather than of a command.
type PluginCall struct {
	Plugin    string // name of the plugin, for messages
	Run       sentinels.RunID
	Workspace string   // of the run
	Within    []string // as in CommandCall
	Key       string   // idempotency key of the call
	// Grant is what the plugin may do at this moment. One that is trusted has all
	// that it asks for.
	Grant   plugin.Grant
	Request json.RawMessage // as the guest wrote it
}
