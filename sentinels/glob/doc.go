// Package glob matches paths with patterns. It is the one dialect of patterns of
// this module: the file trigger, the commands on files and the sources of a prompt
// use it, and package host/internal/filewalk translates .gitignore files into it.
// FORMAT.md describes the dialect for users in F9.
//
// A pattern is matched segment by segment. [Parse] writes out the alternatives in
// braces, and a match keeps the set of segments that can come next, so its time is
// at most proportional to the product of the lengths of the written-out pattern and
// the path, whatever the pattern is. RATIONALE.md gives the reasons.
package glob
