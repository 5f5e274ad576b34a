// Package files implements the host call sentinel_file, by which step plugins read
// and write files (clause A6.16 of sdk/ABI.md).
//
// A plugin names its folders, and the operator grants a path for each name: an
// absolute path, or one in the run's workspace. The plugin never learns the path,
// neither from results nor from errors.
//
// # Restrictions
//
// A guest cannot access files outside the folder, even if links change during the
// call, and only regular files and folders. The last part of a path must not be a
// link. It cannot write to a file with several hard links, to files that steer
// tools ([command.Steering]), or to the host's own files ([Options.Excluded]), even
// if they do not exist yet. RATIONALE.md has the reasons.
//
// # Limits
//
// A result has at most 256 KiB: a read returns at most 160 KiB of a file, a list
// at most 1,000 names. A folder with more than 100,000 names is not listed.
package files
