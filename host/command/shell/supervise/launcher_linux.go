package supervise

import "sync"

// launchers are the first processes of the PID namespaces that this process has commands in,
// by their pids. They are programs of ours whose files cannot be read.
var launchers sync.Map

// AddLauncher notes a launcher of this process, RemoveLauncher that it has ended.
func AddLauncher(pid int) { launchers.Store(pid, nil) }

// RemoveLauncher is described at [AddLauncher].
func RemoveLauncher(pid int) { launchers.Delete(pid) }

// IsLauncher reports whether a process is a launcher of this process.
func IsLauncher(pid int) bool {
	_, ok := launchers.Load(pid)
	return ok
}
