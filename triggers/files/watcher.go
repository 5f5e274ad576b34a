package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// ErrEnded is returned by subscriptions whose watcher has ended.
var ErrEnded = errors.New("the watcher has ended")

// maxDirty limits the dirty paths. Further hints cause a scan of everything.
const maxDirty = 10_000

// maxDebounces limits the wait for a path that is never quiet, in multiples of
// the debounce.
const maxDebounces = 20

// A Watcher watches the files of one folder for any number of subscriptions.
//
// # Concurrency
//
// Safe for concurrent use. Only the goroutine of Run checks files. A slow
// subscriber does not delay others, because its pending changes are merged.
type Watcher struct {
	opt   Options
	ended chan struct{} // closed when Run has returned
	wake  chan struct{} // there is work before the planned time

	mu       sync.Mutex
	started  bool
	index    map[string]*entry // every file that a subscription matches
	groups   map[string]*group
	joining  []*Subscription      // without baseline yet
	dirty    map[string]dirtyTime // paths to check once they are quiet
	lost     bool                 // hints were lost: scan everything
	checking bool                 // dirty paths are being checked: their changes form one batch

	// Used by Run's goroutine only.
	src          Source // nil if there are no notifications
	watched      map[string]fs.FileInfo
	ancestor     string // watched folder above the root
	polling      bool
	pollingNoted bool // the log has a warning
	scanned      time.Time
	cost         time.Duration // of the last whole scan
}

// dirtyTime is when a path was marked dirty first and last.
type dirtyTime struct{ first, last time.Time }

// NewWatcher returns a watcher. It works while Run runs.
func NewWatcher(opt Options) *Watcher {
	opt = opt.withDefaults()
	opt.Root = filepath.Clean(opt.Root)
	return &Watcher{
		opt: opt, ended: make(chan struct{}), wake: make(chan struct{}, 1),
		index: map[string]*entry{}, groups: map[string]*group{}, dirty: map[string]dirtyTime{}, watched: map[string]fs.FileInfo{},
	}
}

// Run watches until ctx ends and then returns nil. It can be called only once.
func (w *Watcher) Run(ctx context.Context) error {
	w.mu.Lock()
	if w.started {
		w.mu.Unlock()
		return fmt.Errorf("watch %q: Run was called twice", w.opt.Root)
	}
	w.started = true
	w.mu.Unlock()
	defer w.end()
	if !filepath.IsAbs(w.opt.Root) {
		return fmt.Errorf("watch %q: the path is not absolute", w.opt.Root)
	}
	var collector sync.WaitGroup
	defer collector.Wait()
	src, err := w.opt.Source()
	if err != nil {
		w.startPolling(err)
	} else {
		w.src = src
		defer src.Close()
		collector.Go(func() { w.collect(src) })
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-w.wake:
		case <-timer.C:
		}
		timer.Reset(w.work(ctx))
	}
}

// work does what is due and returns the time until more is. New subscriptions are
// served first, because their callers block. They need at most one scan, and
// nothing else scans in the same call.
func (w *Watcher) work(ctx context.Context) time.Duration {
	w.mu.Lock()
	joining, lost := w.joining, w.lost
	w.joining = nil
	w.mu.Unlock()
	// A flood of hints must not cause scans without a delay between them.
	earliest := w.scanned.Add(max(w.opt.Debounce, 10*w.cost))
	switch now := time.Now(); {
	case len(joining) > 0:
		w.join(joining)
	case lost && !now.Before(earliest), !now.Before(w.nextScan()):
		w.scanAll(nil)
	}
	due := w.nextScan()
	if ctx.Err() == nil {
		if next := w.checkDirty(); next.Before(due) {
			due = next
		}
	}
	w.mu.Lock()
	if w.lost && earliest.Before(due) {
		due = earliest
	}
	w.mu.Unlock()
	return max(0, time.Until(due))
}

// nextScan returns when the next whole scan is due.
func (w *Watcher) nextScan() time.Time {
	if w.polling {
		return w.scanned.Add(max(w.opt.Poll, 20*w.cost))
	}
	return w.scanned.Add(max(w.opt.Rescan, 100*w.cost))
}

