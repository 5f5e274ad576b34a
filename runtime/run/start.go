package run

import (
	"encoding/json"

	"github.com/sentinel-runtime/sentinel/sentinels"
)

// StartOptions say how a run begins.
type StartOptions struct {
	// Inputs are the values of the definition's inputs. Default: theirs.
	Inputs map[string]json.RawMessage
	// Variables are set before the first step. Default none.
	Variables map[string]json.RawMessage
	// Event is what $event is. Default null.
	Event *sentinels.Event
	// Workspace is the folder the run works in. Default: the definition's, else
	// the current folder. It is made absolute.
	Workspace string
	// Key, if set, is unique in the store: a second start with it returns the
	// first run.
	Key string
	// Revision is the stored revision that the definition is, 0 if none.
	Revision int
	// Pinned keeps the run on its revision when the definition is edited.
	Pinned bool
	// OnInterrupt decides about calls in doubt where neither the step nor the
	// definition does.
	OnInterrupt sentinels.Interrupt
	// Starter is the run that starts this one by a command. The new run is none of
	// its children, but the chain of events that it belongs to continues, so that
	// sentinels which start each other in a circle come to an end. Default: no run's
	// run.
	Starter sentinels.RunID
}
