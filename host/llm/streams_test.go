package llm_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/llm"
	"github.com/sentinel-runtime/sentinel/host/llm/llmtest"
)

// TestManyStreams: 500 turns that have each received 32 KiB of a reply, and wait for the rest, hold less
// than 100 MB, with the server in the same process.
func TestManyStreams(t *testing.T) {
	const streams, pieces = 500, 400
	rest, text := make(chan struct{}), strings.Repeat("word ", 16)
	half := strings.Repeat(`data: {"choices":[{"index":0,"delta":{"content":"`+text+`"}}]}`+"\n\n", pieces)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, half)
		_ = http.NewResponseController(w).Flush()
		<-rest
		_, _ = io.WriteString(w, `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":8000}}`+"\n\n")
	}))
	defer server.Close()
	m := open(t, llm.Config{Env: env(), Default: "p/m", Providers: []llm.Provider{{Name: "p", BaseURL: server.URL + "/v1"}}, Models: []llm.Model{{Name: "m", Context: 100_000}}})
	held := func() uint64 {
		runtime.GC()
		var s runtime.MemStats
		runtime.ReadMemStats(&s)
		return s.HeapAlloc + s.StackInuse
	}
	before := held()
	var turns, received sync.WaitGroup
	received.Add(streams)
	for range streams {
		turns.Go(func() {
			got := 0
			reply, err := m.Turn(context.Background(), ask("x"), func(piece string) {
				if got += len(piece); got == pieces*len(text) {
					received.Done()
				}
			})
			if err != nil || len(reply.Text) != got {
				t.Errorf("%d of %d bytes, %v", len(reply.Text), got, err)
			}
		})
	}
	received.Wait()
	after := held()
	close(rest)
	turns.Wait()
	t.Logf("%d streams hold %d KB each", streams, (after-before)/streams>>10)
	if after-before > 100_000_000 {
		t.Errorf("%d streams hold %d MB", streams, (after-before)/1_000_000)
	}
}

// BenchmarkTurn makes turns with the stand-ins of each protocol: what a turn costs in processor time
// and memory, with that of the stand-in.
func BenchmarkTurn(b *testing.B) {
	for _, spec := range llmtest.Specs() {
		switch spec.String() {
		case "deepseek/chat", "openai/responses", "anthropic/messages":
		default:
			continue
		}
		b.Run(spec.Protocol, func(b *testing.B) {
			s := llmtest.New(spec)
			p := llm.Provider{Name: "p", BaseURL: spec.Base, Key: key}
			if spec.Protocol == llmtest.Messages {
				p.Kind = llm.KindAnthropic
			}
			m, err := llm.Open(llm.Config{Env: env(), Default: "p/" + llmtest.Model, Providers: []llm.Provider{p}, HTTPClient: s.Client()})
			if err != nil {
				b.Fatal(err)
			}
			turn := ask(llmtest.Long)
			turn.MaxTokens = 2000
			for n := 0; b.Loop(); n++ {
				turn.Messages[0].Content = fmt.Sprint(llmtest.Long, " ", n) // each is a conversation of its own
				if _, err := m.Turn(b.Context(), turn, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
