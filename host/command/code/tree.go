package code

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

type treeIn struct {
	Path       string `json:"path,omitempty" jsonschema:"folder to list, the workspace if not given"`
	Depth      int    `json:"depth,omitempty" jsonschema:"how many levels to go down, 4 if not given" minimum:"1" maximum:"32"`
	MaxEntries int    `json:"maxEntries,omitempty" jsonschema:"how many entries to return, 500 if not given" minimum:"1" maximum:"2000"`
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
		return treeOut{}, &abi.Error{Code: abi.BadFields, Field: "path", Permanent: true, Message: fmt.Sprintf("list %q: is no folder", in.Path), Hint: "code/read reads files"}
	}
	if in.Depth == 0 {
		in.Depth = 4
	}
	if in.MaxEntries == 0 {
		in.MaxEntries = 500
	}
	// Levels are listed one after the other, so that a cut leaves the top whole.
	levels := make([][]entry, in.Depth+1)
	kept := 0
	err = w.each(ctx, start, in.All, func(name string, d fs.DirEntry) error {
		depth := depthBelow(start, name)
		if kept < maxVisited {
			levels[depth] = append(levels[depth], entryOf(name, d))
			kept++
		} else {
			return fs.SkipAll
		}
		if d.IsDir() && depth == in.Depth {
			return fs.SkipDir
		}
		return nil
	})
	if err != nil {
		return treeOut{}, err
	}
	out := treeOut{Path: start, Truncated: kept == maxVisited, Entries: []entry{}}
	size := 0
	for _, level := range levels {
		for _, e := range level {
			size += 60 + 2*jsonSize(e.Path)
			if len(out.Entries) == in.MaxEntries || size > maxAnswer {
				out.Truncated = true
				break
			}
			out.Entries = append(out.Entries, e)
		}
	}
	slices.SortFunc(out.Entries, func(a, b entry) int {
		return slices.Compare(strings.Split(a.Path, "/"), strings.Split(b.Path, "/"))
	})
	out.Text = render(start, out.Entries, out.Truncated)
	return out, nil
}

// maxVisited bounds the memory of one listing in a huge workspace.
const maxVisited = 50_000

// depthBelow counts the parts of name below start, 1 for an entry of start itself.
func depthBelow(start, name string) int {
	n := strings.Count(name, "/") + 1
	if start != "." {
		n -= strings.Count(start, "/") + 1
	}
	return n
}

// entryOf describes an entry. A link is not followed: where it leads may be outside.
func entryOf(name string, d fs.DirEntry) entry {
	e := entry{Path: name, Type: "other"}
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

// render writes the entries as an indented list, the form that models read best.
func render(start string, entries []entry, truncated bool) string {
	var b strings.Builder
	for _, e := range entries {
		b.WriteString(strings.Repeat("  ", depthBelow(start, e.Path)-1))
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
