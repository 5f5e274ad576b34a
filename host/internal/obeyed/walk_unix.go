//go:build unix

package obeyed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/sentinel-runtime/sentinel/host/internal/trash"
)

// maxOpen is how many folders in each other a walk has open, besides the first. Those above are
// opened again by "..", so that neither the number of descriptors nor the length of a path depends
// on the depth of the tree.
const maxOpen = 32

// A fileID is the identity of a file.
type fileID struct{ device, inode uint64 }

func (id fileID) same(other fileID) bool { return id == other }

func idOf(s *unix.Stat_t) fileID { return fileID{uint64(s.Dev), s.Ino} } //nolint:unconvert // it has another type on other systems

// A searched is a folder on the way of a walk.
type searched struct {
	dir     *os.File // nil while closed
	id      fileID
	mode    uint32   // that it had before
	changed bool     // it has another one now
	pending []string // folders in it that are still to be searched
	above   int      // bytes of the path of the folder above
}

func (s *searched) exists(name string) bool {
	var info unix.Stat_t
	return trash.Again(func() error { return unix.Fstatat(int(s.dir.Fd()), name, &info, unix.AT_SYMLINK_NOFOLLOW) }) == nil
}

func (s *searched) rename(from, to string) error {
	fd := int(s.dir.Fd())
	rename := func() error { return trash.Again(func() error { return unix.Renameat(fd, from, fd, to) }) }
	err := rename()
	if !errors.Is(err, fs.ErrPermission) || s.changed || unix.Fchmod(fd, s.mode|0o700) != nil {
		return err
	}
	s.changed = true
	return rename()
}

func (s *searched) close() {
	if s.changed {
		_ = unix.Fchmod(int(s.dir.Fd()), s.mode) // the folder may be another user's by now
	}
	_ = s.dir.Close() // it was only read
}

// A search is one walk.
type search struct {
	all    *Set
	found  func(dir holder, one *entry) (enter string)
	path   []byte // of the last folder of way
	way    []*searched
	failed named
}

// walk calls found for each repository, with the folder that it is in. Those inside of another one
// are visited only if found returns the name that it has now, and no link is followed. An error
// does not end the walk, but the end of the context does.
func (all *Set) walk(ctx context.Context, found func(dir holder, one *entry) (enter string)) error {
	s := &search{all: all, found: found}
	s.enter(unix.AT_FDCWD, all.root)
	for len(s.way) > 0 {
		last := s.way[len(s.way)-1]
		if ctx.Err() != nil {
			last.pending = nil
		}
		if n := len(last.pending); n > 0 {
			name := last.pending[n-1]
			last.pending = last.pending[:n-1]
			s.enter(int(last.dir.Fd()), name)
		} else {
			s.leave()
		}
	}
	if ctx.Err() != nil {
		return fmt.Errorf("find repositories in folders of %q: %w", all.root, context.Cause(ctx))
	}
	if len(s.failed.first) > 0 {
		return fmt.Errorf("find repositories in folders of %q: %s", all.root, &s.failed)
	}
	return nil
}

// fail notes what could not be searched.
func (s *search) fail(name string, err error) {
	s.failed.add(fmt.Sprintf("%s: %v", s.all.relative(s.full(name)), err))
}

// full returns the path of a file in the last folder. One that no program can open by its path has its middle
// left out and is still too long to be opened: a command makes folders in each other to any depth, and each
// file in them has to cost the same.
func (s *search) full(name string) string {
	if len(s.way) == 0 {
		return name
	}
	return string(s.path[:min(len(s.path), maxPath)]) + string(filepath.Separator) + name
}

// short is full for a path that the host can open. Some file systems list no types, so that the
// standard library looks at the files by their paths.
func (s *search) short(name string) string {
	if len(s.path) > maxPath {
		return name
	}
	return s.full(name)
}

