package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// errGone says that a process ended before it was looked at.
var errGone = errors.New("the process ended before it was looked at")

const noProc = "the memory and the processor time of a process are read from /proc"

// A usage is what a process holds.
type usage struct {
	resident int64 // bytes
	// anonymous is what the process made itself, file what the system can read
	// again from files: most of it is the program's own code.
	anonymous, file int64
}

// usageOf returns what a process holds; false where the system does not say.
func usageOf(pid int) (u usage, ok bool) {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	if err != nil {
		return u, false
	}
	for line := range strings.Lines(string(text)) {
		name, rest, _ := strings.Cut(line, ":")
		kb, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
		if err != nil {
			continue
		}
		switch name {
		case "VmRSS":
			u.resident, ok = kb<<10, true
		case "RssAnon":
			u.anonymous = kb << 10
		case "RssFile":
			u.file = kb << 10
		}
	}
	return u, ok
}

func (u usage) String() string {
	return fmt.Sprintf("%.1f MB anonymous, %.1f MB of files, mostly the program itself",
		float64(u.anonymous)/megabyte, float64(u.file)/megabyte)
}

// processorTime returns what all threads of a process have used. The scheduler's
// own figures count nanoseconds, the usual ones hundredths of a second, which is
// too coarse for a process that hardly runs. Threads that ended are left out;
// those of Go's runtime do not end.
func processorTime(pid int) (time.Duration, error) {
	tasks, err := filepath.Glob(filepath.Join("/proc", strconv.Itoa(pid), "task", "*", "schedstat"))
	if err != nil {
		return 0, err
	}
	var sum time.Duration
	for _, file := range tasks {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // the thread has ended
		}
		var ns int64
		if _, err := fmt.Sscan(string(text), &ns); err != nil {
			return 0, fmt.Errorf("read %q: %w", file, err)
		}
		sum += time.Duration(ns)
	}
	if sum == 0 {
		return 0, errGone
	}
	return sum, nil
}

// settledAt waits until a process that has begun holds the same for a while, and
// returns that. Two seconds after its start a host gives back what only that
// needed, so it is too early before.
func (b *bench) settledAt(pid int) (u usage, err error) {
	early, quiet, most := 3*time.Second, 2*time.Second, 20*time.Second
	if b.opt.Quick {
		quiet, most = 200*time.Millisecond, 4*time.Second
	}
	if err := b.pause(early); err != nil {
		return u, err
	}
	var since time.Time
	for began := time.Now(); ; {
		now, ok := usageOf(pid)
		if !ok {
			return u, errGone
		}
		if d := now.resident - u.resident; max(d, -d) > now.resident/100 {
			u, since = now, time.Now()
		}
		if time.Since(since) >= quiet || time.Since(began) >= most {
			return now, nil
		}
		if err := b.pause(quiet / 5); err != nil {
			return u, err
		}
	}
}

// hasProc reports whether this system tells what a process uses.
func hasProc() bool {
	_, ok := usageOf(os.Getpid())
	return ok
}

// pause waits, unless the whole measurement is over.
func (b *bench) pause(d time.Duration) error {
	if d <= 0 {
		return context.Cause(b.ctx)
	}
	select {
	case <-time.After(d):
		return nil
	case <-b.ctx.Done():
		return context.Cause(b.ctx)
	}
}
