// Package rootfs confines the file access of commands and step plugins to a
// folder: it resolves a path and reads, replaces or removes the file there.
//
// Every access goes through an [os.Root] and resolves symbolic links itself, so
// no link leads out of the folder, even if links change during a call. Files are
// opened with O_NONBLOCK and checked again with fstat, so a pipe or a device that
// replaces a file neither blocks the call nor is read.
package rootfs
