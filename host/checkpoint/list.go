package checkpoint

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/sentinel-runtime/sentinel/host/internal/gitexec"
	"github.com/sentinel-runtime/sentinel/host/internal/rootfs"
)

// Uncovered counts what a checkpoint does not cover.
type Uncovered struct {
	Ignored      int      `json:"ignored,omitempty" jsonschema:"files and whole folders that git ignores"`
	Repositories []string `json:"repositories,omitempty" jsonschema:"nested repositories and submodules; the first 20"`
	Large        []string `json:"large,omitempty" jsonschema:"files above the limit; the first 20"`
	Unreadable   []string `json:"unreadable,omitempty" jsonschema:"files that could not be read; the first 20"`
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

// A listing is the names in a workspace.
type listing struct {
	names   []string // files that are to be covered, sorted; some may be missing or folders
	before  []string // files in the index, sorted
	touched []string // files in the index that may have changed since, sorted
	left    []string // temporary files of a restore that was interrupted
	Uncovered
}

// list asks git what there is. Its questions do not depend on each other.
func (r *repository) list(ctx context.Context) (*listing, error) {
	l := &listing{}
	tasks := []func() error{
		func() (err error) { l.names, l.Ignored, err = r.wanted(ctx); return err },
		func() (err error) { l.before, err = r.names(ctx, "ls-files", "-z", "--cached"); return err },
		// Without looking into files whose time or size differs: each is read once, later.
		func() (err error) { l.touched, err = r.names(ctx, "diff-files", "-z", "--name-only"); return err },
	}
	errs := make([]error, len(tasks))
	var done sync.WaitGroup
	for i, task := range tasks {
		done.Go(func() { errs[i] = task() })
	}
	done.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	kept := l.names[:0]
	for _, name := range l.names {
		switch nested := strings.HasSuffix(name, "/"); {
		case strings.HasPrefix(path.Base(name), restorePrefix):
			l.left = append(l.left, name)
		case !filepath.IsLocal(filepath.FromSlash(name)) || r.excluded(name) || rootfs.IsTemp(path.Base(name)):
		case nested:
			l.add(&l.Repositories, strings.TrimSuffix(name, "/"))
		default:
			kept = append(kept, name)
		}
	}
	if l.names = kept; len(kept) > maxFiles {
		return nil, tooMany()
	}
	return l, nil
}

// names returns the names that git prints, sorted.
func (r *repository) names(ctx context.Context, args ...string) ([]string, error) {
	out, err := r.must(ctx, "", args...)
	if err != nil {
		return nil, err
	}
	return split(out), nil
}

// split returns names that end with a zero byte, sorted and without duplicates.
func split(out string) []string {
	names := strings.Split(out, "\x00")
	names = names[:len(names)-1]
	slices.Sort(names)
	return slices.Compact(names)
}

// wanted returns the files that git does not ignore, and how many files and folders it
// ignores. In a repository of the user that repository knows; it may have files although
// they are ignored, and rules in folders above the workspace. Elsewhere the rules are those
// of .gitignore files and the user's own.
func (r *repository) wanted(ctx context.Context) (names []string, ignored int, err error) {
	user := r.s.git
	answer, err := user.Exec(ctx, r.workspace, "", "", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	inside := err == nil && answer.Code == 0 && answer.Out != ""
	if ctx.Err() != nil {
		return nil, 0, err
	}
	if !inside {
		// An index without files makes every file one of "others".
		user.Env = []string{"GIT_DIR=" + r.dir, "GIT_WORK_TREE=" + r.workspace, "GIT_INDEX_FILE=" + filepath.Join(r.dir, "no-index")}
		if answer, err = user.Exec(ctx, r.workspace, "", "", "ls-files", "-z", "--others", "--exclude-standard"); err != nil {
			return nil, 0, err
		}
		if answer.Code != 0 {
			return nil, 0, gitexec.Fatal("ls-files", answer)
		}
	}
	if answer.Cut {
		return nil, 0, tooMany()
	}
	skipped, err := user.Exec(ctx, r.workspace, "", "", "ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")
	if err != nil {
		return nil, 0, err
	}
	for name := range strings.SplitSeq(skipped.Out, "\x00") {
		if name != "" && !r.excluded(name) {
			ignored++
		}
	}
	return split(answer.Out), ignored, nil
}

// excluded reports whether a name is in a folder that is not covered.
func (r *repository) excluded(name string) bool {
	return slices.ContainsFunc(r.exclude, func(dir string) bool { return dir == "./" || strings.HasPrefix(name+"/", dir) })
}

// A folderReader opens folders of the workspace, and none through a link.
type folderReader struct {
	root *os.Root
	name string   // of the folder that was opened last
	dir  *os.Root // it; nil if it is not a folder
}

func openReader(workspace string) (*folderReader, error) {
	root, err := os.OpenRoot(workspace)
	if err != nil {
		return nil, err
	}
	return &folderReader{root: root, name: ".", dir: root}, nil
}

func (f *folderReader) close() {
	f.leave()
	_ = f.root.Close() // only looked at
}

func (f *folderReader) leave() {
	if f.dir != nil && f.dir != f.root {
		_ = f.dir.Close() // only looked at
	}
}

// enter returns the folder of a name, an error if it is none, or behind a link. It stays
// open until the next call.
func (f *folderReader) enter(name string) (*os.Root, error) {
	dir := path.Dir(name)
	if dir == f.name && f.dir != nil {
		return f.dir, nil
	}
	f.leave()
	f.name, f.dir = dir, nil
	now := f.root
	for part := range strings.SplitSeq(dir, "/") {
		if part == "." {
			break
		}
		info, err := now.Lstat(part)
		var next *os.Root
		if err == nil && !info.IsDir() {
			err = fmt.Errorf("%q: %w", name, syscall.ENOTDIR)
		}
		if err == nil {
			next, err = now.OpenRoot(part)
		}
		if now != f.root {
			_ = now.Close() // only looked at
		}
		if err != nil {
			return nil, err
		}
		now = next
	}
	f.dir = now
	return now, nil
}
