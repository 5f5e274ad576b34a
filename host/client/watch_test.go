package client_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/host/client"
	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// play is one connection of a scripted feed.
type play struct {
	cursor string // that the client must come with
	say    []string
	code   websocket.StatusCode // to close with; 0 breaks the connection off
	refuse int                  // status in place of a connection
}

// scripted serves plays, one a connection.
func scripted(t *testing.T, plays ...play) *client.Client {
	var n atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i := int(n.Add(1)) - 1
		if i >= len(plays) {
			t.Errorf("connection %d was not expected", i)
			return
		}
		p := plays[i]
		if got := r.URL.Query().Get("cursor"); got != p.cursor {
			t.Errorf("connection %d came with cursor %q, want %q", i, got, p.cursor)
		}
		if r.Header.Get("Authorization") != "Bearer "+token || r.URL.Query().Get("topics") != "runs,health" {
			t.Errorf("connection %d: %v %v", i, r.Header, r.URL)
		}
		if p.refuse != 0 {
			w.WriteHeader(p.refuse)
			return
		}
		c, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{"sentinel.v1"}})
		if err != nil {
			t.Error(err)
			return
		}
		defer c.CloseNow()
		for _, text := range p.say {
			if err := c.Write(r.Context(), websocket.MessageText, []byte(text)); err != nil {
				t.Error(err)
			}
		}
		if p.code != 0 {
			c.Close(p.code, "why not")
		}
	}))
	t.Cleanup(srv.Close)
	c, err := client.New(client.Options{URL: srv.URL, Token: token})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

var topics = []string{"runs", "health"}

// A watch goes on where it was, whatever ends its connections, until there is
// no point in another one.
func TestWatchResumes(t *testing.T) {
	c := scripted(t,
		play{refuse: 503},
		play{say: []string{`{"hello":{"cursor":"e-0"}}`}}, // breaks before the first entry
		play{cursor: "e-0", say: []string{`{"hello":{"cursor":"e-0"}}`, `{"cursor":"e-1","topic":"runs","event":1}`, `{"cursor":"e-2","topic":"runs","event":2}`}, code: websocket.StatusTryAgainLater},
		play{cursor: "e-2", say: []string{`{"hello":{"cursor":"e-2"}}`, `{"cursor":"e-7"}`}},
		play{cursor: "e-7", say: []string{`{"hello":{"cursor":"e-7"}}`, `{"gap":{"lost":3,"cursor":"e-10"}}`}, code: websocket.StatusGoingAway},
		play{cursor: "e-10", refuse: 502},
		play{cursor: "e-10", say: []string{`{"hello":{"cursor":"e-10"}}`, `{"gap":{"lost":-1,"cursor":"f-0"}}`, `{"cursor":"f-1","topic":"health","event":3}`}, code: websocket.StatusPolicyViolation},
	)
	var got []string
	err := c.Watch(t.Context(), client.WatchOptions{Topics: topics}, func(m client.Message) error {
		if m.Gap != nil {
			got = append(got, "gap "+m.Cursor)
		} else {
			got = append(got, string(m.Event)+" "+m.Cursor)
		}
		return nil
	})
	if diff := cmp.Diff([]string{"1 e-1", "2 e-2", "gap e-10", "gap f-0", "3 f-1"}, got); diff != "" {
		t.Error(diff)
	}
	if abi.CodeOf(err) != abi.BadFields || !strings.Contains(err.Error(), "why not") {
		t.Error(err)
	}
}

