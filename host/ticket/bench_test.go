package ticket_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sort"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host/ticket"
	"github.com/sentinel-runtime/sentinel/runtime"
)

// stored is how many tickets the benchmarks have beside those that they claim.
const stored = 100_000

// crowd returns a desk with many tickets on a disk.
func crowd(b *testing.B) *desk {
	b.Helper()
	d := &desk{t: b}
	d.s = ticket.New(ticket.Options{AllowUnverified: true})
	rt, err := runtime.Open(b.Context(), runtime.Options{Dir: b.TempDir(), Indexes: ticket.Indexes(), CacheDir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	d.rt = rt
	b.Cleanup(func() { _ = rt.Close() })
	const batch = 500
	for n := 0; n < stored; n += batch {
		d.must(func(ctx context.Context, tx ticket.Tx) error {
			for i := n; i < n+batch; i++ {
				title, project := fmt.Sprintf("work number %d about word%d", i, i%1000), fmt.Sprintf("p%d", i%50)
				priority := i % 7
				if _, _, err := d.s.Create(ctx, tx, fmt.Sprintf("t-%d", i), "", "user", ticket.Fields{Person: true, Title: &title, Project: &project, Priority: &priority, Description: &title}); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return d
}

func median(list []time.Duration) time.Duration {
	sort.Slice(list, func(i, j int) bool { return list[i] < list[j] })
	return list[len(list)/2]
}

// BenchmarkTickets reports what operations on 100,000 tickets cost, beside one commit of
// the store and one read of a ticket.
func BenchmarkTickets(b *testing.B) {
	d := crowd(b)
	timed := func(n int, fn func(i int)) time.Duration {
		var list []time.Duration
		for i := range n {
			began := time.Now()
			fn(i)
			list = append(list, time.Since(began))
		}
		return median(list)
	}
	for b.Loop() {
		var commits, claims []time.Duration
		for i := range 200 { // in turns, so that both see the same disk
			commits = append(commits, timed(1, func(int) {
				d.must(func(ctx context.Context, tx ticket.Tx) error {
					_, err := tx.Put(ctx, "bench", fmt.Sprint(i), json.RawMessage(`{"a":1}`), 0)
					return err
				})
			}))
			claims = append(claims, timed(1, func(int) { d.claim(ticket.Claim{Agent: "w"}) }))
		}
		commit, claim := median(commits), median(claims)
		b.ReportMetric(float64(claim)/float64(commit), "claim/commit")
		b.ReportMetric(float64(commit.Microseconds()), "commit-us")
		read := timed(500, func(i int) { d.get(fmt.Sprintf("t-%d", i*17)) })
		list := timed(50, func(int) { d.list(ticket.Filter{Limit: 50}) })
		filter := timed(50, func(i int) {
			d.list(ticket.Filter{Project: fmt.Sprintf("p%d", i), States: []ticket.State{ticket.Ready}, Limit: 50})
		})
		search := timed(50, func(i int) { d.list(ticket.Filter{Query: fmt.Sprintf("work word%d", i*3), Limit: 50}) })
		b.ReportMetric(float64(list)/float64(read), "list/read")
		b.ReportMetric(float64(filter)/float64(read), "filter/read")
		b.ReportMetric(float64(search)/float64(read), "search/read")
		b.ReportMetric(float64(read.Microseconds()), "read-us")
		for _, workers := range []int{1, 4, 16} {
			b.ReportMetric(d.claimRate(workers), fmt.Sprintf("claims/s-%d", workers))
		}
	}
}

// claimRate returns how many tickets workers claim in a second.
func (d *desk) claimRate(workers int) float64 {
	var made atomic.Int64
	began := time.Now()
	var all sync.WaitGroup
	for n := range workers {
		all.Go(func() {
			for time.Since(began) < time.Second {
				d.claim(ticket.Claim{Agent: fmt.Sprint(n)})
				made.Add(1)
			}
		})
	}
	all.Wait()
	return float64(made.Load()) / time.Since(began).Seconds()
}
