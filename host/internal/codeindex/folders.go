package codeindex

import (
	"os"
	"path"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/internal/rootfs"
)

// folders opens folders of the workspace, each in the open folder around it and never by a link: a program that puts a
// link in the place of a folder would have a path lead to files of the host, whose names would be listed. Those on the
// way to the last one stay open, so that names in their order open each folder once. It must not be used concurrently.
type folders struct {
	root  *os.Root
	names []string // of those that are open, from the root down
	open  []*os.Root
}

// in returns the open folder that a path is in, which is open until the next call, and the last name of the path.
func (f *folders) in(name string) (*os.Root, string, error) {
	dir, base := path.Split(name)
	at, level := f.root, 0
	for dir != "" {
		part, rest, _ := strings.Cut(dir, "/")
		if level == len(f.names) || f.names[level] != part {
			f.closeFrom(level)
			next, err := rootfs.EnterFolder(at, part)
			if err != nil {
				return nil, "", err
			}
			f.names, f.open = append(f.names, part), append(f.open, next)
		}
		at, dir, level = f.open[level], rest, level+1
	}
	return at, base, nil
}

// lstat returns the kind and the stamp of a file, without following a link.
func (f *folders) lstat(name string) (stat, error) {
	dir, base, err := f.in(name)
	if err != nil {
		return stat{}, err
	}
	info, err := dir.Lstat(base)
	if err != nil {
		return stat{}, err
	}
	return statOf(info), nil
}

// close closes all folders.
func (f *folders) close() { f.closeFrom(0) }

func (f *folders) closeFrom(level int) {
	for _, dir := range f.open[level:] {
		_ = dir.Close() // nothing was written through it
	}
	f.names, f.open = f.names[:level], f.open[:level]
}
