package checkpoint

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/internal/gitexec"
	"github.com/sentinel-runtime/sentinel/internal/textcut"
)

// A Change is how one file differs. A folder is named if it was or is empty, or has another
// mode or owner; one that git ignores, and that is new or gone, is named in place of what is
// in it. The paths of folders end with a slash.
type Change struct {
	Path    string `json:"path"`
	Change  string `json:"change" enum:"added,deleted,modified,mode,type" jsonschema:"mode: the mode or owner; type: such as a link that became a file"`
	Added   int    `json:"added,omitempty" jsonschema:"lines"`
	Removed int    `json:"removed,omitempty" jsonschema:"lines"`
	Binary  bool   `json:"binary,omitempty" jsonschema:"its lines are not counted"`
	Files   int    `json:"files,omitempty" jsonschema:"of a folder that is named in place of what is in it"`
	Ignored bool   `json:"ignored,omitempty" jsonschema:"git ignores it, or it is in a nested repository"`
	Left    string `json:"left,omitempty" jsonschema:"why a restore leaves it as it is; empty if it does not"`
}

// Why a restore leaves a path as it is.
const (
	leftUnkept  = "the content of before is not kept"
	leftGit     = "git's own folders are left as they are"
	leftObeyed  = "git or a server of this program obeys it, and confined commands make no such files"
	leftSpecial = "no content of pipes, sockets and devices is kept"
	leftBlind   = "the folder could not be read"
	leftMounted = "something else is mounted there since"
)

// A Diff is what changed in a workspace.
type Diff struct {
	From    string   `json:"from" jsonschema:"id of a checkpoint"`
	To      string   `json:"to,omitempty" jsonschema:"id of a checkpoint; the files as they are now if there is none"`
	Files   []Change `json:"files" jsonschema:"those that git does not ignore first"`
	Added   int      `json:"added" jsonschema:"lines in all"`
	Removed int      `json:"removed" jsonschema:"lines in all"`
	Patch   string   `json:"patch,omitempty" jsonschema:"with patch: the differences of files that git does not ignore"`
	Cut     bool     `json:"cut,omitempty" jsonschema:"there are more files, or more of the patch"`
}

// Bounds of a Diff.
const (
	maxChanges = 1000      // files
	maxPatch   = 128 << 10 // bytes
)

// Diff compares two checkpoints of a workspace, or one with the files as they are now if
// to is empty. With patch it has the differences too.
func (s *Service) Diff(ctx context.Context, by, workspace, from, to string, patch bool) (d Diff, err error) {
	err = s.with(ctx, by, workspace, func(r *repository) error {
		all, err := r.checkpoints(ctx)
		if err != nil {
			return err
		}
		begin, err := find(all, from)
		if err != nil {
			return err
		}
		var end *Checkpoint
		if to != "" {
			found, err := find(all, to)
			if err != nil {
				return err
			}
			end = &found
		}
		d, err = r.diff(ctx, all, begin, end, patch)
		return err
	})
	return d, err
}

// DiffOf returns what changed in the pair of a scope; without an end, until now.
func (s *Service) DiffOf(ctx context.Context, by, workspace, of string, patch bool) (d Diff, err error) {
	err = s.with(ctx, by, workspace, func(r *repository) error {
		all, begin, end, err := r.pairOf(ctx, of)
		if err != nil {
			return err
		}
		d, err = r.diff(ctx, all, begin, end, patch)
		return err
	})
	return d, err
}

