package bench

import (
	"fmt"
	"time"
)

// restart kills a process whose 10,000 runs wait and looks how long the next one
// takes, from its start, until every run is resumed.
func restart(b *bench) (f figure, err error) {
	const whole = 10_000
	n := whole
	if b.opt.Quick {
		n = whole / 50
	}
	if b.binary() == "" {
		return skip(noBinary)
	}
	root, err := b.project()
	if err != nil {
		return f, err
	}
	if err := put(root, "sleeper", sleeper); err != nil {
		return f, err
	}
	s, err := b.serve(root)
	if err != nil {
		return f, err
	}
	defer func() { s.kill() }()
	if _, err := s.startAll(b.ctx, "sleeper", n); err != nil {
		return f, err
	}
	if err := s.quiet(b); err != nil {
		return f, err
	}
	for range b.count(3) {
		s.kill()
		if s, err = b.serve(root); err != nil {
			return f, err
		}
		f.samples = append(f.samples, float64(s.took)/float64(time.Millisecond))
		if line, err := s.hear(b.ctx); err != nil || line.Resumed != n {
			return f, fmt.Errorf("%d of %d runs are resumed: %w", line.Resumed, n, err)
		}
		if err := s.quiet(b); err != nil {
			return f, err
		}
	}
	f.reference = doingNothing
	if f.beside, err = b.nothing(b.count(10)); err != nil {
		return f, err
	}
	if n != whole {
		f.note = fmt.Sprintf("from %d runs", n)
	}
	return f, nil
}

// quiet returns when the process has not written for a while: runs that it
// executes wait, then, and what they wait for is durable.
func (s *served) quiet(b *bench) error {
	var before float64
	return until(b.ctx, "runs that wait", 300*time.Millisecond, func() (bool, error) {
		figures, err := s.figures(b.ctx)
		same := figures["sentinel_store_commits_total"] == before
		before = figures["sentinel_store_commits_total"]
		return same, err
	})
}
