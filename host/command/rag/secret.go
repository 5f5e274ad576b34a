package rag

import (
	"slices"
	"strings"
	"unicode"
)

// hiddenFolders are never shown: version control stores addresses with tokens, and
// models must not read the state of the host.
var hiddenFolders = []string{".git", ".hg", ".svn", ".sentinel", ".continuum"}

// generatedFolders contain what tools wrote or others published. Lists and searches
// leave them out, but a source can name a file in them.
var generatedFolders = []string{
	"node_modules", "vendor", "__pycache__", ".venv", "venv", ".tox", ".cache", ".mypy_cache", ".pytest_cache", ".gradle", ".terraform",
	".next", ".nuxt", ".idea", ".vscode",
}

// secret reports whether a path must not be part of any context, judged by its name.
func (w *workspace) secret(name string) bool {
	for p := range strings.SplitSeq(strings.ReplaceAll(name, `\`, "/"), "/") {
		if slices.Contains(hiddenFolders, plainName(p)) {
			return true
		}
	}
	return w.rules.Match(name)
}

// plainName is a name as the most tolerant file system compares it: without case,
// invisible characters, trailing full stops and spaces, and alternate streams.
func plainName(name string) string {
	name = strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Cf, r) {
			return -1
		}
		return r
	}, strings.ToLower(name))
	name, _, _ = strings.Cut(name, ":")
	return strings.TrimRight(name, ". ")
}
