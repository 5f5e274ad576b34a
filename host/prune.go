package host

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Prune removes runs that are over as [runtime.Runtime.Prune] does, and their
// logs with them.
func (h *Host) Prune(ctx context.Context, keep runtime.Retention) (runtime.Pruned, error) {
	removed := keep.Removed
	keep.Removed = func(ctx context.Context, runs []sentinels.RunID) error {
		err := h.logs.remove(runs)
		if removed != nil {
			err = errors.Join(err, removed(ctx, runs))
		}
		return err
	}
	return h.rt.Prune(ctx, keep)
}

// remove takes the logs of runs away; one that is not there is no error.
func (l *runLogs) remove(runs []sentinels.RunID) error {
	var errs []error
	for _, run := range runs {
		if err := os.Remove(l.path(run)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
