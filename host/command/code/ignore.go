package code

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// alwaysSkipped are folders that no listing or search enters unless it is
// asked to start in one.
func alwaysSkipped(name string) bool {
	return slices.Contains([]string{".git", ".hg", ".svn", "node_modules"}, path.Base(name))
}

// ignoreRule is one line of a .gitignore file.
type ignoreRule struct {
	match   *regexp.Regexp // against the path below the file's folder
	negate  bool
	dirOnly bool
}

// parseIgnore reads a .gitignore file. Lines that are no valid pattern are
// skipped, as git does.
func parseIgnore(text string) []ignoreRule {
	var rules []ignoreRule
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if !strings.HasSuffix(line, `\ `) {
			line = strings.TrimRight(line, " ")
		}
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		var r ignoreRule
		if rest, ok := strings.CutPrefix(line, "!"); ok {
			r.negate, line = true, rest
		}
		if rest, ok := strings.CutSuffix(line, "/"); ok {
			r.dirOnly, line = true, rest
		}
		re, err := compileGlob(line, false)
		if err != nil || line == "" {
			continue
		}
		r.match = re
		rules = append(rules, r)
	}
	return rules
}

// ignores are the rules of the folders from the workspace down.
type ignores map[string][]ignoreRule // by folder, "." is the workspace

// ignored applies the rules of every folder above name; the last match of the
// innermost folder that has one decides.
func (g ignores) ignored(name string, isDir bool) bool {
	for dir := path.Dir(name); ; dir = path.Dir(dir) {
		below := name
		if dir != "." {
			below = strings.TrimPrefix(name, dir+"/")
		}
		rules := g[dir]
		for i := len(rules) - 1; i >= 0; i-- {
			if r := rules[i]; (isDir || !r.dirOnly) && r.match.MatchString(below) {
				return !r.negate
			}
		}
		if dir == "." || dir == "/" {
			return false
		}
	}
}
