package gitexec

import (
	"runtime"
	"syscall"
)

// endWithHost has git end when this process is killed. Git would otherwise go on while the
// next process works in the same repository, with the locks and references that it finds
// there. The signal comes with the end of the thread that started git: the caller keeps
// its thread until it calls release, after git has ended.
func endWithHost(attr *syscall.SysProcAttr) (release func()) {
	runtime.LockOSThread()
	attr.Pdeathsig = syscall.SIGTERM
	return runtime.UnlockOSThread
}
