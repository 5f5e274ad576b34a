package checkpoint

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Clones are files that share their blocks with those of the workspace, on file systems that
// can do so: they keep a content of any size without reading it. A clone has a random name,
// and stays while the index of a checkpoint names it.

func (r *repository) clonePath(id [20]byte) string {
	return filepath.Join(r.dir, "clones", hex.EncodeToString(id[:]))
}

// clone keeps the files that git does not keep, as far as the file system can. A clone that no
// index names, because the process was killed, is removed with the next old checkpoint.
func (r *repository) clone(s *scan) {
	if len(s.unkept) == 0 || os.MkdirAll(filepath.Join(r.dir, "clones"), 0o700) != nil {
		return
	}
	reader, err := openReader(r.workspace)
	if err != nil {
		return
	}
	defer reader.close()
	for i := range s.unkept {
		it := &s.unkept[i]
		if it.kept() || it.kind != kindFile {
			continue
		}
		id := newClone()
		switch err := cloneInto(r.clonePath(id), reader, it); {
		case err == nil:
			it.content = content{storeClone, id}
		case errors.Is(err, errors.ErrUnsupported):
			return
		}
	}
}

// cloneInto clones a file that is not written during it.
func cloneInto(to string, reader *folderReader, it *item) error {
	from, now, err := reader.open(it.path())
	if err != nil {
		return err
	}
	defer from.Close()
	if !now.sameFile(it.node) {
		return fmt.Errorf("%q: %w", it.path(), fs.ErrInvalid)
	}
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	err = cloneFile(f, from)
	if err == nil {
		now, err = statFile(from)
	}
	if err == nil && !now.sameFile(it.node) {
		err = fmt.Errorf("%q: %w", it.path(), fs.ErrInvalid)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(to))
	}
	return nil
}

// clones returns the clones that there are, with their sizes.
func (r *repository) clones() (map[string]int64, error) {
	entries, err := os.ReadDir(filepath.Join(r.dir, "clones"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	all := map[string]int64{}
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			all[e.Name()] = info.Size()
		}
	}
	return all, err
}

// clonesOf returns the clones that checkpoints name.
func (r *repository) clonesOf(ctx context.Context, list []Checkpoint) (map[string]bool, error) {
	var names strings.Builder
	for _, c := range list {
		for i := range c.chunks {
			fmt.Fprintf(&names, "%s:%s/%d\n", c.ref(), indexDir, i)
		}
	}
	out, err := r.must(ctx, names.String(), "cat-file", "--batch-check=%(objectname)")
	if err != nil {
		return nil, err
	}
	ids := strings.Fields(out)
	slices.Sort(ids)
	named := map[string]bool{}
	for _, id := range slices.Compact(ids) { // most are chunks of many checkpoints
		text, err := r.must(ctx, "", "cat-file", "blob", id)
		if err != nil {
			return nil, err
		}
		x := &index{}
		if err := x.decode(text); err != nil {
			return nil, err
		}
		for i := range x.folders {
			for j := range x.folders[i].nodes {
				if n := &x.folders[i].nodes[j]; n.content.store == storeClone {
					named[hex.EncodeToString(n.content.id[:])] = true
				}
			}
		}
	}
	return named, nil
}

// removeClones removes the clones that none of the checkpoints names.
func (r *repository) removeClones(ctx context.Context, list []Checkpoint) error {
	all, err := r.clones()
	if err != nil || len(all) == 0 {
		return err
	}
	named, err := r.clonesOf(ctx, list)
	if err != nil {
		return err
	}
	for name := range all {
		if !named[name] {
			err = errors.Join(err, removeIfThere(filepath.Join(r.dir, "clones", name)))
		}
	}
	return err
}

// oldClones is the size of the clones that the newest checkpoint does not name: the others
// share their blocks with files that there are.
func (r *repository) oldClones(ctx context.Context, newest Checkpoint) (size int64, err error) {
	all, err := r.clones()
	if err != nil || len(all) == 0 {
		return 0, err
	}
	named, err := r.clonesOf(ctx, []Checkpoint{newest})
	for name, n := range all {
		if !named[name] {
			size += n
		}
	}
	return size, err
}

func removeIfThere(name string) error {
	if err := os.Remove(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
