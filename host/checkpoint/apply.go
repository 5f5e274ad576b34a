package checkpoint

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/internal/atomicfile"
)

// maxBatch limits the contents that are in memory at one time, in bytes; a single one may
// be larger.
const maxBatch = 32 << 20

// restorePrefix begins the names of temporary files. No other operation on the workspace
// makes such names while a restore executes.
const restorePrefix = atomicfile.TempPrefix + "restore-"

// clean removes temporary files that a restore which was killed left.
func (p *restore) clean(left []string) error {
	root, err := os.OpenRoot(p.workspace)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, name := range left {
		if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// apply gives the files of the workspace the wanted state. Each is replaced atomically,
// and no link is followed.
func (p *restore) apply(ctx context.Context) error {
	root, err := os.OpenRoot(p.workspace)
	if err != nil {
		return err
	}
	defer root.Close()
	var written []Change
	for _, c := range slices.Backward(p.changes) { // a folder after what is in it
		if c.to.mode != modeNone {
			written = append(written, c)
			continue
		}
		if err := remove(root, c.Path); err != nil {
			return err
		}
		p.s.opt.At("removed")
	}
	slices.Reverse(written)
	sizes, err := p.sizes(ctx, written)
	if err != nil {
		return err
	}
	for len(written) > 0 {
		n, total := 0, int64(0)
		for n < len(written) && (n == 0 || total+sizes[n] <= maxBatch) {
			total, n = total+sizes[n], n+1
		}
		if err := p.applyBatch(ctx, root, written[:n]); err != nil {
			return err
		}
		written, sizes = written[n:], sizes[n:]
	}
	return nil
}

// remove removes a file, and the folders that are empty then.
func remove(root *os.Root, name string) error {
	if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if root.Remove(dir) != nil {
			break // it is not empty, or not there
		}
	}
	return nil
}

// hashes returns the lines with which cat-file is asked for contents.
func hashes(list []Change) string {
	var lines strings.Builder
	for _, c := range list {
		lines.WriteString(c.to.hash + "\n")
	}
	return lines.String()
}

// sizes returns the sizes of the contents.
func (p *restore) sizes(ctx context.Context, list []Change) ([]int64, error) {
	out, err := p.must(ctx, hashes(list), "cat-file", "--batch-check=%(objectsize)")
	if err != nil {
		return nil, err
	}
	sizes := make([]int64, len(list))
	lines := strings.Split(out, "\n")
	for i := range list {
		if i >= len(lines) {
			return nil, fmt.Errorf("read %q: git ended early", list[i].Path)
		}
		if sizes[i], err = strconv.ParseInt(lines[i], 10, 64); err != nil {
			return nil, fmt.Errorf("read %q: %s", list[i].Path, lines[i]) // "HASH missing"
		}
	}
	return sizes, nil
}

// applyBatch writes files whose contents fit into memory.
func (p *restore) applyBatch(ctx context.Context, root *os.Root, list []Change) error {
	rest, err := p.must(ctx, hashes(list), "cat-file", "--batch=%(objectsize)")
	if err != nil {
		return err
	}
	for _, c := range list {
		head, behind, _ := strings.Cut(rest, "\n")
		size, err := strconv.Atoi(head)
		if err != nil || len(behind) < size+1 {
			return fmt.Errorf("read %q: %s", c.Path, head)
		}
		if err := write(root, c, behind[:size]); err != nil {
			return fmt.Errorf("restore %q: %w", c.Path, err)
		}
		p.s.opt.At("replaced")
		rest = behind[size+1:]
	}
	return nil
}

// write replaces a file or link. What was there keeps the bits of its mode besides the
// executable one, and another name of it, a hard link, keeps its content.
func write(root *os.Root, c Change, data string) error {
	if err := makeParents(root, path.Dir(c.Path)); err != nil {
		return err
	}
	temp := path.Join(path.Dir(c.Path), restorePrefix+rand.Text()+atomicfile.TempSuffix)
	if c.to.mode == modeLink {
		if err := root.Symlink(data, temp); err != nil {
			return err
		}
		return replace(root, temp, c.Path)
	}
	perm := fs.FileMode(0o666)
	if c.to.mode == modeProgram {
		perm = 0o777
	}
	f, err := root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return err
	}
	_, err = f.WriteString(data)
	if now, lookErr := root.Lstat(c.Path); err == nil && lookErr == nil && now.Mode().IsRegular() {
		keep := now.Mode().Perm() &^ 0o111
		if c.to.mode == modeProgram {
			keep |= keep >> 2 & 0o111 // for all who may read it
		}
		err = f.Chmod(keep)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, root.Remove(temp))
	}
	return replace(root, temp, c.Path)
}

// replace renames a temporary file. An empty folder in its place is removed.
func replace(root *os.Root, temp, name string) error {
	if info, err := root.Lstat(name); err == nil && info.IsDir() {
		if err := root.Remove(name); err != nil {
			return errors.Join(err, root.Remove(temp))
		}
	}
	if err := root.Rename(temp, name); err != nil {
		return errors.Join(err, root.Remove(temp))
	}
	return nil
}

// makeParents makes the folders of a file. A link among them is an error: what is written
// through it would be elsewhere.
func makeParents(root *os.Root, dir string) error {
	if dir == "." {
		return nil
	}
	at := ""
	for part := range strings.SplitSeq(dir, "/") {
		at = path.Join(at, part)
		info, err := root.Lstat(at)
		if errors.Is(err, fs.ErrNotExist) {
			if err := root.Mkdir(at, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		if !info.IsDir() {
			return fmt.Errorf("%q is not a folder", at)
		}
	}
	return nil
}