func TestWatchEnds(t *testing.T) {
	hello := `{"hello":{"cursor":"e-0"}}`
	seen := errors.New("seen")
	fn := func(client.Message) error { return seen }
	opt := client.WatchOptions{Topics: topics, Patience: time.Millisecond}
	if err := scripted(t, play{say: []string{hello, `{"cursor":"e-1","event":1}`}}).Watch(t.Context(), opt, fn); !errors.Is(err, seen) {
		t.Errorf("fn failed: %v", err)
	}
	if err := scripted(t, play{refuse: 401}).Watch(t.Context(), opt, fn); abi.CodeOf(err) != abi.Denied {
		t.Errorf("refused: %v", err)
	}
	if err := scripted(t, play{say: []string{`{"hello":`}}).Watch(t.Context(), opt, fn); abi.CodeOf(err) != abi.Output {
		t.Errorf("no JSON: %v", err)
	}
	if err := scripted(t, play{refuse: 503}, play{refuse: 503}).Watch(t.Context(), opt, fn); abi.CodeOf(err) != abi.Unavailable {
		t.Errorf("after the last attempt: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err := scripted(t, play{say: []string{hello, `{"cursor":"e-1","event":1}`, `{"cursor":"e-2","event":1}`}}).Watch(ctx, opt, func(client.Message) error {
		cancel()
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("ended: %v", err)
	}
}

// status says how r1 stands.
func status(w *world, s sentinels.Status) {
	w.on("sentinel/status", map[string]any{"id": "r1", "state": map[string]any{"id": "r1", "status": s}})
}

func TestFollow(t *testing.T) {
	w, c := newWorld(t)
	status(w, sentinels.StatusRunning)
	var got []string
	done := make(chan client.Run, 1)
	go func() {
		r, err := c.Follow(context.Background(), "r1", func(m client.Message) error {
			got = append(got, m.Kind)
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		done <- r
	}()
	for w.feed.Stats().Subscribers == 0 {
		time.Sleep(time.Millisecond)
	}
	w.feed.Progress(runtime.Progress{Event: runtime.OnStepStart, Run: "r1", Root: "r1"})
	w.feed.Progress(runtime.Progress{Event: runtime.OnRunEnd, Run: "r2", Root: "r2"})
	status(w, sentinels.StatusCompleted)
	w.feed.Progress(runtime.Progress{Event: runtime.OnRunEnd, Run: "r1", Root: "r1"})
	if r := <-done; r.Status != sentinels.StatusCompleted {
		t.Errorf("%+v", r)
	}
	if diff := cmp.Diff([]string{"step.start", "run.end"}, got); diff != "" {
		t.Error(diff)
	}
}

// A run whose end was missed is found to be over by asking.
func TestFollowMissedEnd(t *testing.T) {
	w, c := newWorld(t)
	c.SetLastWords(time.Millisecond)
	asked := 0
	w.commands["sentinel/status"] = counting(&asked, w)
	r, err := c.Follow(t.Context(), "r1", func(client.Message) error { return nil })
	if err != nil || r.Status != sentinels.StatusFailed || asked != 3 {
		t.Errorf("%+v, %v, asked %d times", r, err, asked)
	}
	// One that is over tells nothing.
	asked = 1
	if r, err := c.Follow(t.Context(), "r1", func(client.Message) error { return nil }); err != nil || r.Status != sentinels.StatusFailed || asked != 2 {
		t.Errorf("%+v, %v, asked %d times", r, err, asked)
	}
	seen := errors.New("seen")
	asked = -1000
	go func() {
		for w.feed.Stats().Subscribers == 0 {
			time.Sleep(time.Millisecond)
		}
		w.feed.Progress(runtime.Progress{Event: runtime.OnStepStart, Run: "r1", Root: "r1"})
	}()
	if _, err := c.Follow(t.Context(), "r1", func(client.Message) error { return seen }); !errors.Is(err, seen) {
		t.Errorf("fn failed: %v", err)
	}
}

// counting answers that the run is on, the first time it is asked.
func counting(asked *int, w *world) func(*command.Call) (any, error) {
	return func(*command.Call) (any, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if *asked++; *asked <= 1 {
			return map[string]any{"state": map[string]any{"id": "r1", "status": "running"}}, nil
		}
		return map[string]any{"state": map[string]any{"id": "r1", "status": "failed"}}, nil
	}
}
