package runtime_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// thinker answers as a model that thinks does, and notes how its first message comes back.
type thinker struct {
	*scriptedHost
	said sentinels.Said
	mu   sync.Mutex
	back []*sentinels.Said
}

func (s *thinker) Turn(ctx context.Context, turn sentinels.Turn, delta func(string)) (sentinels.Reply, error) {
	r, err := s.scriptedHost.Turn(ctx, turn, delta)
	if len(turn.Messages) > 1 {
		s.mu.Lock()
		s.back = append(s.back, turn.Messages[1].Said)
		s.mu.Unlock()
	} else {
		said := s.said
		r.Said, r.Reasoning = &said, strings.Repeat("long thought ", 5000)
	}
	return r, err
}

// TestWhatAModelSaidOutlivesACrash goes on from every state that a crash leaves behind the first
// reply: the message goes back to its provider byte for byte, small or large.
func TestWhatAModelSaidOutlivesACrash(t *testing.T) {
	for name, thought := range map[string]string{"small": "hm <b>", "large": strings.Repeat("so ", 40_000)} {
		t.Run(name, func(t *testing.T) {
			said := sentinels.Said{Provider: "fake", Protocol: "openai", Message: `{"role":"assistant", "z":1,"a":[1e2,null],"reasoning_content":"` + thought + `"}`}
			opt := func() (runtime.Options, *thinker) {
				s := &thinker{scriptedHost: anyResponses(), said: said}
				return runtime.Options{Commands: s, Models: s, OnInterrupt: sentinels.InterruptRetry, Limits: runtime.Limits{Crashes: 1000}}, s
			}
			o, s := opt()
			f := newRecordingStore()
			rt := openBuiltin(t, f, o)
			id := start(t, rt, `{"name":"think","steps":[{"type":"llm","prompt":"work","tools":["test/echo"],"maxTurns":4,"outputTo":"agent"}]}`, runtime.StartOptions{Workspace: "/w"})
			if got := mask(renderResult(t, wait(t, rt, id))); !strings.HasPrefix(got, "think completed") {
				t.Fatal(got)
			}
			rt.Close()
			crashes := 0
			for n := f.after(t, 1, kind(journal.CallEnd)); n < f.length() && len(s.back) == 1; n++ {
				o, s := opt()
				rt := openBuiltin(t, f.prefix(t, n), o)
				if status(t, rt, id).Status.Final() {
					rt.Close()
					break
				}
				if err := rt.Resume(within(t), id, runtime.ResumeOptions{}); err != nil {
					t.Fatalf("crash behind batch %d: %v", n, err)
				}
				wait(t, rt, id)
				rt.Close()
				for _, back := range s.back {
					crashes++
					if diff := cmp.Diff(&said, back); diff != "" {
						t.Fatalf("crash behind batch %d (-want +got):\n%.500s", n, diff)
					}
				}
			}
			if diff := cmp.Diff([]*sentinels.Said{&said}, s.back); diff != "" || crashes == 0 {
				t.Errorf("%d turns after a crash; without one (-want +got):\n%.500s", crashes, diff)
			}
		})
	}
}
