package plugin

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/runtime/plugin"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// folders returns the folders for the names that the plugin uses. A name without one
// stays without: its calls are denied.
func (f family) folders(g *plugin.Grant, given map[string]plugin.Folder) (out map[string]plugin.Folder, notes []string, err error) {
	names, _ := g.Names(abi.UseFolder)
	// "data" and "data:rw" are one name; asking for it twice is valid.
	write := map[string]bool{} // by name
	for _, name := range names {
		word, rw := strings.CutSuffix(name, ":rw")
		write[word] = write[word] || rw
	}
	for _, word := range slices.Sorted(maps.Keys(given)) {
		folder := given[word]
		may, asked := write[word]
		switch {
		case !asked:
			return nil, nil, wrong("folders", fmt.Sprintf("it does not ask for the folder %.64q", word), asksFolders(write))
		case folder.Path == "":
			return nil, nil, wrong("folders", fmt.Sprintf("the folder %q has no path", word), "")
		case folder.Write && !may:
			return nil, nil, wrong("folders", fmt.Sprintf("it does not ask to write in the folder %q", word), "leave :rw out")
		}
		// Package folder keeps these at every call, whatever was granted; here the
		// operator learns of it before a step does.
		if why := f.kept(folder.Path); why != "" {
			return nil, nil, wrong("folders", fmt.Sprintf("the folder %q may not be given to plugins: %s", folder.Path, why), "name a folder below it that holds what the plugin needs")
		}
		if out == nil {
			out = map[string]plugin.Folder{}
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

// asksFolders is the hint for a name that the plugin does not ask for.
func asksFolders(words map[string]bool) string {
	if len(words) == 0 {
		return "it asks for no folder"
	}
	return "it asks for " + strings.Join(slices.Sorted(maps.Keys(words)), ", ")
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
	// A folder that is not there yet may lie behind a link that is.
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
