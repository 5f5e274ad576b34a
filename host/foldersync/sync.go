package foldersync

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/plugin"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers/files"
)

// A Syncer synchronizes the store with the files of watched folders.
//
// # Concurrency
//
// All methods are safe for concurrent use. A lock serializes the batches of Run,
// Sync and WriteBack. None of them may be called from inside a call of
// Definitions or Plugins.
type Syncer struct {
	opt   Options
	lock  chan struct{} // a mutex with one token
	ready chan struct{}
	wake  chan struct{} // something is due earlier than Run thinks

	mu    sync.Mutex // guards what is shown, and is never held while something waits
	shown []FileInfo // by file

	compiles compiles

	// With the lock.
	started bool
	roots   []*root
	files   map[string]*file  // by origin
	unread  map[string]bool   // paths of files that were reported, see reportUnread
	others  map[string]string // by name, what is called like a plugin's file and is none, with the reason
	marks   *marks
	again   time.Time // when what failed is tried again, zero for never

	unmarked bool      // the marks could not be written, and that was logged
	granted  string    // digest of the file of grants that was last asked about
	compare  time.Time // when what is believed is compared with what the watchers see
}

// New returns a Syncer, which [Syncer.Run] runs.
func New(opt Options) (*Syncer, error) {
	opt = opt.withDefaults()
	if opt.Definitions == nil || opt.Plugins == nil {
		return nil, errors.New("watch folder: Definitions and Plugins are needed")
	}
	var err error
	if opt.Dir, err = filepath.Abs(opt.Dir); err != nil {
		return nil, fmt.Errorf("watch folder: %w", err)
	}
	if opt.Workspace != "" {
		if opt.Workspace, err = filepath.Abs(opt.Workspace); err != nil {
			return nil, fmt.Errorf("watch folder: %w", err)
		}
	}
	r := &Syncer{opt: opt, lock: make(chan struct{}, 1), ready: make(chan struct{}), wake: make(chan struct{}, 1), roots: opt.roots(), files: map[string]*file{}}
	r.lock <- struct{}{} // a channel and not a mutex, so that a context can end the wait
	return r, nil
}

// Ready is closed when everything that was there at the start is loaded. A host
// arms its triggers only then, or definitions that are about to be deleted would
// fire once more. It is never closed if Run fails.
func (r *Syncer) Ready() <-chan struct{} { return r.ready }

