package rag

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Bounds of what is looked at.
const (
	maxEntries = 20_000    // files and folders of a walk
	maxDepth   = 32        // folders below the workspace
	maxFile    = 512 << 10 // bytes of a file; larger ones are data, not text to read
	maxIgnore  = 256 << 10 // bytes of a .gitignore file
)

// workspace is the folder that one context is built from. It is for one
// goroutine. Close it.
type workspace struct {
	root    *os.Root
	base    string
	secrets command.SecretFiles
	walked  bool
	list    []item // sorted by path
	more    bool   // the walk ended at a bound
	rules   int    // ignore rules read so far
}

// An item is a file or folder a walk came upon. Links and all that is neither
// are not items.
type item struct {
	path   string
	folder bool
}

func openWorkspace(dir string, secrets command.SecretFiles) (*workspace, error) {
	if !filepath.IsAbs(dir) {
		return nil, abi.New(abi.Internal, fmt.Sprintf("open workspace %q: not an absolute path", dir))
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open workspace: %w", err)
	}
	return &workspace{root: root, base: dir, secrets: secrets}, nil
}

// Close gives up the folder.
func (w *workspace) Close() error { return w.root.Close() }

// items walks the workspace once, level by level, so that a bound cuts off what
// is deepest. What is ignored, dull or secret is left out.
func (w *workspace) items(ctx context.Context) ([]item, error) {
	if w.walked {
		return w.list, nil
	}
	rules := ignoreRules{}
	folders := []string{"."}
	for depth := 0; len(folders) > 0; depth++ {
		if depth > maxDepth {
			w.more = true
			break
		}
		var below []string
		for _, dir := range folders {
			below = append(below, w.enter(ctx, dir, rules)...)
			if err := ctx.Err(); err != nil {
				return nil, err
			}
		}
		folders = below
	}
	slices.SortFunc(w.list, func(a, b item) int { return comparePaths(a.path, b.path) })
	w.walked = true
	return w.list, nil
}

// enter lists one folder and returns the folders in it. One that cannot be
// read has nothing in it.
func (w *workspace) enter(ctx context.Context, dir string, rules ignoreRules) (folders []string) {
	entries, err := fs.ReadDir(w.root.FS(), dir)
	if err != nil {
		return nil
	}
	if text, err := w.read(path.Join(dir, ".gitignore"), maxIgnore); err == nil {
		rules[dir] = parseIgnore(string(text), maxRules-w.rules)
		w.rules += len(rules[dir])
	}
	for _, e := range entries {
		if ctx.Err() != nil {
			return nil
		}
		name := path.Join(dir, e.Name())
		folder := e.IsDir()
		if !folder && !e.Type().IsRegular() || w.secret(name) || rules.ignored(name, folder) {
			continue
		}
		if folder && slices.Contains(dullFolders, plain(e.Name())) {
			continue
		}
		if len(w.list) == maxEntries {
			w.more = true
			return folders
		}
		w.list = append(w.list, item{name, folder})
		if folder {
			folders = append(folders, name)
		}
	}
	return folders
}

// comparePaths orders a folder's contents right behind it.
func comparePaths(a, b string) int {
	return slices.Compare(strings.Split(a, "/"), strings.Split(b, "/"))
}

// Reasons for not showing a file.
var (
	errSecret  = errors.New("kept out of every context: it looks like a secret")
	errLink    = errors.New("is a link, or behind one")
	errNoFile  = errors.New("is no regular file")
	errSwapped = errors.New("changed while it was opened")
	errLarge   = errors.New("is too large")
	errBinary  = errors.New("is binary")
)

// text reads a file that may be shown, by its path in the workspace.
func (w *workspace) text(name string) (string, error) {
	if w.secret(name) {
		return "", errSecret
	}
	data, err := w.read(name, maxFile)
	switch {
	case err != nil:
		return "", err
	case isBinary(data):
		return "", errBinary
	case w.secrets.MatchContent(name, data):
		return "", errSecret
	}
	return clean(string(data)), nil
}

// read reads a regular file of at most limit bytes. Links are refused at every
// part of the path, also those that stay inside: one could give a secret
// another name. The file is opened without blocking and compared with what was
// looked at, so a pipe or link put in its place meanwhile is not read.
func (w *workspace) read(name string, limit int64) ([]byte, error) {
	var info fs.FileInfo
	for end := 0; end < len(name); end++ {
		next := strings.IndexByte(name[end:], '/')
		if next < 0 {
			next = len(name) - end
		}
		end += next
		var err error
		if info, err = w.root.Lstat(name[:end]); err != nil {
			return nil, err
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			return nil, errLink
		}
	}
	switch {
	case info == nil || !info.Mode().IsRegular():
		return nil, errNoFile
	case info.Size() > limit:
		return nil, errLarge
	}
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
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = errLarge
	}
	return data, err
}
