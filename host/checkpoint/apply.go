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
func (a *applier) clean() error {
	for _, name := range a.now.left {
		dir, err := a.enter(name)
		if err == nil {
			err = dir.remove(path.Base(name))
		}
		if err != nil && !gone(err) && !errors.Is(err, errMeanwhile) {
			return err
		}
	}
	return nil
}

// An applier executes the steps. A step that fails is refused, and the others go on.
type applier struct {
	*restore
	made   map[string]fileID // folders that the restore has made
	opened map[string]*node  // folders that were made writable, with the state to return to
}

func (p *restore) applier() *applier {
	return &applier{restore: p, made: map[string]fileID{}, opened: map[string]*node{}}
}

// enter opens the folder that a path is in, and everything about the path is done through that: between
// a look at a folder and a change in it, a command could put a link in its place, to a folder whose files
// others execute. The folder stays open until the next call.
func (a *applier) enter(name string) (*openedFolder, error) {
	dir, _ := splitPath(name)
	return a.folder(dir)
}

// folder is enter for the path of the folder itself. It must be the one that the walk has read, or that
// this restore has made.
func (a *applier) folder(name string) (*openedFolder, error) {
	a.reader.forget() // what is at the path may be another one since the last step
	dir, err := a.reader.folder(name)
	if err != nil {
		return nil, err
	}
	_, id, err := dir.itself()
	if err != nil {
		return nil, err
	}
	want, known := a.made[name]
	if read := a.now.folder(name); !known && read != nil {
		want, known = read.id, true
	}
	if !known || !id.same(want) {
		return nil, errMeanwhile
	}
	return dir, nil
}

