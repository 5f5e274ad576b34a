package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	stdruntime "runtime"
	"runtime/debug"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime"
)

const megabyte = 1 << 20

// settled returns what this process holds once it has given back what it can.
// Each collection halves the stacks that are mostly empty, as those of the
// minutes that a run waits would.
func settled() (int64, bool) {
	for range 3 {
		stdruntime.GC()
	}
	debug.FreeOSMemory()
	u, ok := usageOf(os.Getpid())
	return u.resident, ok
}

// parked starts runs that wait for an hour and looks what they hold when all of
// them wait.
func parked(b *bench) (f figure, err error) {
	const whole = 10_000
	runs := whole
	if b.opt.Quick {
		runs = whole / 20
	}
	dir, err := b.folder()
	if err != nil {
		return f, err
	}
	rt, err := b.engine(filepath.Join(dir, "state"))
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, rt.Close()) }()
	def, err := decode(rt, `{"name":"parked","steps":[{"type":"wait","durationMs":3600000}],"loop":{"type":"once"}}`)
	if err != nil {
		return f, err
	}
	before, ok := settled()
	if !ok {
		return skip(noProc)
	}
	began := time.Now()
	for range runs {
		if _, err := rt.Start(b.ctx, def, runtime.StartOptions{Workspace: b.dir}); err != nil {
			return f, err
		}
	}
	if err := allWait(b.ctx, rt, runs); err != nil {
		return f, err
	}
	took := time.Since(began)
	after, _ := settled()
	held := float64(after - before)
	f.note = fmt.Sprintf("%.1f KB a run; %.1f s until all waited", held/float64(runs)/1024, took.Seconds())
	if runs != whole {
		f.note = fmt.Sprintf("from %d runs; ", runs) + f.note
	}
	f.samples = samples{held * whole / float64(runs) / megabyte}
	return f, nil
}

// allWait returns when runs of rt wait.
func allWait(ctx context.Context, rt *runtime.Runtime, runs int) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for rt.Probe().Waiting() < runs {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}
