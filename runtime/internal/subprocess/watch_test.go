//go:build unix

package subprocess_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/subprocess"
)

// TestWatch: a process is killed at the first limit that it exceeds, and not if
// the watch is stopped before.
func TestWatch(t *testing.T) {
	const busy, waiting, short, long = "while :; do :; done", "sleep 600", 50 * time.Millisecond, time.Hour
	cause := errors.New("not needed")
	for _, c := range []struct {
		name, script string
		limit        subprocess.TimeLimit
		cancel       bool
		want         error
		linux        bool // it needs the clock of another process
	}{
		{"processor time", busy, subprocess.TimeLimit{CPU: short, Wall: long}, false, subprocess.ErrCPUTime, true},
		{"real time", waiting, subprocess.TimeLimit{CPU: short, Wall: 3 * short}, false, subprocess.ErrWallTime, false},
		{"cancelled", busy, subprocess.TimeLimit{CPU: long, Wall: long}, true, cause, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.linux && runtime.GOOS != "linux" {
				t.Skip("only Linux reports how much processor time another process has used")
			}
			p, err := subprocess.Start(subprocess.Command{Path: "/bin/sh", Args: []string{"-c", c.script}}, "test")
			if err != nil {
				t.Fatal(err)
			}
			defer p.Stop()
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			begin := time.Now()
			stop := p.Watch(ctx, c.limit)
			if c.cancel {
				cancel(cause)
			}
			_, _ = p.Out.ReadByte() // returns when the process has ended
			if err := stop(); !errors.Is(err, c.want) {
				t.Errorf("stop: %v, want %v", err, c.want)
			}
			if c.want == subprocess.ErrWallTime && time.Since(begin) < c.limit.Wall {
				t.Errorf("killed after %s, want %s", time.Since(begin), c.limit.Wall)
			}
		})
	}
}

// TestWatchStopped: a stopped watch does not kill the process.
func TestWatchStopped(t *testing.T) {
	p, err := subprocess.Start(subprocess.Command{Path: "/bin/sh", Args: []string{"-c", "read line; echo $line"}}, "test")
	if err != nil {
		t.Fatal(err)
	}
	defer p.Stop()
	ctx, cancel := context.WithCancel(t.Context())
	limit := subprocess.TimeLimit{CPU: time.Minute, Wall: time.Minute}
	if err := p.Watch(ctx, limit)(); err != nil {
		t.Errorf("stop: %v, want nil", err)
	}
	cancel()
	if _, err := p.In.Write([]byte("alive\n")); err != nil {
		t.Fatal(err)
	}
	if line, err := p.Out.ReadString('\n'); line != "alive\n" {
		t.Errorf("the process wrote %q, %v", line, err)
	}
}
