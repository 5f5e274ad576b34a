// Package checkpoint keeps the state of the files of workspaces, so that what a run changed
// can be listed and taken back.
//
// A workspace has a git repository of its own in the folder of the [Service], with an index
// of its own and the workspace as its work tree. The repository of the user, if there is
// one, is only asked which files it does not ignore: its index, references, objects, hooks
// and settings are neither used nor changed. Attributes do not count, so each file is kept
// byte by byte. A workspace need not be a repository.
//
// # What is covered
//
// All regular files and links that git does not ignore, with their executable bit. Not
// covered are ignored files, nested repositories and submodules, files above
// [Options.FileBytes], files that cannot be read, and the folders of [Options.Exclude];
// [Uncovered] counts them.
//
// # Pairs
//
// A checkpoint has a scope, such as the id of a run, and a label. Those of one scope with
// the labels [Begin] and [End] are a pair: what changed between them is what
// [Service.Restore] takes back. It makes a pair itself, with a scope of its own, so that it
// can be taken back too.
//
// # Files of this package
//
//	service.go   Options, Service, the repository of a workspace
//	list.go      which files a checkpoint covers
//	snapshot.go  their state as a tree of git
//	create.go    checkpoints: references with metadata, lists
//	prune.go     their number and size
//	diff.go      what changed between two of them
//	restore.go   what is taken back, conflicts
//	apply.go     writing it to the workspace
//
// # Crashes
//
// A process may be killed at any point. A checkpoint is complete when its reference is
// there; index and files are replaced atomically. A restore that was interrupted can be
// repeated: files that it has written already do not conflict.
//
// # Concurrency
//
// A Service is safe for concurrent use; operations on one workspace execute one after the
// other. Two services must not share a folder.
package checkpoint
