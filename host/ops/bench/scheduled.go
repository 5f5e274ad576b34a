package bench

import (
	"fmt"
	"time"
)

// scheduled arms a thousand schedules that are not due for long and looks what
// the process costs while nothing happens: half are intervals, half times of day,
// since they are planned in different ways.
func scheduled(b *bench) (f figure, err error) {
	const whole = 1000
	n, look := whole, 12*time.Second
	if b.opt.Quick {
		n, look = whole/10, time.Second
	}
	switch {
	case b.binary() == "":
		return skip(noBinary)
	case !hasProc():
		return skip(noProc)
	}
	f.reference = "the same without any"
	var bare usage
	if f.beside, bare, err = b.idleCost(0, look); err != nil {
		return f, err
	}
	var armed usage
	if f.samples, armed, err = b.idleCost(n, look); err != nil {
		return f, err
	}
	held := float64(armed.resident-bare.resident) / float64(n)
	f.note = fmt.Sprintf("%.1f MB for 1,000, %.1f KB each", held*1000/megabyte, held/1024)
	if n != whole {
		f.note = fmt.Sprintf("from %d sentinels; ", n) + f.note
	}
	return f, nil
}

// idleCost serves n scheduled sentinels and returns how much of a core the
// process takes in percent, and what it holds.
func (b *bench) idleCost(n int, look time.Duration) (cost samples, u usage, err error) {
	root, err := b.project()
	if err != nil {
		return nil, u, err
	}
	// Noon of the day after tomorrow, in whatever zone: due never while we look.
	day := time.Now().AddDate(0, 0, 2)
	for i := range n {
		schedule := fmt.Sprintf("@every %dm", 60+i%60)
		if i%2 == 0 {
			schedule = fmt.Sprintf("%d 12 %d %d *", i%60, day.Day(), day.Month())
		}
		text := fmt.Sprintf(`{"name":"scheduled-%d","trigger":{"type":"schedule","cronExpression":%q},"steps":[{"type":"emit","event":"bench:fired"}],"loop":{"type":"once"}}`, i, schedule)
		if err := put(root, fmt.Sprintf("scheduled-%d", i), text); err != nil {
			return nil, u, err
		}
	}
	s, err := b.serve(root)
	if err != nil {
		return nil, u, err
	}
	defer s.kill()
	list, err := s.Sentinels(b.ctx)
	if err != nil || len(list) != n {
		return nil, u, fmt.Errorf("%d of %d sentinels are there: %w", len(list), n, err)
	}
	if u, err = b.settledAt(s.pid()); err != nil {
		return nil, u, err
	}
	before, err := processorTime(s.pid())
	if err != nil {
		return nil, u, err
	}
	began := time.Now()
	if err := b.pause(look); err != nil {
		return nil, u, err
	}
	after, err := processorTime(s.pid())
	return samples{100 * float64(after-before) / float64(time.Since(began))}, u, err
}
