package host

import (
	"context"
	"crypto/rand"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/config"
	"github.com/sentinel-runtime/sentinel/host/confine"
	"github.com/sentinel-runtime/sentinel/host/foldersync"
	"github.com/sentinel-runtime/sentinel/host/internal/obeyed"
	"github.com/sentinel-runtime/sentinel/host/internal/rootfs"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// confines reports whether commands of agents and models are confined: what they can write is not
// taken for a person's then.
func (h *Host) confines() bool {
	return h.settings.Shell.Confine == config.Agents || h.settings.Shell.Confine == config.All
}

// confineShell returns the program that executes a command confined, if the commands of its
// caller are. It writes to the workspace, and to a home that is removed afterwards.
func (h *Host) confineShell(ctx context.Context, call *command.Call, cmd *exec.Cmd) (*exec.Cmd, func(context.Context) error, error) {
	switch h.settings.Shell.Confine {
	case config.All:
	case config.Agents:
		if call.By != command.ByModel && !call.ForAgent() {
			return nil, nil, nil
		}
	default:
		return nil, nil, nil
	}
	at, folder, err := h.confinedRoot(call.Workspace)
	if err != nil {
		return nil, nil, err
	}
	root, around := at.real, at.real
	begun, err := h.confining.begin(ctx, root)
	if err != nil {
		return nil, nil, fmt.Errorf("confine a command to %q: wait for git of the host, or for a restore of files: %w", root, err)
	}
	ends := false // what begun ends
	defer func() {
		if !ends {
			h.confining.end(begun)
		}
	}()
	if at.base == rootfs.EvalLinks(h.opt.Workspace) {
		around = at.base
	}
	dir := h.userDir("confined")
	h.leftHomes.Do(func() { // those of an earlier process
		if err := h.homes.Remove(dir); err != nil {
			h.opt.Logger.Warn("homes of confined commands are not removed", "path", dir, "error", err)
		}
	})
	hide, err := h.confinedWithout(call.Workspace, root)
	if err != nil {
		return nil, nil, err
	}
	inside, err := obeyed.Find(ctx, around, root, obeyedNames(), hide, &h.leftOver)
	if err != nil {
		return nil, nil, fmt.Errorf("confine a command to %q: find its repositories: %w", root, err)
	}
	protect, secluded := inside.Steering()
	scratch := filepath.Join(dir, rand.Text())
	if err := os.MkdirAll(scratch, 0o700); err != nil {
		return nil, nil, err
	}
	c := confine.Command{
		Argv: append([]string{cmd.Path}, cmd.Args[1:]...), Dir: cmd.Dir, Root: root, Folder: folder, Scratch: scratch, Env: map[string]string{},
		Hide: slices.Concat(hide, secluded), Read: h.settings.Verify.Read,
		Outside: h.ownFolders(),
		Protect: protect, // what steers there what the user's own git and other servers execute later
	}
	for _, entry := range cmd.Env {
		if name, value, _ := strings.Cut(entry, "="); !slices.Contains([]string{"HOME", "TMPDIR", "SSH_AUTH_SOCK"}, name) {
			c.Env[name] = value
		}
	}
	h.confining.know(begun, inside)
	confined, launch, err := confine.Program(&c)
	remove := func() {
		if err := h.homes.Remove(scratch); err != nil {
			h.opt.Logger.Warn("the home of a confined command is not removed", "path", scratch, "error", err)
		}
	}
	if err != nil {
		remove()
		return nil, nil, err
	}
	ends = true
	return confined, func(ctx context.Context) error {
		launch.Close()
		remove()
		err := inside.RefuseNew(ctx)
		h.confining.end(begun) // not before: the host must not work in what the command has made
		if err != nil {
			h.opt.Logger.Warn("a confined command made repositories", "workspace", root, "error", err)
		}
		return err
	}, nil
}

// confinedRoot returns a workspace without links, for a confined command, and the folder that was found
// there: the launcher gives the command that one and no other.
func (h *Host) confinedRoot(workspace string) (at place, folder fs.FileInfo, err error) {
	at, err = h.placeOf(workspace)
	if err != nil {
		return at, nil, err
	}
	if own := h.ownFolders(); slices.ContainsFunc(own, func(dir string) bool { return isWithin(at.real, dir) }) {
		return at, nil, &abi.Error{Code: abi.Denied, Permanent: true, Field: "workspace", Message: fmt.Sprintf("confine a command to %q: it is of the host", at.real)}
	}
	base, rest := at.base, at.rest
	if base == "" { // a person's choice
		base, rest = string(filepath.Separator), strings.TrimPrefix(at.real, string(filepath.Separator))
	}
	opened, err := rootfs.OpenBelow(base, filepath.Join(".", rest))
	if err != nil {
		return at, nil, err
	}
	defer opened.Close() // it is only looked at
	folder, err = opened.Stat(".")
	return at, folder, err
}

// confinedWithout returns what a command that is confined to a workspace does not see: the
// host's files. root is the workspace without links.
func (h *Host) confinedWithout(workspace, root string) ([]string, error) {
	below := func(path string) (string, bool) {
		rel, err := filepath.Rel(workspace, path)
		return filepath.Join(root, rel), err == nil && rel != "." && filepath.IsLocal(rel)
	}
	list := h.hostFiles().All()
	// Besides definitions, a folder under another name than .sentinel has what the host obeys
	// there later.
	if _, inside := below(h.dir); inside {
		list = append(list, h.dir)
	}
	for i, path := range list {
		if at, inside := below(path); inside {
			list[i] = at // a link in it is seen, which the command could replace
		}
	}
	// A folder that is not there yet could be made, and obeyed by the next host.
	folders := append(foldersync.Folders("", h.opt.Workspace), h.dir, h.state)
	if file := config.Path(h.opt.Getenv); file != "" {
		folders = append(folders, filepath.Dir(file))
	}
	for _, path := range folders {
		if at, inside := below(path); inside {
			if err := os.MkdirAll(at, 0o700); err != nil {
				return nil, err
			}
		}
	}
	return list, nil
}

// obeyedNames are the names by which this program finds in a folder what to execute, of which another
// server may be started in any folder of a workspace.
func obeyedNames() []string {
	list := []string{DirName}
	for _, path := range foldersync.Folders("", string(filepath.Separator)) {
		list = append(list, filepath.Base(path))
	}
	return list
}

// confinements are the confined commands that are being executed in workspaces, and the work trees in
// which the host works: its git, and restores of checkpoints. Git looks at a folder once and opens the files
// in it by their paths later. A command that puts a link in the place of the folder between the two would have
// git read or write files outside of the workspace. A restore follows no links, but what it compares and
// replaces would change under it. So neither works in a tree while a command is executed that can write it.
type confinements struct {
	mu       sync.Mutex
	commands map[*confinement]bool
	trees    map[*heldTree]bool
}

// A confinement is a confined command, from before its workspace is looked at until all its processes have
// ended.
type confinement struct {
	root string      // which it can write, without links
	set  *obeyed.Set // what was there before it; nil before that is known
}

// A heldTree is a work tree in which the host works.
type heldTree struct {
	folder   string // without links
	released chan struct{}
}

// overlap reports whether one of two folders is or holds the other.
func overlap(a, b string) bool { return isWithin(a, b) || isWithin(b, a) }

// begin notes a command that is about to be executed, until end is called with the result, and returns when
// the host works in no tree that it can write. No further work begins there: otherwise calls of git without
// a break would keep a command waiting.
func (c *confinements) begin(ctx context.Context, root string) (*confinement, error) {
	one := &confinement{root: root}
	c.mu.Lock()
	if c.commands == nil {
		c.commands = map[*confinement]bool{}
	}
	c.commands[one] = true
	var before []*heldTree
	for tree := range c.trees {
		if overlap(tree.folder, root) {
			before = append(before, tree)
		}
	}
	c.mu.Unlock()
	for _, tree := range before {
		select {
		case <-tree.released:
		case <-ctx.Done():
			c.end(one)
			return nil, ctx.Err()
		}
	}
	return one, nil
}

// know notes what was in the workspace of a command before it is executed.
func (c *confinements) know(one *confinement, set *obeyed.Set) {
	c.mu.Lock()
	defer c.mu.Unlock()
	one.set = set
}

// end notes that a command has ended with all its processes.
func (c *confinements) end(one *confinement) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.commands, one)
}

