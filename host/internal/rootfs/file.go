package rootfs

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Temporary files are what a crash may leave behind; they are nobody's work.
const (
	tempPrefix = ".sentinel-"
	tempSuffix = ".tmp"
)

// Temporary reports whether a name is that of a file which [Tree.Store] had not
// finished when its process ended, or has not yet.
func Temporary(name string) bool {
	return strings.HasPrefix(name, tempPrefix) && strings.HasSuffix(name, tempSuffix)
}

// OpenFile opens the regular file at p for reading. The caller closes it. What
// it returns about the file was asked of the open one.
func (t *Tree) OpenFile(p *Place) (*os.File, fs.FileInfo, error) {
	if p.Info == nil {
		return nil, nil, t.Missing(p.Path)
	}
	if err := t.regular(p.Path, p.Info); err != nil {
		return nil, nil, err
	}
	f, err := p.Dir.OpenFile(p.Name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, t.Explain(p.Path, err)
	}
	info, err := f.Stat()
	if err == nil {
		err = t.regular(p.Path, info)
	}
	if err == nil && !os.SameFile(info, p.Info) {
		err = changed("read", p.Path)
	}
	if err != nil {
		f.Close() // nothing was written through it
		return nil, nil, t.Explain(p.Path, err)
	}
	return f, info, nil
}

// OpenFolder opens the folder at p. The caller closes it. Nothing done through it
// is held to the tree's rules.
func (t *Tree) OpenFolder(p *Place) (*os.Root, error) {
	if p.Info == nil {
		return nil, t.Missing(p.Path)
	}
	if !p.Info.IsDir() {
		return nil, &abi.Error{Code: abi.BadFields, Field: "path", Permanent: true, Message: fmt.Sprintf("open %q: is no folder", p.Path)}
	}
	dir, err := p.Dir.OpenRoot(p.Name)
	if err != nil {
		return nil, t.Explain(p.Path, err)
	}
	info, err := dir.Stat(".")
	if err == nil && !os.SameFile(info, p.Info) {
		err = changed("open", p.Path)
	}
	if err != nil {
		_ = dir.Close() // only looked at
		return nil, t.Explain(p.Path, err)
	}
	return dir, nil
}

// changed is the error for what is no longer what was looked at.
func changed(op, name string) error {
	return abi.New(abi.Conflict, fmt.Sprintf("%s %q: changed meanwhile", op, name))
}

// Store puts data at p: a temporary file beside it, synced, then renamed over
// it, so that anyone sees the old file or the new one. The mode of an existing
// file stays. It returns whether the file is new.
func (t *Tree) Store(p *Place, data []byte) (created bool, err error) {
	if err := t.rules.write(p.Path); err != nil {
		return false, err
	}
	mode := fs.FileMode(0o644)
	if p.Info != nil {
		if err := t.regular(p.Path, p.Info); err != nil {
			return false, err
		}
		if links(p.Info) > 1 {
			return false, &abi.Error{
				Code: abi.Denied, Field: "path", Permanent: true,
				Message: fmt.Sprintf("write %q: the file has another name (a hard link), which may be %s", p.Path, t.rules.Outside),
			}
		}
		mode = p.Info.Mode().Perm()
	}
	// A name that nobody can guess, so nobody can have put a link there.
	temp := tempPrefix + rand.Text() + tempSuffix
	f, err := p.Dir.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return false, t.Explain(p.Path, err)
	}
	if err = fill(f, data, mode); err == nil {
		err = p.Dir.Rename(temp, p.Name)
	}
	if err != nil {
		_ = p.Dir.Remove(temp) // the first error says more
		return false, t.Explain(p.Path, err)
	}
	return p.Info == nil, syncDir(p.Dir)
}

// Remove removes the file or the empty folder at p. What is not there is no
// error: somebody was faster, or this call was made before.
func (t *Tree) Remove(p *Place) error {
	if p.Name == "." {
		return odd(p.Path, "is the folder itself")
	}
	if err := t.rules.write(p.Path); err != nil {
		return err
	}
	if p.Info == nil {
		return nil
	}
	// What could not have been written is not removed either.
	if !p.Info.IsDir() {
		if err := t.regular(p.Path, p.Info); err != nil {
			return err
		}
	}
	// A link that is put there now is what is removed, not what it leads to.
	err := p.Dir.Remove(p.Name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	// Systems differ in which of the two a folder with something in it gives.
	case errors.Is(err, syscall.ENOTEMPTY), errors.Is(err, fs.ErrExist):
		return &abi.Error{Code: abi.Conflict, Field: "path", Permanent: true, Message: fmt.Sprintf("remove %q: the folder is not empty", p.Path)}
	case err != nil:
		return t.Explain(p.Path, err)
	}
	return syncDir(p.Dir)
}

// fill writes, syncs and closes a temporary file. The mode is set before the file
// gets its name, so there is no moment with a wrong one.
func fill(f *os.File, data []byte, mode fs.FileMode) error {
	_, err := f.Write(data)
	if err == nil {
		err = f.Chmod(mode)
	}
	if err == nil {
		err = f.Sync()
	}
	if closing := f.Close(); err == nil {
		err = closing
	}
	return err
}

// syncDir makes a rename or a removal durable.
func syncDir(dir *os.Root) error {
	f, err := dir.Open(".")
	if err != nil {
		return err
	}
	defer f.Close()
	return ignoreUnsupported(f.Sync())
}

// regular refuses folders, pipes, sockets and devices.
func (t *Tree) regular(name string, info fs.FileInfo) error {
	switch {
	case info.Mode().IsRegular():
		return nil
	case info.IsDir():
		return &abi.Error{Code: abi.BadFields, Field: "path", Permanent: true, Message: fmt.Sprintf("open %q: is a folder", name), Hint: t.rules.Folder}
	}
	return odd(name, "is no regular file")
}
