package statefolder

import (
	"context"
	"log/slog"
	"path/filepath"

	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
)

// Open opens the store in the folder dir, or creates it. The error is in the form
// of [Error], or the cause of the end of ctx. version names this program in the store.
func Open(ctx context.Context, dir, version string, log *slog.Logger) (*store.DB, error) {
	db, err := store.Open(ctx, dir, store.Options{Version: version, Logger: log})
	if err != nil {
		return nil, Error(dir, err)
	}
	return db, nil
}

// Check reads the whole store in the folder dir and changes nothing. Damage is an
// error that matches [store.ErrDamaged], a store that a process has open one that
// matches [ErrHeld]. A folder without a store is sound. It takes one to two
// seconds a GB from the page cache.
func Check(dir string) error {
	found, err := store.Inspect(dir)
	if err == nil {
		err = found.Err(filepath.Join(dir, "store.db"))
	}
	return Error(dir, err)
}
