package sentinel

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/command"
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
	// Its own workspace is closed to such writes as well; see the file commands.
	if call.By == command.ByModel {
		return deployOut{}, &abi.Error{Code: abi.Denied, Permanent: true, Message: "deploy sentinel: a model must not write files that steer another project",
			Hint: "make it a command step, or call it yourself"}
	}
	s, err := f.rt.Definition(in.SentinelID)
	if err != nil {
		return deployOut{}, err
	}
	// What cannot be read here would be no better there.
	n := f.needsOf(s)
	if len(n.problems) > 0 {
		return deployOut{}, &abi.Error{Code: abi.BadFields, Permanent: true, Message: fmt.Sprintf("deploy sentinel %q: %s", s.ID, strings.Join(n.problems, "\n"))}
	}
	// A step's workspace is that of its run, a person's the current folder.
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
	// A look at all before the first is written: a conflict found halfway would
	// leave a project with half a sentinel.
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
	// What a full disk or a lost right interrupts is told with what came before,
	// for there is no going back over files that others watch.
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

// compare says what writing a file would do to what is there.
func (f family) compare(root *os.Root, file *deployed) error {
	// Until it shows that nothing is there, or the same.
	file.Change = "replaced"
	info, err := root.Stat(file.File)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		file.Change = "created"
		return nil
	case err != nil:
		return err
	// A folder, a pipe or a device: not even force replaces such a thing.
	case !info.Mode().IsRegular():
		return fmt.Errorf("%q is there and is no file", file.File)
	// Read only as far as it can be one of ours.
	case info.Size() > maxBundle:
		return nil // nothing that we write is as large
	}
	there, err := root.ReadFile(file.File)
	if err != nil {
		return err
	}
	// Plugins and recipes are the same byte by byte, definitions also in another
	// spelling: then the comments there are worth more than ours.
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
// They are no errors: a project may be prepared for them, or be that very folder.
func (f family) notes(n *needs) []string {
	var out []string
	for _, p := range n.plugins() {
		if len(p.Permissions) > 0 {
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
