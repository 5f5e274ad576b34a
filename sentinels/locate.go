package sentinels

import (
	"slices"
	"strconv"
	"strings"
)

// writtenAs are the aliases that a stored key may have in a file.
var writtenAs = map[string][]string{
	"steps": {"pipeline"}, "definition": {"pipeline"}, "check": {"if"}, "data": {"payload"}, "cronExpression": {"schedule", "cron"},
}

// Locate returns ps with the lines and columns of their paths in src. A path that
// does not exist gets the position of the nearest value around it.
func (ps Problems) Locate(file string, src []byte) Problems {
	text, root, _ := parse(file, src)
	out := slices.Clone(ps)
	if root == nil {
		return out
	}
	for i := range out {
		out[i].File = file
		out[i].Line, out[i].Column = text.position(root.find(out[i].Path).start)
	}
	out.sort()
	return out
}

// find returns the node at a path as in [Problem], or the nearest one around it.
func (n *node) find(path string) *node {
	for _, token := range strings.FieldsFunc(path, func(r rune) bool { return r == '.' || r == '[' || r == ']' }) {
		next := n.member(token)
		for _, name := range writtenAs[token] {
			if next == nil {
				next = n.member(name)
			}
		}
		if i, err := strconv.Atoi(token); err == nil && n.kind == '[' && i >= 0 && i < len(n.items) {
			next = n.items[i]
		}
		if next == nil {
			return n
		}
		n = next
	}
	return n
}
