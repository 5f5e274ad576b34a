// Package code implements the commands on the files of a workspace: code/read,
// write, edit, search, tree and verify.
//
// Every access goes through an [os.Root] on the call's workspace and follows
// links by hand, so nothing outside can be read or written, whatever links
// exist and however they change meanwhile. A model's call is held to further
// rules: it never writes a file that steers tools, see [command.Steering], writes
// one that steers a build, see [command.SteersBuild], only if it may execute code
// anyway, never sees the state folder of this program, and does not read files
// that hold secrets, see [command.SecretFiles].
//
// code/verify executes files of the project, so a model has it only where the
// step's tools name it: no pattern such as "code/*" or "*" matches it.
package code
