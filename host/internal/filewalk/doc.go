// Package filewalk visits the files below a folder and reads them. The commands
// that list, search and rank the files of a workspace share it.
//
// A walk leaves out what .gitignore files of the folder ignore, and never follows
// links, so it ends and stays in the folder. All access goes through an [os.Root],
// and a file is only read if it is still the one that the walk visited.
//
// .gitignore files are translated to patterns of package sentinels/glob. A test
// compares the result with git check-ignore on random trees. RATIONALE.md says
// what was compared and what differs.
package filewalk
