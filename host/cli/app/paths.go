package app

import (
	"path/filepath"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/host/cli/output"
)

// globalFlags are the flags of every verb.
type globalFlags struct {
	Output    string
	Workspace string
	State     string
	Plugins   string
	Trust     []string
	Untrusted bool
	As        string
	Verbose   bool
	Quiet     bool
}

// Path makes a path of the command line absolute.
func (a *App) Path(p string) string {
	if p == "" || filepath.IsAbs(p) {
		return p
	}
	return filepath.Join(a.Env.Dir, p)
}

// Workspace returns the workspace of runs and commands of this invocation.
func (a *App) Workspace() string {
	switch {
	case a.Flags.Workspace != "":
		return a.Path(a.Flags.Workspace)
	case filepath.Base(a.ServedDir) == host.DirName:
		return filepath.Dir(a.ServedDir) // its project
	}
	return a.Env.Dir
}

// Dir returns the folder that is served, else the nearest .sentinel folder.
func (a *App) Dir() string {
	if a.ServedDir != "" {
		return a.ServedDir
	}
	return host.FindDir(a.Workspace())
}

// MovesTo returns the folder that --workspace names for a verb that moves a run there, empty for
// none. The run is in the project of the current folder, unless that folder is a project itself.
func (a *App) MovesTo() string {
	if a.Flags.Workspace == "" {
		return ""
	}
	here := host.FindDir(a.Env.Dir)
	if a.ServedDir == "" && IsDir(here) && !IsDir(filepath.Join(a.Workspace(), host.DirName)) {
		a.ServedDir = here
	}
	return a.Workspace()
}

// State returns the folder of the store.
func (a *App) State() string {
	if a.Flags.State != "" {
		return a.Path(a.Flags.State)
	}
	return filepath.Join(a.Dir(), "state")
}

// SameStore returns the flags with which a later invocation in the same folder uses the
// same store.
func (a *App) SameStore() string {
	s := ""
	if a.Flags.Workspace != "" {
		s += " --workspace " + output.Quote(a.Flags.Workspace)
	}
	if a.Flags.State != "" {
		s += " --state " + output.Quote(a.Flags.State)
	}
	if a.Flags.Plugins != "" {
		s += " --plugins " + output.Quote(a.Flags.Plugins)
	}
	for _, p := range a.Flags.Trust {
		s += " --trust " + output.Quote(p)
	}
	return s
}

// ProjectDir returns the .sentinel folder of a project's folder, or dir itself.
func ProjectDir(dir string) string {
	if inside := filepath.Join(dir, host.DirName); IsDir(inside) {
		return inside
	}
	return filepath.Clean(dir)
}
