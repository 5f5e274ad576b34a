package plugin

import (
	"context"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Grants is the operator's word on plugins that do not ship with the program.
// An implementation is safe for concurrent use, and must not call the runtime.
type Grants interface {
	// Grant returns what a version of a plugin may do; p has its name, version,
	// digest, step types and permissions, and its source unless only a parked step needs
	// it. The error *[abi.Error] with code denied means that it has to
	// wait for the operator: the plugin is listed as waiting and the version that
	// was live before continues to serve. Grant is asked again at [runtime.Runtime.Regrant].
	Grant(ctx context.Context, p Info) (Grant, error)
}

// A Grant is what a plugin may do: a part of what it asks for, and the
// operator's own words about it. The zero value allows what needs no grant.
type Grant struct {
	// Allow is what the plugin asked for and is allowed, reasons left out. A use
	// that is not in it is denied, and so is a name that no entry of its use fits.
	Allow []Permission `json:"allow,omitempty"`
	// Reuse lets instances serve several calls, if the plugin is stateless.
	Reuse bool `json:"reuse,omitempty"`
	// Private lets requests go to addresses that are not public.
	Private bool `json:"private,omitempty"`
	// Secrets are the names that requests may carry, each with the hosts, as in
	// a permission for http, that may be sent it.
	Secrets map[string][]string `json:"secrets,omitempty"`
	// Folders are the plugin's own words for folders, each with the folder meant:
	// absolute, or relative to the run's workspace.
	Folders map[string]Folder `json:"folders,omitempty"`
	// Memory is how many bytes a guest of the plugin may have, within the limit of the
	// run and [MaxMemory]. Zero is the limit GuestMemory of the runtime.
	Memory int64 `json:"memory,omitempty"`
	// TimeoutMs bounds a step of the plugin, below the bound of the run. Zero adds none.
	TimeoutMs int64 `json:"timeoutMs,omitempty"`
}

// MaxMemory is how many bytes a guest may have, whatever it was granted.
const MaxMemory = 1 << 30

// A Folder is a folder that a plugin may use.
type Folder struct {
	Path  string `json:"path"`
	Write bool   `json:"write,omitempty"`
}

// Names returns the names that are allowed for a use. No names have the meaning that
// clause A2.4 defines; ok is false if the use is not allowed.
func (g Grant) Names(use abi.Use) (names []string, ok bool) {
	for _, a := range g.Allow {
		if a.Use != string(use) {
			continue
		}
		if ok = true; len(a.Names) == 0 && anyName(use) {
			return nil, true
		}
		names = append(names, a.Names...)
	}
	return names, ok
}

// anyName reports whether a permission without names is for any name.
func anyName(use abi.Use) bool {
	return use == abi.UseLLM || use == abi.UseEmit || use == abi.UseWatch
}

// Allows reports whether the grant has a use for a name. No names in the grant
// allow any name of the uses where clause A2.4 allows it. What a pattern of
// commands means depends on the commands, so it is not asked here about them.
func (g Grant) Allows(use abi.Use, name string) bool {
	names, ok := g.Names(use)
	if !ok {
		return false
	}
	if len(names) == 0 {
		return anyName(use) || name == ""
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

// Missing returns the part of permissions that the grant does not cover. It is strict:
// of commands and hosts a name counts as covered only if the same name or
// pattern is allowed, since what a pattern means depends on what there is.
func (g Grant) Missing(permissions []Permission) []Permission {
	var missing []Permission
	for _, a := range permissions {
		use := abi.Use(a.Use)
		names, ok := g.Names(use)
		if !ok {
			missing = append(missing, a)
			continue
		}
		if len(names) == 0 && anyName(use) {
			continue
		}
		if len(a.Names) == 0 {
			if anyName(use) { // it asks for any, some are allowed
				missing = append(missing, a)
			}
			continue
		}
		var left []string
		for _, name := range a.Names {
			if !slices.ContainsFunc(names, func(have string) bool { return coversName(use, have, name) }) {
				left = append(left, name)
			}
		}
		if len(left) > 0 {
			missing = append(missing, Permission{Use: a.Use, Names: left, Reason: a.Reason})
		}
	}
	return missing
}

// coversName reports whether all that a name or pattern stands for is allowed by
// another one.
func coversName(use abi.Use, have, want string) bool {
	switch use {
	case abi.UseFolder:
		return have == want || have == want+":rw"
	case abi.UseLLM, abi.UseEmit, abi.UseSpawn:
		prefix, open := strings.CutSuffix(have, "*")
		return have == want || open && strings.HasPrefix(want, prefix)
	}
	return have == want
}
