package journal

import "github.com/sentinel-runtime/sentinel/sentinels"

// A Given is something that an agent or a model gave to a run that had begun, and that no person had accepted by then. A
// person who decides about the run has to see it: also when it was taken back, the run keeps what came of it.
type Given struct {
	By        string    `json:"by"` // agent:NAME, or model
	Kind      GivenKind `json:"k"`
	Iteration int       `json:"n,omitempty"`   // the newest one when it was given
	Number    int       `json:"num,omitempty"` // of a revision; 0 if it is not kept
	Before    int       `json:"bef,omitempty"` // revision that the run used before
	Changes   string    `json:"ch,omitempty"`  // of an edit: a unified difference, without secrets
	// Event is what a step waited for; nil for one that an earlier iteration received, and for one that is not kept.
	Event *sentinels.Event `json:"ev,omitempty"`
}

// GivenKind is what was given.
type GivenKind string

// The kinds of what is given.
const (
	GivenEdit     GivenKind = "edit"     // of the run, or of the run that it is a fork of, or by the fork
	GivenRevision GivenKind = "revision" // of the stored sentinel, used by an iteration
	GivenEvent    GivenKind = "event"
)
