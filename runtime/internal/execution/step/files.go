package step

import (
	"context"
	"fmt"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/failure"
	"github.com/sentinel-runtime/sentinel/runtime/internal/openfiles"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// waitForFiles calls do, and repeats that while the process has no file descriptor
// left, so that a step does not fail because other work uses them all. The wait counts
// towards the step's time limit. Every repetition is in the host's log, the first one
// also in the run's log.
func (a *attempt) waitForFiles(ctx context.Context, what string, do func() error) error {
	waited := false
	return openfiles.Retry(ctx, func(err error, wait time.Duration) {
		cause := failure.From(err, abi.Unavailable).Message
		a.svc.Log.Warn("run waits for an open file", "run", a.run.ID(), "step", a.address, "call", what, "again", wait, "error", cause)
		if !waited {
			a.log("warn", fmt.Sprintf("%s waits for an open file: %s", what, cause))
		}
		waited = true
	}, do)
}
