// Package peer finds the process at the other end of a connection, and whether it is
// below a step.
//
// A bearer token shows that a client can read a file of the user. Every process that a
// step starts can do that too, so a token alone does not make a request a person's. What
// a process cannot choose is its ancestry: on Linux a process that outlives its parent is
// adopted by the nearest supervisor above it, see package supervise. So a process is below
// a step if one of its ancestors is this process, or the supervisor of a step of any
// sentinel process of this machine.
//
// # How a process is found
//
// A Unix socket has the pid of the process that connected (SO_PEERCRED), and a handle of
// that process (SO_PEERPIDFD, Linux 6.5), by which a pid that was used again is noticed. A
// TCP connection within this machine has none: the kernel returns the inode of the other
// socket (NETLINK_SOCK_DIAG), and the processes below steps are searched for one that
// holds it. Connections from other machines are not examined.
//
// # Limits
//
// A process below a step that has another program act for it is not found: a service
// manager that starts a process for it, or a proxy. Over TCP neither is one that keeps its
// socket out of its table of open files, in a message to itself. On systems other than
// Linux orphans belong to process 1 and steps have no supervisors, so only descendants
// of this process whose ancestors still run are found, and on systems other than Linux and
// macOS none.
package peer
