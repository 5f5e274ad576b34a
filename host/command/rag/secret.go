package rag

import (
	"slices"
	"strings"
	"unicode"
)

// hiddenFolders are never shown, whoever asks: version control keeps remotes
// with tokens, and our own state is not for models.
var hiddenFolders = []string{".git", ".hg", ".svn", ".sentinel", ".continuum"}

// dullFolders are passed over in lists and searches, but a file in one can be
// named: they hold what others wrote or what machines made.
var dullFolders = []string{
	"node_modules", "vendor", "__pycache__", ".venv", "venv", ".tox", ".cache", ".mypy_cache", ".pytest_cache", ".gradle", ".terraform",
	".next", ".nuxt", ".idea", ".vscode",
}

// secret reports whether a path must not be part of any context, by its name.
func (w *workspace) secret(name string) bool {
	for p := range strings.SplitSeq(strings.ReplaceAll(name, `\`, "/"), "/") {
		if slices.Contains(hiddenFolders, plain(p)) {
			return true
		}
	}
	return w.secrets.Match(name)
}

// plain is a name as the laxest file system takes it: without case, invisible
// characters, trailing dots and spaces, and alternate streams.
func plain(name string) string {
	name = strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Cf, r) {
			return -1
		}
		return r
	}, strings.ToLower(name))
	name, _, _ = strings.Cut(name, ":")
	return strings.TrimRight(name, ". ")
}
