// Package codeindex keeps an index of the words in the files of a workspace, in an
// SQLite database with a full-text table (FTS5).
//
// [Index.Refresh] compares the files with the index and reads only those that are
// new or changed, so a search after it sees what was saved before it. Files that git
// ignores, that the caller skips or takes for secrets, links, binary files and large
// files are not indexed.
//
// The database is derived from the workspace. One that is damaged, or of another
// version, is deleted and built again; if it cannot be written, the index is built in
// memory. RATIONALE.md has the reasons and measurements.
//
// # Concurrency
//
// An [Index] must not be used concurrently. Any number of them, also of several
// processes, can use the same database.
package codeindex
