package confine

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// idOf returns the identity of a folder, nil if it has none.
func idOf(info fs.FileInfo) *folderID {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	return &folderID{s.Dev, s.Ino}
}

func idOfOpen(file int) (folderID, error) {
	var s unix.Stat_t
	err := unix.Fstat(file, &s)
	return folderID{s.Dev, s.Ino}, err
}

// fileOf is the path of an open file, whatever is at the path by which it was opened.
func fileOf(file int) string { return "/proc/self/fd/" + strconv.Itoa(file) }

// openExact opens a path below a folder, or an absolute one with unix.AT_FDCWD, for use in other calls.
// No part of it may be a link.
func openExact(dir int, path string) (int, error) {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS}
	if dir != unix.AT_FDCWD {
		how.Resolve |= unix.RESOLVE_BENEATH
	}
	for {
		file, err := unix.Openat2(dir, path, &how)
		if err == unix.EINTR || err == unix.EAGAIN { // something was renamed meanwhile
			continue
		}
		if err != nil {
			return -1, &fs.PathError{Op: "open without links", Path: path, Err: err}
		}
		return file, nil
	}
}

// openRoot opens the folder that the command may write, which the host has looked at, and returns an
// error if it is another one by now. Its path has no links.
func (p *plan) openRoot(path string) (int, error) {
	if slices.ContainsFunc(p.Outside, func(dir string) bool { return within(path, dir) }) {
		return -1, fmt.Errorf("%s cannot be written by commands: it is kept from them", path)
	}
	file, err := openExact(unix.AT_FDCWD, path)
	if err != nil || p.Folder == nil {
		return file, err
	}
	if id, err := idOfOpen(file); err != nil || id != *p.Folder {
		_ = unix.Close(file)
		return -1, fmt.Errorf("%s was replaced by another folder before the command began", path)
	}
	return file, nil
}

// A writable is a folder that the command may write, open on the host and in the new root. What is
// mounted below it is opened from there: commands that run in the same folder may replace folders by
// links meanwhile.
type writable struct {
	path           string
	source, target int
	mounts         []int // in the new root, to be written
}

// write binds a folder that the command may write.
func (r *root) write(p *plan, path string, checkout bool) (*writable, error) {
	real, err := r.link(path)
	if err != nil {
		return nil, err
	}
	w := &writable{path: real}
	if checkout {
		if p.Folder != nil && real != path {
			return nil, fmt.Errorf("%s leads to %s, by a link that was made before the command began", path, real)
		}
		w.source, err = p.openRoot(real)
	} else {
		w.source, err = openExact(unix.AT_FDCWD, real)
	}
	if err != nil {
		return nil, err
	}
	if err := r.bind(fileOf(w.source), real); err != nil {
		return nil, err
	}
	dir, err := unix.Open(r.dir, unix.O_PATH|unix.O_CLOEXEC|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(dir)
	if w.target, err = openSame(dir, strings.TrimPrefix(real, "/"), w.source); err != nil {
		return nil, err
	}
	w.mounts = []int{w.target}
	return w, nil
}

// openSame opens a path below a folder, which has to be the given open file.
func openSame(dir int, path string, source int) (int, error) {
	file, err := openExact(dir, path)
	if err != nil {
		return -1, err
	}
	want, err := idOfOpen(source)
	if err != nil {
		return -1, err
	}
	if id, err := idOfOpen(file); err != nil || id != want {
		_ = unix.Close(file)
		return -1, fmt.Errorf("%s was replaced while the command was prepared", path)
	}
	return file, nil
}

// pin makes a path below the folder a mount point, and returns it.
func (w *writable) pin(path string) (int, error) {
	rest := strings.TrimPrefix(path[len(w.path):], "/")
	source, err := openExact(w.source, rest)
	if err != nil {
		return -1, err
	}
	defer unix.Close(source)
	target, err := openSame(w.target, rest, source)
	if err != nil {
		return -1, err
	}
	defer unix.Close(target)
	if err := unix.Mount(fileOf(source), fileOf(target), "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return -1, fmt.Errorf("bind %s: %w", path, err)
	}
	return openSame(w.target, rest, source)
}

// keep mounts what is hidden and protected below the folder.
func (w *writable) keep(r *root, protected []string) error {
	// A mount point cannot be renamed, so that what is hidden or protected below it stays
	// where the host looks for it.
	for _, dir := range between(w.path, slices.Concat(r.hide, protected)) {
		mount, err := w.pin(dir)
		if err != nil {
			return err
		}
		w.mounts = append(w.mounts, mount)
	}
	for _, path := range protected {
		switch {
		case path == w.path: // all of it
			w.mounts = slices.DeleteFunc(w.mounts, func(mount int) bool { return mount == w.target })
		case within(path, w.path):
			mount, err := w.pin(path)
			if err != nil {
				return err
			}
			_ = unix.Close(mount)
		}
	}
	// After what is protected, which may have something hidden in it, and before the next folder,
	// which may be in something hidden.
	for _, h := range r.hide {
		if h != w.path && within(h, w.path) {
			if err := w.cover(h); err != nil {
				return err
			}
		}
	}
	return nil
}

// cover puts an empty folder or file over a path below the folder.
func (w *writable) cover(path string) error {
	target, err := openExact(w.target, strings.TrimPrefix(path[len(w.path):], "/"))
	if os.IsNotExist(err) {
		return nil
	} else if err != nil {
		return err
	}
	defer unix.Close(target)
	var s unix.Stat_t
	if err := unix.Fstat(target, &s); err != nil {
		return err
	}
	if err := coverWith(fileOf(target), s.Mode&unix.S_IFMT == unix.S_IFDIR); err != nil {
		return fmt.Errorf("hide %s: %w", path, err)
	}
	return nil
}

// open makes the folder writable again, without what is protected in it.
func (w *writable) open() error {
	for _, mount := range w.mounts {
		if err := unix.MountSetattr(mount, "", unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY}); err != nil {
			return fmt.Errorf("make folders of %s writable: %w", filepath.Clean(w.path), err)
		}
		_ = unix.Close(mount)
	}
	return nil
}
