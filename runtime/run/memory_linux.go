package run

import "syscall"

// machineMemory returns the bytes of main memory, 0 if the kernel does not report them.
func machineMemory() int64 {
	var info syscall.Sysinfo_t
	if syscall.Sysinfo(&info) != nil {
		return 0
	}
	// Totalram has 32 bits on some architectures.
	return int64(info.Totalram) * int64(info.Unit)
}
