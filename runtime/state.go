package runtime

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// A StateInfo says how a state folder is, as seen from outside.
type StateInfo struct {
	Store  string    // the database file
	Bytes  int64     // of it; -1 if there is none yet
	Held   bool      // a process has it open
	Holder int       // that process, 0 if it did not say
	Since  time.Time // since when, zero likewise
	Closed bool      // its last owner closed it; false while it is held

	FreeBytes, TotalBytes int64 // of the disk; -1 if it is not known
	LowBytes              int64 // below which an engine with default options is read-only
}

// InspectState looks at a state folder without opening or changing anything,
// whether or not a process has it open. It takes half a second if one has.
func InspectState(dir string) (StateInfo, error) {
	s := StateInfo{Store: filepath.Join(dir, "store.db"), Bytes: -1, FreeBytes: -1, TotalBytes: -1}
	if info, err := os.Stat(s.Store); err == nil {
		s.Bytes = info.Size()
	}
	if d, err := store.DiskOf(dir); err == nil {
		s.FreeBytes, s.TotalBytes = d.Free, d.Total
		s.LowBytes = (&Runtime{}).lowWater(d)
	}
	if s.Bytes < 0 {
		s.Closed = true
		return s, nil
	}
	// The lock and not the flag: a flag stays behind where a process was killed.
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

// CheckChild starts a child of this program once and ends it: slow conditions
// and the check of a damaged store need one. unavailable says that none can be
// had.
func CheckChild(ctx context.Context, child Child) error {
	command := child.resolve()
	if command.Path == "" {
		return &abi.Error{Code: abi.Unavailable, Message: "no child process can be started: this program's main does not begin with runtime.ServeChild"}
	}
	dir, err := os.MkdirTemp("", "sentinel-child-")
	if err != nil {
		return fmt.Errorf("check child: %w", err)
	}
	defer os.RemoveAll(dir)
	// An empty folder is sound, so whatever goes wrong is the child's.
	if err := verifyInChild(ctx, command, dir); err != nil {
		return &abi.Error{Code: abi.Unavailable, Message: err.Error()}
	}
	return nil
}

// Compacted says what [CompactStore] did, in bytes of the file.
type Compacted struct{ Before, After int64 }

// CompactStore copies the store of a state folder that no process has open to a
// file without free pages, which takes its place. Open does so by itself for a
// file of more than 64 MiB that is more than half empty.
func CompactStore(ctx context.Context, dir string) (Compacted, error) {
	done, err := store.Compact(ctx, dir, store.Options{})
	switch {
	case errors.Is(err, os.ErrNotExist):
		return Compacted{}, errf(abi.NotFound, "compact %q: there is no store", dir)
	case errors.Is(err, store.ErrNoSpace):
		return Compacted{}, &abi.Error{Code: abi.Unavailable, Message: err.Error(), Hint: hintRoom}
	}
	return Compacted(done), openError(dir, err)
}
