//go:build unix

package subprocess

import (
	"os/exec"
	"syscall"
)

// ownGroup keeps signals of the parent's terminal from the child: the parent
// decides when it ends.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// killGroup ends the child and whatever is in its group.
func killGroup(cmd *exec.Cmd) {
	if syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) != nil {
		_ = cmd.Process.Kill()
	}
}
