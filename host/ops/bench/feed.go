package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sentinel-runtime/sentinel/host/client"
	"github.com/sentinel-runtime/sentinel/host/livefeed"
)

// watched has 500 watchers follow the runs of a busy engine, each one run, and
// counts what they receive.
func watched(b *bench) (f figure, err error) {
	const watchers = 500 // in quick mode too: what they receive grows with their number
	look := 5 * time.Second
	if b.opt.Quick {
		look = time.Second
	}
	if b.binary() == "" {
		return skip(noBinary)
	}
	s, err := b.busy(0)
	if err != nil {
		return f, err
	}
	defer s.kill()
	var told, lost atomic.Int64
	with := func() error {
		ctx, cancel := context.WithCancel(b.ctx)
		defer cancel()
		done, err := s.watch(ctx, watchers, &told, &lost)
		if err != nil {
			return err
		}
		told.Store(0)
		began := time.Now()
		err = b.pause(look)
		f.samples = append(f.samples, float64(told.Load())/time.Since(began).Seconds())
		cancel()
		return errors.Join(err, done())
	}
	slower, without, beside, err := s.beside(b, look, 1, with)
	if err != nil {
		return f, err
	}
	f.note = fmt.Sprintf("%d watchers of %d runs; %.0f steps/s without them, %.0f with (%.0f %% less); %d events lost in reported gaps",
		watchers, busyRuns, without.at(0.5), beside.at(0.5), slower.at(0.5), lost.Load())
	return f, nil
}

// watch begins n watches, spread over the runs, and returns when the server knows
// them all. done waits for their end, which ctx brings about.
func (s *busy) watch(ctx context.Context, n int, told, lost *atomic.Int64) (done func() error, err error) {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			// Its error is ctx's, unless the server refused the watch for good.
			err := s.Watch(ctx, client.WatchOptions{Topics: []string{livefeed.RunTopic(s.runs[i%len(s.runs)])}}, func(m client.Message) error {
				if m.Gap != nil {
					lost.Add(max(m.Gap.Lost, 1))
				} else {
					told.Add(1)
				}
				return nil
			})
			if ctx.Err() == nil {
				errs[i] = err
			}
		})
	}
	done = func() error { wg.Wait(); return errors.Join(errs...) }
	return done, until(ctx, fmt.Sprintf("%d watchers", n), 20*time.Millisecond, func() (bool, error) {
		figures, err := s.figures(ctx)
		return int(figures["sentinel_feed_subscribers"]) >= n, err
	})
}
