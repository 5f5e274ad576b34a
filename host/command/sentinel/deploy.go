package sentinel

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/internal/rootfs"
	"github.com/sentinel-runtime/sentinel/internal/regularfile"
	"github.com/sentinel-runtime/sentinel/runtime/plugin"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// maxModule is the engine's limit of a plugin's module in bytes.
const maxModule = 32 << 20

type deployIn struct {
	SentinelID sentinels.ID `json:"sentinelId" jsonschema:"id of the sentinel"`
	To         string       `json:"to" jsonschema:"folder of the other project, below the workspace or absolute"`
	Force      bool         `json:"force,omitempty" jsonschema:"replace files there that differ"`
}

type deployOut struct {
	SentinelID sentinels.ID   `json:"sentinelId"`
	To         string         `json:"to" jsonschema:"the folder, absolute"`
	Files      []deployed     `json:"files" jsonschema:"below that folder, in the order in which they were written"`
	Missing    []sentinels.ID `json:"missing,omitempty" jsonschema:"sentinels that it starts and that are not stored here"`
	Notes      []string       `json:"notes,omitempty" jsonschema:"what the other project has to do"`
}

type deployed struct {
	File       string       `json:"file"`
	Kind       string       `json:"kind" enum:"definition,recipe,plugin"`
	SentinelID sentinels.ID `json:"sentinelId,omitempty"`
	Change     string       `json:"change" enum:"created,replaced,unchanged"`

	content []byte
	def     *sentinels.Definition // of a definition: other texts of it are equal
}

// deploy writes a sentinel and what it needs into the folder of another project. All
// files are compared before the first is written. The sentinel itself is written last: a
// host that watches the folder has found the rest by then.
func (f family) deploy(_ context.Context, call *command.Call, in deployIn) (deployOut, error) {
	if call.Held() { // file commands deny it such files in its own workspace, too
		return deployOut{}, &abi.Error{Code: abi.Denied, Permanent: true, Message: "deploy sentinel: a model or an agent may not write files that control another project",
			Hint: "use a command step, or deploy it yourself"}
	}
	if _, err := f.rt.Definition(in.SentinelID); err != nil {
		return deployOut{}, err
	}
	needs := newRequirements()
	if err := needs.add(f.rt, in.SentinelID); err != nil {
		return deployOut{}, &abi.Error{Code: abi.BadFields, Permanent: true, Message: fmt.Sprintf("deploy sentinel %q: %v", in.SentinelID, err)}
	}
	for _, s := range needs.sentinels {
		if s.stored.Within != nil { // a file has no bound
			return deployOut{}, &abi.Error{Code: abi.Denied, Permanent: true, Message: fmt.Sprintf("deploy sentinel %q: revision %d of %q was made by %s and is bounded to the commands that it may call", in.SentinelID, s.stored.Revision, s.stored.ID, cmp.Or(s.stored.By, "a model or an agent")),
				Hint: fmt.Sprintf("look at it with `sentinel show %s`, then `sentinel accept %s %d`", s.stored.ID, s.stored.ID, s.stored.Revision)}
		}
	}
	to := inWorkspace(call, in.To)
	project, err := rootfs.Open(to, rootfs.Rules{Outside: "outside the project"}) // no link leads out of it
	if err != nil {
		return deployOut{}, &abi.Error{Code: abi.NotFound, Field: "to", Message: fmt.Sprintf("deploy sentinel %q: %v", in.SentinelID, err), Hint: "create the folder first"}
	}
	defer project.Close()
	out := deployOut{SentinelID: in.SentinelID, To: filepath.Clean(to), Missing: slices.Sorted(maps.Keys(needs.missing)), Notes: f.deployNotes(needs)}
	if out.Files, err = f.deployedFiles(call, project, needs); err != nil {
		return deployOut{}, err
	}
	var differ []string
	for i := range out.Files {
		if err := f.compare(project, &out.Files[i]); err != nil {
			return deployOut{}, fmt.Errorf("deploy sentinel %q: %w", in.SentinelID, err)
		}
		if out.Files[i].Change == "replaced" {
			differ = append(differ, out.Files[i].File)
		}
	}
	if len(differ) > 0 && !in.Force {
		return deployOut{}, &abi.Error{Code: abi.Conflict, Message: fmt.Sprintf("deploy sentinel %q: files there differ: %s", in.SentinelID, strings.Join(differ, ", ")),
			Hint: "force replaces them"}
	}
	for i, file := range out.Files {
		at := filepath.Join(to, filepath.FromSlash(file.File))
		if err := f.opt.Trust.Content().Write(filepath.Dir(at), func() (string, error) { return filepath.Base(at), file.write(project) }); err != nil { // files of other projects cannot be rolled back
			return deployOut{}, fmt.Errorf("deploy sentinel %q: write %q: %w (%d of %d files are written)", in.SentinelID, file.File, err, i, len(out.Files))
		}
	}
	return out, nil
}

