package bench

import (
	"fmt"
	"sync"
	"time"
)

// readsASecond is what the API is asked beside a busy engine.
const readsASecond = 1000

// reads asks for the list of sentinels and for the status of runs, in turns, a
// thousand times a second, and looks what the runs lose by it.
func reads(b *bench) (f figure, err error) {
	over, look, turns := 2000, 4*time.Second, 3
	if b.opt.Quick {
		over, look, turns = 100, time.Second, 1
	}
	if b.binary() == "" {
		return skip(noBinary)
	}
	s, err := b.busy(over)
	if err != nil {
		return f, err
	}
	defer s.kill()
	var took samples
	with := func() error {
		more, err := s.read(b, look)
		took = append(took, more...)
		return err
	}
	lost, without, beside, err := s.beside(b, look, turns, with)
	if err != nil {
		return f, err
	}
	f.samples = lost
	f.note = fmt.Sprintf("%.0f steps/s without, %.0f with; reads took %.2f ms, p99 %.2f ms; %d runs on, %d over",
		without.at(0.5), beside.at(0.5), took.at(0.5), took.at(0.99), busyRuns, over)
	return f, nil
}

// read asks at fixed times, whether or not the answers come in time, and returns
// how long after those each answer was there: a server that stalls is late for
// everything that was due meanwhile.
func (s *busy) read(b *bench, look time.Duration) (samples, error) {
	n := int(look.Seconds() * readsASecond)
	took := make(samples, n)
	errs := make([]error, connections)
	due := make(chan int, n)
	began := time.Now()
	at := func(i int) time.Time { return began.Add(time.Duration(i) * time.Second / readsASecond) }
	var wg sync.WaitGroup
	for w := range errs {
		wg.Go(func() {
			a, err := s.asker()
			if err != nil {
				errs[w] = err
				return // due has capacity for all, so no sender blocks
			}
			defer a.close()
			for i := range due {
				path := "/v1/sentinels"
				if i%2 == 1 {
					path = s.runPath(i / 2)
				}
				if err := a.get(path); err != nil {
					errs[w] = err
					return
				}
				took[i] = float64(time.Since(at(i))) / float64(time.Millisecond)
			}
		})
	}
	var err error
	for i := range n {
		if err = b.pause(time.Until(at(i))); err != nil {
			break
		}
		due <- i
	}
	close(due)
	wg.Wait()
	for _, e := range errs {
		if err == nil {
			err = e
		}
	}
	return took, err
}
