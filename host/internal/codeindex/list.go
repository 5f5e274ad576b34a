package codeindex

import (
	"context"
	"io/fs"
	"path"
	"path/filepath"
	stdruntime "runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/sentinel-runtime/sentinel/host/internal/filewalk"
	"github.com/sentinel-runtime/sentinel/host/internal/gitexec"
)

// Limits of a list.
const (
	maxFiles  = 200_000 // those of the deepest folders are left out
	maxDepth  = 32      // levels of folders
	maxNested = 100     // repositories in folders of the workspace
	maxList   = 64 << 20
)

// A listed file has a name and what the file system says about it.
type listed struct {
	path string
	stat stat
}

// list returns the regular files of the workspace, sorted by path, without those that
// are ignored or skipped. complete is false if a limit cut the list.
func (x *Index) list(ctx context.Context) (files []listed, complete bool, err error) {
	if err := x.recovered(ctx, func() error { return x.load(ctx) }); err != nil {
		return nil, false, err
	}
	l := &lister{Index: x, entered: map[string]bool{".": true}, complete: true}
	l.expected = l.expect()
	if err := l.repository(ctx, ".", 0); err != nil {
		return nil, false, err
	}
	if err := ctx.Err(); err != nil {
		return nil, false, err
	}
	slices.SortFunc(l.files, func(a, b listed) int { return strings.Compare(a.path, b.path) })
	l.files = slices.CompactFunc(l.files, func(a, b listed) bool { return a.path == b.path })
	if len(l.files) > maxFiles {
		l.complete = false
		slices.SortStableFunc(l.files, func(a, b listed) int { return strings.Count(a.path, "/") - strings.Count(b.path, "/") })
		l.files = l.files[:maxFiles]
		slices.SortFunc(l.files, func(a, b listed) int { return strings.Compare(a.path, b.path) })
	}
	return l.files, l.complete, nil
}

type lister struct {
	*Index
	files    []listed
	entered  map[string]bool // false: a folder that is skipped, or in one that is
	nested   int
	complete bool
	// expected returns what the file system says about the files of the snapshot, in
	// their order.
	expected func() []listed
	stop     atomic.Bool // the answer is not needed
	next     int         // the file of the snapshot behind the one that was looked up last
}

// expect reads what the file system says about the files of the snapshot, while git
// lists files: they are nearly all that it lists.
func (l *lister) expect() func() []listed {
	names := make([]string, len(l.snap.files))
	for i := range l.snap.files {
		names[i] = l.snap.files[i].path
	}
	var files []listed
	var done sync.WaitGroup
	done.Go(func() { files = l.stat(names) })
	return func() []listed {
		done.Wait()
		return files
	}
}

// repository adds the files of a folder that may be a work tree of git.
func (l *lister) repository(ctx context.Context, dir string, level int) error {
	names, complete := l.tracked(ctx, dir)
	l.stop.Store(len(names) == 0 && level == 0) // a walk reads it anyway
	files := l.expected()                       // its goroutines have ended then
	if len(names) == 0 {
		// Not a work tree, an ignored folder in one, or an empty one.
		return l.walk(ctx, dir)
	}
	l.complete = l.complete && complete
	kept := names[:0]
	for _, name := range names {
		name = strings.TrimSuffix(name, "/") // another repository
		if !filepath.IsLocal(filepath.FromSlash(name)) {
			continue
		}
		if dir != "." {
			name = dir + "/" + name
		}
		if strings.Count(name, "/") >= maxDepth {
			l.complete = false
			continue
		}
		if !l.enters(path.Dir(name)) {
			continue
		}
		if i, known := l.find(name); known && files[i].stat.regular {
			l.files = append(l.files, files[i])
		} else if known || !l.opt.Skip(name, false) {
			kept = append(kept, name)
		}
	}
	for _, f := range l.stat(kept) {
		if f.path == "" {
			continue
		}
		if f.stat.regular {
			l.files = append(l.files, f)
			continue
		}
		// A submodule, or a repository that is not one. Without .git it is a
		// submodule that was not checked out.
		in := folders{root: l.opt.Root}
		_, err := in.lstat(f.path + "/.git")
		in.close()
		if err != nil || l.opt.Skip(f.path, true) {
			continue
		}
		if l.nested == maxNested || level == maxDepth {
			l.complete = false
			continue
		}
		l.nested++
		if err := l.repository(ctx, f.path, level+1); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// tracked returns the files below a folder that git does not ignore; none if git
// cannot say.
func (l *lister) tracked(ctx context.Context, dir string) (names []string, complete bool) {
	if l.opt.Git == "" {
		return nil, true
	}
	git := gitexec.Runner{Program: l.opt.Git, MaxOut: maxList}
	answer, err := git.Exec(ctx, filepath.Join(l.dir, filepath.FromSlash(dir)), "", "", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	if err != nil || answer.Code != 0 {
		return nil, true
	}
	names = strings.Split(answer.Out, "\x00")
	return names[:len(names)-1], !answer.Cut // the last one is empty, or cut
}

// walk adds the files below a folder without git.
func (l *lister) walk(ctx context.Context, dir string) error {
	skip := func(name string, folder bool) bool { return (folder || !l.knows(name)) && l.opt.Skip(name, folder) }
	opt := filewalk.Options{Start: dir, Skip: skip, ByLevel: true, MaxEntries: maxFiles, MaxDepth: maxDepth}
	complete, err := filewalk.Walk(ctx, l.opt.Root, opt, func(name string, entry fs.DirEntry) error {
		if !entry.Type().IsRegular() {
			return nil
		}
		if info, err := entry.Info(); err == nil { // else it was deleted
			l.files = append(l.files, listed{name, statOf(info)})
		}
		return nil
	})
	l.complete = l.complete && complete
	return err
}

// knows reports whether a file was in the list before, so that it is not skipped: to
// find that out takes longer than to look it up.
func (l *lister) knows(name string) bool {
	_, known := l.find(name)
	return known
}

// find returns the place of a file in the snapshot. Files are mostly looked up in their
// order.
func (l *lister) find(name string) (int, bool) {
	i, known := l.next, l.next < len(l.snap.files) && l.snap.files[l.next].path == name
	if !known {
		i, known = slices.BinarySearchFunc(l.snap.files, name, func(f file, name string) int { return strings.Compare(f.path, name) })
	}
	if known {
		l.next = i + 1
	}
	return i, known
}

// enters reports whether neither a folder nor one that it is in is skipped.
func (l *lister) enters(dir string) bool {
	ok, known := l.entered[dir]
	if !known {
		ok = l.enters(path.Dir(dir)) && !l.opt.Skip(dir, true)
		l.entered[dir] = ok
	}
	return ok
}

// stat returns the regular files and folders among names, in their places; the others, and those behind a link, are
// empty. It reads only what the file system says about them, in several goroutines that end before it returns.
func (l *lister) stat(names []string) []listed {
	found := make([]listed, len(names))
	var next atomic.Int64
	var done sync.WaitGroup
	const portion = 256
	for range min(stdruntime.GOMAXPROCS(0), 1+len(names)/portion) {
		done.Go(func() {
			in := folders{root: l.opt.Root}
			defer in.close()
			for {
				from := int(next.Add(portion)) - portion
				if from >= len(names) || l.stop.Load() {
					return
				}
				for i := from; i < min(from+portion, len(names)); i++ {
					if info, err := in.lstat(names[i]); err == nil && (info.regular || info.folder) {
						found[i] = listed{names[i], info}
					}
				}
			}
		})
	}
	done.Wait()
	return found
}
