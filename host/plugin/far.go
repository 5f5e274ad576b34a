package plugin

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/runtime/plugin"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// far lists what of a grant reaches so far that a changed module should not have it
// without being looked at, each in a few words. Models are not in it: they cost,
// but a run has its budget. Neither are named hosts, to which a plugin can carry
// only what its definition hands it. Models and notifiers are given what others wrote, and
// no definition says what.
func (f family) far(g plugin.Grant) (far []string) {
	if g.Allows(abi.UseProvide, string(abi.RoleModel)) {
		far = append(far, "answering as a model: it gets the prompts and results of steps")
	}
	if g.Allows(abi.UseProvide, string(abi.RoleNotifier)) {
		far = append(far, "sending notifications: it gets their texts")
	}
	for _, a := range g.Allow {
		if a.Use != string(abi.UseCommand) {
			continue
		}
		for _, name := range a.Names {
			switch c, known := f.lookup(name); {
			case name == "*":
				far = append(far, "every public command, those that write files among them")
			case strings.HasSuffix(name, "/*"):
				far = append(far, "every command of "+name)
			case !known: // perhaps of a tool server that is away
				far = append(far, fmt.Sprintf("the command %s, which is not known here", name))
			case !c.ReadOnly():
				far = append(far, "the command "+name)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(g.Secrets)) {
		far = append(far, fmt.Sprintf("the secret %s, sent to %s", name, strings.Join(g.Secrets[name], ", ")))
	}
	for _, word := range slices.Sorted(maps.Keys(g.Folders)) {
		folder := g.Folders[word]
		switch {
		case folder.Write:
			far = append(far, "writing in "+folder.Path)
		case filepath.IsAbs(folder.Path):
			far = append(far, "reading "+folder.Path)
		}
	}
	if g.Private {
		far = append(far, "requests to addresses that are not public")
	}
	return far
}

// lookup finds a command by its name.
func (f family) lookup(name string) (c command.Command, ok bool) {
	if f.opt.Lookup == nil {
		return c, false
	}
	return f.opt.Lookup(name)
}
