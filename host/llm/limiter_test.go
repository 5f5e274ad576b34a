package llm_test

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host/llm"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// TestTurnsShareTheLimitOfAProvider: a server takes four requests at once and refuses others with a
// pause. Fifty turns, each made again after a refusal, do not each run into it.
func TestTurnsShareTheLimitOfAProvider(t *testing.T) {
	var active, refused, answered atomic.Int32
	f := newFake(t, func(w http.ResponseWriter, r *http.Request) {
		defer active.Add(-1)
		if active.Add(1) > 4 {
			refused.Add(1)
			status(429, `{"error":{"message":"Rate limit reached for m"}}`, "Retry-After-Ms", "200")(w, r)
			return
		}
		time.Sleep(10 * time.Millisecond) // the work of a server
		answered.Add(1)
		chat("ok")(w, r)
	})
	m := open(t, llm.Config{Env: env(), Default: "p/m", Providers: []llm.Provider{{Name: "p", BaseURL: f.URL + "/v1"}}, Models: []llm.Model{{Name: "m", Context: 1000}}})
	var turns sync.WaitGroup
	first := make(chan struct{})
	var once sync.Once
	make50 := func() {
		for range 50 {
			turns.Go(func() {
				for {
					_, err := m.Turn(t.Context(), ask("x"), nil)
					if err == nil {
						return
					}
					once.Do(func() { close(first) })
					if e := abi.As(err); e == nil || e.Code != abi.Unavailable {
						t.Error(err)
						return
					}
				}
			})
		}
	}
	make50()
	<-first
	turns.Wait()
	before := refused.Load()
	make50() // the limit is known now
	turns.Wait()
	if again := refused.Load() - before; again > 20 || answered.Load() != 100 {
		t.Errorf("%d refusals of the first fifty, %d of the next, %d answers", before, again, answered.Load())
	}
}

// TestTurnsWaitForAPause: a short pause is waited for within the turn, a long one is an error with the
// rest of it, and no request is made.
func TestTurnsWaitForAPause(t *testing.T) {
	for wait, short := range map[string]bool{"150": true, "600000": false} {
		f := newFake(t, status(429, `{"error":{"message":"Rate limit reached for m"}}`, "Retry-After-Ms", wait), chat("ok"))
		m := open(t, llm.Config{Env: env(), Default: "p/m", Providers: []llm.Provider{{Name: "p", BaseURL: f.URL + "/v1"}}, Models: []llm.Model{{Name: "m", Context: 1000}}})
		if _, err := m.Turn(t.Context(), ask("x"), nil); abi.CodeOf(err) != abi.Unavailable {
			t.Fatal(err)
		}
		started := time.Now()
		_, err := m.Turn(t.Context(), ask("x"), nil)
		if short {
			if err != nil || time.Since(started) < 100*time.Millisecond {
				t.Errorf("%v after %s", err, time.Since(started))
			}
			continue
		}
		if e := asError(t, err); e.Code != abi.Unavailable || e.RetryAfterMs < 590_000 || e.Permanent || len(f.turns()) != 1 {
			t.Errorf("%+v, %d requests", e, len(f.turns()))
		}
	}
}

// TestAWaitingTurnIsCancelled: a turn that waits for its provider ends with its context.
func TestAWaitingTurnIsCancelled(t *testing.T) {
	f := newFake(t, status(429, `{"error":{"message":"Rate limit reached for m"}}`, "Retry-After", "50"), chat("ok"))
	m := open(t, llm.Config{Env: env(), Default: "p/m", Providers: []llm.Provider{{Name: "p", BaseURL: f.URL + "/v1"}}, Models: []llm.Model{{Name: "m", Context: 1000}}})
	if _, err := m.Turn(t.Context(), ask("x"), nil); err == nil {
		t.Fatal("no error")
	}
	ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, errors.New("enough"))
	defer cancel()
	if _, err := m.Turn(ctx, ask("x"), nil); err == nil || len(f.turns()) != 1 {
		t.Errorf("%v, %d requests", err, len(f.turns()))
	}
}
