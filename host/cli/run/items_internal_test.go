package run

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/host/cli/app"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// TestManyItemsAreTenLines: of a loop with many items the lines say how many have ended, and show the first failures; of
// one with few items they have each step.
func TestManyItemsAreTenLines(t *testing.T) {
	show := func(total int64) (got []string) {
		l := lines{app: verbs{&app.App{}}, root: "r", head: true}
		see := func(p runtime.Progress) {
			p.Run = "r"
			for _, line := range l.of(p) {
				got = append(got, strings.Join(strings.Fields(strings.TrimSuffix(string(line), "  0.0ms")), " "))
			}
		}
		items := func(n int64) {
			see(runtime.Progress{Event: runtime.OnItems, Path: "1", Address: "1", Type: "loop", Items: &runtime.Items{Ended: n, Total: total}})
		}
		items(0)
		for i := range total {
			path := fmt.Sprintf("1#%d.steps.0", i)
			see(runtime.Progress{Event: runtime.OnItems, Path: path, Address: "1.steps.0", Type: "loop", Items: &runtime.Items{Ended: 30, Total: 30}})
			p := runtime.Progress{Event: runtime.OnStepEnd, Path: path, Address: "1.steps.0", Type: "shell"}
			if i%2 == 1 {
				p.Error = &abi.Error{Message: fmt.Sprint("no ", i)}
			}
			see(p)
			items(i + 1)
		}
		see(runtime.Progress{Event: runtime.OnStepEnd, Path: "1", Address: "1", Type: "loop"})
		see(runtime.Progress{Event: runtime.OnStepEnd, Path: "1#0.steps.0", Address: "1.steps.0", Type: "shell"}) // of the next iteration
		return got
	}
	want := []string{"1.steps.0 shell failed", "no 1", "1.steps.0 shell failed", "no 3", "1.steps.0 shell failed", "no 5"}
	for n := 10; n <= 100; n += 10 {
		want = append(want, fmt.Sprintf("1 loop items %d of 100", n))
	}
	want = append(want, "1 loop ok", "1.steps.0 shell ok")
	if diff := cmp.Diff(want, show(100)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	few := strings.Join(show(4), "\n")
	if strings.Contains(few, "of 4") || strings.Count(few, "1.steps.0 shell ok") != 3 || strings.Count(few, "shell failed") != 2 {
		t.Errorf("few items:\n%s", few)
	}
}
