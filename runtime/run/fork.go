package run

import (
	"encoding/json"

	"github.com/sentinel-runtime/sentinel/sentinels"
)

// ForkOptions configure a fork. The zero value executes the other run again from its
// start.
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
	// Inputs replace inputs of the other run, one by one. Default: none.
	Inputs map[string]json.RawMessage
	// Workspace is the absolute path of the folder that the new run works in. Default: that of
	// the other run.
	Workspace string
	// Key is as in [StartOptions].
	Key string
	// Force begins the run beside active ones. Default: while other runs of the sentinel are active,
	// the concurrency of the definition that it begins with holds, as Overlap of [StartOptions].
	Force bool
	// Over is as in [StartOptions].
	Over func(Info) error
	// AskAgain says that approvals of the other run do not count: the fork does not begin behind
	// one, because what was approved was the other run. Default false.
	AskAgain bool
	// Within is as in [StartOptions], beside the bound that the other run has. It does not count for what a
	// person has decided to execute as it is: the newest revision of the stored sentinel from its first step,
	// with any inputs, or the rest of the other run without a change. Default nil.
	Within []string
	// Durable is as in [StartOptions].
	Durable bool
	// By is the user who forks the run.
	By string
	// As is as in [StartOptions], of an agent that forks the run. Default: that of the other run.
	As string
}
