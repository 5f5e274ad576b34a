//go:build unix

package gitexec

import (
	"os/exec"
	"syscall"
)

// ownGroup has the end of the context end git and what it started.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
