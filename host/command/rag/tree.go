package rag

import (
	"context"
	"fmt"
	"path"
	"strings"
)

// maxSiblings bounds how many entries of one folder a tree shows.
const maxSiblings = 60

// tree shows the workspace as deep as fits into n bytes: a folder that is not
// opened says how many files are in it.
func (g *gathering) tree(ctx context.Context, n int) (string, bool, error) {
	items, err := g.workspace.items(ctx)
	if err != nil {
		return "", false, err
	}
	files := countFiles(items)
	text, whole := "", false
	for _, depth := range []int{maxDepth, 8, 6, 5, 4, 3, 2, 1} {
		text, whole = drawTree(items, files, depth)
		if len(text) <= n {
			break
		}
	}
	text, cutOff := shorten(text, n)
	return text, cutOff || !whole || g.workspace.more, nil
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

// drawTree writes one line an entry, indented by its depth. whole says that
// nothing was left out.
func drawTree(items []item, files map[string]int, depth int) (text string, whole bool) {
	var b strings.Builder
	whole = true
	siblings := map[string]int{}
	shut := "" // the entries below this folder are left out
	for _, it := range items {
		if shut != "" && strings.HasPrefix(it.path, shut) {
			continue
		}
		shut = ""
		dir := path.Dir(it.path)
		siblings[dir]++
		level := strings.Count(it.path, "/")
		indent := strings.Repeat("  ", level)
		if siblings[dir] > maxSiblings {
			if siblings[dir] == maxSiblings+1 {
				fmt.Fprintf(&b, "%s... and more\n", indent)
			}
			whole = false
			if it.folder {
				shut = it.path + "/"
			}
			continue
		}
		name := clean(strings.ReplaceAll(path.Base(it.path), "\n", "?"))
		switch {
		case !it.folder:
			fmt.Fprintf(&b, "%s%s\n", indent, name)
		case level+1 >= depth && files[it.path] > 0:
			fmt.Fprintf(&b, "%s%s/ (%d files)\n", indent, name, files[it.path])
			shut, whole = it.path+"/", false
		default:
			fmt.Fprintf(&b, "%s%s/\n", indent, name)
		}
	}
	return b.String(), whole
}
