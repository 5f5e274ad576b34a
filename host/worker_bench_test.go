package host_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/host/internal/gitexec"
	"github.com/sentinel-runtime/sentinel/runtime"
)

// BenchmarkWorker reports which share of a worker's time is the engine: all in which
// neither the model answers, nor a git runs that any command has started. The check of the
// tickets is a pattern, which the engine searches itself, so no time of checks is left out.
// A ticket takes two attempts with a tool call each, which is four replies of the model; the
// model takes no time, one second or three seconds for each. The engine's times are medians of the tickets.
func BenchmarkWorker(b *testing.B) {
	for _, reply := range []time.Duration{0, time.Second, 3 * time.Second} {
		b.Run("reply="+reply.String(), func(b *testing.B) {
			ws, _ := project(b)
			var model atomic.Int64 // time of the model without that of a git beside it
			newModelServer(b, func(r chatRequest) answer {
				began, git := time.Now(), gitexec.Used().Busy
				defer func() { model.Add(int64(time.Since(began) - (gitexec.Used().Busy - git))) }()
				time.Sleep(reply)
				return writes(func(n int, _ string) []answer {
					return []answer{fileOf("a.txt", map[int]string{1: "red\n"}[n]+map[int]string{2: "green\n"}[n])}
				})(r)
			})
			h := open(b, host.Options{Workspace: ws, Dir: filepath.Join(b.TempDir(), ".sentinel")})
			forge(b, h, ws)                         // compiles the plugins
			worker := shipped(b, h, "forge-worker") // as a stored one, it is decoded once
			var engines, gits, alls []time.Duration
			commands := gitexec.Used().Commands
			for b.Loop() {
				ticket := fmt.Sprintf("T-%d", len(alls)+1)
				must(b, h, "ticket/create", strings.Replace(wantsGreen, "T-1", ticket, 1), nil)
				began, git, asked := time.Now(), gitexec.Used().Busy, model.Load()
				id, err := h.Runtime().Start(b.Context(), worker, runtime.StartOptions{Workspace: ws})
				if err != nil {
					b.Fatal(err)
				}
				if _, err := h.Runtime().Wait(context.Background(), id); err != nil {
					b.Fatal(err)
				}
				all := time.Since(began)
				git = gitexec.Used().Busy - git
				if got := ticketOf(b, h, ticket).Ticket; got.State != "in_review" {
					b.Fatalf("the ticket: %+v", got)
				}
				alls, gits = append(alls, all), append(gits, git)
				engines = append(engines, all-git-time.Duration(model.Load()-asked))
			}
			ms := func(list []time.Duration) float64 {
				slices.Sort(list)
				return list[len(list)/2].Seconds() * 1000
			}
			b.ReportMetric(ms(engines), "engine-ms/ticket")
			b.ReportMetric(ms(gits), "git-ms/ticket")
			b.ReportMetric(float64(gitexec.Used().Commands-commands)/float64(len(alls)), "gits/ticket")
			b.ReportMetric(100*ms(engines)/ms(alls), "engine-%")
		})
	}
}
