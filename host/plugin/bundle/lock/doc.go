// Package lock holds step plugins to what was INSTALLED: a file beside them names
// the digest of each, and a plugin that differs from its entry is not loaded.
//
// The lock is plugins.lock.json in the folder of the plugins. It belongs into the
// repository with them: a diff of it shows which version comes from where, who
// signed it and what it asks for. It has no entry for files that were copied
// there by hand, and it does not prove where a file comes from, because a user who may
// write the folder may write the lock; a signature is.
//
// # Two files, one change
//
// A new version is two writes, the lock and the module. So that a crash between
// them leaves nothing that is refused, the lock first names both versions, then
// the module is replaced, then the lock names the new one alone. What a crash has
// left open is decided by the module at the next write.
//
// # Concurrency
//
// A [Folder] is a value and may be used by many. Readers need no lock, since files
// are replaced as a whole; writers of all processes wait for each other in
// [Folder.Hold].
package lock
