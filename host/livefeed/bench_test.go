package livefeed_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/livefeed"
)

// BenchmarkProgress is what the feed costs the engine: without readers,
// with a thousand watchers of other runs, with a thousand of this one.
func BenchmarkProgress(b *testing.B) {
	for _, c := range []struct {
		name     string
		watchers int
		topic    string
	}{{"no readers", 0, ""}, {"1000 others", 1000, "run:other%d"}, {"1000 of the run", 1000, "run:a/tree"}} {
		b.Run(c.name, func(b *testing.B) {
			f := open(b, livefeed.Options{})
			ctx, cancel := context.WithCancel(b.Context())
			defer cancel()
			for i := range c.watchers {
				topic := c.topic
				if topic != "run:a/tree" {
					topic = fmt.Sprintf(topic, i)
				}
				s := subscribe(b, f, "", topic)
				go func() {
					for {
						if _, err := s.Next(ctx); err != nil {
							return
						}
					}
				}()
			}
			p := step("a", "a", "step.end")
			p.Output = json.RawMessage(`{"ok":true,"text":"some words of output"}`)
			b.ReportAllocs()
			for b.Loop() {
				f.Progress(p)
			}
		})
	}
}
