//go:build !linux

package confine

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os/exec"
)

// start returns the process that executes a plan: the command itself, since this system has
// nothing to restrict it with.
func start(p *plan) (*exec.Cmd, error) {
	if p.Offline {
		return nil, errors.New("confine: only Linux closes the network of a command")
	}
	return &exec.Cmd{Path: p.Path, Args: p.Args, Dir: p.Dir, Env: p.Env}, nil
}

// promise returns what is wanted: this system does not limit a command.
func promise(want uint64) (uint64, error) { return want, nil }

func release(uint64) {}

func (c *cgroup) remove() {}

func (c *cgroup) exceeded() string { return "" }

// ProcessLimit returns the limit of commands, which has no other on this system.
func ProcessLimit() (n uint64, by string) { return Limits{}.withDefaults().Processes, "" }

// Unreadable returns "": a command reads what the user does.
func Unreadable(string, []string) string { return "" }

// idOf returns none: nothing on this system compares it.
func idOf(fs.FileInfo) *folderID { return nil }

func gaps() []Gap {
	return []Gap{
		{WallNamespaces, "only Linux has namespaces: commands can read the home folder, write outside of the checkout and leave processes behind; they have no limits of memory and processes"},
		{WallLandlock, "only Linux has Landlock"},
		{WallSeccomp, "only Linux has a filter of system calls"},
		{WallCgroup, "only Linux has cgroups"},
	}
}

// Dial connects to a port of an offline command, which there is none of on this system.
func (p *Process) Dial(context.Context, string) (net.Conn, error) {
	return nil, errors.New("confine: only Linux closes the network of a command")
}
