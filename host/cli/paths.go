package cli

import (
	"path/filepath"

	"github.com/sentinel-runtime/sentinel/host"
)

// globalFlags are understood by every verb.
type globalFlags struct {
	output    string
	workspace string
	state     string
	plugins   string
	trust     []string
	verbose   bool
	quiet     bool
}

// path makes a path of the command line absolute.
func (a *app) path(p string) string {
	if p == "" || filepath.IsAbs(p) {
		return p
	}
	return filepath.Join(a.env.Dir, p)
}

// workspace is where runs and commands of this invocation work.
func (a *app) workspace() string {
	switch {
	case a.flags.workspace != "":
		return a.path(a.flags.workspace)
	case filepath.Base(a.served) == host.DirName:
		return filepath.Dir(a.served) // the project that it belongs to
	}
	return a.env.Dir
}

// dir is the folder that is served, else the nearest .sentinel folder.
func (a *app) dir() string {
	if a.served != "" {
		return a.served
	}
	return host.FindDir(a.workspace())
}

// state is the folder of the store.
func (a *app) state() string {
	if a.flags.state != "" {
		return a.path(a.flags.state)
	}
	return filepath.Join(a.dir(), "state")
}

// sameStore is the flags that lead a later invocation from the same folder to the
// same store.
func (a *app) sameStore() string {
	s := ""
	if a.flags.workspace != "" {
		s += " --workspace " + quoted(a.flags.workspace)
	}
	if a.flags.state != "" {
		s += " --state " + quoted(a.flags.state)
	}
	if a.flags.plugins != "" {
		s += " --plugins " + quoted(a.flags.plugins)
	}
	for _, p := range a.flags.trust {
		s += " --trust " + quoted(p)
	}
	return s
}

// servedDir takes a project's folder for its .sentinel folder.
func servedDir(dir string) string {
	if inside := filepath.Join(dir, host.DirName); isDir(inside) {
		return inside
	}
	return filepath.Clean(dir)
}
