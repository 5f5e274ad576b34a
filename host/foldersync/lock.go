package foldersync

import (
	"context"

	"github.com/sentinel-runtime/sentinel/triggers/files"
)

// followLock has plugins that were refused looked at again when the lock changes:
// an operator who unlocks a file changes nothing in the file itself. What is live
// stays live, since the lock decides about loading alone.
//
// It returns when ctx ends.
func (r *Syncer) followLock(ctx context.Context, sub *files.Subscription) {
	for {
		if _, err := sub.Next(ctx); err != nil {
			return // ctx has ended, or the watcher has, which Run is told elsewhere
		}
		if r.acquire(ctx) != nil {
			return
		}
		var dirty []*file
		if r.loadPlugins(ctx, r.refusedPlugins()) {
			dirty = r.definitionsAnd(nil)
		}
		r.settle(ctx, dirty)
		r.release()
	}
}

// watchLock begins to watch the lock, if there is one to ask. The caller closes
// what it returns.
func (r *Syncer) watchLock(ctx context.Context) (*files.Subscription, error) {
	if r.opt.Lock == nil {
		return nil, nil
	}
	return r.roots[0].watcher.Subscribe(ctx, files.Query{Patterns: []string{lockFile}})
}