// deployedFiles returns the files of plugins, recipes and sentinels, in this order, with
// the sentinel that is deployed last.
func (f family) deployedFiles(call *command.Call, project *rootfs.Tree, needs *requirements) ([]deployed, error) {
	// A host may serve another folder than that of the workspace.
	dir := f.projectDir(call)
	var out []deployed
	for _, p := range needs.plugins(f.rt) {
		code, err := f.pluginFile(dir, p)
		if err != nil {
			return nil, err
		}
		// The name of the file decides whether it is a newer version or another plugin.
		out = append(out, deployed{File: path.Join(ownFolder, "plugins", path.Base(filepath.ToSlash(p.Source))), Kind: "plugin", content: code})
	}
	for _, name := range slices.Sorted(maps.Keys(needs.recipes)) {
		if string(sentinels.Slug(name)) != name {
			continue // not a name of a file
		}
		text, err := f.opt.Trust.Read(filepath.Join(dir, "recipes", name+".json"), sentinels.MaxBytes)
		if errors.Is(err, fs.ErrNotExist) {
			continue // every host has it
		}
		if err != nil {
			return nil, fmt.Errorf("read recipe: %w", err)
		}
		out = append(out, deployed{File: path.Join(ownFolder, "recipes", name+".json"), Kind: "recipe", content: text})
	}
	folder := path.Join(ownFolder, definitionsDir)
	if other := path.Join(continuumFolder, definitionsDir); !isFolder(project, ownFolder) && isFolder(project, other) {
		folder = other
	}
	existing := f.existingFiles(project, folder)
	for _, s := range needs.sentinels {
		id := s.stored.ID
		file := deployed{File: existing[id], Kind: "definition", SentinelID: id, content: f.definitionText(call, dir, s), def: s.def}
		if file.File == "" {
			file.File = path.Join(folder, string(id)+".json")
		}
		out = append(out, file)
	}
	return out, nil
}

func isFolder(project *rootfs.Tree, name string) bool {
	info, err := project.Root().Stat(name)
	return err == nil && info.IsDir()
}

// existingFiles returns the file of each sentinel that the other project has, the first
// by name, as for a host that watches the folder.
func (f family) existingFiles(project *rootfs.Tree, folder string) map[sentinels.ID]string {
	files := map[sentinels.ID]string{}
	names, _ := fs.Glob(project.Root().FS(), folder+"/*.json") // the only error is that of a bad pattern
	for _, name := range names {
		// What is not a definition is left alone; if a file has to be written, its errors are
		// found then.
		text, err := read(project, name, sentinels.MaxBytes)
		if err != nil {
			continue
		}
		if def, problems := f.rt.Decode(text, name); len(problems) == 0 && files[def.ID] == "" {
			files[def.ID] = name
		}
	}
	return files
}

// definitionText returns the text of a sentinel's file in this project, with its
// comments, if that is what is stored, otherwise the stored definition.
func (f family) definitionText(call *command.Call, dir string, s requiredSentinel) []byte {
	name := string(s.stored.ID) + ".json"
	for _, file := range []string{s.stored.Origin, filepath.Join(dir, definitionsDir, name), filepath.Join(call.Workspace, continuumFolder, definitionsDir, name)} {
		if !filepath.IsAbs(file) { // no origin
			continue
		}
		if src, err := f.opt.Trust.Read(file, sentinels.MaxBytes); err == nil && f.equal(src, s.def) {
			return src
		}
	}
	return sentinels.Encode(s.def)
}

// equal reports whether a text is a definition in any spelling.
func (f family) equal(text []byte, def *sentinels.Definition) bool {
	other, problems := f.rt.Decode(text, "definition")
	return len(problems) == 0 && other.ID == def.ID && other.Hash() == def.Hash()
}

// pluginFile returns the module of a live plugin. Another version of its file was not
// tried with this sentinel and is not deployed.
func (f family) pluginFile(dir string, p plugin.Info) ([]byte, error) {
	folders := []string{filepath.Join(dir, "plugins")}
	if f.opt.Plugins != "" {
		folders = append(folders, f.opt.Plugins)
	}
	for _, folder := range folders {
		code, err := f.opt.Trust.Read(filepath.Join(folder, filepath.Base(p.Source)), maxModule)
		if err == nil && digest(code) == p.Digest {
			return code, nil
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("read plugin: %w", err)
		}
	}
	return nil, &abi.Error{Code: abi.NotFound, Message: fmt.Sprintf("no file of plugin %q with the digest %.12s in %s", p.Name, p.Digest, strings.Join(folders, " or ")),
		Hint: "put the live version into the folder plugins"}
}

// compare sets what writing the file will change.
func (f family) compare(project *rootfs.Tree, file *deployed) error {
	content, err := read(project, file.File, maxBundle)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		file.Change = "created"
	case err != nil:
		return err
	case bytes.Equal(content, file.content) || file.def != nil && f.equal(content, file.def):
		file.Change = "unchanged" // the comments there are kept
	default:
		file.Change = "replaced"
	}
	return nil
}

// read returns the content of a regular file of a project.
func read(project *rootfs.Tree, name string, limit int64) ([]byte, error) {
	if _, err := project.Root().Stat(name); errors.Is(err, fs.ErrNotExist) {
		return nil, err // also if its folder is missing
	}
	entry, err := project.Resolve(name, false)
	if err != nil {
		return nil, err
	}
	defer entry.Close()
	file, _, err := project.OpenFile(entry)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return regularfile.ReadAll(file, limit)
}

// write writes the file, unless nothing changes.
func (d deployed) write(project *rootfs.Tree) error {
	if d.Change == "unchanged" {
		return nil
	}
	entry, err := project.Resolve(d.File, true)
	if err != nil {
		return err
	}
	defer entry.Close()
	if d.Change == "created" && entry.Info != nil {
		return &abi.Error{Code: abi.Conflict, Message: "another program has created it meanwhile"}
	}
	_, err = project.WriteFile(entry, d.content)
	return err
}

// deployNotes report what files alone do not transfer.
func (f family) deployNotes(needs *requirements) (notes []string) {
	for _, p := range needs.plugins(f.rt) {
		if len(p.Permissions) > 0 {
			notes = append(notes, fmt.Sprintf("plugin %q needs permissions, which have to be granted there", p.Name))
		}
	}
	for _, s := range needs.sentinels {
		if filepath.IsAbs(s.def.Workspace) {
			notes = append(notes, fmt.Sprintf("sentinel %q always works in %s", s.stored.ID, s.def.Workspace))
		}
	}
	return notes
}
