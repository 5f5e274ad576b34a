package run

import (
	"encoding/json"

	"github.com/sentinel-runtime/sentinel/sentinels"
)

// StartOptions configure a start.
type StartOptions struct {
	// Inputs are the values of the definition's inputs. Default: the defaults of the
	// definition.
	Inputs map[string]json.RawMessage
	// Variables are set before the first step. Default none.
	Variables map[string]json.RawMessage
	// Event is the value of $event. Default null.
	Event *sentinels.Event
	// Named are the definitions that {"$ref": id} means in this run and those below it,
	// before the stored ones. Default none.
	Named map[sentinels.ID]*sentinels.Definition
	// Workspace is the folder the run works in. Default: the definition's, else
	// the current folder. It is made absolute.
	Workspace string
	// Key, if set, is unique in the store: a second start with it returns the
	// first run.
	Key string
	// Revision is the stored revision of the definition, 0 if it is not stored.
	Revision int
	// Pinned keeps the run on its revision when the definition is edited.
	Pinned bool
	// OnInterrupt decides about calls in doubt where neither the step nor the
	// definition does.
	OnInterrupt sentinels.Interrupt
	// Starter is the run whose command starts this one. The new run continues its chain of
	// events, so that sentinels which start each other in a circle reach the limit. Default
	// empty: no run.
	Starter sentinels.RunID
	// Child makes the run a child of the run whose host call the context of the start belongs
	// to: it spends from the budget of that run, counts for its limits of children and nesting,
	// and pauses and stops with it. Its variables, its bound and the definitions that it names
	// are those that are given here. Without a Key a repeated call finds the run, and another
	// attempt of the step starts another one. Default false, also where no run calls.
	Child bool
	// Within are the commands that the run and those below it may call, by name and pattern,
	// under the rules for models; its workspace is then Workspace or below it. It is for
	// definitions of a caller that may call no more. Default nil: no bound.
	Within []string
	// As is for whom the run executes: a persona, or the name of an agent. Child runs
	// have it too, and $PERSONA_ID is it. Default: what the definition has as createdBy.
	As string
	// GivenBy is the agent ("agent:ci") or model ("model") that starts the run and gives its inputs, where neither Within
	// nor As says so, as for a model in the run of a person. Default: what these say.
	GivenBy string
	// Overlap is what happens while other runs of the sentinel are active: with skip the start is the
	// error conflict, with queue the run begins when those before it have ended, with restart they
	// are stopped first. It does not count for a child. Default: the run begins beside them.
	Overlap sentinels.Overlap
	// Durable returns once the start is on the disk, for a caller who receives its id. Default: once it is
	// queued for its commit, which takes 50 ms at most; a crash before loses the run.
	Durable bool
	// Over refuses the start, with its error, if it would stop that run by Overlap. Default nil: it stops every one.
	Over func(Info) error
}
