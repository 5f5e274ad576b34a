package foldersync

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	stdruntime "runtime"
	"slices"
	"sync"
	"time"

	"github.com/sentinel-runtime/sentinel/host/internal/reffile"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// savers is how many definitions are saved at once: each waits for the disk, and
// those that wait together share the wait.
const savers = 64

// byFile is who makes the revisions of files, for the history.
const byFile = "file"

// A reading is what a file says now.
type reading struct {
	file     *file
	digest   string
	src      []byte
	def      *sentinels.Definition
	problems sentinels.Problems
	older    sentinels.Problems // errors that the stored definition has too, for example a step type without its plugin
	gone     bool
	distrust bool // it was not read
	context  bool // a list of context sources, nothing to run
}

// settle reads files until what they say is in the store, or beside it as a
// problem. The caller has the lock.
func (r *Syncer) settle(ctx context.Context, dirty []*file) {
	// A file that loses its id to another makes that one dirty, and the other way
	// round; each round decides at least one id for good, and few need a second.
	for round := 0; len(dirty) > 0 && ctx.Err() == nil && round < 10; round++ {
		slices.SortFunc(dirty, compareFiles) // so that logs and ties have an order
		readings := r.readAll(dirty)
		contested := map[sentinels.ID]bool{}
		byFile := map[*file]*reading{}
		left := map[sentinels.ID]*file{} // ids that a file had and has no more
		for i := range readings {
			one := &readings[i]
			f := one.file
			if !r.judge(one) {
				if f.lost && f.state == Invalid { // it has nothing that could stay live
					left[f.claim], contested[f.claim] = f, true
					f.claim, f.lost = "", false
				}
				continue
			}
			if byFile[f] = one; f.claim != "" && f.claim != one.def.ID {
				f.held = false
				left[f.claim] = f
				contested[f.claim] = true
			}
			f.claim = one.def.ID
			contested[f.claim] = true
		}
		// Only now, when all claims are known: an id that moved to another file of
		// the same batch is not deleted in between.
		for id, f := range left {
			if len(r.claimants(id)) == 0 {
				r.deleteIfOurs(ctx, f, id)
			}
		}
		next, winners := r.elect(contested, byFile)
		r.saveAll(ctx, winners)
		dirty = next
	}
	r.keep(ctx)
	r.reportAll()
}

// readAll reads and decodes in parallel, which is most of the work of a start.
// Decoding asks guests about their steps and is bounded by the engine; reading
// is bounded by the size of a definition.
func (r *Syncer) readAll(list []*file) []reading {
	out := make([]reading, len(list))
	var wg sync.WaitGroup
	next := make(chan int)
	for range min(len(list), stdruntime.GOMAXPROCS(0)) {
		wg.Go(func() {
			for i := range next {
				out[i] = r.read(list[i])
			}
		})
	}
	for i := range list {
		next <- i
	}
	close(next)
	wg.Wait()
	return out
}

