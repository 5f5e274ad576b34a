package checkpoint

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path"
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
	Files     []Change   `json:"files" jsonschema:"files that were changed, or that would be, and those that are left; the first 1,000"`
	Conflicts []Conflict `json:"conflicts,omitempty" jsonschema:"the first 100"`
	Refused   []Conflict `json:"refused,omitempty" jsonschema:"with success: paths that were not restored, although their content of before is kept; the first 100"`
	Cut       bool       `json:"cut,omitempty" jsonschema:"there are more files, conflicts or refused paths than are listed"`
	Open      bool       `json:"open,omitempty" jsonschema:"the scope has no end: all changes since its begin count"`
	Undo      string     `json:"undo,omitempty" jsonschema:"scope of this restore: restoring that takes it back"`
}

// maxConflicts is how many conflicts a result lists.
const maxConflicts = 100

// Restore gives the paths that differ between the begin and the end of a scope the state
// that they had at its begin: content, mode and owner. It removes only what did not exist
// then. A path that was changed since the end is a conflict, and then nothing is changed
// unless force is set. So is a scope without an end, of which all changes until now count,
// and one that another scope overlaps.
//
// What a restore replaces or removes is kept before under a scope of its own, at any size. A
// path of which that is not possible is refused, and the others are restored.
func (s *Service) Restore(ctx context.Context, by, workspace, of string, force bool) (out Restored, err error) {
	err = s.restorable(ctx, by, workspace, of, func(r *repository, all []Checkpoint, begin Checkpoint, end *Checkpoint) error {
		p := &restore{repository: r, of: begin, again: interrupted(all, of)}
		if err := p.read(ctx, all, end); err != nil {
			return err
		}
		defer p.reader.close()
		out = Restored{Of: of, Open: end == nil}
		if end == nil {
			p.conflict("", "the scope has no end, so changes of others cannot be distinguished from its own")
		}
		for _, other := range overlapping(all, begin, end) {
			p.conflict("", other+" changed files of this folder at the same time")
		}
		p.plan()
		if len(p.conflicts) > 0 {
			p.again = nil // its scope would not have what others have changed since
		}
		if len(p.conflicts) > 0 && !force {
			out.Conflicts = p.conflicts
			if _, err := r.commit(ctx, p.now, Checkpoint{Workspace: r.workspace}); err != nil {
				return err
			}
			out.Files, err = p.files(ctx, nowRef)
			out.Cut = p.cut
			return err
		}
		if err := p.applier().clean(); err != nil {
			return err
		}
		out.Success = true
		if len(p.steps) > 0 || p.again != nil {
			if out.Undo, err = p.execute(ctx); err != nil {
				return err
			}
		}
		out.Refused = p.refused
		out.Files, err = p.files(ctx, refs+p.kept)
		out.Cut = p.cut
		return err
	})
	return out, err
}

// CheckRestore returns the error with which a [Service.Restore] is refused whatever its conflicts of paths are, nil if
// there is none: confined commands that can write the workspace, or no checkpoints of the scope.
func (s *Service) CheckRestore(ctx context.Context, by, workspace, of string) error {
	return s.restorable(ctx, by, workspace, of, func(*repository, []Checkpoint, Checkpoint, *Checkpoint) error { return nil })
}