// holdTree keeps confined commands that can write a folder from beginning until release is called. The
// error is conflict if one is being executed: commands may run for days, so the host does not wait for them.
func (c *confinements) holdTree(folder string) (release func(), err error) {
	tree := &heldTree{folder: rootfs.EvalLinks(folder), released: make(chan struct{})}
	c.mu.Lock()
	defer c.mu.Unlock()
	for one := range c.commands {
		if overlap(tree.folder, one.root) {
			return nil, &abi.Error{Code: abi.Conflict, Message: fmt.Sprintf("files of %q are not worked on: a confined command is being executed in %q, and could put links in the place of folders", folder, one.root),
				Hint: "wait until it has ended, or end it with code/shell/kill (code/shell/list has its id)"}
		}
	}
	if c.trees == nil {
		c.trees = map[*heldTree]bool{}
	}
	c.trees[tree] = true
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.trees, tree)
		close(tree.released)
	}, nil
}

// checkRepository returns an error if one of the commands may have made the repository of a folder, whose
// links are resolved: it could change the settings between the look at them and their use.
func (c *confinements) checkRepository(folder string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for one := range c.commands {
		if one.set != nil && !one.set.Knows(folder) {
			return &abi.Error{Code: abi.Conflict, Message: fmt.Sprintf("git: a confined command that is being executed may have made the repository in %q", folder),
				Hint: "wait until the command has ended, which renames what it has made; git of the host makes repositories by the operation init of code/git"}
		}
	}
	return nil
}
