package files

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// A Query selects the files of a subscription.
type Query struct {
	// Patterns are globs relative to the root: "**" matches any number of folders,
	// "*" anything but a slash; also "?", "[a-z]" and "{a,b}".
	Patterns []string
	// Ignore are globs of files and folders to leave out.
	Ignore []string
	// Settle is how long all matching files must be quiet before Next returns their
	// changes. Changes are delayed by at most ten times Settle. Default 0: at once.
	Settle time.Duration
}

// Check reports all problems of the globs of q.
func (q Query) Check() error {
	_, err := newGlobs(q.Patterns, q.Ignore)
	return err
}

// A group is all subscriptions with the same globs, so that each file is matched
// once for all of them. The watcher's mutex guards subs and fingerprint; only scans
// use count and tooMany.
type group struct {
	*globs
	subs        map[*Subscription]bool
	fingerprint Fingerprint
	count       int  // files of the baseline
	tooMany     bool // count is over Options.MaxFiles
}

func (g *group) matches(file string) bool { return !g.tooMany && g.globs.matches(file) }

func (g *group) fail(err error) {
	for s := range g.subs {
		s.fail(err)
	}
}

func tooManyFiles(opt Options) error {
	return fmt.Errorf("watch %q: more than %d files match: use narrower patterns or ignore some", opt.Root, opt.MaxFiles)
}

// A Subscription reports the changes of a query's files to one reader. Close it
// after use.
//
// # Concurrency
//
// Next is for one goroutine; the other methods are safe for concurrent use.
type Subscription struct {
	w     *Watcher
	query Query
	globs *globs
	ready chan struct{} // closed when the baseline is complete or err is set
	wake  chan struct{}

	// Guarded by the watcher's mutex.
	closed      bool
	err         error
	pending     map[string]transition
	first, last time.Time // when pending changed first and last
}

// Subscribe starts a subscription and returns when its baseline, the current
// state, is complete: it reports every later change. It blocks until Run is
// called.
func (w *Watcher) Subscribe(ctx context.Context, q Query) (*Subscription, error) {
	g, err := newGlobs(q.Patterns, q.Ignore)
	if err != nil {
		return nil, fmt.Errorf("watch %q: %w", w.opt.Root, err)
	}
	s := &Subscription{w: w, query: q, globs: g, ready: make(chan struct{}), wake: make(chan struct{}, 1), pending: map[string]transition{}}
	w.mu.Lock()
	w.joining = append(w.joining, s)
	w.mu.Unlock()
	w.wakeRun()
	select {
	case <-s.ready:
		err = s.Err()
	case <-w.ended:
		err = ErrEnded
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// join gives new subscriptions their baseline. One scan serves all of them, and a
// subscription with the globs of an existing group needs none. It runs in Run's
// goroutine between checks, so that no change is lost between a baseline and the
// first reported change.
func (w *Watcher) join(subs []*Subscription) {
	fresh := map[string]*group{}
	var groups []*group
	w.mu.Lock()
	for _, s := range subs {
		if w.groups[s.globs.key] == nil && fresh[s.globs.key] == nil && !s.closed {
			g := &group{globs: s.globs, subs: map[*Subscription]bool{}}
			fresh[s.globs.key] = g
			groups = append(groups, g)
		}
	}
	w.mu.Unlock()
	if len(groups) > 0 {
		w.scanAll(groups)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, g := range groups {
		if g.tooMany {
			continue
		}
		for rel, e := range w.index {
			if g.matches(rel) {
				g.fingerprint.replace(rel, nil, e)
			}
		}
		w.groups[g.key] = g
	}
	for _, s := range subs {
		s.enter(w.groups[s.globs.key])
	}
}

// enter adds s to its group, which is nil if it has too many files.
func (s *Subscription) enter(g *group) {
	switch {
	case s.closed:
	case g == nil:
		s.fail(tooManyFiles(s.w.opt))
	default:
		g.subs[s] = true
	}
	if s.closed && g != nil && len(g.subs) == 0 {
		delete(s.w.groups, g.key)
	}
	close(s.ready)
}

// add adds a change to pending. The caller holds the mutex.
func (s *Subscription) add(rel string, before, after *entry) {
	// The state before is that of the last batch. So pending has each path once,
	// however slow the reader is.
	if t, ok := s.pending[rel]; ok {
		before = t.before
	}
	s.last = time.Now()
	if len(s.pending) == 0 {
		s.first = s.last
	}
	s.pending[rel] = transition{before, after, s.last.Add(-s.w.opt.Debounce)}
	s.signal()
}

func (s *Subscription) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// fail ends s with an error. The caller holds the mutex.
func (s *Subscription) fail(err error) {
	if s.err == nil {
		s.err = err
	}
	s.signal()
}

// Err returns why the subscription has ended, nil while it has not.
func (s *Subscription) Err() error {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	return s.err
}

// A Batch is the changes since the previous batch.
type Batch struct {
	Changes     []Change    // by path, each path once; never empty
	Fingerprint Fingerprint // of all matching files, including these changes
}

// Next waits for changes and returns those since the last call.
func (s *Subscription) Next(ctx context.Context) (Batch, error) {
	for {
		batch, wait, err := s.take()
		if err != nil || len(batch.Changes) > 0 {
			return batch, err
		}
		if wait <= 0 {
			wait = time.Hour // nothing is pending; a change signals s.wake
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return Batch{}, context.Cause(ctx)
		case <-s.wake:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// take returns the pending changes if they have settled, else how long to wait.
func (s *Subscription) take() (batch Batch, wait time.Duration, err error) {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	if s.err != nil {
		return batch, 0, s.err
	}
	if len(s.pending) == 0 || s.w.checking {
		return batch, 0, nil
	}
	due := s.last.Add(s.query.Settle)
	if latest := s.first.Add(10 * s.query.Settle); latest.Before(due) {
		due = latest
	}
	if wait = time.Until(due); wait > 0 {
		return batch, wait, nil
	}
	// Changes and fingerprint are taken under one lock, so the fingerprint is that of
	// the files as a reader who applied every batch knows them.
	batch = Batch{Changes: changes(s.pending), Fingerprint: s.fingerprint()}
	clear(s.pending)
	return batch, 0, nil
}

// fingerprint returns that of the group. The caller holds the mutex.
func (s *Subscription) fingerprint() Fingerprint {
	if g := s.w.groups[s.globs.key]; g != nil {
		return g.fingerprint
	}
	return Fingerprint{}
}

// Files returns the files that match now, by path, and their fingerprint. It
// includes changes that Next has not returned yet.
func (s *Subscription) Files() ([]File, Fingerprint) {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	var out []File
	for rel, e := range s.w.index {
		if s.globs.matches(rel) {
			out = append(out, File{Path: rel, Changed: e.stamp.changedAt(), Digest: e.digest()})
		}
	}
	slices.SortFunc(out, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	return out, s.fingerprint()
}

// Close ends the subscription. It is idempotent.
func (s *Subscription) Close() {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	s.closed = true
	s.fail(ErrEnded)
	if g := s.w.groups[s.globs.key]; g != nil {
		delete(g.subs, s)
		if len(g.subs) == 0 {
			delete(s.w.groups, s.globs.key) // the next scan removes its files from the index
		}
	}
}
