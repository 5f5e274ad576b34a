package code

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/internal/filewalk"
	"github.com/sentinel-runtime/sentinel/internal/pathtext"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels/glob"
)

// The commands fs/* are the file skills of planners: code/read, code/write and a search
// for files, with few parameters and one rule about paths. They are private, because a model
// that may call every command has code/* already.

// A fix is what path_autofix changed.
type fix struct {
	From string `json:"from"`
	To   string `json:"to"`
}

type fsReadIn struct {
	Path    string `json:"path" jsonschema:"project-relative path without a leading slash (docs/file.md), or absolute system path in the workspace"`
	Autofix bool   `json:"path_autofix,omitempty" jsonschema:"remove the leading slash of a project path"`
}

type fsReadOut struct {
	readOut
	Fixed *fix `json:"autofixed,omitempty" jsonschema:"the path that was changed"`
}

type fsWriteIn struct {
	Path    string `json:"path" jsonschema:"project-relative path without a leading slash, or absolute system path in the workspace"`
	Content string `json:"content" jsonschema:"the whole new text"`
	IfHash  string `json:"ifHash,omitempty" jsonschema:"as for code/write"`
	Autofix bool   `json:"path_autofix,omitempty" jsonschema:"remove the leading slash of a project path"`
}

type fsWriteOut struct {
	writeOut
	Fixed *fix `json:"autofixed,omitempty" jsonschema:"the path that was changed"`
}

type fsListIn struct {
	Pattern    string `json:"pattern,omitempty" jsonschema:"glob of the paths below cwd; one without a slash, such as README*, applies in every folder, and ./README* in the first; all files if not given"`
	Cwd        string `json:"cwd,omitempty" jsonschema:"folder to search, project-relative without a leading slash; the workspace if not given"`
	OnlyFiles  *bool  `json:"onlyFiles,omitempty" jsonschema:"leave folders out; true if not given"`
	MaxResults int    `json:"maxResults,omitempty" jsonschema:"number of paths, 200 if not given" minimum:"1" maximum:"2000"`
	After      string `json:"after,omitempty" jsonschema:"next of the page before"`
	Autofix    bool   `json:"path_autofix,omitempty" jsonschema:"remove the leading slash of a project path"`
}

type fsListOut struct {
	Cwd       string   `json:"cwd"`
	Files     []string `json:"files" jsonschema:"paths for fs/read"`
	Truncated bool     `json:"truncated" jsonschema:"there are more"`
	Next      string   `json:"next,omitempty" jsonschema:"there are more: give it as after"`
	Note      string   `json:"note,omitempty" jsonschema:"why nothing is found: no file matches, or a folder that the glob names does not exist"`
	Fixed     *fix     `json:"autofixed,omitempty" jsonschema:"the path that was changed"`
}

// skills returns the commands fs/*.
func (f files) skills() []command.Command {
	read := command.Options{Effect: command.Reads, Idempotent: true, Private: true}
	return []command.Command{
		command.New("fs/read", "Read a text file. The path is project-relative and does not start with a slash, or it is an absolute system path.", read, f.fsRead),
		command.WithPreview(command.New("fs/write", "Write a whole text file. The path is project-relative and does not start with a slash, or it is an absolute system path.",
			command.Options{Effect: command.Changes, Idempotent: true, Private: true}, f.fsWrite), f.previewSkill),
		command.New("fs/list", "Find files by a glob. Use this to search for files when the exact path is unknown.", read, f.fsList),
	}
}

func (f files) fsRead(ctx context.Context, call *command.Call, in fsReadIn) (out fsReadOut, err error) {
	in.Path, out.Fixed = fixPath(call, in.Path, in.Autofix)
	out.readOut, err = f.read(ctx, call, readIn{Path: in.Path})
	return out, err
}

func (f files) fsWrite(ctx context.Context, call *command.Call, in fsWriteIn) (out fsWriteOut, err error) {
	in.Path, out.Fixed = fixPath(call, in.Path, in.Autofix)
	out.writeOut, err = f.write(ctx, call, writeIn{Path: in.Path, Content: in.Content, IfHash: in.IfHash})
	return out, err
}

