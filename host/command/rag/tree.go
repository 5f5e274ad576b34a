package rag

import (
	"context"
	"fmt"
	"path"
	"strings"
)

// maxSiblings limits the entries of one folder in a tree.
const maxSiblings = 60

// tree returns the tree of the workspace, as deep as fits into n bytes. A folder
// whose entries are left out shows its number of files.
func (g *contextBuild) tree(ctx context.Context, n int) (string, bool, error) {
	items, err := g.workspace.items(ctx)
	if err != nil {
		return "", false, err
	}
	files := countFiles(items)
	text, complete := "", false
	for _, depth := range []int{maxDepth, 8, 6, 5, 4, 3, 2, 1} {
		text, complete = formatTree(items, files, depth)
		if len(text) <= n {
			break
		}
	}
	text, truncated := shorten(text, n)
	return text, truncated || !complete || g.workspace.more, nil
}

// countFiles counts the files below each folder.
func countFiles(items []item) map[string]int {
	count := map[string]int{}
	for _, it := range items {
		if it.folder {
			continue
		}
		for dir := path.Dir(it.path); dir != "."; dir = path.Dir(dir) {
			count[dir]++
		}
	}
	return count
}

// formatTree writes one line for each entry, indented by its depth. complete reports
// that no entry is left out.
func formatTree(items []item, files map[string]int, depth int) (text string, complete bool) {
	var b strings.Builder
	complete = true
	siblings := map[string]int{}
	closed := "" // the entries below this folder are left out
	for _, it := range items {
		if closed != "" && strings.HasPrefix(it.path, closed) {
			continue
		}
		closed = ""
		dir := path.Dir(it.path)
		siblings[dir]++
		level := strings.Count(it.path, "/")
		indent := strings.Repeat("  ", level)
		if siblings[dir] > maxSiblings {
			if siblings[dir] == maxSiblings+1 {
				fmt.Fprintf(&b, "%s... and more\n", indent)
			}
			complete = false
			if it.folder {
				closed = it.path + "/"
			}
			continue
		}
		name := clean(strings.ReplaceAll(path.Base(it.path), "\n", "?"))
		switch {
		case !it.folder:
			fmt.Fprintf(&b, "%s%s\n", indent, name)
		case level+1 >= depth && files[it.path] > 0:
			fmt.Fprintf(&b, "%s%s/ (%d files)\n", indent, name, files[it.path])
			closed, complete = it.path+"/", false
		default:
			fmt.Fprintf(&b, "%s%s/\n", indent, name)
		}
	}
	return b.String(), complete
}
