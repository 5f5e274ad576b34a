package gitexec_test

import (
	"sync"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host/internal/gitexec"
)

// Commands that run beside each other count once, so that the time is at most the one that
// has passed.
func TestUsed(t *testing.T) {
	program := gitexec.LookPath()
	if program == "" {
		t.Skip("git is not on this machine")
	}
	git := gitexec.Runner{Program: program}
	before, began := gitexec.Used(), time.Now()
	if before != gitexec.Used() {
		t.Error("time of git counts although none runs")
	}
	var running sync.WaitGroup
	for range 8 {
		running.Go(func() {
			if _, err := git.Exec(t.Context(), t.TempDir(), "", "", "version"); err != nil {
				t.Error(err)
			}
		})
	}
	running.Wait()
	passed, after := time.Since(began), gitexec.Used()
	if n := after.Commands - before.Commands; n != 8 {
		t.Errorf("%d commands are counted, want 8", n)
	}
	if busy := after.Busy - before.Busy; busy <= 0 || busy > passed {
		t.Errorf("git ran for %s of %s", busy, passed)
	}
}
