package foldersync

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// tempPrefix and tempSuffix name files that are not whole yet. Watchers leave
// them out.
const (
	tempPrefix = ".sentinel-"
	tempSuffix = ".tmp"
)

// A replaceDir is a folder in which files are replaced. Below a confined root it
// is opened without following links that lead out.
type replaceDir struct{ root *os.Root }

// openDir opens a folder by its path.
func openDir(dir string) (*replaceDir, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &replaceDir{root}, nil
}

// targetDir opens the folder that a file is written in, and returns the name there.
// In the host's own folder a link is followed, so that what it leads to is
// written and the link stays; in a confined root the link is replaced.
func targetDir(f *file) (*replaceDir, string, error) {
	if !f.root.confined {
		target, err := filepath.EvalSymlinks(f.origin)
		if err != nil {
			return nil, "", err
		}
		p, err := openDir(filepath.Dir(target))
		return p, filepath.Base(target), err
	}
	p, err := containingDir(f)
	return p, filepath.Base(f.origin), err
}

// containingDir opens the folder that a file is in itself.
func containingDir(f *file) (*replaceDir, error) {
	if !f.root.confined {
		return openDir(filepath.Dir(f.origin))
	}
	top, err := os.OpenRoot(f.root.dir)
	if err != nil {
		return nil, err
	}
	defer top.Close()
	dir, err := top.OpenRoot(filepath.Dir(filepath.FromSlash(f.rel)))
	if err != nil {
		return nil, err
	}
	return &replaceDir{dir}, nil
}

func (p *replaceDir) close() { _ = p.root.Close() }

// replace atomically writes a file and returns when it is durable. An existing file keeps its rights. last, unless it is
// nil, is asked just before it happens; its error stops it.
func (p *replaceDir) replace(name string, content []byte, mode fs.FileMode, last func() error) (err error) {
	if info, err := p.root.Stat(name); err == nil {
		mode = info.Mode().Perm()
	}
	// A random name in the same folder: a rename is only atomic within one file
	// system, and a link cannot be prepared under an unknown name.
	temp := tempPrefix + rand.Text() + tempSuffix
	f, err := p.root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = p.root.Remove(temp) // the first error is the one to show
		}
	}()
	_, err = f.Write(content)
	if err == nil {
		err = f.Chmod(mode) // whatever the umask said
	}
	if err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil && last != nil {
		err = last()
	}
	if err == nil {
		err = p.root.Rename(temp, name)
	}
	if err != nil {
		return err
	}
	return p.sync()
}

// remove deletes a file and returns when that is on the disk.
func (p *replaceDir) remove(name string) error {
	if err := p.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return p.sync()
}

func (p *replaceDir) sync() error {
	d, err := p.root.Open(".")
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, fs.ErrInvalid) {
		return err
	}
	return nil
}

// sweep deletes what a crash left of files that were being written.
func sweep(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return // it need not be there
	}
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && info.Mode().IsRegular() && strings.HasPrefix(e.Name(), tempPrefix) && strings.HasSuffix(e.Name(), tempSuffix) && time.Since(info.ModTime()) > time.Minute {
			_ = os.Remove(filepath.Join(dir, e.Name())) // next time, then
		}
	}
}
