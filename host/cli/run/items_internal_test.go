package run

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/host/cli/app"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
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
	want := []string{
		"1.steps.0 shell item 2 of 100 failed", "no 1", "1.steps.0 shell item 4 of 100 failed", "no 3", "1.steps.0 shell item 6 of 100 failed", "no 5",
	}
	for n := 10; n <= 100; n += 10 {
		want = append(want, fmt.Sprintf("1 loop items %d of 100", n))
	}
	want = append(want, "1 loop ok", "1.steps.0 shell ok")
	if diff := cmp.Diff(want, show(100)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	few := strings.Join(show(4), "\n")
	if strings.Contains(few, "items 4 of 4") || !strings.Contains(few, "1.steps.0 shell item 1 of 4 ok") || !strings.Contains(few, "shell item 4 of 4 failed") ||
		!strings.HasSuffix(few, "1.steps.0 shell ok") {
		t.Errorf("few items:\n%s", few)
	}
}

// TestItemsAreNamed: what items side by side print names the item, also within a loop in a loop; a step in finally is
// named as its own line names it.
func TestItemsAreNamed(t *testing.T) {
	a := &app.App{}
	a.Flags.Verbose = true
	l := lines{app: verbs{a}, root: "r", head: true}
	see := func(p runtime.Progress) (got []string) {
		p.Run = "r"
		for _, line := range l.of(p) {
			got = append(got, strings.Join(strings.Fields(strings.TrimSuffix(string(line), "  0.0ms")), " "))
		}
		return got
	}
	see(runtime.Progress{Event: runtime.OnItems, Path: "1", Items: &runtime.Items{Total: 3}})
	see(runtime.Progress{Event: runtime.OnItems, Path: "1#2.steps.0", Items: &runtime.Items{Total: 30}})
	for _, c := range []struct {
		event runtime.ProgressKind
		path  string
		want  []string
	}{
		{runtime.OnOutput, "1#2.steps.1", []string{"1.steps.1 build item 3 of 3 | one", "1.steps.1 build item 3 of 3 | two"}},
		{runtime.OnStepEnd, "1#2.steps.1", []string{"1.steps.1 shell build item 3 of 3 ok"}},
		{runtime.OnOutput, "1#2.steps.0#9.steps.0", []string{"1.steps.0.steps.0 build item 3 of 3, item 10 of 30 | one", "1.steps.0.steps.0 build item 3 of 3, item 10 of 30 | two"}},
		{runtime.OnOutput, "1#3.finally.0", []string{"1.finally.0 build | one", "1.finally.0 build | two"}},
		{runtime.OnOutput, "end#0.finally.0", []string{"end.finally.0 build | one", "end.finally.0 build | two"}},
		{runtime.OnStepEnd, "1", []string{"1 shell build ok"}},
		{runtime.OnOutput, "1#2.steps.1", []string{"1.steps.1 build | one", "1.steps.1 build | two"}},
	} {
		p := runtime.Progress{Event: c.event, Path: c.path, Step: "build"}
		if c.event == runtime.OnOutput { // as the host reports it
			p.Message = "one\ntwo\n"
		} else {
			p.Address, p.Type = sentinels.PathAddress(c.path), "shell"
		}
		if diff := cmp.Diff(c.want, see(p)); diff != "" {
			t.Errorf("%s %s (-want +got):\n%s", c.event, c.path, diff)
		}
	}
}
