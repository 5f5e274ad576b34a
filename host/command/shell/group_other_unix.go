//go:build unix && !linux

package shell

import (
	"os"
	"os/exec"
	"syscall"
)

// sessionAttr starts a program in a session, and so in a group, of its own.
func sessionAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// terminate asks a process group to end.
func terminate(p *os.Process) {
	_ = syscall.Kill(-p.Pid, syscall.SIGTERM) // ended already: nothing to ask
	_ = syscall.Kill(-p.Pid, syscall.SIGCONT) // a stopped one must run to end
}

// killGroup ends a process group.
func killGroup(p *os.Process) {
	_ = syscall.Kill(-p.Pid, syscall.SIGKILL) // as above
}

// exitOfCommand returns how a command ended.
func exitOfCommand(cmd *exec.Cmd) (code int, signal string) {
	if w, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok {
		return exitOf(w)
	}
	return cmd.ProcessState.ExitCode(), ""
}
