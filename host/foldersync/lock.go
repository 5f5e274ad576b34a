package foldersync

import (
	"context"

	"github.com/sentinel-runtime/sentinel/triggers/files"
)

// followLock loads plugins that were refused again when the lock file changes,
// because unlocking a plugin does not change its file. Live plugins stay live,
// since the lock is checked at loading only.
//
// It returns when ctx ends.
func (r *Syncer) followLock(ctx context.Context, sub *files.Subscription) {
	for {
		if _, err := sub.Next(ctx); err != nil {
			return // ctx has ended, or the watcher, whose error Run receives
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

// watchLock subscribes to the lock file, if Options.Lock is set. The caller
// closes the subscription.
func (r *Syncer) watchLock(ctx context.Context) (*files.Subscription, error) {
	if r.opt.Lock == nil {
		return nil, nil
	}
	return r.roots[0].watcher.Subscribe(ctx, files.Query{Patterns: []string{lockFile}})
}
