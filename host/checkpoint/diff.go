package checkpoint

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/internal/gitexec"
)

// A Change is how one file differs.
type Change struct {
	Path    string `json:"path"`
	Change  string `json:"change" enum:"added,deleted,modified,mode,type" jsonschema:"mode: only executable or not; type: a link became a file, or the reverse"`
	Added   int    `json:"added,omitempty" jsonschema:"lines"`
	Removed int    `json:"removed,omitempty" jsonschema:"lines"`
	Binary  bool   `json:"binary,omitempty" jsonschema:"its lines are not counted"`

	to entry // the state that it changes to
}

// A Diff is what changed in a workspace.
type Diff struct {
	From    string   `json:"from" jsonschema:"id of a checkpoint"`
	To      string   `json:"to,omitempty" jsonschema:"id of a checkpoint; the files as they are now if there is none"`
	Files   []Change `json:"files"`
	Added   int      `json:"added" jsonschema:"lines in all"`
	Removed int      `json:"removed" jsonschema:"lines in all"`
	Patch   string   `json:"patch,omitempty" jsonschema:"with patch: the differences"`
	Cut     bool     `json:"cut,omitempty" jsonschema:"there are more files, or more of the patch"`
}

// Bounds of a Diff.
const (
	maxChanges = 1000      // files
	maxPatch   = 128 << 10 // bytes
)

// Diff compares two checkpoints of a workspace, or one with the files as they are now if
// to is empty. With patch it has the differences too.
func (s *Service) Diff(ctx context.Context, workspace, from, to string, patch bool) (d Diff, err error) {
	err = s.with(workspace, func(r *repository) error {
		all, err := r.checkpoints(ctx)
		if err != nil {
			return err
		}
		begin, err := find(all, from)
		if err != nil {
			return err
		}
		end := Checkpoint{}
		if to != "" {
			end, err = find(all, to)
		} else {
			end.tree, err = r.now(ctx)
		}
		if err != nil {
			return err
		}
		d, err = r.diff(ctx, begin, end, patch)
		return err
	})
	return d, err
}

// DiffOf returns what changed in the pair of a scope; without an end, until now.
func (s *Service) DiffOf(ctx context.Context, workspace, of string, patch bool) (d Diff, err error) {
	err = s.with(workspace, func(r *repository) error {
		all, err := r.checkpoints(ctx)
		if err != nil {
			return err
		}
		begin, end, err := pair(all, of)
		if err != nil {
			return err
		}
		if end == nil {
			end = new(Checkpoint)
			if end.tree, err = r.now(ctx); err != nil {
				return err
			}
		}
		d, err = r.diff(ctx, begin, *end, patch)
		return err
	})
	return d, err
}

// now returns the tree of the files as they are now.
func (r *repository) now(ctx context.Context) (string, error) {
	snap, err := r.snapshot(ctx)
	if err != nil {
		return "", err
	}
	return snap.tree, nil
}

func (r *repository) diff(ctx context.Context, from, to Checkpoint, patch bool) (Diff, error) {
	changes, err := r.changes(ctx, from.tree, to.tree)
	if err != nil {
		return Diff{}, err
	}
	d := Diff{From: from.ID, To: to.ID, Files: changes}
	for _, c := range changes {
		d.Added, d.Removed = d.Added+c.Added, d.Removed+c.Removed
	}
	if len(changes) > maxChanges {
		d.Files, d.Cut = changes[:maxChanges], true
	}
	if patch {
		args := append([]string{"diff-tree", "-r", "-p", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color"}, from.tree, to.tree)
		a, err := r.exec(ctx, strings.NewReader(""), args...)
		if err == nil && a.Code != 0 {
			err = gitexec.Fatal("diff-tree", a)
		}
		if err != nil {
			return d, err
		}
		d.Patch = a.Out
		if len(d.Patch) > maxPatch {
			d.Patch, d.Cut = strings.ToValidUTF8(d.Patch[:maxPatch], ""), true
		}
	}
	return d, nil
}

// changes returns what differs from one tree to another, sorted by path.
func (r *repository) changes(ctx context.Context, from, to string) ([]Change, error) {
	out, err := r.must(ctx, "", "diff-tree", "-r", "-z", "--raw", "--numstat", "--no-renames", "--no-ext-diff", "--no-textconv", from, to)
	if err != nil {
		return nil, err
	}
	changes := []Change{}
	byPath := map[string]int{}
	fields := strings.Split(out, "\x00")
	for i := 0; i < len(fields); i++ {
		field := fields[i]
		switch {
		case field == "":
		case field[0] == ':': // ":100644 100644 HASH HASH M", and the path behind it
			words := strings.Fields(field)
			if len(words) != 5 || i+1 >= len(fields) {
				return nil, fmt.Errorf("read diff of git: %q", field)
			}
			i++
			c := Change{Path: fields[i], Change: kindOf(words[0][1:], words[1], words[2] == words[3]), to: entry{path: fields[i], mode: words[1], hash: words[3]}}
			byPath[c.Path] = len(changes)
			changes = append(changes, c)
		default: // "ADDED\tREMOVED\tPATH", with - for binary files
			counts := strings.SplitN(field, "\t", 3)
			at, known := 0, false
			if len(counts) == 3 {
				at, known = byPath[counts[2]]
			}
			if !known {
				return nil, fmt.Errorf("read diff of git: %q", field)
			}
			c := &changes[at]
			c.Binary = counts[0] == "-"
			c.Added, _ = strconv.Atoi(counts[0]) // 0 for a binary file
			c.Removed, _ = strconv.Atoi(counts[1])
		}
	}
	slices.SortFunc(changes, func(a, b Change) int { return strings.Compare(a.Path, b.Path) })
	return changes, nil
}

// kindOf names a change by the modes of git.
func kindOf(from, to string, same bool) string {
	switch {
	case from == modeNone:
		return "added"
	case to == modeNone:
		return "deleted"
	case (from == modeLink) != (to == modeLink):
		return "type"
	case from != to && same:
		return "mode"
	}
	return "modified"
}
