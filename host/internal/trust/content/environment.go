package content

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/internal/gitexec"
	"github.com/sentinel-runtime/sentinel/host/internal/rootfs"
	"github.com/sentinel-runtime/sentinel/internal/regularfile"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// environmentKey begins the keys of environment files, which no other key has.
const environmentKey = "./"

// maxEnvironment bounds what is read of an environment file, in bytes; a larger one is refused.
const maxEnvironment = 1 << 20

// Bounds of the environment files that are judged at once: git is asked about each, and what waits is shown whole.
const (
	maxEnvironments     = 200
	maxEnvironmentBytes = 8 << 20
)

// digestOnly reports whether the texts of a key are not recorded: no person reads them, or they
// have secrets. Their digests are in the names.
func digestOnly(key string) bool {
	return strings.HasSuffix(key, ".wasm") || strings.HasPrefix(key, environmentKey) || strings.HasPrefix(key, tokensKey)
}

// environment returns the place of an environment file and its absolute path. A file of the workspace
// has the same key in each workspace, as in the worktrees of tickets: what is trusted is its content.
func (f *Folder) environment(workspace, path string) (place, string) {
	if !filepath.IsAbs(path) {
		path = filepath.Join(workspace, path)
	}
	key := filepath.ToSlash(path)
	if rel, inside := below(filepath.Clean(workspace), path); inside {
		key = rel
	}
	return place{of: f.projects[0], key: environmentKey + key}, path
}

// CheckEnvironment returns why a file of environment variables that a definition names does not count.
// path is absolute or relative to the workspace of the run. Variables choose what programs execute, and
// another file than the definition can come with a folder or by git, also after the definition was
// trusted. A file that git does not track is the user's own and counts.
func (f *Folder) CheckEnvironment(workspace, path string, text []byte) error {
	if f == nil {
		return nil
	}
	at, full := f.environment(workspace, path)
	return f.checkEnvironment(at, full, text)
}

func (f *Folder) checkEnvironment(at place, full string, text []byte) error {
	if f.own.covered || at.of.covered || at.of.has(at.key, text) {
		return nil
	}
	why := "git wrote its content"
	switch f.writer(at, full, text) {
	case byUser:
		if w, waits := at.of.waits(at.key); !waits || !w.Held {
			if at.of.known() {
				_ = at.of.trust(at.key, text) // without the record it is judged again
			}
			return nil
		}
		why = "it came with the folder"
	case byGit, converted:
		if at.of.known() {
			_ = at.of.wait(waiting{Key: at.key, Path: full}) // without it the next run is refused again, and sentinel trust does not list the file
		}
	case unsure:
		why = "git changes files of the repository now (its index.lock exists)"
	}
	return f.denied(full, why)
}

// environments lists the environment files that wait for trust, of those that the definitions among items
// name and those that a run was refused. Of more than can be judged none is listed: a file that was left out
// would count as the user's own once the folder is known.
func (f *Folder) environments(items []Item) (waits []Item, err error) {
	seen, judged, size := map[string]bool{}, 0, 0
	add := func(at place, path string) error {
		if seen[at.key] || f.own.covered || at.of.covered {
			return nil
		}
		seen[at.key] = true
		text, err := regularfile.Read(path, maxEnvironment)
		if err != nil || at.of.has(at.key, text) {
			return nil // a file that cannot be read is refused by runs
		}
		judged++
		size += len(text)
		if judged > maxEnvironments || size > maxEnvironmentBytes {
			return untrustedError{&abi.Error{
				Code: abi.Denied, Permanent: true,
				Message: fmt.Sprintf("%q is not trusted: its definitions name more than %d environment files or %d MiB of them in envFiles that you have not trusted, which are too many to show",
					f.own.dir, maxEnvironments, maxEnvironmentBytes>>20),
				Hint: "remove the definitions whose envFiles are not yours, or have them name fewer files",
			}}
		}
		_, inside := below(f.projects[0].project, path)
		came := inside && !at.of.known() && gitexec.WorkTree(rootfs.EvalLinks(filepath.Dir(path))) == ""
		if came || f.checkEnvironment(at, path, text) != nil {
			waits = append(waits, Item{Key: at.key, Path: path, Kind: Environment, Content: text, Changed: len(at.of.contents(at.key)) > 0, of: at.of})
		}
		return nil
	}
	workspace := f.projects[len(f.projects)-1].project
	for _, i := range items {
		if i.Kind != Definition {
			continue
		}
		text, err := regularfile.Read(i.Path, maxFile)
		if err != nil {
			continue
		}
		var value any
		if text, problems := sentinels.Standardize(i.Path, text); len(problems) > 0 || json.Unmarshal(text, &value) != nil {
			continue // it is not executed
		}
		for _, path := range environmentFiles(value) {
			at, full := f.environment(workspace, path)
			if err := add(at, full); err != nil {
				return nil, err
			}
		}
	}
	for _, w := range f.projects[0].waiting() {
		if err := add(place{of: f.projects[0], key: w.Key}, w.Path); err != nil {
			return nil, err
		}
	}
	return waits, nil
}

// environmentFiles returns what the lists envFiles in a definition name, with those of inline ones.
func environmentFiles(value any) (paths []string) {
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			paths = append(paths, environmentFiles(item)...)
		}
	case map[string]any:
		for name, member := range v {
			list, isList := member.([]any)
			if name != "envFiles" || !isList {
				paths = append(paths, environmentFiles(member)...)
				continue
			}
			for _, item := range list {
				if path, isText := item.(string); isText && path != "" {
					paths = append(paths, path)
				}
			}
		}
	}
	return paths
}
