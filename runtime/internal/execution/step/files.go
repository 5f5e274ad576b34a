package step

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
		cause := AsError(err, abi.Unavailable).Message
		a.svc.Log.Warn("run waits for an open file", "run", a.run.ID(), "step", a.address, "call", what, "again", wait, "error", cause)
		if !waited {
			a.log("warn", fmt.Sprintf("%s waits for an open file: %s", what, cause))
		}
		waited = true
	}, do)
}
