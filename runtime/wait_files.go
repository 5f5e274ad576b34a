package runtime

import (
	"context"
	"fmt"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/openfiles"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// waitForFiles makes the outside part of a call. While no file can be opened, the
// run waits and makes the call again; it does not fail because other work has the
// descriptors. The wait counts towards the step's time limit. The host's log shows
// every attempt, the run's log the first.
func (a *attempt) waitForFiles(ctx context.Context, what string, do func() error) error {
	waited := false
	return openfiles.Retry(ctx, func(err error, wait time.Duration) {
		cause := asError(err, abi.Unavailable).Message
		a.run.rt.log.Warn("run waits for an open file", "run", a.run.id, "step", a.address, "call", what, "again", wait, "error", cause)
		if !waited {
			a.log("warn", fmt.Sprintf("%s waits for an open file: %s", what, cause))
		}
		waited = true
	}, do)
}

// heldCondition logs that a condition waits for an open file.
func (rt *Runtime) heldCondition(err error, wait time.Duration) {
	rt.log.Warn("condition waits for an open file", "again", wait, "error", err)
}
