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

// ErrEnded is returned by subscriptions whose watcher does not run any more.
var ErrEnded = errors.New("the watcher has ended")

// maxTouched bounds the paths that wait to be looked at because of hints; what
// comes on top makes the watcher look at everything.
const maxTouched = 10_000

// patience is how many times the debounce a path that never rests is waited for.
const patience = 20

// A Watcher watches the files of one folder for any number of subscriptions.
//
// # Concurrency
//
// Safe for concurrent use. One goroutine, Run's, looks at files; a slow
// subscriber delays nobody, since what it has not fetched is merged.
type Watcher struct {
	opt   Options
	ended chan struct{} // closed when Run has returned
	wake  chan struct{} // something is to be done before the time planned

	mu      sync.Mutex
	started bool
	index   map[string]*entry // every file that a subscription wants
	groups  map[string]*group
	joining []*Subscription // wait for their baseline
	touched map[string]touch
	lost    bool // look at everything
	looking bool // in the middle of a pass: what it finds is handed out as a whole

	// Of Run's goroutine.
	src     Source // nil: there are no notifications
	watched map[string]fs.FileInfo
	outside string // the folder above the root that is watched too
	polling bool
	told    bool // that it polls
	scanned time.Time
	cost    time.Duration // of the last whole scan
}

// touch says since when and until when a path was touched.
type touch struct{ first, last time.Time }

// NewWatcher makes a watcher; Run sets it to work.
func NewWatcher(opt Options) *Watcher {
	opt = opt.withDefaults()
	opt.Root = filepath.Clean(opt.Root)
	return &Watcher{
		opt: opt, ended: make(chan struct{}), wake: make(chan struct{}, 1),
		index: map[string]*entry{}, groups: map[string]*group{}, touched: map[string]touch{}, watched: map[string]fs.FileInfo{},
	}
}

// Root returns the folder that is watched.
func (w *Watcher) Root() string { return w.opt.Root }

