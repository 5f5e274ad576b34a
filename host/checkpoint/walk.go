package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/sentinel-runtime/sentinel/host/internal/rootfs"
)

// maxDepth limits folders in each other. Deeper ones count as unreadable: each level on the way has a
// file descriptor, and a confined command makes tens of thousands in a second.
const maxDepth = 250

// walkers is how many folders are read at the same time.
const walkers = 4

// A walk reads what there is in a workspace, and no content. It follows no link.
type walk struct {
	exclude []string // folders that are left out, relative
	free    chan struct{}
	paths   atomic.Int64

	mu   sync.Mutex
	err  error
	left []string // temporary files of a restore that was interrupted
}

// A visit is one folder, and those in it.
type visit struct {
	folder
	subs []*visit
}

// walk returns the index of the workspace without contents, and the temporary files that a
// restore which was killed left.
func (r *repository) walk(ctx context.Context) (*index, []string, error) {
	w := &walk{free: make(chan struct{}, walkers-1)}
	for _, dir := range r.exclude {
		w.exclude = append(w.exclude, strings.TrimSuffix(dir, "/"))
	}
	if slices.Contains(w.exclude, ".") {
		return &index{}, nil, nil
	}
	top, err := openFolder(r.workspace)
	if err != nil {
		return nil, nil, err
	}
	state, _, err := top.itself()
	if err != nil {
		top.close()
		return nil, nil, err
	}
	x := &index{root: root{state.ino, top.mounted("")}}
	v := w.visit(ctx, top, "")
	if w.err != nil {
		return nil, nil, w.err
	}
	x.flatten(v)
	return x, w.left, nil
}

func (x *index) flatten(v *visit) {
	if v == nil {
		return
	}
	x.folders = append(x.folders, v.folder)
	for _, sub := range v.subs {
		x.flatten(sub)
	}
}

func (w *walk) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = err
	}
}

// visit reads a folder, which it closes. It returns nil if the folder was removed since it was
// opened.
func (w *walk) visit(ctx context.Context, dir *openedFolder, name string) *visit {
	v := &visit{folder: folder{path: name}}
	nodes, err := dir.list()
	if err == nil {
		_, v.id, err = dir.itself()
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	if errors.Is(err, fs.ErrNotExist) && name != "" {
		dir.close()
		return nil
	}
	if err != nil {
		dir.close()
		w.fail(fmt.Errorf("read folder %q: %w", path.Join(".", name), err))
		return v
	}
	if w.paths.Add(int64(len(nodes))) > maxPaths {
		dir.close()
		w.fail(tooMany())
		return v
	}
	v.nodes = slices.DeleteFunc(nodes, func(n node) bool { return w.skip(name, n) })
	var started sync.WaitGroup
	subs := make([]*visit, len(v.nodes)) // each walker writes its own
	for i := range v.nodes {
		n := &v.nodes[i]
		switch {
		case strings.EqualFold(n.name, ".git") && n.kind != kindLink:
			n.content = content{storeState, dir.gitState(n)}
			n.kind = kindGit
		case n.kind == kindFolder:
			child := join(name, n.name)
			if strings.Count(child, "/") >= maxDepth {
				n.flags |= flagUnreadable
				continue
			}
			sub := w.enter(dir, n)
			if sub == nil {
				continue
			}
			select {
			case w.free <- struct{}{}:
				started.Go(func() {
					subs[i] = w.visit(ctx, sub, child)
					<-w.free
				})
			default:
				subs[i] = w.visit(ctx, sub, child)
			}
		}
	}
	dir.close()
	started.Wait()
	for i := range v.nodes {
		if n := &v.nodes[i]; n.kind == kindFolder && subs[i] == nil && n.flags&flagUnreadable == 0 {
			n.kind = 0 // it was removed since
		}
	}
	v.nodes = slices.DeleteFunc(v.nodes, func(n node) bool { return n.kind == 0 })
	v.subs = slices.DeleteFunc(subs, func(sub *visit) bool { return sub == nil })
	return v
}

// enter opens a folder. It returns nil if that is not possible, and sets the node to what there is
// if the folder was removed or replaced since its state was read.
func (w *walk) enter(dir *openedFolder, n *node) *openedFolder {
	sub, err := dir.open(n.name)
	if gone(err) {
		var now node
		if now, err = dir.stat(n.name); err == nil || gone(err) {
			*n = now // without a kind if it is gone
		}
		if n.kind != kindFolder {
			return nil
		}
		if err == nil {
			sub, err = dir.open(n.name)
		}
	}
	if err == nil {
		if sub.mounted("") {
			n.flags |= flagMounted
		}
		return sub
	}
	if exhausted(err) {
		w.fail(err)
	}
	n.flags |= flagUnreadable
	return nil
}

// skip reports whether a name is not part of the workspace: folders of the host, and
// temporary files.
func (w *walk) skip(dir string, n node) bool {
	if n.kind == kindFolder {
		return len(w.exclude) > 0 && slices.Contains(w.exclude, join(dir, n.name))
	}
	if !rootfs.IsTemp(n.name) {
		return false
	}
	if strings.HasPrefix(n.name, restorePrefix) {
		w.mu.Lock()
		w.left = append(w.left, join(dir, n.name))
		w.mu.Unlock()
	}
	return true
}

// gitNames are what the state of a .git consists of: what it refers to, and what it makes
// git do. Its index, logs and objects are left out, which reading commands change too.
var gitNames = []string{"HEAD", "packed-refs", "config", "refs", "hooks", "info"}
