package runtime

import (
	"context"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Grants is the operator's word on plugins that do not ship with the program.
// An implementation is safe for concurrent use.
type Grants interface {
	// Grant returns what a version of a plugin may do; p has its name, version,
	// digest and asks. The error *[abi.Error] with code denied says that it has to
	// wait for the operator: the plugin is listed as waiting and the version that
	// was live before goes on serving. Grant is asked again at [Runtime.Regrant].
	Grant(ctx context.Context, p PluginInfo) (Grant, error)
}

// A Grant is what a plugin may do: a part of what it asks for, and the
// operator's own words about it. The zero value allows what needs no grant.
type Grant struct {
	// Allow is what the plugin asked for and is allowed, reasons left out. A use
	// that is not in it is denied, and so is a name that no entry of its use fits.
	Allow []PluginAsk `json:"allow,omitempty"`
	// Reuse lets instances serve several calls, if the plugin is stateless.
	Reuse bool `json:"reuse,omitempty"`
	// Private lets requests go to addresses that are not public.
	Private bool `json:"private,omitempty"`
	// Secrets are the names that requests may carry, each with the hosts, as in
	// an ask for http, that may be sent it.
	Secrets map[string][]string `json:"secrets,omitempty"`
	// Folders are the plugin's own words for folders, each with the folder meant:
	// absolute, or relative to the run's workspace.
	Folders map[string]Folder `json:"folders,omitempty"`
	// Memory and TimeoutMs bound a step of the plugin, in bytes and milliseconds,
	// below the bounds of the run. Zero adds none.
	Memory    int64 `json:"memory,omitempty"`
	TimeoutMs int64 `json:"timeoutMs,omitempty"`
}

// A Folder is a folder that a plugin may use.
type Folder struct {
	Path  string `json:"path"`
	Write bool   `json:"write,omitempty"`
}

// Names returns what is allowed of a use; ok is false if nothing is.
func (g Grant) Names(use abi.Use) (names []string, ok bool) {
	for _, a := range g.Allow {
		if a.Use == string(use) {
			names, ok = append(names, a.Names...), true
		}
	}
	return names, ok
}

// Allows reports whether the grant has a use for a name. No names in the grant
// allow any name of the uses where clause A2.4 says so.
func (g Grant) Allows(use abi.Use, name string) bool {
	names, ok := g.Names(use)
	if !ok {
		return false
	}
	if len(names) == 0 {
		return use == abi.UseLLM || use == abi.UseEmit || use == abi.UseWatch || name == ""
	}
	return slices.ContainsFunc(names, func(pattern string) bool { return fitsName(pattern, name) })
}

// fitsName compares a name with itself, with a pattern that ends in *, or with
// the pattern * alone.
func fitsName(pattern, name string) bool {
	if prefix, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(name, prefix)
	}
	return pattern == name
}
