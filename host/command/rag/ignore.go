package rag

import (
	"path"
	"strings"
)

// An ignoreRule is one line of a .gitignore file.
type ignoreRule struct {
	pattern glob // relative to the file's folder; of one part: fits a name at any depth
	keep    bool // a line that begins with "!"
	folder  bool // holds for folders alone
}

// ignoreRules are the rules of the folders passed on the way down, by folder;
// "." is the workspace.
type ignoreRules map[string][]ignoreRule

// maxRules bounds the lines that count in one file and in all of a workspace:
// each is held against every name.
const maxRules = 2000

// parseIgnore reads what gitignore(5) describes, at most limit rules. A line
// that is no pattern is passed over, as git does.
func parseIgnore(text string, limit int) []ignoreRule {
	var rules []ignoreRule
	for line := range strings.Lines(text) {
		if len(rules) >= limit {
			break
		}
		line = strings.TrimRight(line, "\r\n")
		if trimmed := strings.TrimRight(line, " "); !strings.HasSuffix(trimmed, `\`) {
			line = trimmed
		}
		if line == "" || line[0] == '#' || len(line) > maxGlob {
			continue
		}
		var r ignoreRule
		line, r.keep = strings.CutPrefix(line, "!")
		line, r.folder = strings.CutSuffix(line, "/")
		anchored := strings.Contains(line, "/")
		line = strings.ReplaceAll(strings.TrimPrefix(line, "/"), "[!", "[^")
		if line == "" {
			continue
		}
		g, err := parts(line)
		if err != nil {
			continue
		}
		if g[len(g)-1] == "**" {
			g = append(g, "*") // what is below, not the folder itself
		}
		if anchored && len(g) == 1 {
			g = append(glob{"."}, g...) // told apart from a name at any depth
		}
		r.pattern = g
		rules = append(rules, r)
	}
	return rules
}

// ignored looks for the last rule that fits, from the innermost folder
// outwards.
func (rules ignoreRules) ignored(name string, folder bool) bool {
	for dir := parent(name); ; dir = parent(dir) {
		below := name
		if dir != "." {
			below = name[len(dir)+1:]
		}
		own := rules[dir]
		for i := len(own) - 1; i >= 0; i-- {
			if r := own[i]; (folder || !r.folder) && r.fits(below) {
				return !r.keep
			}
		}
		if dir == "." {
			return false
		}
	}
}

func (r ignoreRule) fits(below string) bool {
	switch {
	case len(r.pattern) == 1:
		return matchPart(r.pattern[0], path.Base(below))
	case r.pattern[0] == ".":
		return matchPart(r.pattern[1], below)
	}
	return r.pattern.match(below)
}

// parent is the folder of a clean relative path.
func parent(name string) string {
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		return name[:i]
	}
	return "."
}
