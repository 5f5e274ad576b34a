package glob

import "slices"

// Skipped returns the names of the folders in which tools write thousands of files that
// no user wrote: searches leave them out, and no file trigger watches them.
func Skipped() []string { return slices.Clone(skipped) }

// IsSkipped reports whether a name is one of [Skipped].
func IsSkipped(name string) bool { return slices.Contains(skipped, name) }

var skipped = []string{".git", ".hg", ".svn", "node_modules"}
