//go:build unix

package gitexec

import (
	"os/exec"
	"syscall"
	"time"
)

// bindLifetime has git, and what it started, end with the context, and git with this process.
// Git removes its lock files when it is asked to end, and leaves them when it is killed:
// then every later git in the repository fails. The caller calls done when git has ended,
// in the same goroutine.
func bindLifetime(cmd *exec.Cmd) (done func()) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	release := endWithHost(cmd.SysProcAttr)
	var killer *time.Timer
	cmd.Cancel = func() error {
		pid := cmd.Process.Pid
		killer = time.AfterFunc(patience, func() { _ = syscall.Kill(-pid, syscall.SIGKILL) })
		return syscall.Kill(-pid, syscall.SIGTERM)
	}
	return func() {
		release()
		if killer != nil { // [exec.Cmd.Wait] has waited for Cancel
			killer.Stop()
		}
	}
}
