// Package reload is how a host loads sentinels and plugins from folders while it
// runs: files that are dropped, edited or deleted become definitions and step
// types at once, and what is edited elsewhere is written back to its file.
//
// # One history
//
// A file and the store hold the same definition. A file that changed is a new
// revision; a revision made elsewhere is written to the file. Which of the two is
// newer is known from a mark for each file: the digest of the content and the
// revision that were last the same thing. A content with another digest is newer
// than the store; with the same digest, a later revision in the store is newer
// than the file. So a crash between the two writes of an edit mends itself at the
// next start, and our own writes never come back as revisions.
//
// # What stays live
//
// A file that cannot be read as a definition changes nothing: its last good
// revision stays live and the problems are kept beside it. A deleted file takes
// its definition with it, after a moment in which it may come back, since
// editors write by deleting: the definition is deleted, its triggers end, its
// revisions stay readable and its runs go on. A file that was renamed keeps its
// definition. Of two files with one id the first keeps it and the other is a
// problem that names both.
package foldersync
