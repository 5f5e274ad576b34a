package bench

import (
	"fmt"
	"time"

	"github.com/sentinel-runtime/sentinel/host/client"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// everySoMany is the period of the schedules of [fire], a divisor of a minute:
// whatever second it is, the next planned one is near.
const everySoMany = 5 * time.Second

// fire has 200 schedules due in the same second and looks how long after its
// planned time each run was made.
func fire(b *bench) (f figure, err error) {
	const whole = 200
	n, rounds := whole, 4
	if b.opt.Quick {
		n, rounds = whole/10, 1
	}
	if b.binary() == "" {
		return skip(noBinary)
	}
	root, err := b.project()
	if err != nil {
		return f, err
	}
	schedule := fmt.Sprintf("*/%d * * * * *", int(everySoMany.Seconds()))
	for i := range n {
		text := fmt.Sprintf(`{"name":"due-%d","trigger":{"type":"schedule","cronExpression":%q},"steps":[{"type":"emit","event":"bench:fired"}],"loop":{"type":"once"}}`, i, schedule)
		if err := put(root, fmt.Sprintf("due-%d", i), text); err != nil {
			return f, err
		}
	}
	s, err := b.serve(root)
	if err != nil {
		return f, err
	}
	defer s.kill()
	// The first time comes while all are armed: what they missed before is none.
	armed := time.Now()
	want := n * rounds
	var last time.Time
	err = until(b.ctx, "runs of the schedules", 250*time.Millisecond, func() (bool, error) {
		figures, err := s.figures(b.ctx)
		return int(figures["sentinel_runs_total"]) >= want, err
	})
	if err != nil {
		return f, err
	}
	for run, err := range s.Runs(b.ctx, client.RunFilter{}) {
		if err != nil {
			return f, err
		}
		planned := run.CreatedAt.Truncate(everySoMany)
		if planned.Before(armed) {
			continue // due while the process came up
		}
		if run.Status == sentinels.StatusFailed {
			return f, fmt.Errorf("run %s failed: %w", run.ID, run.Error)
		}
		if run.CreatedAt.After(last) {
			last = run.CreatedAt
		}
		f.samples = append(f.samples, float64(run.CreatedAt.Sub(planned))/float64(time.Millisecond))
	}
	if len(f.samples) == 0 {
		return f, fmt.Errorf("of %d runs none was due after the process was up", want)
	}
	f.note = fmt.Sprintf("%d runs in %d rounds", len(f.samples), rounds)
	if n != whole {
		f.note = fmt.Sprintf("from %d schedules; ", n) + f.note
	}
	return f, nil
}
