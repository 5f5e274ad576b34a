package checkpoint

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Labels of the checkpoints of a pair.
const (
	Begin = "begin"
	End   = "end"
)

// A Checkpoint describes one.
type Checkpoint struct {
	ID        string    `json:"id"`
	Of        string    `json:"of,omitempty" jsonschema:"scope: the run, or the restore, that it was made for"`
	Label     string    `json:"label,omitempty" jsonschema:"begin and end are the pair of a scope"`
	Workspace string    `json:"workspace"`
	CreatedAt time.Time `json:"createdAt"`
	Files     int       `json:"files" jsonschema:"number of files that it covers"`
	Uncovered Uncovered `json:"uncovered" jsonschema:"what it does not cover"`

	tree string
}

// A Request says what for a checkpoint is made.
type Request struct {
	Workspace string
	Key       string // a second request with it returns the same checkpoint; default none
	Of, Label string // may be empty
}

// Create makes a checkpoint of a workspace.
func (s *Service) Create(ctx context.Context, in Request) (c Checkpoint, err error) {
	err = s.with(in.Workspace, func(r *repository) error {
		all, err := r.checkpoints(ctx)
		if err != nil {
			return err
		}
		id := newID(in.Key)
		if i := slices.IndexFunc(all, func(c Checkpoint) bool { return c.ID == id }); i >= 0 {
			c = all[i]
			return nil
		}
		snap, err := r.snapshot(ctx)
		if err != nil {
			return err
		}
		if c, err = r.keep(ctx, snap, id, in.Of, in.Label); err != nil {
			return err
		}
		return r.prune(ctx, append(all, c))
	})
	return c, err
}

// newID returns the id of a checkpoint: that of the key, or a new one.
func newID(key string) string {
	if key == "" {
		key = rand.Text()
	}
	sum := sha256.Sum256([]byte(key))
	return "c-" + hex.EncodeToString(sum[:6])
}

// keep makes a checkpoint of a snapshot. It is there when its reference is.
func (r *repository) keep(ctx context.Context, snap *snapshot, id, of, label string) (Checkpoint, error) {
	c := Checkpoint{
		ID: id, Of: of, Label: label, Workspace: r.workspace, CreatedAt: time.Now().UTC(), Files: snap.files, Uncovered: snap.Uncovered, tree: snap.tree,
	}
	text, err := json.Marshal(c)
	if err != nil {
		return c, err
	}
	commit, err := r.must(ctx, string(text), "commit-tree", c.tree, "-F", "-")
	if err != nil {
		return c, err
	}
	r.s.opt.At("committed")
	_, err = r.must(ctx, "", "update-ref", "refs/checkpoints/"+id, strings.TrimSpace(commit))
	r.s.opt.At("referenced")
	return c, err
}

// checkpoints returns the checkpoints of the workspace, the oldest first. One whose metadata
// cannot be read is left out, and removed when it is the oldest.
func (r *repository) checkpoints(ctx context.Context) ([]Checkpoint, error) {
	out, err := r.must(ctx, "", "for-each-ref", "--format=%(refname:lstrip=2)%00%(tree)%00%(contents:subject)%00", "refs/checkpoints")
	if err != nil {
		return nil, err
	}
	fields := strings.Split(out, "\x00")
	var all []Checkpoint
	for i := 0; i+2 < len(fields); i += 3 {
		c := Checkpoint{ID: strings.TrimPrefix(fields[i], "\n"), tree: fields[i+1]}
		id := c.ID
		if json.Unmarshal([]byte(fields[i+2]), &c) != nil {
			c = Checkpoint{}
		}
		c.ID, c.tree = id, fields[i+1]
		all = append(all, c)
	}
	slices.SortStableFunc(all, func(a, b Checkpoint) int { return a.CreatedAt.Compare(b.CreatedAt) })
	return all, nil
}

// List returns the checkpoints of a workspace, the oldest first; with a scope only those
// of it.
func (s *Service) List(ctx context.Context, workspace, of string) (list []Checkpoint, err error) {
	err = s.with(workspace, func(r *repository) error {
		list, err = r.checkpoints(ctx)
		list = slices.DeleteFunc(list, func(c Checkpoint) bool { return of != "" && c.Of != of })
		return err
	})
	return list, err
}

// find returns the checkpoint with an id, or the only one whose id begins with it.
func find(all []Checkpoint, id string) (Checkpoint, error) {
	var found []Checkpoint
	for _, c := range all {
		if c.ID == id {
			return c, nil
		}
		if id != "" && strings.HasPrefix(c.ID, id) {
			found = append(found, c)
		}
	}
	if len(found) == 1 {
		return found[0], nil
	}
	return Checkpoint{}, &abi.Error{Code: abi.NotFound, Permanent: true, Field: "checkpoint", Message: fmt.Sprintf("no checkpoint %q of this workspace", id), Hint: "checkpoint/list shows them; the oldest ones are removed"}
}

// pair returns the checkpoints of a scope: the first with the label begin, and the last
// with the label end, if there is one.
func pair(all []Checkpoint, of string) (begin Checkpoint, end *Checkpoint, err error) {
	i := slices.IndexFunc(all, func(c Checkpoint) bool { return c.Of == of && c.Label == Begin })
	if i < 0 || of == "" {
		return begin, nil, &abi.Error{
			Code: abi.NotFound, Permanent: true, Field: "of", Message: fmt.Sprintf("%s has no checkpoint of this workspace", of),
			Hint: "checkpoint/list shows those that there are; the oldest ones are removed",
		}
	}
	for j := range all {
		if all[j].Of == of && all[j].Label == End {
			end = &all[j]
		}
	}
	return all[i], end, nil
}
