// Package checkpoint keeps the state of the files of workspaces, so that what a run changed
// can be listed and taken back.
//
// A workspace has a git repository of its own in the folder of the [Service]. The repository
// of the user, if there is one, is only asked which files it does not ignore: its index,
// references, objects, hooks and settings are neither used nor changed. Attributes do not
// count, so each file is kept byte by byte. A workspace need not be a repository.
//
// # What is covered
//
// A checkpoint has an index of every path below the workspace, ignored or not: kind, size,
// mode, owner, times and inode. So it knows what existed, and a restore removes only what did
// not. It also keeps the content of
//
//   - links and files that git lists, up to [Options.FileBytes] each;
//   - files that git ignores or that are in nested repositories, up to
//     [Options.IgnoredFileBytes] each, [Options.IgnoredBytes] and [Options.IgnoredFiles] in
//     all, those in the uppermost folders first;
//   - other files, if the file system of the workspace and of the Service can clone them
//     (FICLONE, on Linux).
//
// [Uncovered] counts the others. A change of one is in the list of changes, with the reason
// why a restore leaves it. The folder or file .git of a repository is never restored and not
// looked into; a change of its references, settings or hooks is listed. Left out altogether
// are the folders of [Options.Exclude] and temporary files of the host.
//
// The rules are taken at the begin of a scope and hold to its end: what becomes ignored,
// listed, small or large in between is what it was.
//
// # Pairs
//
// A checkpoint has a scope, such as the id of a run, and a label. Those of one scope with
// the labels [Begin] and [End] are a pair: what changed between them is what
// [Service.Restore] takes back, also what others than the run changed in between: from two
// states it does not follow who made the difference. It makes a pair itself, with a scope of
// its own, so that it can be taken back too. A path that changes while a checkpoint is made
// is in it with one of its states; what the checkpoint keeps as its content was read as a
// whole, without a write in between.
//
// # Files of this package
//
//	service.go   Options, Service, the repository of a workspace
//	index.go     what a checkpoint knows of each path, and how it is stored
//	walk.go      reading that from the workspace
//	rules.go     of which files the content is kept
//	snapshot.go  storing contents and index as a commit of git
//	newest.go    the index of the newest checkpoint in a file
//	clone.go     contents as clones of files
//	create.go    checkpoints: references with metadata, lists
//	prune.go     their number and size
//	diff.go      what changed between two of them
//	restore.go   what is taken back, conflicts
//	apply.go     writing it to the workspace
//	change_*.go  changes of names in an open folder
//
// # Crashes
//
// A process may be killed at any point. A checkpoint is complete when its reference is
// there; files are replaced atomically. A restore that was interrupted can be repeated: it
// continues under the scope of the first one, and what that has written does not conflict.
//
// # Commands beside a restore
//
// A restore does everything to a path through its folder, which is opened without following links and has
// to be the one that the plan was made of. While it executes, [Options.HoldTree] keeps confined commands that
// can write the workspace away; if one is being executed, the restore is refused. It leaves what
// [Options.Obeyed] names as it is.
//
// # Concurrency
//
// A Service is safe for concurrent use; operations on one workspace execute one after the
// other. Two services must not share a folder.
package checkpoint
