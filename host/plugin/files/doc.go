// Package folder reads and writes the files of step plugins: it is what the HOST
// answers sentinel_file with (clause A6.16 of sdk/ABI.md).
//
// A plugin has words of its own for folders, and the operator says which folder
// each of them is: an absolute path, or one in the run's workspace. A plugin
// sees nothing of the path, neither in answers nor in errors.
//
// # What a guest cannot have
//
// Nothing outside the folder, whatever links are in it or are put there
// meanwhile; nothing but regular files and folders; no link as the last part of
// a path; no write to a file with another name (a hard link), to what steers
// tools ([command.Steering]), or to what the host itself lives on
// ([Options.Shut]), also where such a file does not exist yet. RATIONALE.md has
// the reasons.
//
// # Bounds
//
// An answer has at most 256 KiB: a file is read in pieces of 160 KiB, a folder in
// pieces of 1,000 names. A folder with more than 100,000 names is not listed.
package files
