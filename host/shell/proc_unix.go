//go:build unix

package shell

import (
	"io/fs"
	"os"
	"syscall"
)

var executableSuffixes = []string{""}

func executable(info fs.FileInfo) bool { return info.Mode()&0o111 != 0 }

// sessionAttr starts a program in a session, and so in a group, of its own.
func sessionAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// terminate asks a process group to end. Its leader must not be reaped yet.
func terminate(p *os.Process) {
	_ = syscall.Kill(-p.Pid, syscall.SIGTERM) // ended already: nothing to ask
	_ = syscall.Kill(-p.Pid, syscall.SIGCONT) // a stopped one must run to end
}

// killGroup ends a process group.
func killGroup(p *os.Process) {
	_ = syscall.Kill(-p.Pid, syscall.SIGKILL) // as above
}

// exitOf maps how a process ended to the exit code a shell would show.
func exitOf(s *os.ProcessState) (code int, signal string) {
	if w, ok := s.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return 128 + int(w.Signal()), w.Signal().String()
	}
	return s.ExitCode(), ""
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
