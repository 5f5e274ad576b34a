package plugin

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/runtime/plugin"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// chosen returns the part of the permissions that is allowed: all, without the uses in
// deny, and of the uses in only no more than the names there.
func chosen(permissions []plugin.Permission, only []use, deny []string) ([]plugin.Permission, error) {
	// A permission that the plugin does not ask for is an error and not ignored:
	// the user who typed it expects an effect.
	all := plugin.Grant{Allow: permissions}
	for _, name := range deny {
		if _, asked := all.Names(abi.Use(name)); !asked {
			return nil, wrong("deny", fmt.Sprintf("it does not ask for %.40q", name), "it asks for "+listPermissions(permissions))
		}
	}
	// Several words on one use add up, as several flags do.
	narrow := map[string][]string{}
	for _, o := range only {
		names, ok := all.Names(abi.Use(o.Use))
		if !ok {
			return nil, wrong("only", fmt.Sprintf("it does not ask for %.40q", o.Use), "it asks for "+listPermissions(permissions))
		}
		for _, name := range o.Names {
			if !slices.ContainsFunc(names, func(pattern string) bool { return within(abi.Use(o.Use), pattern, name) }) && !(len(names) == 0 && anyName(abi.Use(o.Use))) {
				return nil, wrong("only", fmt.Sprintf("it does not ask for %s %.80q", o.Use, name), "it asks for "+listPermissions(permissions))
			}
		}
		narrow[o.Use] = append(narrow[o.Use], o.Names...)
	}
	var allow []plugin.Permission
	for _, a := range permissions {
		if slices.Contains(deny, a.Use) {
			continue
		}
		names := slices.Clone(a.Names)
		if left := narrow[a.Use]; len(left) > 0 {
			// A plugin may ask for one use in several permissions, each with its reason; the
			// the remaining names of all of them are reported once.
			if slices.ContainsFunc(allow, func(b plugin.Permission) bool { return b.Use == a.Use }) {
				continue // listed with the permission before
			}
			names = left
		}
		allow = append(allow, plugin.Permission{Use: a.Use, Names: names})
	}
	return allow, nil
}

func anyName(u abi.Use) bool { return u == abi.UseLLM || u == abi.UseEmit }

// listPermissions names the uses, for hints.
func listPermissions(permissions []plugin.Permission) string {
	var list []string
	for _, a := range permissions {
		list = append(list, strings.TrimSpace(a.Use+" "+strings.Join(a.Names, ",")))
	}
	if len(list) == 0 {
		return "nothing"
	}
	return strings.Join(list, "; ")
}

// within reports whether a name or pattern is a part of what another one asks
// for. It is about what the operator typed; what a call may do is compared where
// names have a meaning, with the permission as well as with the grant.
func within(u abi.Use, pattern, name string) bool {
	if pattern == name {
		return true
	}
	switch u {
	case abi.UseFolder:
		return pattern == name+":rw"
	case abi.UseHTTP:
		host, ok := strings.CutPrefix(pattern, "*.")
		return ok && strings.HasSuffix(name, "."+host)
	case abi.UseCommand, abi.UseLLM, abi.UseSpawn, abi.UseEmit:
		prefix, ok := strings.CutSuffix(pattern, "*")
		return ok && strings.HasPrefix(name, prefix)
	}
	return false
}

// secrets returns by name of a secret which hosts may be sent it: those that the
// operator names, else all that the plugin may send requests to.
func secrets(g *plugin.Grant, given map[string][]string, http []string) (map[string][]string, error) {
	names, _ := g.Names(abi.UseSecret)
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !slices.Contains(names, name) {
			return nil, wrong("secrets", fmt.Sprintf("it does not ask for the secret %.64q", name), "")
		}
	}
	var out map[string][]string
	for _, name := range names {
		hosts := http
		if own := given[name]; len(own) > 0 {
			for _, host := range own {
				// "http://" allows a hop without TLS and is no part of the name.
				plain := strings.TrimPrefix(host, "http://")
				if !slices.ContainsFunc(http, func(p string) bool { return within(abi.UseHTTP, p, plain) }) {
					return nil, wrong("secrets", fmt.Sprintf("it may not send requests to %.80q, so the secret %s cannot go there", plain, name), "its hosts are "+strings.Join(http, ", "))
				}
			}
			hosts = own
		}
		// Allowed without a host it would be an approval that does nothing, and the
		// step would be denied by a secret that the list shows as allowed.
		if len(hosts) == 0 {
			return nil, wrong("secrets", fmt.Sprintf("the secret %s could go nowhere: it is allowed no host", name), "deny it too: --deny secret")
		}
		if out == nil {
			out = map[string][]string{}
		}
		out[name] = slices.Clone(hosts)
	}
	return out, nil
}
