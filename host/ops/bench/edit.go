package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/sentinel-runtime/sentinel/host/client"
	"github.com/sentinel-runtime/sentinel/host/livefeed"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// looping goes round about fifty times a second.
const looping = `{"id":"looping","name":"looping","steps":[{"type":"wait","durationMs":20}],"loop":{"type":"continuous"},"safety":{"maxIterations":1000000}}`

// edit adds steps to a loop that is on, over the API, and counts the iterations
// that begin after the answer until one has the step. What an edit of a running
// loop costs is a number of iterations, not of milliseconds: one is the best
// there is, for the current one is never touched.
func edit(b *bench) (f figure, err error) {
	if b.binary() == "" {
		return skip(noBinary)
	}
	root, err := b.project()
	if err != nil {
		return f, err
	}
	if err := put(root, "looping", looping); err != nil {
		return f, err
	}
	s, err := b.serve(root)
	if err != nil {
		return f, err
	}
	defer s.kill()
	run, err := s.Start(b.ctx, "looping", client.StartOptions{})
	if err != nil {
		return f, err
	}
	ctx, cancel := context.WithCancelCause(b.ctx)
	told, over := make(chan client.Message, 4096), make(chan struct{})
	go func() {
		defer close(over)
		cancel(s.Watch(ctx, client.WatchOptions{Topics: []string{livefeed.RunTopic(run)}}, func(m client.Message) error {
			select {
			case told <- m:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}))
	}()
	defer func() { cancel(nil); <-over }()
	if err := await(ctx, told, func(m client.Message) (bool, error) { return m.Kind == "iteration.start", nil }); err != nil {
		return f, err
	}
	var took samples // milliseconds until the iteration began
	for range b.count(20) {
		began := time.Now()
		var made struct{ Revision int }
		if err := s.Call(ctx, "sentinel/step/add", map[string]any{
			"sentinelId": "looping", "step": json.RawMessage(`{"type":"wait","durationMs":1}`),
		}, &made); err != nil {
			return f, err
		}
		answered := time.Now()
		if err := await(ctx, told, func(m client.Message) (bool, error) {
			var begun struct{ Revision int }
			if m.Kind != "iteration.start" {
				return false, nil
			}
			err := json.Unmarshal(m.Event, &begun)
			return begun.Revision >= made.Revision, err
		}); err != nil {
			return f, fmt.Errorf("revision %d: %w", made.Revision, err)
		}
		iterations, at, err := s.iterationsUntil(ctx, run, made.Revision, answered)
		if err != nil {
			return f, err
		}
		took = append(took, float64(at.Sub(began))/float64(time.Millisecond))
		// One that began before the answer was there had the step already.
		f.samples = append(f.samples, float64(max(iterations, 1)))
	}
	f.note = fmt.Sprintf("%.1f ms from the request until that iteration began, of which it waits up to 20 for the one before", took.at(0.5))
	return f, nil
}

// iterationsUntil counts the iterations that began after a moment, up to the first
// on a revision, and returns when that began. The trace says it as it was: the
// feed tells of a beginning when that is durable, a moment later.
func (s *served) iterationsUntil(ctx context.Context, run sentinels.RunID, revision int, after time.Time) (n int, at time.Time, err error) {
	raw, err := s.Trace(ctx, run, "")
	if err != nil {
		return 0, at, err
	}
	var trace struct {
		Iterations []struct {
			Revision int
			Start    time.Time
		}
	}
	if err := json.Unmarshal(raw, &trace); err != nil {
		return 0, at, err
	}
	for _, it := range trace.Iterations {
		if it.Start.After(after) {
			n++
		}
		if it.Revision >= revision {
			return n, it.Start, nil
		}
	}
	return 0, at, fmt.Errorf("no iteration of run %s has revision %d", run, revision)
}

// startWith starts a run with inputs.
func (s *served) startWith(ctx context.Context, id sentinels.ID, inputs map[string]any) (sentinels.RunID, error) {
	return s.Start(ctx, id, client.StartOptions{Inputs: inputs})
}
