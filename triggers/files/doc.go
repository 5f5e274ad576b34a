// Package files implements the trigger kind that fires when files change, and
// its [Watcher], which package host/foldersync also uses.
//
// # State decides, not notifications
//
// A notification is only a hint to check a path: kernels merge, drop and reorder
// notifications, and editors write files in many ways. The watcher compares the
// state of the file once it has been quiet: absent, or present with a content.
// So rename-over, truncate-and-write and a replaced link are all the same change,
// and a file rewritten with equal content has not changed.
//
// The watcher watches folders, not files, because a replaced file takes its watch
// with it. It rescans every 30 s, and at once after lost notifications. Without
// notifications it polls. RATIONALE.md gives the reasons.
//
// # Links
//
// A link to a file counts as the file. Links to folders are followed only where a
// pattern names them literally, so there are no cycles. A confined watcher treats
// a link that leads outside its root as missing.
package files