// diff compares two checkpoints, or one with the files as they are now.
func (r *repository) diff(ctx context.Context, all []Checkpoint, from Checkpoint, to *Checkpoint, patch bool) (d Diff, err error) {
	var end *index
	if to != nil {
		end, err = r.load(ctx, to)
	} else {
		var now *scan
		if now, err = r.scan(ctx, known(all, &from)); err == nil {
			_, err = r.commit(ctx, now, Checkpoint{Workspace: r.workspace})
			to, end = &Checkpoint{}, now.index
		}
	}
	if err != nil {
		return d, err
	}
	begin, err := r.load(ctx, &from)
	if err != nil {
		return d, err
	}
	changed := changes(begin, end)
	for i := range changed {
		if c := &changed[i]; c.Left == "" && r.s.opt.Obeyed(c.Path) {
			c.Left = leftObeyed
		}
	}
	if err := r.lines(ctx, changed, from.ref(), to.ref()); err != nil {
		return d, err
	}
	d = Diff{From: from.ID, To: to.ID, Files: changed}
	for _, c := range changed {
		d.Added, d.Removed = d.Added+c.Added, d.Removed+c.Removed
	}
	if len(changed) > maxChanges {
		d.Files, d.Cut = changed[:maxChanges], true
	}
	if patch {
		args := []string{"diff-tree", "-r", "-p", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color", "--relative=" + filesDir}
		a, err := r.exec(ctx, strings.NewReader(""), append(args, from.ref(), to.ref())...)
		if err == nil && a.Code != 0 {
			err = gitexec.Fatal("diff-tree", a)
		}
		if err != nil {
			return d, err
		}
		d.Patch = a.Out
		if len(d.Patch) > maxPatch {
			d.Patch, d.Cut = textcut.Cut(d.Patch, maxPatch), true
		}
	}
	return d, nil
}

// changes returns what differs from one index to another.
func changes(from, to *index) []Change {
	list := []Change{}
	blind := append(from.blind(), to.blind()...)
	whole := wholeFolders{from: from, to: to}
	merge(func(dir string, nodes []*node) {
		a, b := nodes[0], nodes[1]
		if same(a, b) || slices.ContainsFunc(blind, func(d string) bool { return below(dir, d) }) {
			return
		}
		if c, ok := whole.change(dir, a, b); ok {
			list = append(list, c)
		}
	}, from, to)
	sortChanges(list)
	return list
}

// sortChanges sorts by path, with ignored files last.
func sortChanges(list []Change) {
	slices.SortStableFunc(list, func(a, b Change) int {
		if a.Ignored != b.Ignored {
			if a.Ignored {
				return 1
			}
			return -1
		}
		return strings.Compare(a.Path, b.Path)
	})
}

// wholeFolders makes the changes of a comparison, and names folders in place of what is in
// them.
type wholeFolders struct {
	from, to *index
	now      string // the last one that was named; "" for none
}

// change returns the change of a path, unless another one stands for it.
func (w *wholeFolders) change(dir string, a, b *node) (c Change, ok bool) {
	if w.now != "" && below(dir, w.now) {
		return c, false
	}
	c = changeOf(dir, a, b)
	if a != nil && a.kind != kindFolder || b != nil && b.kind != kindFolder || a != nil && b != nil {
		return c, true
	}
	name := join(dir, cmpNode(a, b).name)
	in := w.to
	if b == nil {
		in = w.from
	}
	count, ignored := 0, true
	for _, n := range in.under(name) {
		count++
		ignored = ignored && (n.kind == kindFolder || n.flags&flagIgnored != 0)
		c.Left = leftOf(a != nil, n, c.Left)
	}
	if c.Files = count; count == 0 {
		return c, true
	}
	if !ignored || c.Left != "" { // what is in it is named
		return c, false
	}
	w.now, c.Ignored = name, true
	return c, true
}

// leftOf keeps the first reason for which something in a deleted folder cannot be restored.
func leftOf(deleted bool, n *node, reason string) string {
	switch {
	case reason != "":
	case n.kind == kindGit:
		return leftGit
	case deleted && n.kind != kindFolder && !n.kept():
		return leftUnkept
	}
	return reason
}

func cmpNode(a, b *node) *node {
	if a != nil {
		return a
	}
	return b
}

// changeOf names how a path differs.
func changeOf(dir string, a, b *node) Change {
	n := cmpNode(b, a)
	c := Change{Path: join(dir, n.name), Change: "modified", Ignored: cmpNode(a, b).flags&flagIgnored != 0}
	if n.kind == kindFolder || n.kind == kindGit {
		c.Path += "/"
	}
	switch {
	case a == nil:
		c.Change = "added"
	case b == nil:
		c.Change = "deleted"
	case a.kind != b.kind:
		c.Change = "type"
	case a.sameContent(b):
		c.Change = "mode"
	}
	c.Left = leftAt(a, b)
	return c
}

// leftAt is why a restore of a leaves b as it is, if it does; nil stands for a missing file.
func leftAt(a, b *node) string {
	switch {
	case a != nil && a.kind == kindGit, b != nil && b.kind == kindGit:
		return leftGit
	case a == nil || b != nil && a.sameContent(b) || a.kind == kindFolder || a.kept():
		return ""
	case a.kind == kindOther:
		return leftSpecial
	}
	return leftUnkept
}

// lines counts the lines of changes of which both contents are kept, or the only one.
func (r *repository) lines(ctx context.Context, list []Change, from, to string) error {
	if len(list) == 0 {
		return nil
	}
	args := []string{"diff-tree", "-r", "-z", "--numstat", "--no-renames", "--no-ext-diff", "--no-textconv"}
	out, err := r.must(ctx, "", append(args, from, to, "--", filesDir, ignoredDir)...)
	if err != nil {
		return err
	}
	byPath := map[string]*Change{}
	for i := range list {
		if list[i].Left == "" {
			byPath[list[i].Path] = &list[i]
		}
	}
	for field := range strings.SplitSeq(out, "\x00") {
		if field == "" {
			continue
		}
		counts := strings.SplitN(field, "\t", 3) // "ADDED\tREMOVED\tTOP/PATH", with - for binary files
		if len(counts) != 3 {
			return fmt.Errorf("read diff of git: %q", field)
		}
		_, name, _ := strings.Cut(counts[2], "/")
		c := byPath[name]
		if c == nil { // in a folder that is named in place of it
			continue
		}
		c.Binary = counts[0] == "-"
		c.Added, _ = strconv.Atoi(counts[0]) // 0 for a binary file
		c.Removed, _ = strconv.Atoi(counts[1])
	}
	return nil
}
