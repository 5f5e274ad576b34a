package gitexec

import (
	"sync"
	"time"
)

// busy counts the commands of git of this process.
var busy struct {
	sync.Mutex
	commands uint64
	active   int
	since    time.Time // start of the oldest active one
	total    time.Duration
}

// Usage is what the commands of git of this process have taken since its start.
type Usage struct {
	Commands uint64        // that were started
	Busy     time.Duration // time in which at least one of them ran; the start of their processes is part of it
}

// Used returns the usage so far. A process has one, as it has one CPU time: several hosts in it share it.
func Used() Usage {
	busy.Lock()
	defer busy.Unlock()
	u := Usage{Commands: busy.commands, Busy: busy.total}
	if busy.active > 0 {
		u.Busy += time.Since(busy.since)
	}
	return u
}

// begin counts a command until the function that it returns is called.
func begin() (end func()) {
	busy.Lock()
	defer busy.Unlock()
	busy.commands++
	if busy.active == 0 {
		busy.since = time.Now()
	}
	busy.active++
	return func() {
		busy.Lock()
		defer busy.Unlock()
		if busy.active--; busy.active == 0 {
			busy.total += time.Since(busy.since)
		}
	}
}