// checkDirty checks the dirty paths that are quiet, and returns when the next one
// will be.
func (w *Watcher) checkDirty() time.Time {
	now := time.Now()
	next := now.Add(time.Hour)
	due := map[string]dirtyTime{}
	// Paths that are due at almost the same time are checked together.
	soon := now.Add(w.opt.Debounce / 10)
	w.mu.Lock()
	for path, t := range w.dirty {
		at := t.last.Add(w.opt.Debounce)
		if latest := t.first.Add(maxDebounces * w.opt.Debounce); latest.Before(at) {
			at = latest
		}
		if at.After(soon) {
			if at.Before(next) {
				next = at
			}
			continue
		}
		due[path] = t
		delete(w.dirty, path)
	}
	w.checking = len(due) > 0
	w.mu.Unlock()
	if len(due) == 0 {
		return next
	}
	defer w.endChecking()
	// The tree is opened once, so that all paths are checked below the same root
	// even if the root is replaced meanwhile. That replacement causes a hint.
	t, err := openTree(w.opt.Root, w.opt.Confined)
	if err != nil {
		w.scanAll(nil) // the root is missing or cannot be read
		w.removeMissing(due, err)
		return now
	}
	defer t.close()
	for _, path := range slices.Sorted(maps.Keys(due)) {
		w.checkPath(t, path, due[path])
	}
	return now // paths that were just found may be due already
}

// endChecking releases the changes of the checked paths to subscribers.
func (w *Watcher) endChecking() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.checking = false
	for _, g := range w.groups {
		for s := range g.subs {
			if len(s.pending) > 0 {
				s.signal()
			}
		}
	}
}

// removeMissing removes the paths from the index if err means that the root is
// missing.
func (w *Watcher) removeMissing(due map[string]dirtyTime, err error) {
	if !missing(err) {
		return
	}
	for path := range due {
		w.update(path, nil)
	}
}

// collect takes hints at once, so that the system's queue, 16,384 entries on
// Linux, does not overflow during a long scan. It reads no files. It ends when
// Run closes the source, and Run waits for it.
func (w *Watcher) collect(src Source) {
	for h := range src.Hints() {
		rel, ok := w.relative(h.Path)
		if ok && !isTemporary(filepath.Base(rel)) {
			w.markDirty(rel, true)
		}
	}
}

// relative maps a hint to a path below the root. "" is any path, "." the root.
func (w *Watcher) relative(path string) (string, bool) {
	if path == "" {
		return "", true
	}
	if rel, err := filepath.Rel(w.opt.Root, path); err == nil && filepath.IsLocal(rel) {
		return filepath.ToSlash(rel), true
	}
	above := strings.TrimSuffix(path, string(filepath.Separator)) + string(filepath.Separator)
	return ".", strings.HasPrefix(w.opt.Root, above)
}

// markDirty marks a path to be checked. A limited path comes from a hint: at the
// limit of dirty paths it is dropped and a whole scan is made. Paths from a scan
// are not limited, because there are only as many as files.
func (w *Watcher) markDirty(rel string, limited bool) {
	now := time.Now()
	w.mu.Lock()
	idle := len(w.dirty) == 0
	t, again := w.dirty[rel]
	switch {
	case rel == "", !again && limited && len(w.dirty) >= maxDirty:
		idle = !w.lost
		w.lost = true
	case again:
		t.last = now
		w.dirty[rel] = t
	default:
		w.dirty[rel] = dirtyTime{now, now}
	}
	w.mu.Unlock()
	// Run has planned for the paths marked before, and a path marked later is never
	// due earlier. So only the first one has to wake it.
	if idle {
		w.wakeRun()
	}
}

// wakeRun makes Run check for work.
func (w *Watcher) wakeRun() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// startPolling falls back to polling because notifications are not available. It
// logs one warning until they are available again.
func (w *Watcher) startPolling(err error) {
	w.polling = true
	if w.pollingNoted {
		return
	}
	w.pollingNoted = true
	w.opt.Logger.Warn("polling files, because notifications are not available", "folder", w.opt.Root, "interval", w.opt.Poll, "error", err)
}

// end fails all subscriptions.
func (w *Watcher) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.ended)
	for _, g := range w.groups {
		for s := range g.subs {
			s.fail(ErrEnded)
		}
	}
}

// ReadFile returns the content of a file below the root. A file of more than limit
// bytes is an error. A confined watcher does not follow links that lead out.
func (w *Watcher) ReadFile(rel string, limit int64) ([]byte, error) {
	t, err := openTree(w.opt.Root, w.opt.Confined)
	if err != nil {
		return nil, err
	}
	defer t.close()
	return t.read(rel, limit)
}

// Exists reports whether a path below the root is now a regular file. It returns
// true if stat fails for another reason than a missing file.
func (w *Watcher) Exists(rel string) bool {
	t, err := openTree(w.opt.Root, w.opt.Confined)
	if err != nil {
		return !missing(err)
	}
	defer t.close()
	info, err := t.stat(rel)
	return err == nil && info.Mode().IsRegular() || err != nil && !missing(err)
}
