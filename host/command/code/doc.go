// Package code implements the commands on the files of a workspace: code/read,
// write, edit, search, tree and verify, and the file skills of planners: fs/read, write
// and list.
//
// Every access goes through an [os.Root] on the call's workspace, and links are
// resolved component by component, so nothing outside can be read or written, even
// if links change during a call.
//
// A model's call is restricted further. It never writes a file that steers tools,
// see [command.Steering], and writes a file that steers a build, see
// [command.SteersBuild], only if it may execute code anyway. It never sees the
// state folder of the host, and does not read files that hold secrets, see
// [command.FileRules].
//
// code/verify executes files of the project, so a model can call it only if the
// tools of the step name it: no pattern such as "code/*" or "*" matches it.
package code
