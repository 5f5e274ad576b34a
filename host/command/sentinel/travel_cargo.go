package sentinel

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/plugin"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// cargo is the files that go: plugins, recipes, the sentinels that are started,
// and at last the one that is deployed.
// Names of built-in recipes and of sources are no file and need none: every host
// has them. A plugin goes under the name of its file, by which a host tells
// whether a changed file is a newer version or another plugin.
func (f family) cargo(call *command.Call, root *os.Root, n *needs) ([]deployed, error) {
	// Not the workspace's own folder but the host's: a host may serve a folder
	// that is elsewhere, and the plugins that are live are from there.
	dir := f.opt.Dir
	if dir == "" {
		dir = filepath.Join(call.Workspace, ownFolder)
	}
	var out []deployed
	for _, p := range n.plugins() {
		// Always into our own folder: no other has plugins.
		code, err := f.pluginFile(dir, p)
		if err != nil {
			return nil, err
		}
		out = append(out, deployed{File: path.Join(ownFolder, "plugins", path.Base(filepath.ToSlash(p.Source))), Kind: "plugin", content: code})
	}
	for _, name := range slices.Sorted(maps.Keys(n.recipes)) {
		// The name becomes part of a path, here and there.
		if string(sentinels.Slug(name)) != name {
			continue // no file has such a name
		}
		text, err := f.opt.Trust.Read(filepath.Join(dir, "recipes", name+".json"), sentinels.MaxBytes)
		if errors.Is(err, fs.ErrNotExist) {
			continue // one that every host has
		}
		if err != nil {
			return nil, fmt.Errorf("read recipe: %w", err)
		}
		out = append(out, deployed{File: path.Join(ownFolder, "recipes", name+".json"), Kind: "recipe", content: text})
	}
	folder := definitionsFolder(root)
	// Read once, for the project may have thousands.
	there := f.definitionsIn(root, folder)
	for _, id := range n.order {
		s := n.byID[id]
		// From the store, not from a file: what is deployed is the revision that runs
		// here, also when its file was broken since.
		def, err := f.rt.Decoded(s)
		if err != nil {
			return nil, err
		}
		file := deployed{File: path.Join(folder, string(id)+".json"), Kind: "definition", SentinelID: id, content: f.text(call, dir, s, def), hash: s.Hash}
		// Under the name that the file has there already.
		if named := there[id]; named != "" {
			file.File = named
		}
		out = append(out, file)
	}
	return out, nil
}

// definitionsFolder is where the other project keeps its sentinels.
func definitionsFolder(root *os.Root) string {
	// With neither folder there, ours is made: a host looks for it first.
	continuum := path.Join(continuumFolder, definitionsDir)
	if _, err := root.Stat(ownFolder); err != nil {
		if info, err := root.Stat(continuum); err == nil && info.IsDir() {
			return continuum
		}
	}
	return path.Join(ownFolder, definitionsDir)
}

// definitionsIn finds the files of the sentinels that the other project has: a
// second file for the same one would be a problem there. Files that hold none
// are of no interest here.
func (f family) definitionsIn(root *os.Root, folder string) map[sentinels.ID]string {
	there := map[sentinels.ID]string{}
	// No folder is no files; all other errors come up when the first is written.
	entries, err := fs.ReadDir(root.FS(), folder)
	if err != nil {
		return there
	}
	for _, e := range entries {
		name := path.Join(folder, e.Name())
		if path.Ext(name) != ".json" {
			continue
		}
		// Within the root: a link that leads out is an error, and so is left out.
		info, err := root.Stat(name)
		if err != nil || !info.Mode().IsRegular() || info.Size() > sentinels.MaxBytes {
			continue
		}
		src, err := root.ReadFile(name)
		if err != nil {
			continue
		}
		// Of two files for one sentinel the first by name counts, as it does for a
		// host that watches the folder.
		if def, problems := f.rt.Decode(src, name); len(problems) == 0 && there[def.ID] == "" {
			there[def.ID] = name
		}
	}
	return there
}

// text is a definition as its author wrote it, with the comments, if a file of
// this project says just what is stored.
func (f family) text(call *command.Call, dir string, s runtime.Stored, def *sentinels.Definition) []byte {
	name := string(s.ID) + ".json"
	for _, file := range []string{s.Origin, filepath.Join(dir, definitionsDir, name), filepath.Join(call.Workspace, continuumFolder, definitionsDir, name)} {
		if !filepath.IsAbs(file) {
			continue
		}
		src, err := f.opt.Trust.Read(file, sentinels.MaxBytes)
		if err != nil {
			continue // it need not be there: the store has it
		}
		if same, problems := f.rt.Decode(src, file); len(problems) == 0 && same.ID == s.ID && same.Hash() == s.Hash {
			return src
		}
	}
	// A sentinel that was made by a command, or edited without a watched file.
	return sentinels.Encode(def)
}

// pluginFile reads the file of a plugin that is live, and no other version.
func (f family) pluginFile(dir string, p plugin.Info) ([]byte, error) {
	folders := []string{filepath.Join(dir, "plugins")}
	// The folder of the command line comes second: what a project has of its own
	// is more likely to be meant.
	if f.opt.Plugins != "" {
		folders = append(folders, f.opt.Plugins)
	}
	for _, folder := range folders {
		code, err := f.opt.Trust.Read(filepath.Join(folder, filepath.Base(p.Source)), maxModule)
		// A file that was replaced since is another plugin, which nobody has tried
		// with this sentinel.
		if err == nil && sum(code) == p.Digest {
			return code, nil
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("read plugin: %w", err)
		}
	}
	return nil, &abi.Error{Code: abi.NotFound, Message: fmt.Sprintf("plugin %q is needed, and no file of it with the digest %.12s is in %s", p.Name, p.Digest, strings.Join(folders, " or ")),
		Hint: "put the version that is live into the folder plugins"}
}
