package host_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/host/api"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers"
)

// anyHook takes every webhook.
type anyHook struct{}

func (anyHook) Receive(context.Context, sentinels.ID, string, triggers.Request) ([]triggers.Admission, error) {
	return nil, nil
}

// BenchmarkUnderLoad reports what a request of a person, a health check and a webhook take
// while four connections at a time use the port without regard: the median and the 99th
// percentile, in microseconds. The load is in the same process, so a part of it is the load
// itself.
func BenchmarkUnderLoad(b *testing.B) {
	ws := b.TempDir()
	h := open(b, host.Options{Workspace: ws})
	if err := os.WriteFile(filepath.Join(ws, "a.txt"), []byte("text"), 0o600); err != nil {
		b.Fatal(err)
	}
	must(b, h, "sentinel/create", `{"definition":{"name":"late","steps":[{"type":"wait","event":"go"}]}}`, nil)
	var waiting struct{ Run string }
	must(b, h, "sentinel/start", `{"sentinelId":"late"}`, &waiting)
	must(b, h, "ticket/create", `{"id":"T-1","title":"x"}`, nil)
	post := func(path, token string, length int, body string) string {
		head := "POST " + path + " HTTP/1.1\r\nHost: HOST\r\nContent-Type: application/json\r\n"
		if token != "" {
			head += "Authorization: Bearer " + token + "\r\n"
		}
		return head + fmt.Sprintf("Content-Length: %d\r\n\r\n%s", length, body)
	}
	wait, decide := fmt.Sprintf(`{"run":%q}`, waiting.Run), `{"id":"T-1","action":"approve"}`
	for _, load := range []struct{ name, request string }{
		{"alone", ""},
		{"announced-bodies", post("/v1/hooks/nope", "", 1<<20, "")},
		{"bodies-that-stop", post("/v1/commands/code/read", "viewer", 4<<20, `{"path":"`+strings.Repeat("x", 1<<20))},
		{"waits", post("/v1/commands/sentinel/await", "viewer", len(wait), wait)},
		{"denied-calls", post("/v1/commands/ticket/decide", "agent", len(decide), decide)},
	} {
		b.Run(load.name, func(b *testing.B) {
			a, err := api.New(api.Options{Commands: registryOf{h}, Tokens: kindTokens{}, Hooks: anyHook{}})
			if err != nil {
				b.Fatal(err)
			}
			s, err := a.Listen(b.Context(), api.ListenOptions{Addr: "127.0.0.1:0", Grace: time.Millisecond})
			if err != nil {
				b.Fatal(err)
			}
			ran := make(chan struct{})
			go func() {
				defer close(ran)
				_ = s.Run(context.Background()) // it ends before the requests of the load do
			}()
			defer func() {
				_ = s.Close()
				<-ran
			}()
			stop := loadOf(b, s.Addr().String(), load.request)
			defer stop()
			c := &http.Client{Transport: &http.Transport{}, Timeout: time.Minute}
			for _, r := range []struct{ name, method, path, body string }{
				{"person", http.MethodPost, "/v1/commands/code/read", `{"path":"a.txt"}`}, {"health", http.MethodGet, "/health", ""}, {"webhook", http.MethodPost, "/v1/hooks/push", "123456789"},
			} {
				b.Run(r.name, func(b *testing.B) {
					var took []time.Duration
					for b.Loop() {
						began := time.Now()
						req, err := http.NewRequestWithContext(b.Context(), r.method, s.URL()+r.path, strings.NewReader(r.body))
						if err != nil {
							b.Fatal(err)
						}
						if r.name == "person" {
							req.Header.Set("Authorization", "Bearer person")
							req.Header.Set("Content-Type", "application/json")
						}
						res, err := c.Do(req)
						if err != nil {
							b.Fatal(err)
						}
						_, _ = io.Copy(io.Discard, res.Body)
						res.Body.Close()
						if res.StatusCode/100 != 2 {
							b.Fatal(res.Status)
						}
						took = append(took, time.Since(began))
					}
					slices.Sort(took)
					b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
					b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
				})
			}
			c.CloseIdleConnections()
		})
	}
}

// loadOf sends a request again and again from four goroutines until stop is called, and
// leaves its connections open: each the newest 400.
func loadOf(b *testing.B, addr, request string) (stop func()) {
	b.Helper()
	if request == "" {
		return func() {}
	}
	done := make(chan struct{})
	var all sync.WaitGroup
	text := strings.Replace(request, "HOST", addr, 1)
	for range 4 {
		all.Go(func() {
			var open []net.Conn
			defer func() {
				for _, c := range open {
					c.Close()
				}
			}()
			for {
				select {
				case <-done:
					return
				default:
				}
				c, err := net.Dial("tcp", addr)
				if err != nil {
					b.Error(err)
					return
				}
				_, _ = io.WriteString(c, text) // the server may have closed it
				if open = append(open, c); len(open) > 400 {
					open[0].Close()
					open = open[1:]
				}
			}
		})
	}
	return func() {
		close(done)
		all.Wait()
	}
}