// fsList finds files. Links are listed as files but not followed, and nothing in a folder
// whose name begins with a full stop is found.
func (f files) fsList(ctx context.Context, call *command.Call, in fsListIn) (fsListOut, error) {
	out := fsListOut{Files: []string{}}
	in.Cwd, out.Fixed = fixPath(call, in.Cwd, in.Autofix)
	if pattern, fixed := fixPath(call, in.Pattern, in.Autofix); fixed != nil {
		in.Pattern, out.Fixed = pattern, fixed
	}
	if in.Pattern == "" {
		in.Pattern = "**"
	}
	pattern, err := glob.ParseSearch(in.Pattern)
	if err != nil {
		return out, badPattern("pattern", err, "`sentinel help globs` has the syntax")
	}
	w, err := f.open(call)
	if err != nil {
		return out, err
	}
	defer w.Close()
	start, info, err := w.folder(in.Cwd)
	if err != nil {
		return out, err
	}
	if !info.IsDir() {
		return out, &abi.Error{Code: abi.BadFields, Field: "cwd", Permanent: true, Message: fmt.Sprintf("list %q: not a folder", in.Cwd), Hint: "fs/read reads files"}
	}
	out.Cwd = pathtext.Encode(start)
	if in.MaxResults == 0 {
		in.MaxResults = 200
	}
	size, last := 0, ""
	after := levels(pathtext.Decode(in.After))
	_, err = w.walk(ctx, filewalk.Options{Start: start, ByLevel: true}, func(name string, d fs.DirEntry) error {
		below := strings.TrimPrefix(name, start+"/")
		switch {
		case strings.HasPrefix(path.Base(name), "."):
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case d.IsDir() && (in.OnlyFiles == nil || *in.OnlyFiles), !pattern.Match(w.visibleName(below)):
			return nil
		case in.After != "" && compareLevels(levels(name), after) <= 0:
			return nil
		}
		size += jsonSize(name)
		if len(out.Files) == in.MaxResults || size > maxResult {
			out.Truncated, out.Next = true, last
			return fs.SkipAll
		}
		last = pathtext.Encode(name)
		out.Files = append(out.Files, last)
		return nil
	})
	slices.Sort(out.Files)
	if err == nil && len(out.Files) == 0 && in.After == "" {
		out.Note = w.noMatch(start, in.Pattern)
	}
	return out, err
}

// noMatch returns why no file below a folder matches a glob.
func (w *workspace) noMatch(start, pattern string) string {
	in := pathtext.Encode(filepath.Join(w.call.Workspace, filepath.FromSlash(start)))
	parts := strings.Split(strings.TrimPrefix(pattern, "./"), "/")
	for i, part := range parts[:len(parts)-1] {
		if strings.ContainsAny(part, `*?[{\`) {
			break
		}
		folder := strings.Join(parts[:i+1], "/")
		if _, _, err := w.folder(path.Join(start, folder)); abi.CodeOf(err) == abi.NotFound {
			return fmt.Sprintf("no file matches %s: there is no folder %q in %s", pattern, folder, in)
		}
	}
	return fmt.Sprintf("no file matches %s in %s", pattern, in)
}

// levels returns the names of a path.
func levels(name string) []string { return strings.Split(name, "/") }

// compareLevels compares paths in the order in which a walk by level visits them, so that a page begins behind the
// last path of the page before even if that file is gone.
func compareLevels(a, b []string) int {
	return cmp.Or(cmp.Compare(len(a), len(b)), slices.Compare(a, b))
}

// systemFolders begin absolute paths that are never project paths.
var systemFolders = []string{"home", "usr", "etc", "var"}

// fixPath removes the leading slash of a project path, if on is set. A path that begins
// with a folder of the system stays as it is, and so does one in the workspace. Only the
// first folder is looked for, so that the result does not reveal what exists outside.
func fixPath(call *command.Call, name string, on bool) (string, *fix) {
	rel := strings.TrimLeft(name, "/")
	first, _, _ := strings.Cut(rel, "/")
	if !on || rel == name || rel == "" || slices.Contains(systemFolders, first) {
		return name, nil
	}
	if _, err := os.Lstat("/" + first); err == nil || strings.HasPrefix(name, strings.TrimSuffix(call.Workspace, "/")+"/") {
		return name, nil
	}
	return rel, &fix{From: name, To: rel}
}
