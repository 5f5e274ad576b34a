package run

import (
	"encoding/json"

	"github.com/sentinel-runtime/sentinel/sentinels"
)

// ForkOptions say how a run is made from another one. The zero value begins the
// other one's work again from the start.
type ForkOptions struct {
	// Iteration is the iteration to begin with. Default: without From the first one,
	// with it the one in which the other run ended, or is.
	Iteration int
	// From is the first step to execute in that iteration: a top-level address, or
	// the id or name of a top-level step, of the definition that the new run
	// uses. Default: the iteration's first step.
	From string
	// Latest uses the newest revision of the stored sentinel, and those after it,
	// unless the other run was pinned. Revision uses that stored revision, and
	// Definition a definition that need not be stored; either for all iterations.
	// At most one of them is set. Default: the definition that the other run's
	// iteration used, without Iteration and From the one it used last, for all iterations.
	Latest     bool
	Revision   int
	Definition *sentinels.Definition
	// Edit makes another definition of the one that is used otherwise; it is
	// checked whole. It must not change what it is given.
	Edit func(*sentinels.Definition) (*sentinels.Definition, error)
	// Inputs take the place of the other run's, one by one. Default: none do.
	Inputs map[string]json.RawMessage
	// Key is as in [StartOptions].
	Key string
	// By says who wants it.
	By string
}
