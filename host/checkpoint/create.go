package checkpoint

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
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
	By        string    `json:"by,omitempty" jsonschema:"agent or model that it was made for; missing for a person"`
	Undoes    string    `json:"undoes,omitempty" jsonschema:"of one that a restore made: the scope that it takes back"`
	Workspace string    `json:"workspace"`
	CreatedAt time.Time `json:"createdAt"`
	Files     int       `json:"files" jsonschema:"number of files and links whose content it keeps"`
	Uncovered Uncovered `json:"uncovered" jsonschema:"of what it keeps no content, only that it exists"`

	tree   string
	chunks int    // of its index
	index  string // hash of the ids of the chunks
	root   root
}

// A Request says what for a checkpoint is made.
type Request struct {
	Workspace string
	Key       string // a second request with it returns the same checkpoint; default none
	Of, Label string // may be empty
	By        string // agent or model that it is made for; "" is a person
}

// Create makes a checkpoint of a workspace.
func (s *Service) Create(ctx context.Context, in Request) (c Checkpoint, err error) {
	err = s.with(ctx, in.By, in.Workspace, func(r *repository) error {
		id := newID(in.Key)
		var all []Checkpoint
		now, err := r.scan(ctx, func(ctx context.Context) (base, rules *Checkpoint, err error) {
			if all, err = r.checkpoints(ctx); err != nil {
				return nil, nil, err
			}
			if i := slices.IndexFunc(all, func(c Checkpoint) bool { return c.ID == id }); i >= 0 {
				c = all[i]
				return nil, nil, errExists
			}
			if begin, _, err := pair(all, in.Of); err == nil && in.Label != Begin {
				rules = &begin
			}
			return newest(all), rules, nil
		})
		if err != nil {
			if errors.Is(err, errExists) {
				err = nil
			}
			return err
		}
		if in.By == "" {
			if err := os.WriteFile(filepath.Join(r.dir, personFile), nil, 0o600); err != nil {
				return storage(err)
			}
		}
		if c, err = r.keep(ctx, now, Checkpoint{ID: id, Of: in.Of, Label: in.Label, By: in.By}); err != nil {
			return err
		}
		return r.prune(ctx, append(all, c))
	})
	return c, err
}

// errExists ends a scan for a checkpoint that there is already.
var errExists = errors.New("the checkpoint exists")

// newest returns the last of the checkpoints, nil if there are none.
func newest(all []Checkpoint) *Checkpoint {
	if len(all) == 0 {
		return nil
	}
	return &all[len(all)-1]
}

// newID returns the id of a checkpoint: that of the key, or a new one.
func newID(key string) string {
	if key == "" {
		key = rand.Text()
	}
	sum := sha256.Sum256([]byte(key))
	return "c-" + hex.EncodeToString(sum[:6])
}

// refs is where the references of checkpoints are, nowRef that of the state that was compared
// last.
const (
	refs   = "refs/checkpoints/"
	nowRef = "refs/now"
)

func (c *Checkpoint) ref() string {
	if c.ID == "" {
		return nowRef
	}
	return refs + c.ID
}

// keep makes a checkpoint of what a scan has found. It is there when its reference is.
func (r *repository) keep(ctx context.Context, now *scan, c Checkpoint) (Checkpoint, error) {
	c.Workspace, c.CreatedAt = r.workspace, time.Now().UTC()
	return r.commit(ctx, now, c)
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
		message := stored{}
		if json.Unmarshal([]byte(fields[i+2]), &message) != nil {
			message = stored{}
		}
		c = message.Checkpoint
		c.ID, c.tree, c.chunks, c.index, c.root = id, fields[i+1], message.Chunks, message.Index, message.Root
		all = append(all, c)
	}
	slices.SortStableFunc(all, func(a, b Checkpoint) int { return a.CreatedAt.Compare(b.CreatedAt) })
	return all, nil
}

// List returns the checkpoints of a workspace, the oldest first; with a scope only those
// of it. by is the agent or model that asks, "" a person, as in all operations.
func (s *Service) List(ctx context.Context, by, workspace, of string) (list []Checkpoint, err error) {
	err = s.with(ctx, by, workspace, func(r *repository) error {
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

// pairOf returns all checkpoints, and the pair of a scope, end nil if there is none.
func (r *repository) pairOf(ctx context.Context, of string) (all []Checkpoint, begin Checkpoint, end *Checkpoint, err error) {
	if all, err = r.checkpoints(ctx); err != nil {
		return nil, begin, nil, err
	}
	begin, end, err = pair(all, of)
	return all, begin, end, err
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
