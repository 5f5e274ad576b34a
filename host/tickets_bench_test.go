package host_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/host/api"
)

// BenchmarkTicketsOverHTTP reports what a page of 50 of 100,000 tickets costs a client,
// listed, filtered and searched, beside the read of one ticket in the same run.
func BenchmarkTicketsOverHTTP(b *testing.B) {
	const stored = 100_000
	h, err := host.Open(b.Context(), host.Options{Workspace: b.TempDir(), Set: map[string]string{"tickets.unverified": "true"}})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = h.Close() }()
	var all sync.WaitGroup
	for w := range 32 {
		all.Go(func() {
			for i := w; i < stored; i += 32 {
				params, _ := json.Marshal(map[string]any{
					"id": fmt.Sprintf("t-%d", i), "title": fmt.Sprintf("work number %d about word%d", i, i%1000),
					"description": fmt.Sprintf("the work of number %d", i), "project": fmt.Sprintf("p%d", i%50), "priority": i % 7,
				})
				if _, err := h.Call(b.Context(), "ticket/create", params); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	a, err := api.New(api.Options{Commands: registryOf{h}, Tokens: anyToken{}})
	if err != nil {
		b.Fatal(err)
	}
	srv := serveAPI(b, a)
	get := func(target string) time.Duration {
		began := time.Now()
		req, err := http.NewRequestWithContext(b.Context(), http.MethodGet, srv.URL+target, nil)
		if err != nil {
			b.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer x")
		res, err := srv.Client().Do(req)
		if err != nil {
			b.Fatal(err)
		}
		n, err := io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
		if err != nil || res.StatusCode != http.StatusOK || n < 100 {
			b.Fatalf("%s: %d, %d bytes, %v", target, res.StatusCode, n, err)
		}
		return time.Since(began)
	}
	for b.Loop() {
		pages := map[string]func(i int) string{
			"read":   func(i int) string { return fmt.Sprintf("/tickets/t-%d", i*17) },
			"list":   func(int) string { return "/tickets?limit=50" },
			"filter": func(i int) string { return fmt.Sprintf("/tickets?limit=50&state=ready&project=p%d", i%50) },
			"search": func(i int) string { return fmt.Sprintf("/tickets?limit=50&q=work+word%d", i*3) },
		}
		times := map[string][]time.Duration{}
		for i := range 200 { // in turns, so that all see the same machine
			for name, page := range pages {
				times[name] = append(times[name], get(page(i)))
			}
		}
		for _, list := range times {
			slices.Sort(list)
		}
		read := times["read"][100]
		b.ReportMetric(float64(read.Microseconds()), "read-us")
		for _, name := range []string{"list", "filter", "search"} {
			b.ReportMetric(float64(times[name][100])/float64(read), name+"/read")
		}
	}
}
