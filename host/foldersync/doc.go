// Package foldersync synchronizes folders of definitions and plugins with the
// store while the host runs. Files that are created, edited or deleted change
// definitions and step types, and definitions that are edited elsewhere are
// written back to their files.
//
// # One history
//
// A file and the store have the same definition. A changed file becomes a new
// revision; a revision that was made elsewhere is written to the file. Which of
// the two is newer follows from a mark for each file: the digest of the content
// and the revision that were last equal. A content with another digest is newer
// than the store. With the same digest, a later revision in the store is newer
// than the file. So a crash between the two writes of an edit is repaired at the
// next start, and files that this package writes do not become revisions.
//
// A file has only what a person wrote or accepted. A revision that bounds its runs, as
// those of models and agents do, is in the store alone until a person accepts it.
//
// # What stays live
//
// A file that is not a valid definition changes nothing: its last valid revision
// stays live, and its problems are listed. The definition of a deleted file is
// deleted after a grace period, since some editors delete and write again. Its
// triggers are disarmed, its revisions stay readable and its runs continue. A
// file that was renamed keeps its definition. Of two files with one id the
// one that is live keeps it, the first at the beginning, and the other is listed with a
// problem that names both. Hidden files are not read.
package foldersync
