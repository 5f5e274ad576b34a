// Package files is the trigger kind that fires when files change, and the
// [Watcher] behind it, which the watched folder of the host uses too.
//
// # What a watcher believes
//
// A notification is a hint to look at a path, never a fact: kernels merge, drop
// and reorder them, and editors write in a dozen ways. What counts is the state
// of the file when it has been quiet for a moment: gone, or there with this
// content. So rename-over, truncate-and-write and a swapped link are all the
// same thing, a file with another content, and a file that was written anew with
// the content it had has not changed.
//
// Folders are watched, not files, since a file that is replaced takes its watch
// with it. Everything is looked at again every half minute, and at once when
// notifications were lost; where there are none to be had, that is all there is,
// at shorter intervals. RATIONALE.md says why.
//
// # Links
//
// A link to a file counts as the file. Folders are followed through links only
// where a pattern names them literally, so there are no circles. A confined
// watcher takes whatever a link leads to outside its root for missing.
package files
