package statefolder

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/runtime/maintenance"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Inspect describes the state folder dir without opening or changing anything.
// It takes half a second if a process has the store open.
func Inspect(dir string) (maintenance.StateInfo, error) {
	s := maintenance.StateInfo{Store: filepath.Join(dir, "store.db"), Bytes: -1, FreeBytes: -1, TotalBytes: -1}
	if info, err := os.Stat(s.Store); err == nil {
		s.Bytes = info.Size()
	}
	if d, err := store.DiskOf(dir); err == nil {
		s.FreeBytes, s.TotalBytes = d.Free, d.Total
		s.LowBytes = LowWater(d, 0)
	}
	if s.Bytes < 0 {
		s.Closed = true
		return s, nil
	}
	// Use the lock and not the flag file, which stays after the owner was killed.
	holder, err := store.Holder(dir)
	if err != nil {
		return s, fmt.Errorf("inspect state %q: %w", dir, err)
	}
	if holder != nil {
		s.Held, s.Holder, s.Since = true, holder.PID, holder.Since
		return s, nil
	}
	s.Closed, err = store.WasClosed(dir)
	return s, err
}

// Compact copies the store in the folder dir, which no process has open, to a file
// without free pages. The new file replaces the old one.
func Compact(ctx context.Context, dir string) (maintenance.Compacted, error) {
	done, err := store.Compact(ctx, dir, store.Options{})
	switch {
	case errors.Is(err, os.ErrNotExist):
		return maintenance.Compacted{}, &abi.Error{Code: abi.NotFound, Message: fmt.Sprintf("compact %q: there is no store", dir)}
	case errors.Is(err, store.ErrNoSpace):
		return maintenance.Compacted{}, &abi.Error{Code: abi.Unavailable, Message: err.Error(), Hint: HintSpace}
	}
	return maintenance.Compacted(done), Error(dir, err)
}
