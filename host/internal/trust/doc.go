// Package trust decides whether a file may be obeyed, by who owns it and who may
// write to it.
//
// A user who can write a definition, a plugin, a token or the configuration acts with
// the rights of the host. So the host obeys a file only if no user but its own and
// root could have written it. The same holds for every folder above the file, up to
// the root of the file system, because a user who can write to a folder can replace
// what is in it. OpenSSH calls this rule StrictModes. In detail:
//
//  1. The owner is root or the effective user.
//  2. Others may not write. The group may, if it is the effective group of the process
//     or one of [Options.Groups], and no access list (POSIX ACL) lets others in.
//  3. A folder above may let others write if it is sticky, as /tmp is: entries in it
//     can be replaced by their owners alone. The file or folder itself may not.
//  4. A symbolic link counts with its own owner and with the folders that it leads
//     through.
//  5. What is below one of [Options.Paths] is not looked at, nor what is above that:
//     for mounts whose owners and modes say nothing, such as a Windows disk in WSL.
//
// Root of another user namespace is not root here: it shows as the overflow user
// (65534), like all users that the namespace does not map.
//
// # Systems without Unix modes
//
// [Supported] is false there and everything passes. The doctor and the log of a
// server say so.
package trust
