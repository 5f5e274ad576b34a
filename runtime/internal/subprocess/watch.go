package subprocess

import (
	"context"
	"errors"
	"time"
)

// A TimeLimit limits how long a helper may work on a task.
//
// The limit that matters is that of the processor, so that a task does not fail
// because other programs kept the helper waiting: a condition of 5 us timed out
// after 1 s on a machine of which a hypervisor took nine tenths. Real time bounds
// the wait in every case.
type TimeLimit struct {
	CPU  time.Duration // processor time since the start of the watch
	Wall time.Duration // real time, usually a multiple of CPU
	// NoClock limits the real time on systems where [Process.CPUTimeNow] is false.
	// Default: Wall.
	NoClock time.Duration
}

// Errors of a watch, for a helper that it killed.
var (
	ErrCPUTime  = errors.New("processor time limit exceeded")
	ErrWallTime = errors.New("real time limit exceeded")
)

// Watch kills the process when it exceeds the limit or ctx ends. The caller must
// call stop, which ends the watch. stop returns why the watch killed the process:
// [ErrCPUTime], [ErrWallTime] or the cause of ctx, nil if it did not.
func (p *Process) Watch(ctx context.Context, limit TimeLimit) (stop func() error) {
	done, killed := make(chan struct{}), make(chan error, 1)
	go func() { killed <- p.watch(ctx, done, limit) }()
	return func() error {
		close(done)
		return <-killed
	}
}

// watch returns nil when done is closed before it kills the process.
func (p *Process) watch(ctx context.Context, done <-chan struct{}, limit TimeLimit) error {
	if limit.NoClock <= 0 {
		limit.NoClock = limit.Wall
	}
	before, known := p.CPUTimeNow()
	begin := time.Now()
	timer := time.NewTimer(limit.CPU)
	defer timer.Stop()
	for {
		select {
		case <-done:
			return nil
		case <-ctx.Done():
			p.Kill()
			return context.Cause(ctx)
		case <-timer.C:
		}
		var err error
		now, ok := p.CPUTimeNow()
		left := limit.NoClock - time.Since(begin)
		if known && ok {
			left = min(limit.Wall-time.Since(begin), limit.CPU-(now-before))
		}
		switch {
		case left > 0:
			timer.Reset(left)
			continue
		case known && ok && now-before >= limit.CPU:
			err = ErrCPUTime
		default:
			err = ErrWallTime
		}
		p.Kill()
		return err
	}
}
