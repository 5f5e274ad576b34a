package bench

import (
	"context"
	"fmt"
	"path"
	"time"

	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A busy server executes runs without end whose steps all wait for the disk:
// each writes a file, so its call is journaled before it starts.
type busy struct {
	*served
	runs []sentinels.RunID
}

// busyRuns is how many of them there are.
const busyRuns = 64

// busySteps are the steps of an iteration.
const busySteps = 10

// busy serves a project in which busyRuns runs are on, beside the given number of
// runs that are over: a list that reads all of them gets slower with every day.
func (b *bench) busy(over int) (s *busy, err error) {
	root, err := b.project()
	if err != nil {
		return nil, err
	}
	steps := ""
	for i := range busySteps {
		if i > 0 {
			steps += ","
		}
		steps += fmt.Sprintf(`{"type":"command","command":"code/write","params":{"path":"busy/$inputs.file","content":"step %d of $iteration"},"outputTo":"v%d"}`, i, i%5)
	}
	text := `{"name":"busy","inputs":{"file":{"type":"string"}},"steps":[` + steps + `],"loop":{"type":"continuous"},"safety":{"maxIterations":1000000}}`
	if err := put(root, "busy", text); err != nil {
		return nil, err
	}
	if err := put(root, "hello", hello); err != nil {
		return nil, err
	}
	one, err := b.serve(root)
	if err != nil {
		return nil, err
	}
	s = &busy{served: one}
	defer func() {
		if err != nil {
			s.kill()
		}
	}()
	if over > 0 {
		if _, err := s.startAll(b.ctx, "hello", over); err != nil {
			return s, err
		}
		if err := until(b.ctx, "the end of runs", 50*time.Millisecond, func() (bool, error) {
			figures, err := s.figures(b.ctx)
			return int(figures["sentinel_runs_total"]) >= over, err
		}); err != nil {
			return s, err
		}
	}
	for i := range busyRuns {
		run, err := s.startWith(b.ctx, "busy", map[string]any{"file": fmt.Sprintf("%d.txt", i)})
		if err != nil {
			return s, err
		}
		s.runs = append(s.runs, run)
	}
	// Guests, caches and the disk's own buffers are as they will be from now on.
	return s, until(b.ctx, "steps of busy runs", 50*time.Millisecond, func() (bool, error) {
		n, err := s.steps(b.ctx)
		return n >= 10*busyRuns, err
	})
}

// steps returns how many steps have ended so far; an end is reported when it is
// durable.
func (s *busy) steps(ctx context.Context) (float64, error) {
	figures, err := s.figures(ctx)
	return figures["sentinel_steps_total"], err
}

// rate returns the steps a second while during is under way.
func (s *busy) rate(ctx context.Context, during func() error) (float64, error) {
	before, err := s.steps(ctx)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	if err := during(); err != nil {
		return 0, err
	}
	after, err := s.steps(ctx)
	took := time.Since(began)
	if err == nil && after <= before {
		err = fmt.Errorf("no step ended in %s; the process said: %s", took.Round(time.Millisecond), s.said)
	}
	return (after - before) / took.Seconds(), err
}

// beside compares the rate of steps without and with something that goes on
// beside them, in turns, so that a machine that gets slower meanwhile is not
// taken for it. It returns what the steps lose, in percent of theirs.
func (s *busy) beside(b *bench, look time.Duration, turns int, with func() error) (lost samples, without, beside samples, err error) {
	alone := func() error { return b.pause(look) }
	last, err := s.rate(b.ctx, alone)
	if err != nil {
		return nil, nil, nil, err
	}
	for range turns {
		rate, err := s.rate(b.ctx, with)
		if err != nil {
			return nil, nil, nil, err
		}
		next, err := s.rate(b.ctx, alone)
		if err != nil {
			return nil, nil, nil, err
		}
		// What was before and behind it, on the average.
		mean := (last + next) / 2
		lost = append(lost, 100*(1-rate/mean))
		without, beside = append(without, mean), append(beside, rate)
		last = next
	}
	return lost, without, beside, nil
}

func (s *busy) runPath(i int) string { return path.Join("/v1/runs", string(s.runs[i%len(s.runs)])) }
