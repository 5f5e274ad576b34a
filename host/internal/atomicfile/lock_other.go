//go:build !unix

package atomicfile

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// staleLock is how old a lock file is whose process ended without removing it.
const staleLock = 30 * time.Second

// Lock waits until this process alone may change files in a folder, among those that lock it.
func Lock(ctx context.Context, dir string) (unlock func(), err error) {
	path := filepath.Join(dir, TempPrefix+"lock"+TempSuffix)
	for {
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err == nil {
			return func() { _ = os.Remove(path) }, f.Close()
		}
		if !errors.Is(err, fs.ErrExist) && !errors.Is(err, fs.ErrPermission) {
			return nil, err
		}
		if info, err := os.Stat(path); err == nil && time.Since(info.ModTime()) > staleLock {
			_ = os.Remove(path) // or another process has
			continue
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}
