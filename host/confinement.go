package host

import (
	"crypto/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/config"
	"github.com/sentinel-runtime/sentinel/host/confine"
)

// confineShell returns the program that executes a command confined, if the commands of its
// caller are. It writes to the workspace, and to a home that is removed afterwards.
func (h *Host) confineShell(call *command.Call, cmd *exec.Cmd) (*exec.Cmd, func(), error) {
	switch h.settings.Shell.Confine {
	case config.All:
	case config.Agents:
		if call.By != command.ByAgent && call.By != command.ByModel {
			return nil, nil, nil
		}
	default:
		return nil, nil, nil
	}
	root, err := filepath.EvalSymlinks(call.Workspace)
	if err != nil {
		return nil, nil, err
	}
	dir := h.userDir("confined")
	h.leftHomes.Do(func() { // those of an earlier process
		if err := h.homes.Remove(dir); err != nil {
			h.opt.Logger.Warn("homes of confined commands are not removed", "path", dir, "error", err)
		}
	})
	// A folder that is not there yet could be made, and obeyed by the next host.
	if rel, err := filepath.Rel(root, h.dir); err == nil && filepath.IsLocal(rel) {
		if err := os.MkdirAll(h.dir, 0o755); err != nil {
			return nil, nil, err
		}
	}
	scratch := filepath.Join(dir, rand.Text())
	if err := os.MkdirAll(scratch, 0o700); err != nil {
		return nil, nil, err
	}
	c := confine.Command{
		Argv: append([]string{cmd.Path}, cmd.Args[1:]...), Dir: cmd.Dir, Root: root, Scratch: scratch, Env: map[string]string{},
		Hide: h.hostFiles().All(), Read: h.settings.Verify.Read,
	}
	for _, entry := range cmd.Env {
		if name, value, _ := strings.Cut(entry, "="); name != "HOME" && name != "TMPDIR" {
			c.Env[name] = value
		}
	}
	// Settings and hooks there steer what the user's own git executes later.
	c.Protect = []string{filepath.Join(root, ".git")}
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
	return confined, func() { launch.Close(); remove() }, nil
}
