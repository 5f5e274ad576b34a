package host

import (
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/config"
	"github.com/sentinel-runtime/sentinel/host/confine"
	"github.com/sentinel-runtime/sentinel/host/foldersync"
	"github.com/sentinel-runtime/sentinel/host/internal/obeyed"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// confineShell returns the program that executes a command confined, if the commands of its
// caller are. It writes to the workspace, and to a home that is removed afterwards.
func (h *Host) confineShell(call *command.Call, cmd *exec.Cmd) (*exec.Cmd, func() error, error) {
	switch h.settings.Shell.Confine {
	case config.All:
	case config.Agents:
		if call.By != command.ByAgent && call.By != command.ByModel {
			return nil, nil, nil
		}
	default:
		return nil, nil, nil
	}
	root, err := h.confinedRoot(call.Workspace)
	if err != nil {
		return nil, nil, err
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
	inside, err := obeyed.Find(root, obeyedNames(), hide, &h.leftOver)
	if err != nil {
		return nil, nil, fmt.Errorf("confine a command to %q: find its repositories: %w", root, err)
	}
	protect, secluded := inside.Steering()
	scratch := filepath.Join(dir, rand.Text())
	if err := os.MkdirAll(scratch, 0o700); err != nil {
		return nil, nil, err
	}
	c := confine.Command{
		Argv: append([]string{cmd.Path}, cmd.Args[1:]...), Dir: cmd.Dir, Root: root, Scratch: scratch, Env: map[string]string{},
		Hide: slices.Concat(hide, secluded), Read: h.settings.Verify.Read,
		Protect: protect, // what steers there what the user's own git and other servers execute later
	}
	for _, entry := range cmd.Env {
		if name, value, _ := strings.Cut(entry, "="); !slices.Contains([]string{"HOME", "TMPDIR", "SSH_AUTH_SOCK"}, name) {
			c.Env[name] = value
		}
	}
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
	return confined, func() error {
		launch.Close()
		remove()
		err := inside.RefuseNew()
		if err != nil {
			h.opt.Logger.Warn("a confined command made repositories", "workspace", root, "error", err)
		}
		return err
	}, nil
}

// confinedRoot returns a workspace without links, for a confined command. A link below the served
// workspace may have been left there by an earlier command, which could lead a later one anywhere.
func (h *Host) confinedRoot(workspace string) (string, error) {
	root, err := filepath.EvalSymlinks(workspace)
	if err != nil {
		return "", err
	}
	served, err := filepath.EvalSymlinks(h.opt.Workspace)
	if err != nil {
		return "", err
	}
	// Where the path enters the served workspace, the rest has to have no link.
	for at := filepath.Clean(workspace); at != filepath.Dir(at); at = filepath.Dir(at) {
		real, err := filepath.EvalSymlinks(at)
		if err != nil || real != served {
			continue
		}
		rest, err := filepath.Rel(at, filepath.Clean(workspace))
		if err == nil && filepath.Join(real, rest) == root {
			return root, nil
		}
		return "", &abi.Error{Code: abi.Denied, Permanent: true, Message: fmt.Sprintf("confine a command to %q: a link below %q leads to %q", workspace, at, root),
			Hint: "name the folder itself as the workspace"}
	}
	return root, nil
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
