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

// A crash may leave temporary files behind. Their names have this form, so that
// they can be recognized.
const (
	tempPrefix = ".sentinel-"
	tempSuffix = ".tmp"
)

// IsTemp reports whether a name has the form of the temporary files of
// [Tree.WriteFile].
func IsTemp(name string) bool {
	return strings.HasPrefix(name, tempPrefix) && strings.HasSuffix(name, tempSuffix)
}

// OpenFile opens the regular file at p for reading. The caller closes it. The
// FileInfo is that of the open file.
func (t *Tree) OpenFile(p *Entry) (*os.File, fs.FileInfo, error) {
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

// OpenFolder opens the folder at p. The caller closes it. The tree's rules do not
// apply to access through the returned root.
func (t *Tree) OpenFolder(p *Entry) (*os.Root, error) {
	if p.Info == nil {
		return nil, t.Missing(p.Path)
	}
	if !p.Info.IsDir() {
		return nil, &abi.Error{Code: abi.BadFields, Field: "path", Permanent: true, Message: fmt.Sprintf("open %q: not a folder", p.Path)}
	}
	dir, err := openSame(p.Dir, p.Name, p.Info)
	if errors.Is(err, errReplaced) {
		err = changed("open", p.Path)
	}
	if err != nil {
		return nil, t.Explain(p.Path, err)
	}
	return dir, nil
}

// changed is the error for a file that was replaced since it was resolved.
func changed(op, name string) error {
	return abi.New(abi.Conflict, fmt.Sprintf("%s %q: the file was replaced during the call", op, name))
}

// WriteFile replaces the file at p atomically: it writes a temporary file in the
// same folder, fsyncs it and renames it. An existing file keeps its mode and owner; if this
// process must not give a file to that owner, nothing is written. It returns whether the
// file is new.
func (t *Tree) WriteFile(p *Entry, data []byte) (created bool, err error) {
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
		mode = p.Info.Mode() & (fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky)
	}
	// The name is random, so that no other process can put a link there first.
	temp := tempPrefix + rand.Text() + tempSuffix
	f, err := p.Dir.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return false, t.Explain(p.Path, err)
	}
	if err = fill(f, data, mode, p.Info); err == nil {
		err = p.Dir.Rename(temp, p.Name)
	}
	if err != nil {
		_ = p.Dir.Remove(temp) // the first error is the cause
	}
	if errors.Is(err, errOwner) {
		return false, &abi.Error{
			Code: abi.Denied, Field: "path", Permanent: true,
			Message: fmt.Sprintf("write %q: the file belongs to another user or group, which a new file cannot be given", p.Path),
			Hint:    "a program that writes into the file itself keeps its owner, such as a shell step",
		}
	}
	if err != nil {
		return false, t.Explain(p.Path, err)
	}
	return p.Info == nil, syncDir(p.Dir)
}

// Remove removes the file or the empty folder at p. A missing file is not an
// error, so that a repeated call succeeds.
func (t *Tree) Remove(p *Entry) error {
	if p.Name == "." {
		return denied(p.Path, "the path is the folder itself")
	}
	if err := t.rules.write(p.Path); err != nil {
		return err
	}
	if p.Info == nil {
		return nil
	}
	// Only files that can be written can be removed.
	if !p.Info.IsDir() {
		if err := t.regular(p.Path, p.Info); err != nil {
			return err
		}
	}
	// If a link has replaced the file, the link is removed, not its target.
	err := p.Dir.Remove(p.Name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	// Which of the two a folder that is not empty returns depends on the system.
	case errors.Is(err, syscall.ENOTEMPTY), errors.Is(err, fs.ErrExist):
		return &abi.Error{Code: abi.Conflict, Field: "path", Permanent: true, Message: fmt.Sprintf("remove %q: the folder is not empty", p.Path)}
	case err != nil:
		return t.Explain(p.Path, err)
	}
	return syncDir(p.Dir)
}

// errOwner is the error of a file that cannot keep its owner.
var errOwner = errors.New("the owner cannot be kept")

// fill writes, syncs and closes a temporary file. Owner and mode, in this order because a
// change of the owner clears bits of the mode, are set before the file is renamed, so that
// the final name never has wrong ones.
func fill(f *os.File, data []byte, mode fs.FileMode, before fs.FileInfo) error {
	_, err := f.Write(data)
	if err == nil && before != nil && keepOwner(f, before) != nil {
		err = errOwner
	}
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

// regular returns an error for folders, pipes, sockets and devices.
func (t *Tree) regular(name string, info fs.FileInfo) error {
	switch {
	case info.Mode().IsRegular():
		return nil
	case info.IsDir():
		return &abi.Error{Code: abi.BadFields, Field: "path", Permanent: true, Message: fmt.Sprintf("open %q: it is a folder", name), Hint: t.rules.Folder}
	}
	return denied(name, "not a regular file")
}
