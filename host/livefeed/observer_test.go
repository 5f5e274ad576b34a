package livefeed_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host/livefeed"
	"github.com/sentinel-runtime/sentinel/plugins"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/plugin"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Events of runs are "for triggers, waits and /ws": a subscriber has those of its pattern,
// whether it subscribed before the engine was there or after, and the engine writes no others.
func TestSpecRunEventsOnTheFeed(t *testing.T) {
	rt, err := runtime.Open(t.Context(), runtime.Options{Dir: t.TempDir(), Plugins: []plugin.Source{{Name: "builtin", Wasm: plugins.Builtin, Manifest: plugins.Manifest, Trusted: true}}})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	f := open(t, livefeed.Options{})
	before := subscribe(t, f, "", "events:sentinel:a:completed")
	all := subscribe(t, f, "", "events:**")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- f.PublishEvents(ctx, rt, func(sentinels.Event) {}) }()
	for deadline := time.Now().Add(time.Minute); ; { // until the engine knows of the subscriber
		run(t, rt)
		if rt.RunEventPosition() > 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the engine writes no events for the subscriber")
		}
	}
	if got := next(t, before); !strings.Contains(got, `"sentinel:a:completed"`) || !strings.Contains(got, `"status":"completed"`) {
		t.Errorf("subscribed before: %s", got)
	}
	after := subscribe(t, f, "", "events:sentinel:*:started")
	position := rt.RunEventPosition()
	run(t, rt)
	if got := next(t, after); !strings.Contains(got, `"sentinel:a:started"`) {
		t.Errorf("subscribed after: %s", got)
	}
	if n := rt.RunEventPosition() - position; n != 2 {
		t.Errorf("%d events of a run, want started and completed", n)
	}
	if _, err := rt.Emit(t.Context(), sentinels.Event{Name: "own"}); err != nil {
		t.Fatal(err)
	}
	if got := next(t, all); !strings.Contains(got, `"own"`) {
		t.Errorf("** has %s, want only the event of a user", got)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func run(t *testing.T, rt *runtime.Runtime) {
	t.Helper()
	def, problems := rt.Decode([]byte(`{"id":"a","name":"a","steps":[],"loop":{"type":"once"}}`), "a.json")
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	id, err := rt.Start(t.Context(), def, runtime.StartOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := rt.Wait(t.Context(), id); err != nil {
		t.Fatal(err)
	}
}
