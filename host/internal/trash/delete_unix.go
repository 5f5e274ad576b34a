//go:build unix

package trash

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"path"

	"golang.org/x/sys/unix"
)

const (
	// maxLevel is how deep a deletion descends. A folder below is moved up to the folder
	// that is deleted, so that neither the number of open descriptors nor the length of a
	// path depends on the depth of the tree.
	maxLevel = 16
	// maxRounds is how often a folder is listed again because it was not empty after all
	// its entries were deleted: another process writes there, or the file system has left
	// out entries of a list that changed.
	maxRounds = 100
)

var (
	errMounted = errors.New("another file system is mounted there")
	errWritten = errors.New("another process still writes files there")
)

// A deletion is one call of [Delete].
type deletion struct {
	ctx     context.Context
	name    string   // of the folder
	device  uint64   // file system of the folder
	top     int      // descriptor of the folder, while its entries are deleted
	moved   []string // names of folders that were moved up to top and are still to be deleted
	buffer  []byte   // for lists of names
	left    problems
	stopped bool // the end of ctx is among them
}

func (d *deletion) delete(parent *os.File) {
	d.buffer = make([]byte, 32<<10)
	d.remove(int(parent.Fd()), "", d.name, 0)
}

// remove deletes an entry of the folder in, and reports whether nothing is left of it.
// Folder is the path of in from the top; level is the number of folders above the entry.
func (d *deletion) remove(in int, folder, name string, level int) bool {
	if d.ctx.Err() != nil {
		return d.stop()
	}
	err := unlink(in, name, 0)
	if err == nil {
		return true
	}
	var info unix.Stat_t
	look := Again(func() error { return unix.Fstatat(in, name, &info, unix.AT_SYMLINK_NOFOLLOW) })
	switch dev := uint64(info.Dev); { //nolint:unconvert // it has another type on other systems
	case errors.Is(look, unix.ENOENT):
		return true
	case look != nil || info.Mode&unix.S_IFMT != unix.S_IFDIR:
		return d.fail(folder, name, err)
	case level == 0:
		d.device = dev
	case dev != d.device:
		return d.fail(folder, name, errMounted)
	}
	if info.Mode&0o700 != 0o700 {
		_ = Chmod(in, name, 0o700) // where it is not possible, what follows has the error to show
	}
	if level == maxLevel {
		up := rand.Text()
		if err := Again(func() error { return unix.Renameat(in, name, d.top, up) }); err != nil {
			return d.fail(folder, name, err)
		}
		d.moved = append(d.moved, up)
		return true
	}
	for range maxRounds {
		found, clean := d.empty(in, folder, name, level)
		if !clean {
			return false
		}
		if err = unlink(in, name, unix.AT_REMOVEDIR); err == nil {
			return true
		}
		if !found {
			return d.fail(folder, name, err)
		}
	}
	return d.fail(folder, name, errWritten)
}

// empty lists a folder once and deletes what it finds. It reports whether it found entries,
// and whether nothing is left of them.
func (d *deletion) empty(in int, folder, name string, level int) (found, clean bool) {
	own := -1
	err := Again(func() (err error) {
		own, err = unix.Openat(in, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return false, errors.Is(err, unix.ENOENT) || d.fail(folder, name, err)
	}
	defer func() { _ = unix.Close(own) }() // it was only read
	below := path.Join(folder, name)
	if level == 0 {
		d.top, below = own, ""
	}
	clean = true
	for {
		n := 0
		err := Again(func() (err error) { n, err = unix.ReadDirent(own, d.buffer); return err })
		if err != nil {
			clean = d.fail(folder, name, err)
		}
		if n <= 0 {
			break
		}
		_, _, names := unix.ParseDirent(d.buffer[:n], -1, nil)
		for _, entry := range names {
			found, clean = true, d.remove(own, below, entry, level+1) && clean
		}
	}
	for level == 0 && len(d.moved) > 0 {
		last := len(d.moved) - 1
		entry := d.moved[last]
		d.moved = d.moved[:last]
		clean = d.remove(own, "", entry, 1) && clean
	}
	return found, clean
}

// unlink removes a file, or with the flag for it an empty folder. A name that is not there is
// not an error.
func unlink(in int, name string, flags int) error {
	err := Again(func() error { return unix.Unlinkat(in, name, flags) })
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	return err
}

// Again repeats a call that a signal has interrupted.
func Again(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
