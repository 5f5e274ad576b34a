// Package code is the part of the HOST process that works on the files of a
// workspace: code/read, write, edit, search, tree and verify.
//
// Every access goes through an [os.Root] on the call's workspace and follows
// links by hand, so nothing outside can be read or written, whatever links
// exist and however they change meanwhile. A model's call is held to further
// rules: it never writes a file that steers tools, see [command.Steering], and
// never sees the state folder of this program.
package code