// read looks at one file as it is now, which may be later than what the watcher
// told of. It changes nothing, so that many can be read at once.
func (r *Syncer) read(f *file) reading {
	one := reading{file: f}
	if p := r.untrusted(f, r.opt.Trust.Check(f.origin)); p != nil {
		one.distrust, one.problems = true, sentinels.Problems{*p}
		return one
	}
	src, err := f.root.watcher.ReadFile(f.rel, sentinels.MaxBytes)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		one.gone = true
		return one
	case err != nil:
		one.problems = sentinels.Problems{f.problem("file", "cannot be read: "+err.Error(), "")}
		return one
	}
	if p := r.untrusted(f, r.opt.Trust.CheckContent(f.origin, src)); p != nil {
		one.distrust, one.problems = true, sentinels.Problems{*p}
		return one
	}
	one.src, one.digest = src, digest(src)
	if f.kind == KindRecipe && isContext(src) {
		one.context = true
		return one
	}
	one.def, one.problems, one.older = r.opt.Definitions.DecodeEdit(src, f.shown)
	one.problems = one.problems.Merge(r.refs(f, src))
	if len(one.problems) == 0 && !one.def.ID.Valid() {
		one.problems = sentinels.Problems{f.problem(sentinels.KindValue, fmt.Sprintf("id %q is no slug", one.def.ID), "")}
	}
	return one
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// judge notes what a reading says of its file and reports whether there is a
// definition to go on with. A file with problems keeps claim and mark: its last
// good content is what is live.
func (r *Syncer) judge(one *reading) bool {
	f := one.file
	f.digest, f.untrusted = one.digest, one.distrust
	if f.untrusted {
		r.tryAgain() // a mode that is mended changes no content
	}
	switch {
	case one.gone:
		r.miss(f)
		return false
	case one.context:
		f.state, f.problems = Context, nil
		return false
	case len(one.problems) > 0:
		f.missing = time.Time{}
		if f.state != Invalid || f.problems.Error() != one.problems.Error() {
			r.logProblems("file has problems; what it said before stays live", f, one.problems)
		}
		f.invalid(one.problems...)
		return false
	}
	f.missing = time.Time{}
	return true
}

// claimants are the files that say they are a definition: first the one that the stored
// definition is from, so that a copy does not take over what is live, then the others in
// their order; those that are gone come last.
func (r *Syncer) claimants(id sentinels.ID) []*file {
	var list []*file
	for _, f := range r.files {
		if f.claim == id && f.kind != KindPlugin {
			list = append(list, f)
		}
	}
	slices.SortFunc(list, func(a, b *file) int {
		if gone := !a.missing.IsZero(); gone != !b.missing.IsZero() {
			if gone {
				return 1
			}
			return -1
		}
		if holds := a.held || a.mark.ID == id; holds != (b.held || b.mark.ID == id) {
			if holds {
				return -1
			}
			return 1
		}
		return compareFiles(a, b)
	})
	return list
}

// elect decides which file each contested id belongs to. It returns the readings
// to save, and files that have to be read because they come to their id now.
func (r *Syncer) elect(contested map[sentinels.ID]bool, read map[*file]*reading) (dirty []*file, winners []*reading) {
	for id := range contested {
		list := r.claimants(id)
		if len(list) == 0 {
			continue
		}
		// Only a reading of now can be saved. A file that comes to its id without
		// having been read, because another one gave it up, is read in the next round.
		first := list[0]
		if one := read[first]; one != nil {
			winners = append(winners, one)
		} else if first.state == Invalid && first.missing.IsZero() && first.mark.ID != id {
			dirty = append(dirty, first)
		}
		for _, other := range list[1:] {
			if !other.missing.IsZero() {
				continue
			}
			known := other.lost && other.state == Invalid
			other.lost, other.held = true, false
			other.mark = mark{} // the store has nothing of it: should it win, it is read
			other.invalid(other.problem(sentinels.KindDuplicate,
				fmt.Sprintf("the id %q is that of %s, which is live; this file is not used", id, first.shown), "give one of the two another id"))
			if !known {
				r.logProblems("file is not used", other, other.problems)
			}
		}
	}
	return dirty, winners
}

// saveAll makes revisions of readings, many at once. What cannot be stored, on a
// full disk, is tried again later; the file shows why until then.
func (r *Syncer) saveAll(ctx context.Context, list []*reading) {
	var wg sync.WaitGroup
	tokens := make(chan struct{}, savers)
	for _, one := range list {
		tokens <- struct{}{}
		wg.Go(func() {
			defer func() { <-tokens }()
			r.save(ctx, one)
		})
	}
	wg.Wait()
	for _, one := range list {
		if one.file.state == Invalid && ctx.Err() == nil {
			r.tryAgain()
		}
	}
}