// apply gives the paths of the workspace the wanted state. Each file is replaced atomically where
// the system can exchange two files, no link is followed, and what is not as the checkpoint of
// before has it stays, also if it is written between the check and the replacement.
func (a *applier) apply(ctx context.Context) error {
	for _, s := range slices.Backward(a.steps) { // a folder after what is in it
		if s.from != nil && !s.meta && (s.to == nil || isFolder(s.from) || isFolder(s.to)) {
			a.try(s, a.remove)
		}
	}
	var written []*step
	for _, s := range a.steps {
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
	for _, s := range slices.Backward(a.steps) {
		if isFolder(s.to) && !s.done {
			a.try(s, a.setMeta)
		}
	}
	return a.closeFolders()
}

// try executes a part of a step on a path that is as it was kept.
func (a *applier) try(s *step, do func(dir *openedFolder, s *step) error) {
	dir, err := a.enter(s.path)
	switch {
	case err == nil:
		if err = a.check(s); s.done {
			return
		}
	case errors.Is(err, fs.ErrNotExist) && s.to == nil: // it was removed with its folder
		s.done = true
		return
	case gone(err):
		err = errMeanwhile
	}
	if err == nil {
		at, _ := splitPath(s.path)
		a.unlock(dir, at)
		err = do(dir, s)
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
	case from == nil || from.kind != now.kind || !s.meta && !a.untouched(s.path, from, now):
		return errMeanwhile // another mode may come from a step for another name of the file
	case !s.meta && !from.kept() && from.kind != kindOther:
		return errUnkept
	}
	return nil
}

var (
	errMeanwhile = errors.New("it was changed meanwhile")
	errUnkept    = errors.New("the present content could not be kept")
	errMounted   = errors.New("something else is mounted there")
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
func (a *applier) unlock(dir *openedFolder, name string) {
	state, _, err := dir.itself()
	if name == "" || err != nil || state.mode&0o300 == 0o300 || a.opened[name] != nil {
		return
	}
	n := a.now.find(name)
	if n == nil || dir.setMode(state.mode|0o700) != nil {
		return // then the step fails
	}
	a.opened[name] = n
}

// closeFolders gives the folders that were made writable their mode, those inside others first. Those
// that are removed or replaced by now have none to return to.
func (a *applier) closeFolders() (err error) {
	for _, name := range slices.Backward(slices.Sorted(maps.Keys(a.opened))) {
		mode := a.opened[name].mode
		if s := a.byPath[name]; s != nil && s.to != nil {
			mode = s.to.mode
		}
		if dir, replaced := a.folder(name); replaced == nil {
			err = errors.Join(err, dir.setMode(mode))
		}
	}
	return err
}

// remove removes what is to be gone, or clears the path. A folder with something in it that is to
// stay stays.
func (a *applier) remove(dir *openedFolder, s *step) error {
	a.s.opt.At("removing")
	var err error
	if isFolder(s.from) {
		err = dir.removeFolder(path.Base(s.path))
	} else {
		err = a.moveAside(dir, s)
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

func (a *applier) makeFolder(dir *openedFolder, s *step) error {
	err := dir.makeFolder(path.Base(s.path))
	if err != nil && !errors.Is(err, fs.ErrExist) { // a folder that is there is one, as the check has seen
		return err
	}
	sub, err := dir.open(path.Base(s.path))
	if err != nil {
		return err
	}
	_, id, err := sub.itself()
	sub.close()
	a.made[s.path] = id
	a.s.opt.At("made")
	return err
}

// setMeta sets the owner and the mode of a file or folder that is there.
func (a *applier) setMeta(dir *openedFolder, s *step) error {
	name := path.Base(s.path)
	now, err := dir.stat(name)
	if err != nil || now.kind != s.to.kind {
		return errors.Join(err, errMeanwhile)
	}
	if !isFolder(&now) && dir.mounted(name) { // the plan looks at folders; another content cannot be put there
		return errMounted
	}
	chowned := now.uid != s.to.uid || now.gid != s.to.gid
	if chowned {
		if err := dir.chown(name, s.to.uid, s.to.gid); err != nil {
			return err
		}
	}
	// A change of the owner may clear setuid and setgid, so the mode that was read no longer holds.
	if s.to.kind == kindLink || !chowned && now.mode == s.to.mode {
		return nil
	}
	delete(a.opened, s.path)
	return dir.chmod(name, s.to.mode)
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
		a.try(s, func(dir *openedFolder, s *step) error {
			return a.write(dir, s, func(f *os.File) error { return a.copyTo(ctx, f, s.to) })
		})
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
		a.try(s, func(dir *openedFolder, s *step) error {
			if s.to.kind == kindLink {
				return a.link(dir, s, behind[:size])
			}
			return a.write(dir, s, func(f *os.File) error { _, err := f.WriteString(behind[:size]); return err })
		})
		a.s.opt.At("replaced")
		rest = behind[size+1:]
	}
	return nil
}

// tempName returns a new name of a temporary file.
func tempName() string { return restorePrefix + rand.Text() + atomicfile.TempSuffix }

func (a *applier) link(dir *openedFolder, s *step, target string) error {
	temp := tempName()
	if err := dir.symlink(target, temp); err != nil {
		return err
	}
	now, err := dir.stat(temp)
	if err == nil && (now.uid != s.to.uid || now.gid != s.to.gid) {
		err = dir.chown(temp, s.to.uid, s.to.gid)
	}
	return a.replace(dir, s, temp, err)
}

// write replaces a file. Another name of it, a hard link, keeps its content.
func (a *applier) write(dir *openedFolder, s *step, fill func(*os.File) error) error {
	temp := tempName()
	f, err := dir.create(temp)
	if err != nil {
		return err
	}
	err = fill(f)
	if now, statErr := statFile(f); err == nil {
		if err = statErr; err == nil && (now.uid != s.to.uid || now.gid != s.to.gid) {
			err = f.Chown(int(s.to.uid), int(s.to.gid))
		}
	}
	if err == nil {
		err = f.Chmod(fileMode(s.to.mode))
	}
	if err == nil {
		err = f.Sync()
	}
	return a.replace(dir, s, temp, errors.Join(err, f.Close()))
}

// replace gives a path the content of a temporary file that was written without an error. What
// was there is exchanged with it and compared after: a file that the user has changed or saved again
// since the check gets its path back, and the step is refused.
func (a *applier) replace(dir *openedFolder, s *step, temp string, err error) error {
	name, own := path.Base(s.path), fileID{}
	if err == nil {
		own, err = dir.id(temp)
	}
	if err != nil {
		return errors.Join(err, dir.remove(temp))
	}
	a.s.opt.At("filled")
	err = dir.exchange(temp, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		// Nothing is at the path: a file that the user makes now stays.
		if err = dir.place(temp, name); err != nil {
			return errors.Join(err, dir.remove(temp))
		}
		s.done = true
		return nil
	case err != nil:
		return errors.Join(err, dir.remove(temp))
	}
	a.s.opt.At("exchanged")
	if err = a.unchanged(s, temp); err == nil {
		s.done = true
		return dir.remove(temp)
	}
	return and(err, giveBack(dir, s, temp, &own))
}

// and adds a second error to the text of the first.
func and(err, more error) error {
	if more == nil {
		return err
	}
	return fmt.Errorf("%w; %w", err, more)
}

// unchanged returns an error if a file that was moved aside in its folder is not what the step replaces.
func (a *applier) unchanged(s *step, aside string) error {
	at, _ := splitPath(s.path)
	aside = join(at, aside)
	now, err := a.reader.stat(aside)
	switch from := s.from; {
	case err != nil:
		return err
	case now == nil || from == nil || now.kind != from.kind || isFolder(now):
		return errMeanwhile
	case now.size > maxReread && now.size == from.size && now.ino == from.ino && now.mtime == from.mtime: // a rename has changed its ctime
	case !a.untouched(aside, from, now):
		return errMeanwhile
	}
	return nil
}

// maxReread is up to which size a file that was moved aside is read again, whatever its times.
const maxReread = 1 << 20

// giveBack gives a file that was moved aside its path back, where the restore has put own, unless that is
// nil. If the user has written the path once more, that file stays and the one aside is kept beside it.
func giveBack(dir *openedFolder, s *step, aside string, own *fileID) error {
	name := path.Base(s.path)
	isOwn := func(name string) bool {
		now, err := dir.id(name)
		return err == nil && own != nil && now.same(*own)
	}
	if isOwn(name) {
		if err := dir.exchange(aside, name); err != nil {
			return keepAside(dir, s, aside, err)
		}
		if isOwn(aside) {
			return dir.remove(aside)
		}
		return keepAside(dir, s, aside, nil) // what the user wrote between the two
	}
	if err := dir.place(aside, name); !errors.Is(err, fs.ErrExist) {
		return keepAside(dir, s, aside, err)
	}
	return keepAside(dir, s, aside, nil)
}

// keepAside gives a file of the user that lost its path a name that no restore removes, and
// returns an error that says where it is. One that has its path again has no name aside.
func keepAside(dir *openedFolder, s *step, aside string, err error) error {
	if _, missing := dir.id(aside); errors.Is(missing, fs.ErrNotExist) {
		return err
	}
	suffix := ".kept-" + rand.Text()
	if failed := dir.rename(aside, path.Base(s.path)+suffix); failed != nil {
		return errors.Join(err, failed)
	}
	said := fmt.Errorf("a version that was written meanwhile is in %q", s.path+suffix)
	if err != nil {
		return and(err, said)
	}
	return said
}

// moveAside moves what a step removes to a temporary name, compares it, and removes it. What the
// user has written since the check gets its path back.
func (a *applier) moveAside(dir *openedFolder, s *step) error {
	aside := tempName()
	if err := dir.rename(path.Base(s.path), aside); err != nil {
		return err
	}
	a.s.opt.At("aside")
	err := a.unchanged(s, aside)
	if err == nil {
		return dir.remove(aside)
	}
	return and(err, giveBack(dir, s, aside, nil))
}

// place gives a file in the folder a name that nothing has; otherwise the error is [fs.ErrExist] and the
// file keeps its name.
func (f *openedFolder) place(from, to string) error {
	err := f.renameNew(from, to)
	if !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	if err := f.link(from, to); err != nil {
		return err
	}
	return f.remove(from)
}

// exchangeByNames is exchange where the system cannot do it in one step: for a moment nothing has
// the name other.
func (f *openedFolder) exchangeByNames(one, other string) error {
	third := tempName()
	if err := f.rename(other, third); err != nil {
		return err
	}
	if err := f.place(one, other); err != nil {
		return errors.Join(err, f.place(third, other))
	}
	return f.rename(third, one)
}
