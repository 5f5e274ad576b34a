package procenv

import (
	"fmt"
	"syscall"
)

// CloseInherited keeps files that this process inherited, other than the standard ones, from
// programs that it starts: what an editor, a build or a shell has left open is not for the
// commands of steps. Kernels before 5.11 cannot.
func CloseInherited() error {
	const sysCloseRange, closeRangeCloexec = 436, 1 << 2
	if _, _, errno := syscall.RawSyscall(sysCloseRange, 3, ^uintptr(0), closeRangeCloexec); errno != 0 && errno != syscall.ENOSYS && errno != syscall.EINVAL {
		return fmt.Errorf("close inherited files: %w", errno)
	}
	return nil
}
