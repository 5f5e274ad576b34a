// Package peer finds the process at the other end of a connection, and whether it is
// below a step.
//
// A bearer token shows that a client can read a file of the user. Every process that a
// step starts can do that too, so a token alone does not make a request a person's. What
// a process below a step cannot choose is a limit that it inherits from its supervisor, see
// Marked in package supervise, and its ancestry. So a process is below a step if it or one of its
// ancestors has that limit, or if one of them is a child of this process.
//
// # How a process is found
//
// A Unix socket has the pid of the process that connected (SO_PEERCRED), and a handle of
// that process (SO_PEERPIDFD, Linux 6.5), by which a pid that was used again is noticed. A
// TCP connection within this machine has none: the kernel returns the inode of the other
// socket (NETLINK_SOCK_DIAG), and the tables of open files of all processes are searched
// for it. A process can keep a socket without having it in its table: in a system call, in
// a message to itself, in memory that is mapped. So a client is apart only if its socket was
// found in a process that is apart and, after that, in none below a step; or if no process is
// below a step; or if the socket is that of another account, of which no process is below
// a step. Connections from other machines are not examined.
//
// The process at the other end of a connection that this process makes is found in the same way:
// its socket has an inode once it was accepted. See [Server].
//
// # Limits
//
// A process below a step that has another program act for it is not found: a service
// manager that starts a process for it, a proxy, or a program that takes its socket. One with
// CAP_SYS_RESOURCE can lift the limit. Clients whose files this process cannot read are
// undecided while a process is below a step: those that protect their memory, and those
// of another PID namespace. On systems other than
// Linux orphans belong to process 1 and steps have no supervisors, so only descendants
// of this process whose ancestors still run are found, and on systems other than Linux and
// macOS none.
package peer
