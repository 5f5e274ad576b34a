package checkpoint

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// What git packs into one file again: so many objects in files of their own, or packs.
const (
	maxLoose = 5000
	maxPacks = 40
)

// prune removes the oldest checkpoints, so that their number and size stay below the
// limits, and packs what is left. The newest one, and others of its scope, stay.
func (r *repository) prune(ctx context.Context, all []Checkpoint) (err error) {
	newest := all[len(all)-1]
	removable := slices.DeleteFunc(slices.Clone(all), func(c Checkpoint) bool {
		return c.ID == newest.ID || c.Of != "" && c.Of == newest.Of
	})
	if over := len(all) - r.s.opt.Keep; over > 0 {
		// Some more than have to, because to free their space takes time.
		n := min(len(removable), over+r.s.opt.Keep/4)
		if all, err = r.remove(ctx, all, removable[:n]); err != nil {
			return err
		}
		removable = removable[n:]
	}
	for {
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
		n := (len(removable) + 1) / 2
		if all, err = r.remove(ctx, all, removable[:n]); err != nil {
			return err
		}
		removable = removable[n:]
	}
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

// pruneRepositories removes the repositories that were used least recently, so that there
// is room for one more. One that is in use stays, and none keeps a new one from being made.
func (s *Service) pruneRepositories() error {
	entries, err := os.ReadDir(s.opt.Dir)
	if err != nil {
		return err
	}
	type used struct {
		dir string
		at  time.Time
	}
	var list []used
	for _, e := range entries {
		dir := filepath.Join(s.opt.Dir, e.Name())
		if info, err := os.Stat(filepath.Join(dir, "workspace")); err == nil {
			list = append(list, used{dir, info.ModTime()})
		}
	}
	slices.SortFunc(list, func(a, b used) int { return a.at.Compare(b.at) })
	for len(list) >= s.opt.Most {
		lock, _ := s.locks.LoadOrStore(list[0].dir, new(sync.Mutex))
		if mutex := lock.(*sync.Mutex); mutex.TryLock() {
			_ = os.RemoveAll(list[0].dir) // what cannot be deleted is tried again with the next new repository
			mutex.Unlock()
		}
		list = list[1:]
	}
	return nil
}
