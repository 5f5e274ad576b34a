package procenv

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

func hide() error {
	err := overwrite()
	if os.Getenv(cookie) == "" {
		err = errors.Join(err, notDumpable())
	}
	if err != nil {
		return fmt.Errorf("hide environment: %w", err)
	}
	return nil
}

// overwrite replaces the block of variables that the kernel shows. It is written
// through /proc/self/mem, which a process that is not dumpable cannot open.
func overwrite() error {
	// The strings of package syscall point into the block; Setenv copies them.
	for _, entry := range os.Environ() {
		if name, value, ok := strings.Cut(entry, "="); ok && name != "" {
			if err := os.Setenv(strings.Clone(name), strings.Clone(value)); err != nil {
				return err
			}
		}
	}
	start, end, err := environAddress()
	if err != nil {
		return err
	}
	mem, err := os.OpenFile("/proc/self/mem", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer mem.Close()
	block := make([]byte, end-start)
	if _, err := mem.ReadAt(block, start); err != nil {
		return err
	}
	if _, err := mem.WriteAt(hidden(block), start); err != nil {
		return err
	}
	return nil
}

// environAddress returns where the kernel keeps the block: fields 50 and 51 of
// proc_pid_stat(5).
func environAddress() (start, end int64, err error) {
	text, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return 0, 0, err
	}
	// The name in parentheses may hold blanks. The first field behind it is the third.
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	const first, startField, endField = 3, 50, 51
	if len(fields) <= endField-first {
		return 0, 0, errors.New("read /proc/self/stat: no address of the environment")
	}
	start, err = strconv.ParseInt(string(fields[startField-first]), 10, 64)
	if err == nil {
		end, err = strconv.ParseInt(string(fields[endField-first]), 10, 64)
	}
	if err == nil && (start == 0 || end < start) {
		err = errors.New("no address of the environment")
	}
	if err != nil {
		return 0, 0, fmt.Errorf("read /proc/self/stat: %w", err)
	}
	return start, end, nil
}

func notDumpable() error {
	const prSetDumpable = 4
	if _, _, errno := syscall.Syscall(syscall.SYS_PRCTL, prSetDumpable, 0, 0); errno != 0 {
		return fmt.Errorf("set not dumpable: %w", errno)
	}
	return nil
}
