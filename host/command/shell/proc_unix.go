//go:build unix

package shell

import (
	"io/fs"
	"syscall"
)

var executableSuffixes = []string{""}

func executable(info fs.FileInfo) bool { return info.Mode()&0o111 != 0 }

// exitOf maps how a process ended to the exit code a shell would show.
func exitOf(w syscall.WaitStatus) (code int, signal string) {
	if w.Signaled() {
		return 128 + int(w.Signal()), w.Signal().String()
	}
	return w.ExitStatus(), ""
}

var shellArgv = []string{"/bin/sh", "-c"}

// withArguments makes a shell line that hands its further arguments to the
// program it names, whatever characters they hold.
func withArguments(line string, args []string) []string {
	if len(args) == 0 {
		return []string{line}
	}
	return append([]string{line + ` "$@"`, "sh"}, args...)
}
