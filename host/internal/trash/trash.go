// Package trash removes folders in the background.
//
// To delete the files of a clone takes longer than all that an attempt of a ticket does
// besides git, and no caller waits for the space. So a folder is renamed, which is one
// operation, and its files are deleted afterwards.
//
// The folders hold what commands, models and repositories have left there. [Delete] assumes
// nothing about them. What cannot be deleted is logged and tried again, and no caller
// depends on it.
package trash

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"
)

const (
	folderTime  = 5 * time.Minute  // for deleting one folder; what is left is deleted by a retry
	minDelay    = time.Minute      // before the first retry
	maxDelay    = time.Hour        // between two retries
	gracePeriod = 10 * time.Second // of Close
)

// A Bin removes folders. It may be used by several goroutines.
type Bin struct {
	Dir    string       // absolute folder of what is being deleted, on the file system of the folders; made when needed
	Logger *slog.Logger // default: no log

	working  sync.WaitGroup
	moving   sync.Mutex // making Dir and moving a folder there, or removing Dir
	deleting sync.Mutex

	mu      sync.Mutex // of what follows
	ctx     context.Context
	cancel  context.CancelFunc // nil until something is deleted in the background
	waiting bool               // a goroutine has still to list the bin
	closed  bool
	retry   *time.Timer
	delay   time.Duration // before the retry; 0 if the last deletion left nothing
}

// Remove removes a folder: nothing is at its path when Remove returns, and its files are
// deleted in the background, with what an earlier process left in the bin. A path without a
// folder is not an error. A folder that cannot be renamed is deleted before Remove returns,
// and it is an error if that is not possible.
func (b *Bin) Remove(path string) (err error) {
	if _, look := os.Lstat(path); !errors.Is(look, fs.ErrNotExist) && !b.move(path) {
		ctx, cancel := context.WithTimeout(context.Background(), folderTime)
		defer cancel()
		err = Delete(ctx, path)
	}
	b.start()
	return err
}

func (b *Bin) move(path string) bool {
	b.moving.Lock()
	defer b.moving.Unlock()
	return os.MkdirAll(b.Dir, 0o700) == nil && Rename(path, filepath.Join(b.Dir, rand.Text())) == nil
}

// Rename renames a folder within its file system, also one whose rights a command has taken
// away: a folder that gets another parent must be writable.
func Rename(from, to string) error {
	err := os.Rename(from, to)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	parent, opening := os.OpenRoot(filepath.Dir(from))
	if opening != nil {
		return err
	}
	defer parent.Close()
	if parent.Chmod(filepath.Base(from), 0o700) != nil {
		return err
	}
	return os.Rename(from, to)
}

// start deletes what is in the bin in the background.
func (b *Bin) start() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed || b.waiting {
		return
	}
	if b.cancel == nil {
		b.ctx, b.cancel = context.WithCancel(context.Background())
	}
	b.waiting = true
	b.working.Go(b.work)
}

// work empties the bin, and plans a retry if something is left.
func (b *Bin) work() {
	b.deleting.Lock()
	defer b.deleting.Unlock()
	b.mu.Lock()
	b.waiting = false
	ctx := b.ctx
	b.mu.Unlock()
	err := b.empty(ctx)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.retry != nil {
		b.retry.Stop()
	}
	if err == nil {
		b.delay = 0
		return
	}
	b.delay = min(max(minDelay, 2*b.delay), maxDelay)
	if b.Logger != nil {
		b.Logger.Warn("removed folders cannot be deleted completely", "path", b.Dir, "error", err, "retry", b.delay)
	}
	if !b.closed {
		b.retry = time.AfterFunc(b.delay, b.start)
	}
}

// Empty deletes what is in the bin.
func (b *Bin) Empty(ctx context.Context) error {
	b.deleting.Lock()
	defer b.deleting.Unlock()
	return b.empty(ctx)
}

func (b *Bin) empty(ctx context.Context) error {
	entries, err := os.ReadDir(b.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var left problems
	if err != nil {
		left.add(fmt.Errorf("list %q: %w", filepath.Base(b.Dir), cause(err)))
	}
	for _, e := range entries {
		if ctx.Err() != nil {
			left.add(context.Cause(ctx))
			break
		}
		limited, cancel := context.WithTimeout(ctx, folderTime)
		if err := Delete(limited, filepath.Join(b.Dir, e.Name())); err != nil {
			left.add(err)
		}
		cancel()
	}
	b.moving.Lock()
	defer b.moving.Unlock()
	_ = os.Remove(b.Dir) // if nothing has been moved there meanwhile
	return left.err()
}

// Close waits until the files are deleted, for ten seconds. What is left then is deleted by
// the next process that uses the folder. Calls of Remove must have returned.
func (b *Bin) Close() {
	b.mu.Lock()
	b.closed = true
	if b.retry != nil {
		b.retry.Stop()
	}
	cancel := b.cancel
	b.mu.Unlock()
	if cancel == nil {
		return
	}
	defer cancel()
	defer time.AfterFunc(gracePeriod, cancel).Stop()
	b.working.Wait()
}