// restorable calls fn with the checkpoints of a workspace and the pair of a scope, end nil if there is none, while no confined
// command can write the workspace.
func (s *Service) restorable(
	ctx context.Context, by, workspace, of string, fn func(r *repository, all []Checkpoint, begin Checkpoint, end *Checkpoint) error,
) error {
	return s.with(ctx, by, workspace, func(r *repository) error {
		release, err := s.opt.HoldTree(r.workspace)
		if err != nil {
			return err
		}
		defer release()
		all, begin, end, err := r.pairOf(ctx, of)
		if err != nil {
			return err
		}
		return fn(r, all, begin, end)
	})
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

// interrupted returns the begin of the newest scope if that is a restore of a scope which has
// not got to its end.
func interrupted(all []Checkpoint, of string) *Checkpoint {
	last := all[len(all)-1]
	if last.Undoes != of || last.Label == End {
		return nil
	}
	i := slices.IndexFunc(all, func(c Checkpoint) bool { return c.Of == last.Of })
	return &all[i]
}

// A restore is one under way.
type restore struct {
	*repository
	of         Checkpoint  // the begin of the scope
	begin, end *index      // of the scope; end is that of now if it has none
	again      *Checkpoint // begin of the restore that was interrupted, and that this one continues
	before     *index      // its index
	now        *scan
	reader     *folderReader
	steps      []*step // in the order of the index
	byPath     map[string]*step
	left       []Change // what is not restored, because it cannot be, as the scope changed it
	conflicts  []Conflict
	refused    []Conflict
	cut        bool   // not all changes, conflicts or refused paths are listed
	kept       string // id of the checkpoint of what was there before
}

// A step gives one path another state. nil stands for a missing file.
type step struct {
	path     string
	from, to *node
	meta     bool // the content stays, only the mode and the owner change
	done     bool
}

// folder reports whether a node is a folder.
func isFolder(n *node) bool { return n != nil && n.kind == kindFolder }

func (p *restore) conflict(name, reason string) {
	if len(p.conflicts) == maxConflicts {
		p.cut = true
		return
	}
	p.conflicts = append(p.conflicts, Conflict{name, reason})
}

func (p *restore) refuse(name, reason string) {
	switch {
	case slices.ContainsFunc(p.refused, func(c Conflict) bool { return c.Path == name }):
	case len(p.refused) == maxConflicts:
		p.cut = true
	default:
		p.refused = append(p.refused, Conflict{name, reason})
	}
}

// read reads the states that are compared.
func (p *restore) read(ctx context.Context, all []Checkpoint, end *Checkpoint) (err error) {
	if p.now, err = p.scan(ctx, known(all, &p.of)); err != nil {
		return err
	}
	if p.begin, err = p.load(ctx, &p.of); err != nil {
		return err
	}
	p.end = p.now.index
	if end != nil {
		if p.end, err = p.load(ctx, end); err != nil {
			return err
		}
	}
	if p.again != nil {
		if p.before, err = p.load(ctx, p.again); err != nil {
			return err
		}
	}
	p.reader, err = openReader(p.workspace)
	return err
}

// halfway reports whether a path is as an interrupted restore may leave it: removed and not
// written yet, or without its mode and owner.
func (p *restore) halfway(name string, b, e, n *node) bool {
	if p.before == nil || !same(p.before.find(name), e) {
		return false
	}
	if n == nil || b != nil && p.sameContent(name, b, n) {
		return true
	}
	// A change of the mode alone gives the file another ctime.
	unwritten := func() bool { return e.kind == n.kind && e.size == n.size && e.mtime == n.mtime && e.ino == n.ino }
	return e != nil && (p.untouched(name, e, n) || unwritten())
}

// plan finds the steps and the conflicts.
func (p *restore) plan() {
	p.byPath = map[string]*step{}
	blind := slices.Concat(p.begin.blind(), p.end.blind(), p.now.blind())
	mounted := p.mounted()
	merge(func(dir string, nodes []*node) {
		b, e, n := nodes[0], nodes[1], nodes[2]
		if same(b, e) && !p.unlocked(dir, b, n) {
			return
		}
		if i := slices.IndexFunc(blind, func(d string) bool { return below(dir, d) }); i >= 0 {
			p.refuse(blind[i]+"/", leftBlind)
			return
		}
		name := join(dir, cmpNode(cmpNode(b, e), n).name)
		if i := slices.IndexFunc(mounted, func(d string) bool { return below(name, d) }); i >= 0 {
			p.refuse(cmp.Or(mounted[i], ".")+"/", leftMounted)
			return
		}
		if p.same(name, b, n) {
			return
		}
		left := p.leaves(name, b, n)
		if left == leftGit || left == leftObeyed || left != "" && n == nil {
			p.left = append(p.left, p.leftChange(dir, b, n, left))
			return
		}
		if left != "" {
			// Of a content that is not kept the mode and owner come back, if it is of the same kind.
			p.left = append(p.left, p.leftChange(dir, b, n, left))
			if b.kind != n.kind || b.sameMeta(n) {
				return
			}
		}
		restored := isFolder(b) && e == nil && isFolder(n) // both the user and the restore make the folder
		untouched := e == n || e != nil && n != nil && e.sameMeta(n) && p.untouched(name, e, n)
		if !untouched && !restored && !p.halfway(name, b, e, n) {
			p.conflict(name, "it was changed since")
		}
		p.add(&step{path: name, from: n, to: b, meta: left != "" || b != nil && n != nil && p.sameContent(name, b, n)})
	}, p.begin, p.end, p.now.index)
	for _, s := range slices.Clone(p.steps) {
		p.makeWay(s, mounted)
	}
	slices.SortFunc(p.steps, func(a, b *step) int { return comparePaths(a.path, b.path) })
	p.keepFolders()
}

// mounted returns the folders at which something else is mounted now than at the begin or end: what is in them
// is not what the scope has changed, and may be of another folder of the user. "" is the workspace itself.
func (p *restore) mounted() (dirs []string) {
	if p.now.root.replaced(p.begin.root) || p.now.root.replaced(p.end.root) {
		return []string{""}
	}
	merge(func(dir string, nodes []*node) {
		n := nodes[2]
		if !isFolder(n) {
			return
		}
		now := n.flags & flagMounted
		if slices.ContainsFunc(nodes[:2], func(o *node) bool {
			if !isFolder(o) {
				return now != 0
			}
			return o.flags&flagMounted != now || now != 0 && o.ino != n.ino
		}) {
			dirs = append(dirs, join(dir, n.name))
		}
	}, p.begin, p.end, p.now.index)
	return dirs
}

// keepFolders drops the steps that would remove a folder in which something stays.
func (p *restore) keepFolders() {
	for _, s := range slices.Backward(p.steps) { // a folder after what is in it
		f := p.now.folder(s.path)
		if s.to != nil || !isFolder(s.from) || f == nil {
			continue
		}
		if slices.ContainsFunc(f.nodes, func(n node) bool {
			inside := p.byPath[join(s.path, n.name)]
			return inside == nil || inside.to != nil
		}) {
			delete(p.byPath, s.path)
		}
	}
	p.steps = slices.DeleteFunc(p.steps, func(s *step) bool { return p.byPath[s.path] == nil })
}

// unlocked reports whether an interrupted restore has left a folder writable, see
// [applier.unlock].
func (p *restore) unlocked(dir string, b, n *node) bool {
	return p.before != nil && isFolder(b) && isFolder(n) && b.mode != n.mode && n.mode == b.mode|0o700 &&
		same(p.before.find(join(dir, b.name)), b)
}

func (p *restore) leftChange(dir string, b, n *node, left string) Change {
	c := changeOf(dir, b, n)
	c.Left = left
	return c
}

func (p *restore) add(s *step) {
	p.steps = append(p.steps, s)
	p.byPath[s.path] = s
}

// makeWay adds what has to change around a step: its parents have to be folders, and a file
// does not take the place of a folder that has something in it. Both are conflicts.
func (p *restore) makeWay(s *step, mounted []string) {
	if s.to == nil {
		return
	}
	if isFolder(s.from) && !isFolder(s.to) {
		for name, n := range p.now.under(s.path) {
			left := p.leaves(name, nil, n)
			if slices.ContainsFunc(mounted, func(d string) bool { return below(name, d) }) {
				left = leftMounted
			}
			if left != "" {
				p.conflict(name, "it is in the place of a file that would be restored")
				p.refuse(s.path, fmt.Sprintf("%q is in its place, and %s", name, left))
				delete(p.byPath, s.path)
				return
			}
		}
		for name, n := range p.now.under(s.path) {
			if p.byPath[name] == nil {
				p.conflict(name, "it is in the place of a file that would be restored")
				p.add(&step{path: name, from: n})
			}
		}
	}
	for dir := path.Dir(s.path); dir != "."; dir = path.Dir(dir) {
		n, planned := p.now.find(dir), p.byPath[dir]
		if planned != nil && isFolder(planned.to) || planned == nil && isFolder(n) {
			return
		}
		if n != nil {
			p.conflict(dir, "it is in the place of a folder of a file that would be restored")
		}
		to := p.begin.find(dir)
		if planned != nil { // it is gone since, and would be removed
			planned.to, planned.meta = to, false
			continue
		}
		p.add(&step{path: dir, from: n, to: to})
	}
}

// leaves is why the restore leaves a path as it is, if it does.
func (p *restore) leaves(name string, b, n *node) string {
	left := leftAt(b, n)
	if left != leftGit && p.s.opt.Obeyed(name) {
		return leftObeyed
	}
	return left
}

// same compares a state that was kept with the present one.
func (p *restore) same(name string, x, n *node) bool {
	if x == nil || n == nil {
		return x == n
	}
	return x.sameMeta(n) && p.sameContent(name, x, n)
}

// sameContent compares a content that is kept with the present one, which is read if its times
// are others.
func (p *restore) sameContent(name string, x, n *node) bool {
	known := n.content.store == storeGit && x.content.store == storeGit || x.sameFile(n) || !x.kept()
	if known || x.kind != n.kind || x.kind != kindFile && x.kind != kindLink {
		return x.sameContent(n)
	}
	if x.size != n.size {
		return false
	}
	if x.content.store == storeClone {
		return p.sameClone(name, x)
	}
	now, err := p.hash(p.reader, name, n)
	return err == nil && now == x.content
}

// untouched is sameContent for what is replaced or removed. A pipe, socket or device that was made again since
// is another one, although nothing of its content is kept. A change of its names or mode sets its ctime, so
// that one is not compared.
func (p *restore) untouched(name string, x, n *node) bool {
	return p.sameContent(name, x, n) && (x.kind != kindOther || x.ino == n.ino && x.mtime == n.mtime)
}

// sameClone compares a clone with the present file.
func (p *restore) sameClone(name string, x *node) bool {
	file, _, err := p.reader.open(name)
	if err != nil {
		return false
	}
	defer file.Close()
	clone, err := os.Open(p.clonePath(x.content.id))
	if err != nil {
		return false
	}
	defer clone.Close()
	a, b := make([]byte, 64<<10), make([]byte, 64<<10)
	for {
		n, errA := io.ReadFull(file, a)
		m, errB := io.ReadFull(clone, b)
		if n != m || !bytes.Equal(a[:n], b[:m]) {
			return false
		}
		if errA != nil || errB != nil {
			return errA != nil && errB != nil
		}
	}
}

// files lists the steps as changes, and what is left.
func (p *restore) files(ctx context.Context, now string) ([]Change, error) {
	list := slices.Clone(p.left)
	for i, s := range p.steps {
		dir, _ := splitPath(s.path)
		inside := i+1 < len(p.steps) && below(p.steps[i+1].path, s.path)
		refused := slices.ContainsFunc(p.refused, func(c Conflict) bool { return c.Path == s.path })
		if refused || !s.meta && inside && (isFolder(s.from) || isFolder(s.to)) {
			continue // what is in it is listed
		}
		if s.meta && slices.ContainsFunc(p.left, func(c Change) bool { return c.Path == s.path }) {
			continue
		}
		c := changeOf(dir, s.from, s.to)
		c.Left = ""
		if s.meta {
			c.Change = "mode"
		}
		list = append(list, c)
	}
	sortChanges(list)
	if len(list) > maxChanges {
		list, p.cut = list[:maxChanges], true
	}
	if now == refs { // nothing was kept, because nothing changed
		return list, nil
	}
	return list, p.lines(ctx, list, now, p.of.ref())
}

// execute writes the files, between two checkpoints that make the restore a pair.
func (p *restore) execute(ctx context.Context) (undo string, err error) {
	undo, p.kept = "undo-"+newID("")[2:], newID("")
	label := Begin
	if p.again != nil {
		undo, label = p.again.Of, "repeated"
	}
	p.clone(p.now)
	p.require()
	if _, err := p.keep(ctx, p.now, Checkpoint{ID: p.kept, Of: undo, Label: label, Undoes: p.of.Of}); err != nil {
		return "", err
	}
	p.s.opt.At("kept")
	err = p.applier().apply(ctx)
	if err == nil {
		var all []Checkpoint
		if all, err = p.checkpoints(ctx); err == nil {
			err = p.finish(ctx, all, undo)
		}
	}
	if err != nil {
		e := abi.As(storage(err))
		if e == nil {
			e = abi.New(abi.Internal, err.Error())
		}
		e.Hint = strings.TrimPrefix(e.Hint+"; what was restored stays: repeat the restore, or take it back with "+undo, "; ")
		return "", e
	}
	return undo, nil
}

// finish makes the checkpoint of the end of the restore.
func (p *restore) finish(ctx context.Context, all []Checkpoint, undo string) error {
	begin, _, err := pair(all, undo)
	if err != nil {
		return err
	}
	after, err := p.scan(ctx, known(all, &begin))
	if err != nil {
		return err
	}
	_, err = p.keep(ctx, after, Checkpoint{ID: newID(""), Of: undo, Label: End, Undoes: p.of.Of})
	return err
}

// require has the checkpoint keep all that the steps replace or remove. What exceeds the size
// of all checkpoints is refused.
func (p *restore) require() {
	planned := map[string]*item{}
	for i := range p.now.fresh {
		planned[p.now.fresh[i].path()] = &p.now.fresh[i]
	}
	var more []item
	total := int64(0)
	p.steps = slices.DeleteFunc(p.steps, func(s *step) bool {
		if s.meta || s.from == nil || s.from.kept() || s.from.kind != kindFile && s.from.kind != kindLink {
			return false
		}
		if total += s.from.size; total > p.s.opt.Bytes {
			p.refuse(s.path, fmt.Sprintf("with it, more than %d MiB of present files would have to be kept; "+
				"move it away, or raise checkpoints.size in the configuration", p.s.opt.Bytes>>20))
			return true
		}
		if it := planned[s.path]; it != nil {
			it.must = true
		} else {
			dir, _ := splitPath(s.path)
			more = append(more, item{dir, s.from, true})
		}
		return false
	})
	p.now.fresh = append(p.now.fresh, more...)
}
