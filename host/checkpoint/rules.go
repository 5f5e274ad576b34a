package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/sentinel-runtime/sentinel/host/internal/gitexec"
)

// Uncovered is of which paths a checkpoint knows that they exist, but does not keep the
// content.
type Uncovered struct {
	Ignored      int      `json:"ignored,omitempty" jsonschema:"files that git ignores or that are in nested repositories, and of which no content is kept"`
	Repositories []string `json:"repositories,omitempty" jsonschema:"nested repositories and submodules: their .git is not covered, their files are as ignored ones; the first 20"`
	Large        []string `json:"large,omitempty" jsonschema:"files above the limit; the first 20"`
	Unreadable   []string `json:"unreadable,omitempty" jsonschema:"files and folders that could not be read; the first 20"`
	More         int      `json:"more,omitempty" jsonschema:"further repositories and files that are not in these lists"`
}

// maxNamed is how many names each list of Uncovered has.
const maxNamed = 20

// add adds a name to a list that has room.
func (u *Uncovered) add(list *[]string, name string) {
	if len(*list) == maxNamed {
		u.More++
		return
	}
	*list = append(*list, name)
}

// A scan is the state of a workspace before its contents are read.
type scan struct {
	*index
	before *index      // of the newest checkpoint: what it has of an unchanged file is not read again
	base   *Checkpoint // it; nil if there is none
	fresh  []item      // to be read and kept, in the order of the index
	unkept []item      // that no store of git keeps
	left   []string    // temporary files of a restore that was interrupted
	Uncovered
}

// An item is a file or link whose content is to be kept.
type item struct {
	dir string
	*node
	must bool // at any size: a restore replaces it
}

func (it *item) path() string { return join(it.dir, it.name) }

// scan reads what there is. Meanwhile find returns the newest checkpoint, which is the base, and
// the begin of the scope, both nil if there is none: what the begin has keeps the rules of then.
func (r *repository) scan(ctx context.Context, find func(context.Context) (base, rules *Checkpoint, err error)) (*scan, error) {
	s := &scan{}
	var names []string
	var begin *index
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var started sync.WaitGroup
	for _, task := range []func() error{
		func() (err error) { s.index, s.left, err = r.walk(ctx); return err },
		func() (err error) { names, err = r.listed(ctx); return err },
		func() error {
			base, rules, err := find(ctx)
			if s.base = base; err == nil && base != nil {
				s.before, err = r.load(ctx, base)
			}
			if err == nil && rules != nil {
				begin, err = r.load(ctx, rules)
			}
			return err
		},
	} {
		started.Go(func() {
			if err := task(); err != nil {
				cancel(err) // the first error counts: those behind it may follow from it
			}
		})
	}
	started.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	r.classify(s, begin, names)
	return s, s.settle(ctx)
}

// known are the checkpoints of a scan that are known before.
func known(all []Checkpoint, rules *Checkpoint) func(context.Context) (*Checkpoint, *Checkpoint, error) {
	return func(context.Context) (*Checkpoint, *Checkpoint, error) { return newest(all), rules, nil }
}

// classify decides of which files the content is kept, and finds those that have to be read.
func (r *repository) classify(s *scan, begin *index, names []string) {
	inFolder := map[string][]string{}
	for _, name := range names {
		dir, base := splitPath(name)
		inFolder[dir] = append(inFolder[dir], base)
	}
	for _, list := range inFolder {
		slices.Sort(list)
	}
	var listedHere []string
	at := "\x00" // no folder
	budget := ignoredBudget{opt: &r.s.opt}
	merge(func(dir string, nodes []*node) {
		n, was, old := nodes[0], nodes[1], nodes[2]
		if n == nil {
			return
		}
		switch n.kind {
		case kindGit:
			if dir != "" {
				s.add(&s.Repositories, dir)
			}
			return
		case kindFolder:
			if n.flags&flagUnreadable != 0 {
				s.add(&s.Unreadable, join(dir, n.name))
			}
			return
		case kindOther:
			return
		}
		if dir != at {
			at, listedHere = dir, inFolder[dir]
		}
		if _, listed := slices.BinarySearch(listedHere, n.name); was != nil {
			n.flags |= was.flags & flagIgnored
		} else if !listed {
			n.flags |= flagIgnored
		}
		if old != nil && old.content.store != storeState && n.sameFile(old) && n.sameMeta(old) {
			n.content = old.content
		}
		switch {
		case n.flags&flagIgnored != 0:
			budget.add(item{dir, n, false}, was)
		case n.kept():
		case n.kind == kindFile && n.size > r.s.opt.FileBytes:
			s.unkept = append(s.unkept, item{dir, n, false})
		default:
			s.fresh = append(s.fresh, item{dir, n, false})
		}
	}, s.index, begin, s.before)
	kept, unkept := budget.choose()
	s.fresh = append(s.fresh, kept...)
	s.unkept = append(s.unkept, unkept...)
	slices.SortFunc(s.fresh, func(a, b item) int {
		if c := comparePaths(a.dir, b.dir); c != 0 {
			return c
		}
		return strings.Compare(a.name, b.name)
	})
}

// An ignoredBudget chooses the ignored files that are kept: those that the begin has kept
// first, then the ones in the uppermost folders, where settings and databases are rather than
// what a tool has generated.
type ignoredBudget struct {
	opt    *Options
	levels [][]item // by depth; the first are those of the begin
	unkept []item
}

func (b *ignoredBudget) add(it item, was *node) {
	level := 0
	switch {
	case it.kind == kindFile && it.size > b.opt.IgnoredFileBytes, was != nil && !was.kept():
		if !it.kept() {
			b.unkept = append(b.unkept, it)
		}
		return
	case was == nil:
		level = 1 + strings.Count(it.dir, "/")
		if it.dir != "" {
			level++
		}
	}
	for len(b.levels) <= level {
		b.levels = append(b.levels, nil)
	}
	b.levels[level] = append(b.levels[level], it)
}

