//go:build unix

package gitexec

import (
	"os/exec"
	"syscall"
	"time"
)

// endWithContext has the end of the context end git and what it started. Git removes its
// lock files when it is asked to end, and leaves them when it is killed: then every later
// git in the repository fails. The caller calls stop when git has ended.
func endWithContext(cmd *exec.Cmd) (stop func()) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var killer *time.Timer
	cmd.Cancel = func() error {
		pid := cmd.Process.Pid
		killer = time.AfterFunc(patience, func() { _ = syscall.Kill(-pid, syscall.SIGKILL) })
		return syscall.Kill(-pid, syscall.SIGTERM)
	}
	return func() { // [exec.Cmd.Wait] has waited for Cancel
		if killer != nil {
			killer.Stop()
		}
	}
}
