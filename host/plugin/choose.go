package plugin

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// chosen returns the part of the asks that is allowed: all, without the uses in
// deny, and of the uses in only no more than the names there.
func chosen(asks []runtime.PluginAsk, only []use, deny []string) ([]runtime.PluginAsk, error) {
	all := runtime.Grant{Allow: asks}
	for _, name := range deny {
		if _, asked := all.Names(abi.Use(name)); !asked {
			return nil, wrong("deny", fmt.Sprintf("it does not ask for %.40q", name), "it asks for "+listAsks(asks))
		}
	}
	narrow := map[string][]string{}
	for _, o := range only {
		names, ok := all.Names(abi.Use(o.Use))
		if !ok {
			return nil, wrong("only", fmt.Sprintf("it does not ask for %.40q", o.Use), "it asks for "+listAsks(asks))
		}
		for _, name := range o.Names {
			if !slices.ContainsFunc(names, func(pattern string) bool { return within(abi.Use(o.Use), pattern, name) }) && !(len(names) == 0 && anyName(abi.Use(o.Use))) {
				return nil, wrong("only", fmt.Sprintf("it does not ask for %s %.80q", o.Use, name), "it asks for "+listAsks(asks))
			}
		}
		narrow[o.Use] = append(narrow[o.Use], o.Names...)
	}
	var allow []runtime.PluginAsk
	for _, a := range asks {
		if slices.Contains(deny, a.Use) {
			continue
		}
		names := slices.Clone(a.Names)
		if left := narrow[a.Use]; len(left) > 0 {
			if slices.ContainsFunc(allow, func(b runtime.PluginAsk) bool { return b.Use == a.Use }) {
				continue // said with the ask before
			}
			names = left
		}
		allow = append(allow, runtime.PluginAsk{Use: a.Use, Names: names})
	}
	return allow, nil
}

func anyName(u abi.Use) bool { return u == abi.UseLLM || u == abi.UseEmit }

// listAsks names the uses, for hints.
func listAsks(asks []runtime.PluginAsk) string {
	var list []string
	for _, a := range asks {
		list = append(list, strings.TrimSpace(a.Use+" "+strings.Join(a.Names, ",")))
	}
	if len(list) == 0 {
		return "nothing"
	}
	return strings.Join(list, "; ")
}

// within reports whether a name or pattern is a part of what another one asks for.
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
func secrets(g *runtime.Grant, given map[string][]string, http []string) (map[string][]string, error) {
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
				plain := strings.TrimPrefix(host, "http://")
				if !slices.ContainsFunc(http, func(p string) bool { return within(abi.UseHTTP, p, plain) }) {
					return nil, wrong("secrets", fmt.Sprintf("it may not send requests to %.80q, so the secret %s cannot go there", plain, name), "its hosts are "+strings.Join(http, ", "))
				}
			}
			hosts = own
		}
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

// folders returns by the plugin's words the folders meant. A word without one
// stays without: its calls are denied.
func (f family) folders(g *runtime.Grant, given map[string]runtime.Folder) (out map[string]runtime.Folder, notes []string, err error) {
	names, _ := g.Names(abi.UseFolder)
	write := map[string]bool{} // by word
	for _, name := range names {
		word, rw := strings.CutSuffix(name, ":rw")
		write[word] = write[word] || rw
	}
	for _, word := range slices.Sorted(maps.Keys(given)) {
		folder := given[word]
		may, asked := write[word]
		switch {
		case !asked:
			return nil, nil, wrong("folders", fmt.Sprintf("it does not ask for the folder %.64q", word), "")
		case folder.Path == "":
			return nil, nil, wrong("folders", fmt.Sprintf("the folder %q has no path", word), "")
		case folder.Write && !may:
			return nil, nil, wrong("folders", fmt.Sprintf("it does not ask to write in the folder %q", word), "leave :rw out")
		}
		if why := f.kept(folder.Path); why != "" {
			return nil, nil, wrong("folders", fmt.Sprintf("the folder %q may not be given to plugins: %s", folder.Path, why), "name a folder below it that holds what the plugin needs")
		}
		if out == nil {
			out = map[string]runtime.Folder{}
		}
		out[word] = folder
	}
	for _, word := range slices.Sorted(maps.Keys(write)) {
		if _, ok := out[word]; !ok {
			notes = append(notes, fmt.Sprintf("no folder is named for its word %q, so calls for it are denied: --folder %s=PATH", word, word))
		}
	}
	return out, notes, nil
}

// kept returns why an absolute folder is not a plugin's to have, "" if it may be:
// what lies in the host's own folders decides what plugins may do. A folder that
// they lie in may be given; package folder keeps them from the plugin there.
func (f family) kept(path string) string {
	if !filepath.IsAbs(path) {
		return "" // where it is shows only in a run; package folder looks then
	}
	real := resolved(path)
	for _, own := range f.opt.Keep {
		if own == "" {
			continue
		}
		own = resolved(own)
		if below(real, own) {
			return "it is a folder of this program"
		}
	}
	return ""
}

// resolved is a path without links, as far as it is there.
func resolved(path string) string {
	path = filepath.Clean(path)
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	dir := filepath.Dir(path)
	if dir == path {
		return path
	}
	return filepath.Join(resolved(dir), filepath.Base(path))
}

// below reports whether a path is a folder or lies in it.
func below(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(os.PathSeparator))
}

// far says what of a grant reaches so far that other bytes should not have it
// without being looked at, each in a few words.
func (f family) far(g runtime.Grant) (far []string) {
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
			case !known:
				far = append(far, fmt.Sprintf("the command %s, which is not known here", name))
			case !c.ReadOnly:
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
