package cron

import (
	"log/slog"
	"sync"
	"time"
)

// maxDrift is how far the wall clock may drift from elapsed time during a sleep
// before a warning is logged.
const maxDrift = 5 * time.Second

// clockJumps logs changes of the wall clock, at most one warning a minute for
// all triggers that notice.
type clockJumps struct {
	mu     sync.Mutex
	logged time.Time
}

// check compares the elapsed time of a sleep with the wall clock before and
// after it.
func (j *clockJumps) check(log *slog.Logger, elapsed time.Duration, before, now time.Time) {
	by := now.Sub(before) - elapsed
	if by.Abs() <= maxDrift {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if at := time.Now(); j.logged.IsZero() || at.Sub(j.logged) > time.Minute {
		j.logged = at
		log.Warn("the clock was set, or the machine slept", "by", by.Round(time.Millisecond), "now", now)
	}
}
