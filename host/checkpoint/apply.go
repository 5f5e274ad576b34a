package checkpoint

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/sentinel-runtime/sentinel/host/internal/atomicfile"
	"github.com/sentinel-runtime/sentinel/host/internal/gitexec"
)

// maxBatch limits the contents that are in memory at one time, in bytes; a single one of at
// most maxWhole may exceed it.
const maxBatch = 32 << 20

// restorePrefix begins the names of temporary files. No other operation on the workspace
// makes such names while a restore executes.
const restorePrefix = atomicfile.TempPrefix + "restore-"

// clean removes temporary files that a restore which was killed left.
func (p *restore) clean() error {
	root, err := os.OpenRoot(p.workspace)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, name := range p.now.left {
		if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// An applier executes the steps. A step that fails is refused, and the others go on.
type applier struct {
	*restore
	root   *os.Root
	opened map[string]*node // folders that were made writable, with the state to return to
}

// apply gives the paths of the workspace the wanted state. Each file is replaced atomically where
// the system can exchange two files, no link is followed, and what is not as the checkpoint of
// before has it stays, also if it is written between the check and the replacement.
func (p *restore) apply(ctx context.Context) error {
	root, err := os.OpenRoot(p.workspace)
	if err != nil {
		return err
	}
	defer root.Close()
	a := &applier{restore: p, root: root, opened: map[string]*node{}}
	for _, s := range slices.Backward(p.steps) { // a folder after what is in it
		if s.from != nil && !s.meta && (s.to == nil || isFolder(s.from) || isFolder(s.to)) {
			a.try(s, a.remove)
		}
	}
	var written []*step
	for _, s := range p.steps {
		switch {
		case s.done || s.to == nil:
		case isFolder(s.to) && !s.meta:
			a.try(s, a.makeFolder)
		case !s.meta:
			written = append(written, s)
		case !isFolder(s.to):
			a.try(s, a.setMeta)
		}
	}
	if err := a.writeAll(ctx, written); err != nil {
		return errors.Join(err, a.closeFolders())
	}
	for _, s := range slices.Backward(p.steps) {
		if isFolder(s.to) && !s.done {
			a.try(s, a.setMeta)
		}
	}
	return a.closeFolders()
}

// try executes a part of a step on a path that is as it was kept.
func (a *applier) try(s *step, do func(*step) error) {
	err := a.check(s)
	if s.done {
		return
	}
	if err == nil {
		a.unlock(path.Dir(s.path))
		err = do(s)
	}
	if err != nil {
		s.done = true
		a.refuse(s.path, reasonOf(err))
	}
}

// check returns an error if the step would destroy what the checkpoint of before does not
// have. A path that has its state already is done, such as another name of a file.
func (a *applier) check(s *step) error {
	now, err := a.reader.stat(s.path)
	if err != nil {
		return err
	}
	if s.done = s.to == nil && now == nil || s.to != nil && !isFolder(s.to) && a.same(s.path, s.to, now); s.done || now == nil {
		return nil
	}
	switch from := s.from; {
	case isFolder(now) && (isFolder(from) || isFolder(s.to)): // a folder is removed only if it is empty
	case from == nil || from.kind != now.kind || !s.meta && !a.sameContent(s.path, from, now):
		return errMeanwhile // another mode may come from a step for another name of the file
	case !s.meta && !from.kept() && from.kind != kindOther:
		return errUnkept
	}
	return nil
}

var (
	errMeanwhile = errors.New("it was changed meanwhile")
	errUnkept    = errors.New("the present content could not be kept")
)

// reasonOf leaves out the operation and the path of an error.
func reasonOf(err error) string {
	var inPath *fs.PathError
	if errors.As(err, &inPath) {
		err = inPath.Err
	}
	return err.Error()
}

// unlock makes a folder writable for its owner until the end.
func (a *applier) unlock(dir string) {
	info, err := a.root.Lstat(dir)
	if dir == "." || err != nil || !info.IsDir() || info.Mode()&0o300 == 0o300 || a.opened[dir] != nil {
		return
	}
	n := a.now.find(dir)
	if n == nil || a.root.Chmod(dir, info.Mode()|0o700) != nil {
		return // then the step fails
	}
	a.opened[dir] = n
}

// closeFolders gives the folders that were made writable their mode, those inside others first. One
// that was removed may be behind a link by now, at a path of another folder: the reader follows none.
func (a *applier) closeFolders() (err error) {
	a.reader.forget()
	for _, dir := range slices.Backward(slices.Sorted(maps.Keys(a.opened))) {
		mode := a.opened[dir].mode
		if s := a.byPath[dir]; s != nil && s.to != nil {
			mode = s.to.mode
		}
		if now, statErr := a.reader.stat(dir); statErr == nil && now != nil && isFolder(now) {
			err = errors.Join(err, a.root.Chmod(dir, fileMode(mode)))
		}
	}
	return err
}

// remove removes what is to be gone, or clears the path. A folder with something in it that is to
// stay stays.
func (a *applier) remove(s *step) error {
	a.s.opt.At("removing")
	var err error
	if isFolder(s.from) {
		err = a.root.Remove(s.path)
		a.reader.forget()
	} else {
		err = a.moveAside(s)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = nil
	case isFolder(s.from) && s.to == nil && (errors.Is(err, syscall.ENOTEMPTY) || errors.Is(err, fs.ErrExist)):
		err = nil
	}
	if s.done = s.to == nil; err == nil {
		a.s.opt.At("removed")
	}
	return err
}

func (a *applier) makeFolder(s *step) error {
	a.reader.forget()
	err := a.root.Mkdir(s.path, 0o700)
	if errors.Is(err, fs.ErrExist) {
		err = nil // a folder, as the check has seen
	}
	a.s.opt.At("made")
	return err
}

// setMeta sets the owner and the mode of a file or folder that is there.
func (a *applier) setMeta(s *step) error {
	now, err := a.reader.stat(s.path)
	if err != nil || now == nil || now.kind != s.to.kind {
		return errors.Join(err, errMeanwhile)
	}
	chowned := now.uid != s.to.uid || now.gid != s.to.gid
	if chowned {
		if err := a.root.Lchown(s.path, int(s.to.uid), int(s.to.gid)); err != nil {
			return err
		}
	}
	// A change of the owner may clear setuid and setgid, so the mode that was read no longer holds.
	if s.to.kind == kindLink || !chowned && now.mode == s.to.mode {
		return nil
	}
	delete(a.opened, s.path)
	return a.root.Chmod(s.path, fileMode(s.to.mode))
}

// fileMode converts a mode to that of Go.
func fileMode(mode uint32) fs.FileMode {
	m := fs.FileMode(mode & 0o777)
	for bit, flag := range map[uint32]fs.FileMode{0o4000: fs.ModeSetuid, 0o2000: fs.ModeSetgid, 0o1000: fs.ModeSticky} {
		if mode&bit != 0 {
			m |= flag
		}
	}
	return m
}

// writeAll writes files and links: those in git in batches that fit into memory, the others
// one by one.
func (a *applier) writeAll(ctx context.Context, list []*step) error {
	for len(list) > 0 {
		n, total := 0, int64(0)
		for n < len(list) && list[n].small() && (n == 0 || total+list[n].to.size <= maxBatch) {
			total, n = total+list[n].to.size, n+1
		}
		if n > 0 {
			if err := a.writeBatch(ctx, list[:n]); err != nil {
				return err
			}
			list = list[n:]
			continue
		}
		s := list[0]
		a.try(s, func(*step) error { return a.write(s, func(f *os.File) error { return a.copyTo(ctx, f, s.to) }) })
		list = list[1:]
	}
	return nil
}

// small reports whether a content is read into memory.
func (s *step) small() bool {
	return s.to.kind == kindLink || s.to.content.store == storeGit && s.to.size <= maxWhole
}

// copyTo copies a clone or a large blob to a file.
func (a *applier) copyTo(ctx context.Context, f *os.File, n *node) error {
	if n.content.store == storeClone {
		clone, err := os.Open(a.clonePath(n.content.id))
		if err != nil {
			return err
		}
		defer clone.Close()
		if err := cloneFile(f, clone); !errors.Is(err, errors.ErrUnsupported) {
			return err
		}
		_, err = io.Copy(f, clone)
		return err
	}
	answer, err := a.execTo(ctx, strings.NewReader(""), f, "cat-file", "blob", hex.EncodeToString(n.content.id[:]))
	if err == nil && answer.Code != 0 {
		err = gitexec.Fatal("cat-file", answer)
	}
	return err
}

// writeBatch writes files whose contents fit into memory.
func (a *applier) writeBatch(ctx context.Context, list []*step) error {
	var lines strings.Builder
	for _, s := range list {
		fmt.Fprintf(&lines, "%x\n", s.to.content.id)
	}
	rest, err := a.must(ctx, lines.String(), "cat-file", "--batch=%(objectsize)")
	if err != nil {
		return err
	}
	for _, s := range list {
		head, behind, _ := strings.Cut(rest, "\n")
		var size int
		if _, err := fmt.Sscanf(head, "%d", &size); err != nil || len(behind) < size+1 {
			return fmt.Errorf("read %q: %s", s.path, head) // "HASH missing"
		}
		a.try(s, func(*step) error {
			if s.to.kind == kindLink {
				return a.link(s, behind[:size])
			}
			return a.write(s, func(f *os.File) error { _, err := f.WriteString(behind[:size]); return err })
		})
		a.s.opt.At("replaced")
		rest = behind[size+1:]
	}
	return nil
}

func (s *step) temp() string {
	return path.Join(path.Dir(s.path), restorePrefix+rand.Text()+atomicfile.TempSuffix)
}

func (a *applier) link(s *step, target string) error {
	temp := s.temp()
	if err := a.root.Symlink(target, temp); err != nil {
		return err
	}
	info, err := a.root.Lstat(temp)
	if err == nil {
		err = own(info, s.to, func(uid, gid int) error { return a.root.Lchown(temp, uid, gid) })
	}
	return a.replace(s, temp, err)
}

// write replaces a file. Another name of it, a hard link, keeps its content.
func (a *applier) write(s *step, fill func(*os.File) error) error {
	temp := s.temp()
	f, err := a.root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	err = fill(f)
	if info, statErr := f.Stat(); err == nil {
		if err = statErr; err == nil {
			err = own(info, s.to, f.Chown)
		}
	}
	if err == nil {
		err = f.Chmod(fileMode(s.to.mode))
	}
	if err == nil {
		err = f.Sync()
	}
	return a.replace(s, temp, errors.Join(err, f.Close()))
}

// replace gives a path the content of a temporary file that was written without an error. What
// was there is exchanged with it and compared after: a file that the user has changed or saved again
// since the check gets its path back, and the step is refused.
func (a *applier) replace(s *step, temp string, err error) error {
	var own fs.FileInfo
	if err == nil {
		own, err = a.root.Lstat(temp)
	}
	if err != nil {
		return errors.Join(err, a.root.Remove(temp))
	}
	a.s.opt.At("filled")
	err = a.exchange(temp, s.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		// Nothing is at the path: a file that the user makes now stays.
		if err = a.place(temp, s.path); err != nil {
			return errors.Join(err, a.root.Remove(temp))
		}
		s.done = true
		return nil
	case err != nil:
		return errors.Join(err, a.root.Remove(temp))
	}
	a.s.opt.At("exchanged")
	if err = a.unchanged(s, temp); err == nil {
		s.done = true
		return a.root.Remove(temp)
	}
	return and(err, a.giveBack(s.path, temp, own))
}

// and adds a second error to the text of the first.
func and(err, more error) error {
	if more == nil {
		return err
	}
	return fmt.Errorf("%w; %w", err, more)
}

// unchanged returns an error if a file that was moved aside is not what the step replaces.
func (a *applier) unchanged(s *step, aside string) error {
	now, err := a.reader.stat(aside)
	switch from := s.from; {
	case err != nil:
		return err
	case now == nil || from == nil || now.kind != from.kind || isFolder(now):
		return errMeanwhile
	case now.size > maxReread && now.size == from.size && now.ino == from.ino && now.mtime == from.mtime: // a rename has changed its ctime
	case !a.sameContent(aside, from, now):
		return errMeanwhile
	}
	return nil
}

// maxReread is up to which size a file that was moved aside is read again, whatever its times.
const maxReread = 1 << 20

// giveBack gives a file that was moved aside its path back, where the restore has put own. If the
// user has written the path once more, that file stays and the one aside is kept beside it.
func (a *applier) giveBack(name, aside string, own fs.FileInfo) error {
	if now, err := a.root.Lstat(name); err == nil && os.SameFile(now, own) {
		if err := a.exchange(aside, name); err != nil {
			return a.keepAside(name, aside, err)
		}
		if now, err := a.root.Lstat(aside); err == nil && os.SameFile(now, own) {
			return a.root.Remove(aside)
		}
		return a.keepAside(name, aside, nil) // what the user wrote between the two
	}
	if err := a.place(aside, name); !errors.Is(err, fs.ErrExist) {
		return a.keepAside(name, aside, err)
	}
	return a.keepAside(name, aside, nil)
}

// keepAside gives a file of the user that lost its path a name that no restore removes, and
// returns an error that says where it is. One that has its path again has no name aside.
func (a *applier) keepAside(name, aside string, err error) error {
	if _, gone := a.root.Lstat(aside); errors.Is(gone, fs.ErrNotExist) {
		return err
	}
	kept := name + ".kept-" + rand.Text()
	if failed := a.root.Rename(aside, kept); failed != nil {
		return errors.Join(err, failed)
	}
	said := fmt.Errorf("a version that was written meanwhile is in %q", kept)
	if err != nil {
		return and(err, said)
	}
	return said
}

// place moves a file to a path at which nothing is; otherwise the error is [fs.ErrExist] and the
// file stays where it was.
func (a *applier) place(from, to string) error {
	err := a.renameNew(from, to)
	if !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	if err := a.root.Link(from, to); err != nil {
		return err
	}
	return a.root.Remove(from)
}

// moveAside moves what a step removes to a temporary name, compares it, and removes it. What the
// user has written since the check gets its path back.
func (a *applier) moveAside(s *step) error {
	aside := s.temp()
	if err := a.root.Rename(s.path, aside); err != nil {
		return err
	}
	a.s.opt.At("aside")
	err := a.unchanged(s, aside)
	if err == nil {
		return a.root.Remove(aside)
	}
	return and(err, a.giveBack(s.path, aside, nil))
}

// exchangeByNames is exchange where the system cannot do it in one step: for a moment nothing is
// at the path other.
func (a *applier) exchangeByNames(one, other string) error {
	third := path.Join(path.Dir(one), restorePrefix+rand.Text()+atomicfile.TempSuffix)
	if err := a.root.Rename(other, third); err != nil {
		return err
	}
	if err := a.place(one, other); err != nil {
		return errors.Join(err, a.place(third, other))
	}
	return a.root.Rename(third, one)
}
