// Package backup writes the state of a host to one file, and restores it into an empty
// folder.
//
// # The archive
//
// An archive is a tar file, compressed with gzip. Its first entry, [InfoName], is an
// [Info]: a reader refuses a newer format before it reads on. The last one, listName, has
// the SHA-256 of all others: an archive without it is not complete. Between them are the
// store, as of one commit, and then the files that it refers to, in three trees, see entries.
//
// # Restore
//
// [Restore] unpacks an archive beside its target, compares all digests, reads the whole
// store, and only then renames the folder. A process that is killed leaves an empty
// target.
package backup
