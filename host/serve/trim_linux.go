package serve

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"syscall"
)

// trim returns memory that only the start needed to the system: free memory of
// the heap, and pages of the executable, of which the kernel maps sixteen around
// each page fault. Those are clean, and pages in use are faulted in again. The
// resident size of an idle host is about half afterwards.
func trim() error {
	debug.FreeOSMemory()
	exe, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return fmt.Errorf("trim memory: %w", err)
	}
	maps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		return fmt.Errorf("trim memory: %w", err)
	}
	var errs []error
	for _, m := range cleanMappings(maps, exe) {
		if _, _, no := syscall.Syscall(syscall.SYS_MADVISE, m.from, m.to-m.from, syscall.MADV_DONTNEED); no != 0 {
			errs = append(errs, fmt.Errorf("trim memory at %x: %w", m.from, no))
		}
	}
	return errors.Join(errs...)
}

// A mapping is a range of addresses.
type mapping struct{ from, to uintptr }

// cleanMappings returns the mappings of a file that cannot be written and of
// which no page differs from the file: only those can be dropped safely.
func cleanMappings(smaps []byte, file string) []mapping {
	var list []mapping
	var at mapping
	open := false // at is of the file, and clean so far
	flush := func() {
		if open {
			list = append(list, at)
		}
		open = false
	}
	for s := bufio.NewScanner(bytes.NewReader(smaps)); s.Scan(); {
		fields := strings.Fields(s.Text())
		var m mapping
		if n, _ := fmt.Sscanf(s.Text(), "%x-%x", &m.from, &m.to); n == 2 && len(fields) >= 2 {
			flush()
			at, open = m, len(fields) == 6 && fields[5] == file && (fields[1] == "r--p" || fields[1] == "r-xp")
			continue
		}
		if len(fields) >= 2 && (fields[0] == "Private_Dirty:" || fields[0] == "Anonymous:" || fields[0] == "Locked:") && fields[1] != "0" {
			open = false
		}
	}
	flush()
	return list
}