// Run watches until ctx ends and then returns nil. It can be called once.
func (w *Watcher) Run(ctx context.Context) error {
	w.mu.Lock()
	if w.started {
		w.mu.Unlock()
		return fmt.Errorf("watch %q: the watcher was run before", w.opt.Root)
	}
	w.started = true
	w.mu.Unlock()
	defer w.end()
	if !filepath.IsAbs(w.opt.Root) {
		return fmt.Errorf("watch %q: the folder is not absolute", w.opt.Root)
	}
	var collector sync.WaitGroup
	defer collector.Wait()
	src, err := w.opt.Source()
	if err != nil {
		w.degrade(err)
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

// work is one round of Run. Newcomers go first, since somebody waits for each of
// them; a scan for them is one for all, so nothing else scans in the same round.
// It does what is due and returns the time until more is.
func (w *Watcher) work(ctx context.Context) time.Duration {
	w.mu.Lock()
	joining, lost := w.joining, w.lost
	w.joining = nil
	w.mu.Unlock()
	// A storm of hints must not make one whole scan follow the other.
	rest := w.scanned.Add(max(w.opt.Debounce, 10*w.cost))
	switch now := time.Now(); {
	case len(joining) > 0:
		w.join(joining)
	case lost && !now.Before(rest), !now.Before(w.nextScan()):
		w.scanAll(nil)
	}
	due := w.nextScan()
	if ctx.Err() == nil {
		if next := w.lookDue(); next.Before(due) {
			due = next
		}
	}
	w.mu.Lock()
	if w.lost && rest.Before(due) {
		due = rest
	}
	w.mu.Unlock()
	return max(0, time.Until(due))
}

// nextScan returns when all is looked at again.
func (w *Watcher) nextScan() time.Time {
	if w.polling {
		return w.scanned.Add(max(w.opt.Poll, 20*w.cost))
	}
	return w.scanned.Add(max(w.opt.Rescan, 100*w.cost))
}

// lookDue looks at the touched paths that have been quiet, and returns when the
// next one will have been.
func (w *Watcher) lookDue() time.Time {
	now := time.Now()
	next := now.Add(time.Hour)
	due := map[string]touch{}
	// What was touched nearly together is looked at together.
	soon := now.Add(w.opt.Debounce / 10)
	w.mu.Lock()
	for path, t := range w.touched {
		at := t.last.Add(w.opt.Debounce)
		if late := t.first.Add(patience * w.opt.Debounce); late.Before(at) {
			at = late
		}
		if at.After(soon) {
			if at.Before(next) {
				next = at
			}
			continue
		}
		due[path] = t
		delete(w.touched, path)
	}
	w.looking = len(due) > 0
	w.mu.Unlock()
	if len(due) == 0 {
		return next
	}
	defer w.handOut()
	// One opening for all: each path is looked at below the same root, even if
	// the root is replaced meanwhile. The hint of that is looked at next.
	t, err := openTree(w.opt.Root, w.opt.Confined)
	if err != nil {
		w.scanAll(nil) // the root is gone or closed to us
		w.dropAll(due, err)
		return now
	}
	defer t.close()
	for _, path := range slices.Sorted(maps.Keys(due)) {
		w.look(t, path, due[path])
	}
	return now // what was just found may be due already
}

// handOut lets subscribers have what the pass found.
func (w *Watcher) handOut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.looking = false
	for _, g := range w.groups {
		for s := range g.subs {
			if len(s.pending) > 0 {
				s.signal()
			}
		}
	}
}

// dropAll tells of the files that are gone with the root.
func (w *Watcher) dropAll(due map[string]touch, err error) {
	if !missing(err) {
		return
	}
	for path := range due {
		w.set(path, nil)
	}
}

// collect takes hints as they come, so that the system's queue, 16,384 on Linux,
// stays short while a scan or a hash takes its time. It looks at nothing. It ends
// when the source is closed, which Run does and waits for.
func (w *Watcher) collect(src Source) {
	for h := range src.Hints() {
		rel, ok := w.relative(h.Path)
		if ok && !isTemporary(filepath.Base(rel)) {
			w.touch(rel, true)
		}
	}
}

// relative maps a hint to a path below the root; "" is anything, "." the root.
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

// touch notes that a path is to be looked at. bounded says that it comes from
// outside and may be dropped for a look at everything; what a scan found is
// bounded by the files there are.
func (w *Watcher) touch(rel string, bounded bool) {
	now := time.Now()
	w.mu.Lock()
	idle := len(w.touched) == 0
	t, again := w.touched[rel]
	switch {
	case rel == "", !again && bounded && len(w.touched) >= maxTouched:
		idle = !w.lost
		w.lost = true
	case again:
		t.last = now
		w.touched[rel] = t
	default:
		w.touched[rel] = touch{now, now}
	}
	w.mu.Unlock()
	// Run has planned for what was touched before this, and a later touch is
	// never due earlier: only the first one has to wake it.
	if idle {
		w.rouse()
	}
}

// rouse makes Run look for work.
func (w *Watcher) rouse() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// degrade notes that notifications are not to be had, and says so once, until
// they have been there again.
func (w *Watcher) degrade(err error) {
	w.polling = true
	if w.told {
		return
	}
	w.told = true
	w.opt.Logger.Warn("files are polled, since the system gives no notifications", "folder", w.opt.Root, "every", w.opt.Poll, "reason", err)
}

// end lets go of everybody who waits.
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

// ReadFile returns a file below the root, of at most limit bytes. Of a confined
// watcher it does not follow links that lead out.
func (w *Watcher) ReadFile(rel string, limit int64) ([]byte, error) {
	t, err := openTree(w.opt.Root, w.opt.Confined)
	if err != nil {
		return nil, err
	}
	defer t.close()
	return t.read(rel, limit)
}

// Exists reports whether there is a regular file at a path below the root at
// this moment. A file that cannot be asked about counts as there.
func (w *Watcher) Exists(rel string) bool {
	t, err := openTree(w.opt.Root, w.opt.Confined)
	if err != nil {
		return !missing(err)
	}
	defer t.close()
	info, err := t.stat(rel)
	return err == nil && info.Mode().IsRegular() || err != nil && !missing(err)
}
