package runtime_test

import (
	"context"
	"os"
	"sync"
	"testing"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// TestExpressionsOfAgentsKeepNoPersonWaiting: while runs of an agent and filters of its triggers evaluate
// expressions that loop until their limit, a run of a person whose expression needs a child ends before
// all but a few of them.
func TestExpressionsOfAgentsKeepNoPersonWaiting(t *testing.T) {
	child, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	rt := openBuiltin(t, store.NewMemory(), runtime.Options{Child: runtime.Child{Path: child}})
	const loops = `[1].map(() => { for (;;); }).length`
	made := decode(t, rt, `{"id":"made","name":"made","steps":[{"type":"set","values":{"x":1}}]}`)
	if _, err := rt.SaveWith(within(t), made, runtime.SaveOptions{By: "agent:ci", Within: []string{}}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(within(t))
	var filters sync.WaitGroup
	defer filters.Wait()
	defer cancel()
	for range 8 {
		filters.Go(func() {
			if _, err := runtime.Filter(ctx, rt, "made", loops); err == nil {
				t.Error("the filter ends without an error")
			}
		})
	}
	var agents []sentinels.RunID
	for range 12 {
		agents = append(agents, start(t, rt, `{"name":"a","steps":[{"type":"set","values":{"x":{"expr":"`+loops+`"}}}]}`, runtime.StartOptions{As: "agent:ci"}))
	}
	mine := start(t, rt, `{"name":"p","steps":[{"type":"set","values":{"x":{"expr":"[1, 2].map(x => x * 2).length"}}}]}`, runtime.StartOptions{})
	if end := wait(t, rt, mine); end.Status != sentinels.StatusCompleted {
		t.Errorf("the run of the person: %+v", end)
	}
	active := 0
	for _, id := range agents {
		info, err := rt.Status(id)
		if err != nil {
			t.Fatal(err)
		}
		if !info.Status.Final() {
			active++
		}
	}
	if active < 6 {
		t.Errorf("only %d of %d runs of the agent are left when the run of the person has ended", active, len(agents))
	}
}
