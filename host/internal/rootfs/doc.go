// Package place is how the HOST touches files for commands and step plugins: it
// finds where a path in a folder really leads, and reads, replaces and removes
// what is there.
//
// Every access goes through an [os.Root] and follows links by hand, so nothing
// outside the folder is reached, whatever links are in it and however they
// change meanwhile. Files are opened without blocking and looked at again once
// they are open: a pipe or a device in the place of a file neither hangs nor is
// read.
package rootfs
