package checkpoint

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// A Conflict is why a file is not restored.
type Conflict struct {
	Path   string `json:"path,omitempty" jsonschema:"the file; empty if it is about all of them"`
	Reason string `json:"reason"`
}

// A Restored is the result of a restore. Without success nothing was changed.
type Restored struct {
	Success   bool       `json:"success" jsonschema:"false if there are conflicts: nothing was changed"`
	Of        string     `json:"of" jsonschema:"scope whose changes were taken back"`
	Files     []Change   `json:"files" jsonschema:"files that were changed, or that would be; the first 1,000"`
	Conflicts []Conflict `json:"conflicts,omitempty" jsonschema:"the first 100"`
	Open      bool       `json:"open,omitempty" jsonschema:"the scope has no end: all changes since its begin count"`
	Undo      string     `json:"undo,omitempty" jsonschema:"scope of this restore: restoring that takes it back"`
}

// maxConflicts is how many conflicts a result lists.
const maxConflicts = 100

// Restore gives the files that differ between the begin and the end of a scope the state
// that they had at its begin. A file that was changed since the end is a conflict, and
// then nothing is changed unless force is set. So is a scope without an end, of which all
// changes until now count, and one that another scope overlaps. What there was before the
// restore is kept under a scope of its own.
//
// The executable bit is restored; an existing file keeps the other bits of its mode.
func (s *Service) Restore(ctx context.Context, workspace, of string, force bool) (out Restored, err error) {
	err = s.with(workspace, func(r *repository) error {
		all, err := r.checkpoints(ctx)
		if err != nil {
			return err
		}
		begin, end, err := pair(all, of)
		if err != nil {
			return err
		}
		snap, err := r.snapshot(ctx)
		if err != nil {
			return err
		}
		p := &restore{repository: r, begin: begin.tree, end: snap.tree, now: snap.tree}
		out = Restored{Of: of, Files: []Change{}, Open: end == nil}
		if end == nil {
			p.conflict("", "the scope has no end, so changes of others cannot be distinguished from its own")
		} else {
			p.end = end.tree
		}
		for _, other := range overlapping(all, begin, end) {
			p.conflict("", other+" changed files of this folder at the same time")
		}
		if err := p.plan(ctx); err != nil {
			return err
		}
		out.Files, out.Conflicts = p.changes[:min(len(p.changes), maxChanges)], p.conflicts
		if len(p.conflicts) > 0 && !force || p.lossy {
			return nil
		}
		out.Conflicts = nil
		if err := p.clean(snap.left); err != nil {
			return err
		}
		if out.Success = true; len(p.changes) == 0 {
			return nil
		}
		out.Undo, err = p.execute(ctx, snap)
		return err
	})
	return out, err
}

// overlapping returns the other scopes that were at work between two checkpoints: until now
// if there is no end. A scope without an end counts at its begin.
func overlapping(all []Checkpoint, begin Checkpoint, end *Checkpoint) []string {
	type span struct{ from, to time.Time }
	spans := map[string]span{}
	var others []string
	for _, c := range all { // the oldest first
		s, known := spans[c.Of]
		if !known && c.Of != "" && c.Of != begin.Of {
			others = append(others, c.Of)
		}
		if !known {
			s.from = c.CreatedAt
		}
		s.to = c.CreatedAt
		spans[c.Of] = s
	}
	return slices.DeleteFunc(others, func(of string) bool {
		s := spans[of]
		return s.to.Before(begin.CreatedAt) || end != nil && s.from.After(end.CreatedAt)
	})
}

// A restore is one under way.
type restore struct {
	*repository
	begin, end, now string // trees
	changes         []Change
	conflicts       []Conflict
	lossy           bool // some conflict is with a file of which there is no copy
	wanted          string
}

func (p *restore) conflict(name, reason string) {
	if len(p.conflicts) < maxConflicts {
		p.conflicts = append(p.conflicts, Conflict{name, reason})
	}
}

