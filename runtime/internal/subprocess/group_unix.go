//go:build unix

package subprocess

import (
	"os/exec"
	"syscall"
)

// ownGroup puts the child in a process group of its own, so that signals from
// the parent's terminal do not reach it. The parent decides when the child
// ends.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// killGroup kills the child and its process group.
func killGroup(cmd *exec.Cmd) {
	if syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) != nil {
		_ = cmd.Process.Kill()
	}
}
