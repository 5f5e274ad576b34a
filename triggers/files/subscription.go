package files

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// A Query says which files a subscription is about.
type Query struct {
	// Patterns are globs relative to the root: "**" is any number of folders,
	// "*" anything but a slash, also "?", "[a-z]" and "{a,b}".
	Patterns []string
	// Ignore are globs of files and folders to leave out.
	Ignore []string
	// Settle is how long all of it must be quiet before changes are handed out;
	// never longer than ten times that. Default 0: at once.
	Settle time.Duration
	// Initial hands out what is there at the beginning as created.
	Initial bool
}

// Check reports everything that is wrong with the globs of q.
func (q Query) Check() error {
	_, err := newGlobs(q.Patterns, q.Ignore)
	return err
}

// A group is all subscriptions with the same globs; each file is matched once
// for all of them. Fields are guarded by the watcher's mutex, but those that
// only a scan uses.
type group struct {
	*globs
	subs    map[*Subscription]bool
	mark    Mark
	count   int  // of a scan: files taken so far
	crowded bool // of a scan: too many
}

func (g *group) wants(file string) bool { return !g.crowded && g.globs.wants(file) }

func (g *group) fail(err error) {
	for s := range g.subs {
		s.fail(err)
	}
}

func crowded(opt Options) error {
	return fmt.Errorf("watch %q: more than %d files match; name fewer, or ignore some", opt.Root, opt.MaxFiles)
}

// A Subscription is one reader's view of a watcher. Close it.
//
// # Concurrency
//
// Next is for one goroutine; the other methods are safe for concurrent use.
type Subscription struct {
	w     *Watcher
	query Query
	globs *globs
	ready chan struct{} // closed when the baseline is there, or err is
	wake  chan struct{}

	// Guarded by the watcher's mutex.
	joined      bool
	closed      bool
	err         error
	pending     map[string]transition
	first, last time.Time // of what is pending
}

// Subscribe begins to follow files and returns when it is known what is there
// now: every later change is told. It waits for Run to be called.
func (w *Watcher) Subscribe(ctx context.Context, q Query) (*Subscription, error) {
	g, err := newGlobs(q.Patterns, q.Ignore)
	if err != nil {
		return nil, fmt.Errorf("watch %q: %w", w.opt.Root, err)
	}
	s := &Subscription{w: w, query: q, globs: g, ready: make(chan struct{}), wake: make(chan struct{}, 1), pending: map[string]transition{}}
	w.mu.Lock()
	w.joining = append(w.joining, s)
	w.mu.Unlock()
	w.rouse()
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

// join is done by Run's goroutine alone, between looks, so that no change falls
// between a baseline and the first one told: it gives new subscriptions their baseline, all with one scan, and those that
// ask for what others ask for already with none.
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
		if g.crowded {
			continue
		}
		for rel, e := range w.index {
			if g.wants(rel) {
				g.mark.replace(rel, nil, e)
			}
		}
		w.groups[g.key] = g
	}
	for _, s := range subs {
		s.enter(w.groups[s.globs.key])
	}
}

// enter puts s into its group, nil if that has too many files.
func (s *Subscription) enter(g *group) {
	switch {
	case s.closed:
	case g == nil:
		s.fail(crowded(s.w.opt))
	default:
		g.subs[s] = true
		s.joined = true
		if s.query.Initial {
			for rel, e := range s.w.index {
				if g.wants(rel) {
					s.note(rel, nil, e)
				}
			}
		}
	}
	if s.closed && g != nil && len(g.subs) == 0 {
		delete(s.w.groups, g.key)
	}
	close(s.ready)
}

// note adds a change to what is pending. The mutex is held.
func (s *Subscription) note(rel string, before, after *entry) {
	// What the reader knows is what was handed out last, whatever has been in
	// between. So pending holds each path once, however slow the reader is.
	if t, ok := s.pending[rel]; ok {
		before = t.before
	}
	s.last = time.Now()
	if len(s.pending) == 0 {
		s.first = s.last
	}
	s.pending[rel] = transition{before, after}
	s.signal()
}

func (s *Subscription) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// fail ends s with a reason. The mutex is held.
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

// A Batch is the changes since the one before it.
type Batch struct {
	Changes []Change // by path, each path once; never empty
	Mark    Mark     // of all matching files, with these changes
}

// Next returns what has changed since the last call, waiting for it.
func (s *Subscription) Next(ctx context.Context) (Batch, error) {
	for {
		batch, wait, err := s.take()
		if err != nil || len(batch.Changes) > 0 {
			return batch, err
		}
		if wait <= 0 {
			wait = time.Hour // nothing is pending: it will be signalled
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

// take returns what is pending if it has settled, else how long to wait.
func (s *Subscription) take() (batch Batch, wait time.Duration, err error) {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	if s.err != nil {
		return batch, 0, s.err
	}
	if len(s.pending) == 0 || s.w.looking {
		return batch, 0, nil
	}
	due := s.last.Add(s.query.Settle)
	if late := s.first.Add(10 * s.query.Settle); late.Before(due) {
		due = late
	}
	if wait = time.Until(due); wait > 0 {
		return batch, wait, nil
	}
	// Changes and mark are taken under one lock: the mark is that of exactly the
	// files that a reader who applied every batch believes in.
	batch = Batch{Changes: changes(s.pending), Mark: s.mark()}
	clear(s.pending)
	return batch, 0, nil
}

// mark is that of the group. The mutex is held.
func (s *Subscription) mark() Mark {
	if g := s.w.groups[s.globs.key]; g != nil {
		return g.mark
	}
	return Mark{}
}

// Files returns the files that match now, by path, and their mark. What has
// changed but was not handed out yet is already as it is now.
func (s *Subscription) Files() ([]File, Mark) {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	var out []File
	for rel, e := range s.w.index {
		if s.globs.wants(rel) {
			out = append(out, File{Path: rel, Size: e.stamp.size, Modified: time.Unix(0, e.stamp.modified), Changed: e.stamp.changedAt(), Digest: e.digest()})
		}
	}
	slices.SortFunc(out, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	return out, s.mark()
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
			delete(s.w.groups, s.globs.key) // what only it wanted goes with the next scan
		}
	}
}
