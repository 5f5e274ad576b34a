package code

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"syscall"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// maxIgnoreFile is the largest .gitignore that is read, in bytes.
const maxIgnoreFile = 256 << 10

// each calls fn for what lies below start, folders before their entries, in
// the order of names; links are not followed. Ignored files and the folders of
// version control are left out unless all is set. fn may return fs.SkipDir or
// fs.SkipAll. A folder that cannot be read is passed over.
func (w *workspace) each(ctx context.Context, start string, all bool, fn func(name string, d fs.DirEntry) error) error {
	g := ignores{}
	for dir := path.Dir(start); start != "."; dir = path.Dir(dir) {
		w.readIgnore(g, dir)
		if dir == "." {
			break
		}
	}
	return fs.WalkDir(w.root.FS(), start, func(name string, d fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			if name == start {
				return w.Explain(start, err)
			}
			return nil
		}
		if name != start {
			skip := w.model && command.Secluded(name) || !all && (d.IsDir() && alwaysSkipped(name) || g.ignored(name, d.IsDir()))
			if skip && d.IsDir() {
				return fs.SkipDir
			}
			if skip {
				return nil
			}
		}
		if d.IsDir() && !all {
			w.readIgnore(g, name)
		}
		if name == start {
			return nil
		}
		return fn(name, d)
	})
}

// readIgnore adds the rules of one folder, if it has any.
func (w *workspace) readIgnore(g ignores, dir string) {
	name := path.Join(dir, ".gitignore")
	info, err := w.root.Lstat(name)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxIgnoreFile {
		return
	}
	if data, err := w.slurp(name, info, maxIgnoreFile); err == nil {
		g[dir] = parseIgnore(string(data))
	}
}

// errSwapped says that a file is not the one that was looked at.
var errSwapped = errors.New("changed meanwhile")

// slurp reads a regular file that a walk came upon, which info describes. A
// link or pipe put in its place meanwhile is not read.
func (w *workspace) slurp(name string, info fs.FileInfo, limit int64) ([]byte, error) {
	f, err := w.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	now, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !now.Mode().IsRegular() || !os.SameFile(now, info) {
		return nil, errSwapped
	}
	return io.ReadAll(io.LimitReader(f, limit))
}

// folder resolves the path a listing or search starts at.
func (w *workspace) folder(name string) (string, fs.FileInfo, error) {
	p, err := w.Resolve(name, false)
	if err != nil {
		return "", nil, err
	}
	defer p.Close()
	if p.Info == nil {
		return "", nil, w.notFound(name)
	}
	// A folder is listed whatever its name is; its files are looked at one by one.
	if command.Secluded(p.Path) || !p.Info.IsDir() {
		if err := w.mayRead(p.Path); err != nil {
			return "", nil, err
		}
	}
	return p.Path, p.Info, nil
}

// badPattern is the error for a pattern that does not compile.
func badPattern(field string, err error, hint string) error {
	return &abi.Error{Code: abi.BadFields, Field: field, Permanent: true, Message: "search: field \"" + field + "\": " + err.Error(), Hint: hint}
}
