package statefolder

import (
	"errors"
	"fmt"

	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// ErrHeld reports that another process has the store open.
var ErrHeld = errors.New("store is held by another process")

// Error gives an error of the store in the folder dir the form that callers of
// the engine know. It returns nil for nil.
func Error(dir string, err error) error {
	var held *store.HeldError
	var migration *store.MigrationError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &held) && held.PID != 0:
		return fmt.Errorf("open state %q: %w: process %d", dir, ErrHeld, held.PID)
	case errors.Is(err, store.ErrHeld):
		return fmt.Errorf("open state %q: %w", dir, ErrHeld)
	case errors.Is(err, store.ErrFormat):
		return err
	case errors.As(err, &migration):
		e := &abi.Error{Code: abi.Unavailable, Message: migration.Error(), Hint: "the version that wrote the store still reads it"}
		if store.IsFull(err) {
			e.Hint = "free space on the disk of the state folder, twice the size of the store, and start again; " + e.Hint
		}
		return e
	case store.IsReadOnly(err):
		return &abi.Error{
			Code: abi.Denied, Permanent: true, Message: fmt.Sprintf("open state %q: the folder cannot be written to: %v", dir, err),
			Hint: "mount its disk writable, or give this user the right to write there (chmod u+rwx, chown); or choose another folder with --state",
		}
	case store.IsFull(err): // only making a new store needs space
		return &abi.Error{Code: abi.Unavailable, Message: fmt.Sprintf("open state %q: make a new store: %v", dir, err), Hint: HintSpace}
	}
	return fmt.Errorf("open state %q: %w", dir, err)
}
