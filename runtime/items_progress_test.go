package runtime_test

import (
	"sync"
	"testing"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// TestItemsAreReported: the items of a loop are reported as numbers that grow, at most a hundred times and once at each end,
// over several host calls, side by side and one after the other.
func TestItemsAreReported(t *testing.T) {
	for name, field := range map[string]string{"side by side": `"maxConcurrent":8`, "one after the other": `"onItemError":"continue"`} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			var seen []runtime.Items
			o := runtime.Options{Commands: &scriptedHost{}, Observer: runtime.Observer{Progress: func(p runtime.Progress) {
				if p.Event == runtime.OnItems && p.Path == "0" && p.Type == "loop" {
					mu.Lock()
					defer mu.Unlock()
					seen = append(seen, *p.Items)
				}
			}}}
			rt := openBuiltin(t, store.NewMemory(), o)
			res := wait(t, rt, start(t, rt, `{"name":"p","steps":[{"type":"loop","each":{"from":1,"to":600},`+field+`,"steps":[{"type":"set","values":{"x":"$item"}}]}]}`, runtime.StartOptions{Workspace: "/w"}))
			rt.Close() // reports everything
			if res.Status != sentinels.StatusCompleted {
				t.Fatal(res.Status, res.Error)
			}
			first, last := map[int64]int{}, int64(-1)
			for _, s := range seen {
				first[s.Ended]++
				last = max(last, s.Ended)
				if s.Total != 600 || first[s.Ended] > 1 {
					t.Errorf("%+v, %d times", s, first[s.Ended])
				}
			}
			if len(seen) > 102 || len(seen) < 50 || first[0] != 1 || last != 600 {
				t.Errorf("%d reports, last %d", len(seen), last)
			}
		})
	}
}