// save makes a file's definition the newest revision, whatever was there: the
// file was found to be newer. An equal definition makes no revision, only its
// origin is noted. What a file says is of a person as a whole: no revision with a bound
// is written to one. Each call has a file of its own, so there is nothing to lock.
func (r *Syncer) save(ctx context.Context, one *reading) {
	f := one.file
	if r.waiting(one) {
		f.state, f.problems, f.held, f.lost, f.failing = Live, one.older, true, false, false
		f.mark.Digest = one.digest
		return
	}
	opt := runtime.SaveOptions{Expect: runtime.AnyRevision, Origin: f.origin, By: byFile, Whole: true, Changed: f.changed}
	s, err := r.opt.Definitions.SaveWith(ctx, one.def, opt)
	if err != nil {
		f.invalid(f.problem("file", "cannot be stored: "+err.Error(), ""))
		if ctx.Err() == nil && !f.failing {
			r.opt.Logger.Warn("definition of a file cannot be stored; trying again", "file", f.shown, "error", err)
		}
		f.failing = true
		return
	}
	if len(one.older) > 0 && len(f.problems) == 0 {
		r.logProblems("definition of a file has problems; it cannot be executed as it is", f, one.older)
	}
	f.state, f.problems, f.held, f.lost, f.failing = Live, one.older, true, false, false
	f.mark = mark{ID: s.ID, Digest: one.digest, Revision: s.Revision, Hash: s.Hash}
}

// refs returns the problems of paths in "$ref" that lead out of the folder of a file. The files in it are watched, and read as
// files of their own; that one is missing is a warning of the definition.
func (r *Syncer) refs(f *file, src []byte) sentinels.Problems {
	finder := reffile.Finder{Base: filepath.Dir(f.origin), Host: r.opt.Dir}
	_, err := sentinels.Beside(src, func(from string, _ sentinels.ID, files []string, named bool) (n sentinels.Neighbour, err error) {
		if !named {
			return n, fs.ErrNotExist
		}
		if _, err = finder.Find(from, files, named); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return sentinels.Neighbour{File: files[0]}, err
	})
	bad := (*sentinels.RefError)(nil)
	if !errors.As(err, &bad) {
		return nil
	}
	for i := range bad.Problems {
		bad.Problems[i].File = f.shown
	}
	return bad.Problems
}

// waiting reports whether a file still has the definition that it was last the same as,
// and the store has a later revision of it with a bound. That revision is the newest one,
// but it is not in the file before a person accepts it, so the file is not the newer one.
func (r *Syncer) waiting(one *reading) bool {
	m := one.file.mark
	head, err := r.opt.Definitions.Definition(one.def.ID)
	later := err == nil && head.Origin == one.file.origin && head.ID == m.ID && head.Revision > m.Revision
	return later && head.Within != nil && one.def.Hash() == m.Hash
}

// deleteIfOurs deletes a definition that no file claims any more, of which f was
// the last, if it lives in a file that is watched.
func (r *Syncer) deleteIfOurs(ctx context.Context, f *file, id sentinels.ID) {
	s, err := r.opt.Definitions.Definition(id)
	if err == nil && s.Origin != f.origin {
		// Made elsewhere, unless it is what another watched file left behind, that
		// had the id before f and is gone or says something else now.
		if !r.watches(s.Origin) {
			return
		}
	}
	if err == nil { // on this revision alone: an edit that came between keeps it
		_, err = r.opt.Definitions.DeleteWith(ctx, id, runtime.SaveOptions{Expect: s.Revision, By: byFile})
	}
	if err != nil && abi.CodeOf(err) != abi.NotFound && ctx.Err() == nil {
		r.opt.Logger.Warn("definition of a file that is gone cannot be deleted", "file", f.shown, "sentinel", id, "error", err)
	}
}

// isContext reports whether a recipe is a list of context sources alone, which a
// definition names in its field "recipe": it is plain JSON, unlike definitions.
func isContext(src []byte) bool {
	var list []string
	if json.Unmarshal(src, &list) == nil {
		return true
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(src, &object) != nil {
		return false // decoding says where
	}
	has := func(key string) bool { _, ok := object[key]; return ok }
	return (has("sources") || has("ragSources")) && !has("pipeline") && !has("steps")
}