// choose returns the files to read, and those that are not kept.
func (b *ignoredBudget) choose() (fresh, unkept []item) {
	files, bytes := 0, int64(0)
	for _, level := range b.levels {
		for _, it := range level {
			fits := files < b.opt.IgnoredFiles && bytes+it.size <= b.opt.IgnoredBytes
			if fits {
				files, bytes = files+1, bytes+it.size
			}
			switch {
			case it.kept():
			case fits:
				fresh = append(fresh, it)
			default:
				b.unkept = append(b.unkept, it)
			}
		}
	}
	return fresh, b.unkept
}

// tick is the resolution of the times of files: two writes within it may leave the same time.
const tick = 12 * time.Millisecond

// settle waits until a write to any of the files gives it another time than the one that was
// read: only then an unchanged time means an unchanged file.
func (s *scan) settle(ctx context.Context) error {
	last := int64(0)
	now := time.Now()
	for i := range s.folders {
		for j := range s.folders[i].nodes {
			n := &s.folders[i].nodes[j]
			if at := max(n.ctime, n.mtime); at > last && at <= now.UnixNano() {
				last = at
			}
		}
	}
	return settled(ctx, last)
}

// settled waits until a time is so long ago that no file can get it any more.
func settled(ctx context.Context, last int64) error {
	resolution := tick
	if last%int64(time.Second) == 0 { // as on file systems with whole seconds, some of them with even ones
		resolution = 2 * time.Second
	}
	rest := resolution - time.Since(time.Unix(0, last))
	if rest <= 0 || rest > resolution {
		return nil
	}
	select {
	case <-time.After(rest):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// listed returns the files that git does not ignore. In a repository of the user that
// repository knows; it may have files although they are ignored, and rules in folders above
// the workspace. Elsewhere the rules are those of .gitignore files and the user's own.
func (r *repository) listed(ctx context.Context) ([]string, error) {
	user := r.s.git
	answer, err := user.Exec(ctx, r.workspace, "", "", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	if err != nil {
		return nil, err
	}
	if answer.Code != 0 || answer.Out == "" {
		// An index without files makes every file one of "others".
		user.Env = []string{"GIT_DIR=" + r.dir, "GIT_WORK_TREE=" + r.workspace, "GIT_INDEX_FILE=" + filepath.Join(r.dir, "no-index")}
		if answer, err = user.Exec(ctx, r.workspace, "", "", "ls-files", "-z", "--others", "--exclude-standard"); err != nil {
			return nil, err
		}
		if answer.Code != 0 {
			return nil, gitexec.Fatal("ls-files", answer)
		}
	}
	if answer.Cut {
		return nil, tooMany()
	}
	return strings.Split(strings.TrimSuffix(answer.Out, "\x00"), "\x00"), nil
}

// A folderReader opens folders of the workspace, and none through a link.
type folderReader struct {
	top  *openedFolder
	name string        // of the folder that was opened last
	dir  *openedFolder // it; nil if it is not a folder
}

func openReader(workspace string) (*folderReader, error) {
	top, err := openFolder(workspace)
	if err != nil {
		return nil, err
	}
	return &folderReader{top: top, name: "", dir: top}, nil
}

func (f *folderReader) close() {
	f.leave()
	f.top.close()
}

func (f *folderReader) leave() {
	if f.dir != nil && f.dir != f.top {
		f.dir.close()
	}
}

// enter returns the folder of a name, an error if it is none, or behind a link. It stays
// open until the next call.
func (f *folderReader) enter(name string) (*openedFolder, error) {
	dir, _ := splitPath(name)
	return f.folder(dir)
}

// folder is enter for the path of the folder itself.
func (f *folderReader) folder(dir string) (*openedFolder, error) {
	if dir == f.name && f.dir != nil {
		return f.dir, nil
	}
	f.leave()
	f.name, f.dir = dir, nil
	now := f.top
	for part := range strings.SplitSeq(dir, "/") {
		if part == "" {
			break
		}
		next, err := now.open(part)
		if now != f.top {
			now.close()
		}
		if err != nil {
			return nil, fmt.Errorf("%q: %w", dir, err)
		}
		now = next
	}
	f.dir = now
	return now, nil
}

// stat returns the state of a path now; nil if there is nothing.
func (f *folderReader) stat(name string) (*node, error) {
	dir, err := f.enter(name)
	if err == nil {
		var n node
		if n, err = dir.stat(path.Base(name)); err == nil {
			return &n, nil
		}
	}
	if gone(err) {
		err = nil
	}
	return nil, err
}

// forget closes the folder that was opened last: it may be replaced.
func (f *folderReader) forget() {
	f.leave()
	f.name, f.dir = "", f.top
}

// gone reports whether an error says that a path is missing: a part of it is missing, or
// is a file or link.
func gone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ELOOP)
}

// open opens a file for reading, and returns its state. Anything but a regular file is an error
// as of a missing one.
func (f *folderReader) open(name string) (*os.File, node, error) {
	dir, err := f.enter(name)
	if err != nil {
		return nil, node{}, err
	}
	file, err := dir.file(path.Base(name))
	if err != nil {
		return nil, node{}, err
	}
	n, err := statFile(file)
	if err == nil && n.kind != kindFile {
		err = fmt.Errorf("%q: %w", name, fs.ErrNotExist) // it was replaced
	}
	if err != nil {
		_ = file.Close() // only read
		return nil, n, err
	}
	return file, n, nil
}
