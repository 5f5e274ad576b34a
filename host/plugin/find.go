package plugin

import (
	"fmt"
	"strings"

	"github.com/sentinel-runtime/sentinel/runtime/plugin"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A version is what the operator decides about: the newest one of a plugin, or
// the one that a digest names.
type version struct {
	info        plugin.Info // of the plugin as it is listed
	digest      string
	number      string
	permissions []plugin.Permission
}

// find returns the version of a plugin by its name, or by its file's, and the
// beginning of a digest, "" for the newest.
func (f family) find(name, digest string) (version, error) {
	var all []version
	var names []string
	for _, p := range f.opt.Plugins.Plugins() {
		names = append(names, p.Name)
		if p.Name != name && p.Source != name {
			continue
		}
		if p.Trusted {
			return version{}, &abi.Error{Code: abi.Denied, Permanent: true, Message: fmt.Sprintf("plugin %q is part of this program and has all it asks for", p.Name)}
		}
		own := []version{{p, p.Digest, p.Version, p.Permissions}}
		if n := p.Next; n != nil {
			own = append(own, version{p, n.Digest, n.Version, n.Permissions})
		}
		// Without a digest the newest is meant: what serves was decided about.
		if digest == "" {
			own = own[len(own)-1:]
		}
		for _, v := range own {
			if v.digest != "" && strings.HasPrefix(v.digest, digest) {
				all = append(all, v)
			}
		}
	}
	switch {
	case len(all) == 1:
		return all[0], nil
	case len(all) > 1: // names are the plugins' own words, so two files may claim one
		e := &abi.Error{Code: abi.Conflict, Message: fmt.Sprintf("several files hold a plugin %q", name), Hint: "name one by its file or its digest:"}
		for _, v := range all {
			e.Hint += fmt.Sprintf(" %s (%.12s)", v.info.Source, v.digest)
		}
		return version{}, e
	case digest != "":
		return version{}, &abi.Error{Code: abi.Conflict, Field: "digest", Message: fmt.Sprintf("no version of plugin %q that is there has the digest %.64q", name, digest),
			Hint: "its file has changed: sentinel plugin list"}
	}
	e := &abi.Error{Code: abi.NotFound, Message: fmt.Sprintf("no plugin %.64q", name), Hint: "sentinel plugin list shows them"}
	if near := sentinels.Suggest(name, names); len(near) > 0 {
		e.Hint = fmt.Sprintf("did you mean %q?", near[0])
	}
	return version{}, e
}
