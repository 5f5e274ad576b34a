package sentinel

import (
	"bytes"
	"context"
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
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A deployIn is what sentinel/deploy takes.
type deployIn struct {
	SentinelID sentinels.ID `json:"sentinelId" jsonschema:"id of the sentinel"`
	To         string       `json:"to" jsonschema:"folder of the other project, below the workspace or absolute"`
	Force      bool         `json:"force,omitempty" jsonschema:"replace files there that say something else"`
}

type deployOut struct {
	SentinelID sentinels.ID   `json:"sentinelId"`
	To         string         `json:"to" jsonschema:"the folder, absolute"`
	Files      []deployed     `json:"files" jsonschema:"below that folder, in the order in which they were written"`
	Missing    []sentinels.ID `json:"missing,omitempty" jsonschema:"sentinels that it starts and that are not here either"`
	Notes      []string       `json:"notes,omitempty" jsonschema:"what to look after there"`
}

// A deployed file is one of those that a sentinel needs.
type deployed struct {
	File       string       `json:"file"`
	Kind       string       `json:"kind" enum:"definition,recipe,plugin"`
	SentinelID sentinels.ID `json:"sentinelId,omitempty"`
	Change     string       `json:"change" jsonschema:"what became of it" enum:"created,replaced,unchanged"`

	content []byte
	hash    string // of a definition: other spellings of it are the same
}

// deploy puts a sentinel and what it needs into the folder of another project.
// All is looked at before anything is written, and the sentinel itself is
// written last: a host that watches there finds what it needs first.
func (f family) deploy(_ context.Context, call *command.Call, in deployIn) (deployOut, error) {
	if call.By == command.ByModel {
		return deployOut{}, &abi.Error{Code: abi.Denied, Permanent: true, Message: "deploy sentinel: a model must not write files that steer another project",
			Hint: "make it a command step, or call it yourself"}
	}
	s, err := f.rt.Definition(in.SentinelID)
	if err != nil {
		return deployOut{}, err
	}
	n := f.needsOf(s)
	if len(n.problems) > 0 {
		return deployOut{}, &abi.Error{Code: abi.BadFields, Permanent: true, Message: fmt.Sprintf("deploy sentinel %q: %s", s.ID, strings.Join(n.problems, "\n"))}
	}
	to := in.To
	if !filepath.IsAbs(to) {
		to = filepath.Join(call.Workspace, to)
	}
	// What is there is somebody else's content: no link in it leads out of it.
	root, err := os.OpenRoot(to)
	if err != nil {
		return deployOut{}, &abi.Error{Code: abi.NotFound, Field: "to", Message: fmt.Sprintf("deploy sentinel %q: %v", s.ID, err), Hint: "make the folder first"}
	}
	defer root.Close()
	out := deployOut{SentinelID: s.ID, To: filepath.Clean(to), Files: []deployed{}, Missing: slices.Sorted(maps.Keys(n.missing))}
	if out.Files, err = f.cargo(call, root, n); err != nil {
		return deployOut{}, err
	}
	var differ []string
	for i := range out.Files {
		if err := f.compare(root, &out.Files[i]); err != nil {
			return deployOut{}, fmt.Errorf("deploy sentinel %q: %w", s.ID, err)
		}
		if out.Files[i].Change == "replaced" {
			differ = append(differ, out.Files[i].File)
		}
	}
	if len(differ) > 0 && !in.Force {
		return deployOut{}, &abi.Error{Code: abi.Conflict, Message: fmt.Sprintf("deploy sentinel %q: other files are there: %s", s.ID, strings.Join(differ, ", ")),
			Hint: "give force to replace them"}
	}
	var written []string
	for _, file := range out.Files {
		if file.Change == "unchanged" {
			continue
		}
		if err := putFile(root, file.File, file.content, file.Change == "replaced"); err != nil {
			return deployOut{}, fmt.Errorf("deploy sentinel %q: write %q: %w (written before: %s)", s.ID, file.File, err, strings.Join(append(written, "nothing else"), ", "))
		}
		written = append(written, file.File)
	}
	out.Notes = f.notes(n)
	return out, nil
}

// cargo is the files that go: plugins, recipes, the sentinels that are started,
// and at last the one that is deployed.
func (f family) cargo(call *command.Call, root *os.Root, n *needs) ([]deployed, error) {
	dir := f.opt.Dir
	if dir == "" {
		dir = filepath.Join(call.Workspace, ownFolder)
	}
	var out []deployed
	for _, p := range n.plugins() {
		code, err := f.pluginFile(dir, p)
		if err != nil {
			return nil, err
		}
		out = append(out, deployed{File: path.Join(ownFolder, "plugins", path.Base(filepath.ToSlash(p.Source))), Kind: "plugin", content: code})
	}
	for _, name := range slices.Sorted(maps.Keys(n.recipes)) {
		if string(sentinels.Slug(name)) != name {
			continue // no file has such a name
		}
		text, err := os.ReadFile(filepath.Join(dir, "recipes", name+".json"))
		if errors.Is(err, fs.ErrNotExist) {
			continue // one that every host has
		}
		if err != nil {
			return nil, fmt.Errorf("read recipe: %w", err)
		}
		out = append(out, deployed{File: path.Join(ownFolder, "recipes", name+".json"), Kind: "recipe", content: text})
	}
	folder := definitionsFolder(root)
	there := f.definitionsIn(root, folder)
	for _, id := range n.order {
		s := n.byID[id]
		def, err := f.rt.Decoded(s)
		if err != nil {
			return nil, err
		}
		file := deployed{File: path.Join(folder, string(id)+".json"), Kind: "definition", SentinelID: id, content: f.text(call, dir, s, def), hash: s.Hash}
		if named := there[id]; named != "" {
			file.File = named
		}
		out = append(out, file)
	}
	return out, nil
}

// definitionsFolder is where the other project keeps its sentinels.
func definitionsFolder(root *os.Root) string {
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
	entries, err := fs.ReadDir(root.FS(), folder)
	if err != nil {
		return there
	}
	for _, e := range entries {
		name := path.Join(folder, e.Name())
		if path.Ext(name) != ".json" {
			continue
		}
		info, err := root.Stat(name)
		if err != nil || !info.Mode().IsRegular() || info.Size() > sentinels.MaxBytes {
			continue
		}
		src, err := root.ReadFile(name)
		if err != nil {
			continue
		}
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
		src, err := os.ReadFile(file)
		if err != nil {
			continue // it need not be there: the store has it
		}
		if same, problems := f.rt.Decode(src, file); len(problems) == 0 && same.ID == s.ID && same.Hash() == s.Hash {
			return src
		}
	}
	return sentinels.Encode(def)
}

// pluginFile reads the file of a plugin that is live, and no other version.
func (f family) pluginFile(dir string, p runtime.PluginInfo) ([]byte, error) {
	folders := []string{filepath.Join(dir, "plugins")}
	if f.opt.Plugins != "" {
		folders = append(folders, f.opt.Plugins)
	}
	for _, folder := range folders {
		code, err := os.ReadFile(filepath.Join(folder, filepath.Base(p.Source)))
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

// compare says what writing a file would do to what is there.
func (f family) compare(root *os.Root, file *deployed) error {
	file.Change = "replaced"
	info, err := root.Stat(file.File)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		file.Change = "created"
		return nil
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%q is there and is no file", file.File)
	case info.Size() > maxBundle:
		return nil // nothing that we write is as large
	}
	there, err := root.ReadFile(file.File)
	if err != nil {
		return err
	}
	same := bytes.Equal(there, file.content)
	if file.hash != "" && !same {
		def, problems := f.rt.Decode(there, file.File)
		same = len(problems) == 0 && def.ID == file.SentinelID && def.Hash() == file.hash
	}
	if same {
		file.Change = "unchanged"
	}
	return nil
}

// notes say what a copy of files cannot do.
func (f family) notes(n *needs) []string {
	var out []string
	for _, p := range n.plugins() {
		if len(p.Asks) > 0 {
			out = append(out, fmt.Sprintf("plugin %q asks for permissions, which have to be granted there", p.Name))
		}
	}
	for _, id := range n.order {
		if def, err := f.rt.Decoded(n.byID[id]); err == nil && filepath.IsAbs(def.Workspace) {
			out = append(out, fmt.Sprintf("sentinel %q works in %s wherever it is", id, def.Workspace))
		}
	}
	return out
}
