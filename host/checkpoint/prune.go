package checkpoint

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/internal/fairqueue"
	"github.com/sentinel-runtime/sentinel/internal/share"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// What git packs into one file again: so many objects in files of their own, or packs.
const (
	maxLoose = 5000
	maxPacks = 40
)

// prune removes checkpoints of the principal with the most, its oldest first, so that their number and
// size stay below the limits, and packs what is left. The newest one stays, and the beginning and the
// end of its scope, so that it can be restored.
//
// A checkpoint of an agent or model has none of persons removed while theirs are at most half. Where
// it does not fit beside them, it is removed, and the error is limit.
func (r *repository) prune(ctx context.Context, all []Checkpoint) (err error) {
	newest := all[len(all)-1]
	begin, end, _ := pair(all, newest.Of) // without a pair, begin has no id
	items := func(all []Checkpoint) (list []share.Item[Checkpoint]) {
		for _, c := range all {
			list = append(list, share.Item[Checkpoint]{Value: c, Owner: c.By, Size: 1, Stays: c.ID == newest.ID || c.ID == begin.ID || end != nil && c.ID == end.ID})
		}
		return list
	}
	if over := len(all) - r.s.opt.Keep; over > 0 {
		// Some more than have to, because to free their space takes time.
		if all, err = r.remove(ctx, all, share.Beyond(items(all), int64(r.s.opt.Keep-r.s.opt.Keep/4), int64(r.s.opt.Keep/2))); err != nil {
			return err
		}
	}
	for {
		// The bytes of one checkpoint are not known: it has most of its objects in common with others.
		removable := slices.DeleteFunc(items(all), func(i share.Item[Checkpoint]) bool { return i.Stays })
		size, loose, packs, err := r.size()
		if err != nil {
			return err
		}
		old, err := r.oldClones(ctx, newest)
		if err != nil {
			return err
		}
		size += old
		if size <= r.s.opt.Bytes || len(removable) == 0 {
			if loose > maxLoose || packs > maxPacks {
				return r.pack(ctx)
			}
			return nil
		}
		if others := slices.DeleteFunc(slices.Clone(removable), func(i share.Item[Checkpoint]) bool { return i.Owner == "" }); len(others) > 0 {
			removable = others
		} else if newest.By != "" {
			if size, err = r.sizeOfPersons(ctx, all); err != nil {
				return err
			}
			if size <= r.s.opt.Bytes/2 {
				if _, err := r.remove(ctx, all, []Checkpoint{newest}); err != nil {
					return err
				}
				return &abi.Error{Code: abi.Limit, Permanent: true, Message: fmt.Sprintf("checkpoint: the files of the workspace do not fit beside the checkpoints of persons, which have half of %d MiB", r.s.opt.Bytes>>20),
					Hint: "remove files that do not belong there, or raise checkpoints.size"}
			}
		}
		if all, err = r.remove(ctx, all, share.Beyond(removable, int64(len(removable)/2), 0)); err != nil {
			return err
		}
	}
}

// sizeOfPersons returns the bytes of what the checkpoints of persons keep.
func (r *repository) sizeOfPersons(ctx context.Context, all []Checkpoint) (int64, error) {
	args := []string{"rev-list", "--objects", "--disk-usage", "--stdin"}
	var names strings.Builder
	for _, c := range all {
		if c.By == "" {
			names.WriteString(c.ref() + "\n")
		}
	}
	if names.Len() == 0 {
		return 0, nil
	}
	out, err := r.must(ctx, names.String(), args...)
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(strings.TrimSpace(out), 10, 64)
}

// remove removes checkpoints, frees the space that only they need, and returns the others.
func (r *repository) remove(ctx context.Context, all, list []Checkpoint) ([]Checkpoint, error) {
	if len(list) == 0 {
		return all, nil
	}
	var lines strings.Builder
	for _, c := range list {
		fmt.Fprintf(&lines, "delete %s%s\n", refs, c.ID)
	}
	if _, err := r.must(ctx, lines.String(), "update-ref", "--stdin"); err != nil {
		return all, err
	}
	r.s.opt.At("pruned")
	all = slices.DeleteFunc(slices.Clone(all), func(c Checkpoint) bool {
		return slices.ContainsFunc(list, func(o Checkpoint) bool { return o.ID == c.ID })
	})
	if err := r.pack(ctx); err != nil {
		return all, err
	}
	return all, r.removeClones(ctx, all)
}

// pack writes all objects that are needed into one pack and removes the others.
func (r *repository) pack(ctx context.Context) error {
	if _, err := r.must(ctx, "", "repack", "-a", "-d", "-q"); err != nil {
		return err
	}
	_, err := r.must(ctx, "", "prune", "--expire=now")
	return err
}

// size returns the bytes of the repository's objects, and how they are stored. No other
// operation is under way.
func (r *repository) size() (size int64, loose, packs int, err error) {
	err = filepath.WalkDir(filepath.Join(r.dir, "objects"), func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		size += info.Size()
		switch dir := filepath.Base(filepath.Dir(name)); {
		case len(dir) == 2:
			loose++
		case filepath.Ext(name) == ".pack":
			packs++
		}
		return nil
	})
	return size, loose, packs, err
}

// personFile is in a repository with a checkpoint of a person.
const personFile = "person"

// pruneRepositories removes repositories, so that there may be one more: those that were used least
// recently, of those without a checkpoint of a person first, see package share. One that is in use
// stays, and none keeps a new one from being made.
func (s *Service) pruneRepositories() error {
	entries, err := os.ReadDir(s.opt.Dir)
	if err != nil {
		return err
	}
	type used struct {
		share.Item[string]
		at time.Time
	}
	var list []used
	for _, e := range entries {
		dir := filepath.Join(s.opt.Dir, e.Name())
		if info, err := os.Stat(filepath.Join(dir, "workspace")); err == nil {
			owner := ""
			if _, err := os.Stat(filepath.Join(dir, personFile)); err != nil {
				owner = "others"
			}
			list = append(list, used{share.Item[string]{Value: dir, Owner: owner, Size: 1}, info.ModTime()})
		}
	}
	slices.SortFunc(list, func(a, b used) int { return a.at.Compare(b.at) })
	items := make([]share.Item[string], len(list))
	for i, u := range list {
		items[i] = u.Item
	}
	for _, dir := range share.Beyond(items, int64(s.opt.Most-1), int64(s.opt.Most/2)) {
		if leave, ok := s.lock(dir).TryEnter(fairqueue.Owner{}); ok {
			_ = os.RemoveAll(dir) // what cannot be deleted is tried again with the next new repository
			leave()
		}
	}
	return nil
}