// plan finds what has to be written, as a tree that is now but for the files to restore.
func (p *restore) plan(ctx context.Context) error {
	undone, err := p.repository.changes(ctx, p.end, p.begin)
	if err != nil {
		return err
	}
	left, err := p.paths(ctx, p.now, p.begin) // not restored yet
	if err != nil {
		return err
	}
	since, err := p.paths(ctx, p.end, p.now)
	if err != nil {
		return err
	}
	var lines strings.Builder
	chosen := map[string]bool{}
	for _, c := range undone {
		if !left[c.Path] {
			continue
		}
		if since[c.Path] {
			p.conflict(c.Path, "it was changed since")
		}
		chosen[c.Path] = true
		if c.to.mode == modeNone {
			fmt.Fprintf(&lines, "0 %s\t%s\x00", strings.Repeat("0", 40), c.Path)
		} else {
			fmt.Fprintf(&lines, "%s %s\t%s\x00", c.to.mode, c.to.hash, c.Path)
		}
	}
	if len(chosen) == 0 {
		return nil
	}
	if err := p.compose(ctx, lines.String()); err != nil {
		return err
	}
	if p.changes, err = p.repository.changes(ctx, p.now, p.wanted); err != nil {
		return err
	}
	return p.check(chosen)
}

// paths returns the paths that differ between two trees.
func (p *restore) paths(ctx context.Context, from, to string) (map[string]bool, error) {
	out, err := p.must(ctx, "", "diff-tree", "-r", "-z", "--name-only", "--no-renames", from, to)
	set := map[string]bool{}
	for _, name := range split(out + "\x00") {
		set[name] = true
	}
	return set, err
}

// compose makes the tree of the files as they are now with other states of some.
func (p *restore) compose(ctx context.Context, lines string) error {
	own := *p.repository
	own.index = filepath.Join(p.dir, "index."+rand.Text())
	if err := copyFile(p.index, own.index); err != nil {
		return storage(err)
	}
	_, err := own.must(ctx, lines, "update-index", "-z", "--index-info")
	if err == nil {
		p.wanted, err = own.must(ctx, "", "write-tree")
		p.wanted = strings.TrimSpace(p.wanted)
	}
	return errors.Join(err, removeIfThere(own.index))
}

// check finds conflicts with files that the pair did not change: a folder in the place of
// a file, and files that checkpoints do not cover.
func (p *restore) check(chosen map[string]bool) error {
	reader, err := openReader(p.workspace)
	if err != nil {
		return err
	}
	defer reader.close()
	for _, c := range p.changes {
		if !chosen[c.Path] {
			p.conflict(c.Path, "it is in the place of a file or folder that would be restored")
			continue
		}
		if c.Change != "added" {
			continue
		}
		dir, err := reader.enter(c.Path)
		if err == nil {
			_, err = dir.Lstat(path.Base(c.Path))
		}
		if err == nil { // git ignores it, or it is too large
			if info, err := dir.Lstat(path.Base(c.Path)); err == nil && !info.IsDir() {
				p.lossy = true
				p.conflict(c.Path, "there is a file which checkpoints do not cover; move it away")
			}
		} else if !errors.Is(err, fs.ErrNotExist) {
			continue // what is in the way is a conflict of its own, or is written over with force
		}
	}
	return nil
}

// execute writes the files, between two checkpoints that make the restore a pair.
func (p *restore) execute(ctx context.Context, before *snapshot) (undo string, err error) {
	undo = "undo-" + newID("")[2:]
	if _, err := p.keep(ctx, before, newID(""), undo, Begin); err != nil {
		return "", err
	}
	p.s.opt.At("kept")
	if err := p.apply(ctx); err != nil {
		e := abi.As(storage(err))
		if e == nil {
			e = abi.New(abi.Internal, err.Error())
		}
		e.Hint = strings.TrimPrefix(e.Hint+"; what was restored stays: repeat the restore, or take it back with "+undo, "; ")
		return "", e
	}
	after, err := p.snapshot(ctx)
	if err != nil {
		return "", err
	}
	_, err = p.keep(ctx, after, newID(""), undo, End)
	return undo, err
}
