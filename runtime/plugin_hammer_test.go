package runtime_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/runtime/plugin"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// tally is version 0 to 8 of a plugin that answers 1 and the version's digit: an
// instance that had run before would answer 2, and another version another digit.
func tally(t testing.TB, version int) (p plugin.Source, digest string) {
	t.Helper()
	code := bytes.Replace(guest(t, "count"), []byte(`"version":"1"`), fmt.Appendf(nil, `"version":"%d"`, version), 1)
	code = bytes.Replace(code, []byte(`{"output":00}`), fmt.Appendf(nil, `{"output":0%d}`, version), 1)
	sum := sha256.Sum256(code)
	return plugin.Source{Name: "count.wasm", Wasm: func() ([]byte, error) { return code, nil }}, hex.EncodeToString(sum[:])
}

// TestThousandSwaps swaps a step type a thousand times, now and then for one that
// is refused, under loops that all use it: every pass is there, has one version
// in all its steps, and every step has the answer of the version it ran with.
func TestThousandSwaps(t *testing.T) {
	swaps, loops := 1000, 6
	if testing.Short() {
		swaps, loops = 20, 3
	}
	w := newFakeHost()
	w.delay = time.Millisecond
	rt := open(t, w, store.NewMemory(), runtime.Options{Limits: runtime.Limits{KeepIterations: 1 << 20, KeepBytes: 1 << 30}})
	answers := map[string]string{} // by digest
	var versions []plugin.Source
	for v := range 9 {
		p, digest := tally(t, v)
		versions, answers[digest] = append(versions, p), fmt.Sprint(11+v)
	}
	if len(answers) != 9 {
		t.Fatal("the versions are not nine")
	}
	loadPlugin(t, rt, versions[0])
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	var ids []sentinels.RunID
	for i := range loops {
		def := decode(t, rt, fmt.Sprintf(`{"name":"l%d","loop":{"type":"count","max":1000000},"steps":[
			{"type":"count","outputTo":"a"},{"type":"call","command":"world/look","value":1},
			{"type":"seq","steps":[{"type":"count","outputTo":"b"},{"type":"call","command":"world/act","value":1},{"type":"count","outputTo":"c"}]}]}`, i))
		id, err := rt.Start(ctx, def, runtime.StartOptions{})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	broken := versions[0]
	broken.Wasm = func() ([]byte, error) { return []byte("\x00asm\x01\x00\x00\x00 no more"), nil }
	for n := range swaps {
		if every := max(10, swaps/20); n%every == every-1 {
			if _, err := rt.LoadPlugin(ctx, broken); err == nil {
				t.Fatal("a broken module is live")
			}
		}
		if _, err := rt.LoadPlugin(ctx, versions[(n+1)%9]); err != nil {
			t.Fatalf("swap %d: %v", n, err)
		}
		// Not in step with the passes: a swap falls into each part of them.
		time.Sleep(time.Duration(rand.IntN(4)) * time.Millisecond)
	}
	passes, used := 0, map[string]int{}
	for _, id := range ids {
		if err := rt.Stop(ctx, id); err != nil {
			t.Fatal(err)
		}
		if res, err := rt.Wait(ctx, id); err != nil || res.Status != sentinels.StatusStopped {
			t.Fatalf("run ended %+v: %v", res, err)
		}
		n, err := whole(rt, id, answers, used)
		if err != nil {
			t.Errorf("run %s: %v", id, err)
		}
		passes += n
	}
	t.Logf("%d swaps under %d passes of %d loops, which used %d versions", swaps, passes, loops, len(used))
	if passes < swaps/10 || len(used) < 9 {
		t.Errorf("%d passes used %d versions: hardly anything was swapped under them", passes, len(used))
	}
}

// whole checks the trace of a run that was stopped and counts its passes.
func whole(rt *runtime.Runtime, id sentinels.RunID, answers map[string]string, used map[string]int) (passes int, err error) {
	trace, err := rt.Trace(id)
	if err != nil {
		return 0, err
	}
	for i := range trace.Iterations {
		it := &trace.Iterations[i]
		if it.Number != i+1 {
			err = errors.Join(err, fmt.Errorf("pass %d is missing, %d is there", i+1, it.Number))
			break
		}
		digest, steps := "", 0
		it.Walk(func(s *runtime.TraceStep) {
			if s.Type != "count" || len(s.Attempts) == 0 || !s.Ended {
				return // the stop came first
			}
			a := s.Attempts[0]
			steps++
			if digest != "" && a.Module != digest {
				err = errors.Join(err, fmt.Errorf("pass %d has two versions", it.Number))
			}
			digest = a.Module
			if got := string(s.Output); got != answers[digest] || len(s.Attempts) > 1 {
				err = errors.Join(err, fmt.Errorf("pass %d step %s answered %s with attempts %d, want %s of version %.8s", it.Number, s.Address, got, len(s.Attempts), answers[digest], digest))
			}
		})
		if digest != "" {
			used[digest]++
		}
		if steps != 3 && i < len(trace.Iterations)-1 {
			err = errors.Join(err, fmt.Errorf("iteration %d executed %d of its 3 steps", it.Number, steps))
		}
	}
	return len(trace.Iterations), err
}
