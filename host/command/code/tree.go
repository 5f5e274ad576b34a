package code

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/internal/filewalk"
	"github.com/sentinel-runtime/sentinel/internal/pathtext"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

type treeIn struct {
	Path       string `json:"path,omitempty" jsonschema:"folder to list, the workspace if not given"`
	Depth      int    `json:"depth,omitempty" jsonschema:"number of levels to list, 4 if not given" minimum:"1" maximum:"32"`
	MaxEntries int    `json:"maxEntries,omitempty" jsonschema:"number of entries to return, 500 if not given" minimum:"1" maximum:"2000"`
	All        bool   `json:"all,omitempty" jsonschema:"list ignored files too"`
}

type treeOut struct {
	Path      string  `json:"path"`
	Entries   []entry `json:"entries"`
	Truncated bool    `json:"truncated" jsonschema:"there are more entries within the depth"`
	Text      string  `json:"text" jsonschema:"the entries, indented by their depth"`
}

type entry struct {
	Path string `json:"path"`
	Type string `json:"type" enum:"file,folder,link,other"`
	Size int64  `json:"size,omitempty"`
}

// tree lists the workspace level by level.
func (f files) tree(ctx context.Context, call *command.Call, in treeIn) (treeOut, error) {
	w, err := f.open(call)
	if err != nil {
		return treeOut{}, err
	}
	defer w.Close()
	start, info, err := w.folder(in.Path)
	if err != nil {
		return treeOut{}, err
	}
	if !info.IsDir() {
		return treeOut{}, &abi.Error{Code: abi.BadFields, Field: "path", Permanent: true, Message: fmt.Sprintf("list %q: not a folder", in.Path), Hint: "code/read reads files"}
	}
	if in.Depth == 0 {
		in.Depth = 4
	}
	if in.MaxEntries == 0 {
		in.MaxEntries = 500
	}
	// The walk is by level, so that a limit leaves the upper levels complete.
	out := treeOut{Path: pathtext.Encode(start), Entries: []entry{}}
	size := 0
	_, err = w.walk(ctx, filewalk.Options{Start: start, All: in.All, ByLevel: true, MaxDepth: in.Depth}, func(name string, d fs.DirEntry) error {
		size += 60 + 2*jsonSize(name)
		if len(out.Entries) == in.MaxEntries || size > maxResult {
			out.Truncated = true
			return fs.SkipAll
		}
		out.Entries = append(out.Entries, entryOf(name, d))
		return nil
	})
	if err != nil {
		return treeOut{}, err
	}
	slices.SortFunc(out.Entries, func(a, b entry) int { return filewalk.Compare(a.Path, b.Path) })
	out.Text = render(start, out.Entries, out.Truncated)
	return out, nil
}

// entryOf describes an entry. It does not follow links, whose target may be outside
// the workspace.
func entryOf(name string, d fs.DirEntry) entry {
	e := entry{Path: pathtext.Encode(name), Type: "other"}
	switch {
	case d.IsDir():
		e.Type = "folder"
	case d.Type()&fs.ModeSymlink != 0:
		e.Type = "link"
	case d.Type().IsRegular():
		e.Type = "file"
		if info, err := d.Info(); err == nil {
			e.Size = info.Size()
		}
	}
	return e
}

// render formats the entries as an indented list, the form that models read best.
func render(start string, entries []entry, truncated bool) string {
	var b strings.Builder
	top := filewalk.Depth(start) + 1
	for _, e := range entries {
		b.WriteString(strings.Repeat("  ", filewalk.Depth(e.Path)-top))
		b.WriteString(path.Base(e.Path))
		switch e.Type {
		case "folder":
			b.WriteByte('/')
		case "link":
			b.WriteByte('@')
		}
		b.WriteByte('\n')
	}
	if truncated {
		b.WriteString("… and more\n")
	}
	return b.String()
}
