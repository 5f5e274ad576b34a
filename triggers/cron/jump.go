package cron

import (
	"log/slog"
	"sync"
	"time"
)

// drift is how far the wall clock may go from elapsed time before it is worth a
// word in the log.
const drift = 5 * time.Second

// jumps tells of a clock that was set, once for all triggers that notice.
type jumps struct {
	mu   sync.Mutex
	told time.Time
}

// watch compares how much time a sleep took with what the clock on the wall made
// of it.
func (j *jumps) watch(log *slog.Logger, elapsed time.Duration, before, now time.Time) {
	by := now.Sub(before) - elapsed
	if by.Abs() <= drift {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if mark := time.Now(); j.told.IsZero() || mark.Sub(j.told) > time.Minute {
		j.told = mark
		log.Warn("the clock was set, or the machine slept", "by", by.Round(time.Millisecond), "now", now)
	}
}