// acquire waits for the lock. The token goes back with the call of release.
func (r *Syncer) acquire(ctx context.Context) error {
	select {
	case <-r.lock:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (r *Syncer) release() { r.lock <- struct{}{} }

// A delivery is a batch of one root, or why there will be none.
type delivery struct {
	root  *root
	batch files.Batch
	err   error
}

// Run loads what is there and follows what changes until ctx ends. It returns
// an error only if it cannot watch. It can be called once.
func (r *Syncer) Run(ctx context.Context) error {
	// The watchers and the readers of their subscriptions end before Run returns.
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer r.compiles.close()
	defer wg.Wait()
	defer cancel()
	if err := r.begin(); err != nil {
		return err
	}
	defer r.marks.close()
	deliveries := make(chan delivery)
	send := func(d delivery) {
		select {
		case deliveries <- d:
		case <-ctx.Done():
		}
	}
	for _, root := range r.roots {
		wg.Go(func() {
			if err := root.watcher.Run(ctx); err != nil {
				send(delivery{err: err})
			}
		})
		// Subscribed before anything is read: what changes while the start loads
		// is delivered afterwards.
		sub, err := root.watcher.Subscribe(ctx, files.Query{Patterns: root.patterns, Ignore: root.hidden()})
		if err != nil {
			return ignoreEnd(ctx, fmt.Errorf("watch %q: %w", root.dir, err))
		}
		defer sub.Close()
		root.sub = sub
	}
	locked, err := r.watchLock(ctx)
	if err != nil {
		return ignoreEnd(ctx, fmt.Errorf("watch the lock of plugins: %w", err))
	}
	if err := r.first(ctx); err != nil {
		return ignoreEnd(ctx, err)
	}
	if locked != nil {
		defer locked.Close()
		wg.Go(func() { r.followLock(ctx, locked) })
	}
	close(r.ready)
	// One reader for each root; a batch is handed over only when the one before
	// is done, and what comes meanwhile is merged in the subscription.
	for _, root := range r.roots {
		wg.Go(func() {
			for {
				batch, err := root.sub.Next(ctx)
				send(delivery{root, batch, err})
				if err != nil {
					return
				}
			}
		})
	}
	for {
		timer := time.NewTimer(r.wait(ctx))
		var err error
		select {
		case <-ctx.Done():
		case d := <-deliveries:
			if err = d.err; err == nil {
				r.take(ctx, d)
			}
		case <-r.wake:
			r.loadCompiled(ctx)
		case <-timer.C:
			r.tick(ctx)
		}
		timer.Stop()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// ignoreEnd drops an error that only says that ctx has ended.
func ignoreEnd(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// begin deletes leftover temporary files and opens the marks.
func (r *Syncer) begin() (err error) {
	<-r.lock
	defer r.release()
	if r.started {
		return fmt.Errorf("watch %q: it was run before", r.opt.Dir)
	}
	r.started = true
	for _, dir := range []string{sentinelsDir, recipesDir, pluginsDir} {
		sweep(filepath.Join(r.opt.Dir, dir))
	}
	if r.marks, err = openMarks(r.opt.Marks); err != nil {
		return err
	}
	r.keepLine() // compacts
	return nil
}

// first loads what is there at the start: plugins, then definitions, because
// those are checked against the step types. Files that are as they were are
// neither read nor decoded, so that a start with thousands of them costs their
// hashes alone; but when the step types are others than at the last start, all
// are, since a definition may have become right or wrong by that.
func (r *Syncer) first(ctx context.Context) error {
	if err := r.acquire(ctx); err != nil {
		return err
	}
	defer r.release()
	var found []*file
	digests := map[*file]string{}
	heads, err := r.heads()
	if err != nil {
		return err
	}
	owner := map[string]sentinels.ID{} // of files, as the store has it
	for id, s := range heads {
		owner[s.Origin] = id
	}
	for _, root := range r.roots {
		list, _ := root.sub.Files()
		for _, one := range list {
			if one.Path == grantsFile { // plugins ask for theirs when they are loaded
				r.granted = one.Digest
				continue
			}
			f := r.newFile(root, one.Path)
			f.claim = owner[f.origin]
			f.held = f.claim != ""
			r.files[f.origin] = f
			digests[f] = one.Digest
			found = append(found, f)
		}
	}
	r.orphans(heads)
	plugins := kindOf(found, KindPlugin)
	r.loadPlugins(ctx, plugins)
	r.compileAll(ctx, plugins)
	r.listNonPlugins(ctx)
	r.reportUnread()
	types := r.typesKey()
	var dirty []*file
	for _, f := range found {
		switch {
		case f.kind == KindPlugin:
		case f.mark.Digest != digests[f] || f.mark.Digest == "":
			dirty = append(dirty, f)
		case !r.resume(f, heads) || types != r.marks.types: // resume first: it may write the file
			dirty = append(dirty, f)
		}
	}
	r.settle(ctx, dirty)
	r.compareSoon()
	return nil
}

// kindOf returns the files of one kind.
func kindOf(list []*file, kind Kind) []*file {
	return slices.DeleteFunc(slices.Clone(list), func(f *file) bool { return f.kind != kind })
}

// typesKey names the step types that are live, by the plugins that provide them:
// another version may check fields differently under the same names.
func (r *Syncer) typesKey() string {
	var parts []string
	for _, p := range r.opt.Plugins.Plugins() {
		if p.State == plugin.Live || p.State == plugin.Waiting { // one that waits has its types named in problems
			parts = append(parts, string(p.State)+" "+p.Name+"@"+p.Digest+grantKey(p.Grant))
		}
	}
	sort.Strings(parts)
	sum := sha256.Sum256([]byte(strings.Join(parts, "\n")))
	return hex.EncodeToString(sum[:8])
}

// grantKey tells grants apart: definitions are checked against them.
func grantKey(g *plugin.Grant) string {
	if g == nil {
		return ""
	}
	b, err := json.Marshal(g.Allow)
	if err != nil {
		panic(err) // it is made of texts
	}
	return string(b)
}

// take brings the store to what one batch of changes says. Creations and
// deletions of a batch are one thing: a rename is both, and the grace of what is
// gone is what tells it from a deletion.
func (r *Syncer) take(ctx context.Context, d delivery) {
	if r.acquire(ctx) != nil {
		return
	}
	defer r.release()
	var dirty, plugins []*file
	grants := false
	for _, c := range d.batch.Changes {
		if c.Path == grantsFile && d.root.rank == 0 {
			r.granted, grants = c.Digest, true
			continue
		}
		f := r.fileOf(d.root, c.Path)
		if c.Op == files.Deleted {
			r.miss(f)
			continue
		}
		f.missing, f.changed = time.Time{}, c.ChangedAt()
		switch {
		case f.kind == KindPlugin:
			plugins = append(plugins, f)
		case f.state == Live && f.mark.Digest == c.Digest: // we wrote it
		default:
			dirty = append(dirty, f)
		}
	}
	types := r.loadPlugins(ctx, plugins)
	// Behind the files: of a plugin that came with its grant only the last word counts.
	if grants && r.regrant(ctx) || types {
		dirty = r.definitionsAnd(dirty)
	}
	r.settle(ctx, dirty)
	r.compareSoon()
}

// fileOf returns the file of a path, made if it is new.
func (r *Syncer) fileOf(root *root, rel string) *file {
	origin := filepath.Join(root.dir, filepath.FromSlash(rel))
	f := r.files[origin]
	if f == nil {
		f = r.newFile(root, rel)
		r.files[origin] = f
	}
	return f
}

// definitionsAnd returns every file of a definition that is there: what step
// types there are has changed.
func (r *Syncer) definitionsAnd(dirty []*file) []*file {
	for _, f := range r.files {
		if f.kind != KindPlugin && f.missing.IsZero() && !slices.Contains(dirty, f) {
			dirty = append(dirty, f)
		}
	}
	return dirty
}

// miss begins the time in which a file that is gone may come back.
//
// Its claim and its mark stay until then, so that it comes back as what it was.
func (r *Syncer) miss(f *file) {
	if f.missing.IsZero() {
		f.missing = time.Now()
		f.state = Missing
	}
}

// wait returns the time until tick has something to do.
func (r *Syncer) wait(ctx context.Context) time.Duration {
	if r.acquire(ctx) != nil {
		return time.Hour
	}
	defer r.release()
	due := r.compare
	for _, f := range r.files {
		if !f.missing.IsZero() {
			if at := f.missing.Add(r.opt.Grace); at.Before(due) {
				due = at
			}
		}
	}
	if !r.again.IsZero() && r.again.Before(due) {
		due = r.again
	}
	return max(0, time.Until(due))
}

// compareEvery is how often all files are compared, as a fallback.
const compareEvery = 30 * time.Second

// compareSoon has everything compared after the watchers had the time to look:
// files were read or written here, and where one was changed back before a watcher
// looked, the watcher has no change to tell of.
func (r *Syncer) compareSoon() {
	if soon := time.Now().Add(r.opt.Grace); r.compare.IsZero() || soon.Before(r.compare) {
		r.compare = soon
		r.rouse()
	}
}

// differing are the files that are not as they are believed to be.
func (r *Syncer) differing() (dirty, plugins []*file, grants bool) {
	r.compare = time.Now().Add(compareEvery)
	granted := ""              // also what it is when the file is gone
	there := map[string]bool{} // by origin, what the watchers see
	for _, root := range r.roots {
		list, _ := root.sub.Files()
		for _, one := range list {
			if one.Path == grantsFile && root.rank == 0 {
				granted = one.Digest
				continue
			}
			f := r.fileOf(root, one.Path)
			there[f.origin] = true
			switch {
			// Equal is equal: a file that was refused with this content stays so.
			case f.digest == one.Digest && f.missing.IsZero():
			case f.kind == KindPlugin:
				plugins = append(plugins, f)
			default:
				dirty = append(dirty, f)
			}
		}
	}
	for _, f := range r.files {
		if !there[f.origin] && f.missing.IsZero() {
			// It may have been made a moment ago: reading decides.
			if f.kind == KindPlugin {
				plugins = append(plugins, f)
			} else {
				dirty = append(dirty, f)
			}
		}
	}
	grants = granted != r.granted
	r.granted = granted
	return dirty, plugins, grants
}

// tick ends the grace of files that are gone, tries again what failed, and
// compares.
func (r *Syncer) tick(ctx context.Context) {
	if r.acquire(ctx) != nil {
		return
	}
	defer r.release()
	now := time.Now()
	again := !r.again.IsZero() && !now.Before(r.again)
	if again {
		r.again = time.Time{} // a failure sets it again
	}
	var dirty, gone, refused []*file
	for _, f := range r.files {
		switch {
		case !f.missing.IsZero() && now.Sub(f.missing) >= r.opt.Grace:
			gone = append(gone, f)
		case !again || !f.missing.IsZero() || f.state != Invalid:
		case f.kind != KindPlugin:
			dirty = append(dirty, f)
		case f.failing || f.untrusted:
			refused = append(refused, f)
		}
	}
	if r.loadPlugins(ctx, refused) {
		dirty = r.definitionsAnd(dirty)
	}
	if !now.Before(r.compare) {
		r.listNonPlugins(ctx)
		r.reportUnread()
		more, plugins, grants := r.differing()
		for _, f := range more {
			if !slices.Contains(dirty, f) && !slices.Contains(gone, f) {
				dirty = append(dirty, f)
			}
		}
		types := r.loadPlugins(ctx, plugins)
		if grants && r.regrant(ctx) || types {
			dirty = r.definitionsAnd(dirty)
		}
	}
	more, types := r.drop(ctx, gone)
	for _, f := range more {
		if !slices.Contains(dirty, f) {
			dirty = append(dirty, f)
		}
	}
	if types {
		dirty = r.definitionsAnd(dirty)
	}
	r.settle(ctx, dirty)
}
