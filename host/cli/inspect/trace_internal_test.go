package inspect

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// 10,000 items that were executed side by side are one entry, beside the first that failed.
func TestSideBySideIsOneEntry(t *testing.T) {
	const items, batch = 10_000, 2_500
	s, a := &runtime.TraceStep{Path: "1"}, &runtime.TraceAttempt{}
	for i := range items {
		if i%batch == 0 {
			request := `{"blocks":[` + strings.Repeat("{},", batch-1) + `{}],"isolated":true,"total":10000}`
			a.Calls = append(a.Calls, &runtime.TraceCall{Function: abi.FuncBlock, Request: []byte(request)})
		}
		step := &runtime.TraceStep{Path: fmt.Sprintf("1#%d.steps.0", i), Ended: true}
		if i%2000 == 7 {
			step.Error = abi.New(abi.Denied, "no")
		}
		a.Steps = append(a.Steps, step)
	}
	a.Steps[items-1].Ended = false
	a.Steps = append(a.Steps, &runtime.TraceStep{Path: "1#10000.finally.0", Ended: true})
	text, shown := sideBySide(s, a)
	var paths []string
	for _, step := range shown {
		paths = append(paths, step.Path)
	}
	if want := "1#7.steps.0 1#2007.steps.0 1#4007.steps.0 1#10000.finally.0"; text != "items 9999 of 10000, 5 failed" || strings.Join(paths, " ") != want {
		t.Errorf("got %q with %v, want %s", text, paths, want)
	}
	one := &runtime.TraceAttempt{Calls: []*runtime.TraceCall{{Function: abi.FuncBlock, Request: []byte(`{"blocks":[{}]}`)}}, Steps: a.Steps[:1]}
	if text, shown := sideBySide(s, one); text != "" || len(shown) != 1 {
		t.Errorf("one after the other: %q with %d steps", text, len(shown))
	}
}
