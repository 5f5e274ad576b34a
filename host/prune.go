package host

import (
	"context"
	"errors"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Prune removes runs that are over as [runtime.Runtime.Prune] does, and with
// them their logs and the output of their processes. Logs that an earlier one
// left behind, because its process ended in the middle, go too, and logs of runs
// that are over beyond a gigabyte in all, the oldest of the principal with the most first.
func (h *Host) Prune(ctx context.Context, keep runtime.Retention) (runtime.Pruned, error) {
	removed := keep.Removed
	keep.Removed = func(ctx context.Context, runs []sentinels.RunID) error {
		err := errors.Join(h.logs.remove(runs), h.shells.ForgetRuns(runs))
		if removed != nil {
			err = errors.Join(err, removed(ctx, runs))
		}
		return err
	}
	out, err := h.rt.Prune(ctx, keep)
	if err != nil {
		return out, err
	}
	return out, h.logs.sweep(func(run sentinels.RunID) (loggedRun, error) {
		info, err := h.rt.Status(run)
		if abi.CodeOf(err) == abi.NotFound {
			return loggedRun{}, nil
		}
		return loggedRun{found: err == nil, over: info.Status.Final(), owner: info.By}, err
	})
}