// enter opens a folder in the last one and lists it. One of the user that cannot be read, because
// its mode forbids it, is opened nevertheless; another one has nothing of a command of this user.
func (s *search) enter(in int, name string) {
	var info unix.Stat_t
	err := trash.Again(func() error { return unix.Fstatat(in, name, &info, unix.AT_SYMLINK_NOFOLLOW) })
	mode := uint32(info.Mode) //nolint:unconvert // it has another type on other systems
	if err == nil && mode&unix.S_IFMT != unix.S_IFDIR {
		err = unix.ENOTDIR
	}
	one := &searched{mode: mode & 0o7777, above: len(s.path)}
	if err == nil {
		if one.mode&0o500 != 0o500 {
			one.changed = trash.Chmod(in, name, one.mode|0o700) == nil
		}
		fd := -1
		err = trash.Again(func() (err error) {
			fd, err = unix.Openat(in, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
			return err
		})
		if err == nil {
			one.dir = os.NewFile(uintptr(fd), s.short(name))
			err = unix.Fstat(fd, &info)
		}
		one.id = idOf(&info)
	}
	switch {
	case err == nil:
	case len(s.way) > 0 && (errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP)):
		return // another program has removed or replaced it
	case len(s.way) > 0 && errors.Is(err, fs.ErrPermission) && int(info.Uid) != os.Geteuid():
		return
	default:
		if one.dir != nil {
			one.close()
		} else if one.changed {
			_ = trash.Chmod(in, name, one.mode) // as in close
		}
		s.fail(name, err)
		return
	}
	if len(s.way) > 0 {
		s.path = append(s.path, filepath.Separator)
	}
	s.path = append(s.path, name...)
	s.way = append(s.way, one)
	if n := len(s.way) - 1 - maxOpen; n > 0 {
		_ = s.way[n].dir.Close() // it was only read
		s.way[n].dir = nil
	}
	s.list(one)
}

// list reports what has a name that programs obey in the last folder, and notes the folders in it.
func (s *search) list(in *searched) {
	for {
		entries, err := in.dir.ReadDir(1000)
		for _, e := range entries {
			switch {
			case !e.IsDir() && !s.all.named(e.Name()):
			case len(s.path) <= maxPath && s.all.hidden(s.full(e.Name())):
			case s.all.named(e.Name()):
				s.report(in, e.Name())
			default:
				in.pending = append(in.pending, e.Name())
			}
		}
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			s.fail(".", err)
			return
		}
	}
}

// maxPath bounds the paths of folders that are kept whole, and in which hidden ones are looked for: the
// host can open no longer ones.
const maxPath = unix.PathMax

// report calls found for a file in the last folder.
func (s *search) report(in *searched, name string) {
	fd := int(in.dir.Fd())
	var info unix.Stat_t
	err := trash.Again(func() error { return unix.Fstatat(fd, name, &info, unix.AT_SYMLINK_NOFOLLOW) })
	one := &entry{path: s.full(name), id: idOf(&info)}
	switch uint32(info.Mode) & unix.S_IFMT { //nolint:unconvert // it has another type on other systems
	case unix.S_IFDIR:
		one.kind = fs.ModeDir
	case unix.S_IFREG:
	case unix.S_IFLNK:
		one.kind = fs.ModeSymlink
		buffer := make([]byte, unix.PathMax)
		n := 0
		if err == nil {
			err = trash.Again(func() (err error) { n, err = unix.Readlinkat(fd, name, buffer); return err })
		}
		one.link = string(buffer[:max(n, 0)])
	default:
		one.kind = fs.ModeIrregular
	}
	if errors.Is(err, unix.ENOENT) {
		return
	}
	if err != nil {
		s.fail(name, err)
		return
	}
	if enter := s.found(in, one); enter != "" && one.kind == fs.ModeDir {
		in.pending = append(in.pending, enter)
	}
}

// leave closes the last folder, and opens the one above again if that was closed. Where another
// program has moved the folder, those above it are not searched further, but for the first.
func (s *search) leave() {
	last := s.way[len(s.way)-1]
	s.way = s.way[:len(s.way)-1]
	if n := len(s.way); n > 0 && s.way[n-1].dir == nil {
		if err := s.reopen(s.way[n-1], last); err != nil {
			s.fail(".", err)
			s.way, last.above = s.way[:1], len(s.all.root)
		}
	}
	s.path = s.path[:last.above]
	last.close()
}

func (s *search) reopen(above, last *searched) error {
	fd := -1
	err := trash.Again(func() (err error) {
		fd, err = unix.Openat(int(last.dir.Fd()), "..", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return err
	}
	dir := os.NewFile(uintptr(fd), "..") // it has been listed
	var info unix.Stat_t
	if err := unix.Fstat(fd, &info); err != nil || idOf(&info) != above.id {
		_ = dir.Close() // it was only read
		return errors.Join(errMoved, err)
	}
	above.dir = dir
	return nil
}

var errMoved = errors.New("another program has moved it while it was searched")
