package runtime_test

import (
	"encoding/json"
	"fmt"
	stdruntime "runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/runtime/trace"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// pages reads a trace page by page and puts the pages together.
func pages(t *testing.T, rt *runtime.Runtime, id sentinels.RunID, q runtime.TraceQuery) (all []trace.Iteration, n int) {
	t.Helper()
	for {
		page, err := rt.TracePage(id, q)
		if err != nil {
			t.Fatal(err)
		}
		all, n = trace.Join(all, page.Iterations), n+1
		if q.After = page.Next; q.After == "" {
			return all, n
		}
	}
}

// TestTracePages: the pages of a trace, put together, are the trace, however long they are.
func TestTracePages(t *testing.T) {
	rt := open(t, newFakeHost(), store.NewMemory(), runtime.Options{})
	id := start(t, rt, `{"name":"nested","steps":[
		{"type":"times","count":3,"steps":[{"type":"call","command":"world/look","value":1},{"type":"call","command":"world/look","value":2,"condition":"false"}]},
		{"type":"call","command":"world/look","value":3}],
		"loop":{"type":"until","check":"false"},"safety":{"maxIterations":3}}`, runtime.StartOptions{})
	wait(t, rt, id)
	whole, err := rt.Trace(id)
	if err != nil {
		t.Fatal(err)
	}
	want, _ := json.Marshal(whole.Iterations)
	for _, records := range []int{1, 2, 3, 7, 1000} {
		all, n := pages(t, rt, id, runtime.TraceQuery{Records: records})
		got, _ := json.Marshal(all)
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%d pages of %d records (-want +got):\n%s", n, records, diff)
		}
	}
	second, _ := pages(t, rt, id, runtime.TraceQuery{Iteration: 2, Records: 2})
	if len(second) != 1 || second[0].Number != 2 || len(second[0].Steps) != len(whole.Iterations[1].Steps) {
		t.Errorf("iteration 2: %+v", second)
	}
	last, _ := pages(t, rt, id, runtime.TraceQuery{Newest: true, Step: "1"})
	if len(last) != 1 || last[0].Number != 3 || len(last[0].Steps) != 1 || last[0].Steps[0].Path != "1" {
		t.Errorf("step 1 of the newest iteration: %+v", last)
	}
}

// TestTracePageMemory: the memory of a page does not grow with the values of a trace.
func TestTracePageMemory(t *testing.T) {
	rt := open(t, newFakeHost(), store.NewMemory(), runtime.Options{})
	id := start(t, rt, fmt.Sprintf(`{"name":"large","variables":{"v":%q},"steps":[
		{"type":"times","count":80,"steps":[{"type":"call","command":"world/look","value":"$v"}]}]}`, strings.Repeat("x", 200<<10)), runtime.StartOptions{})
	wait(t, rt, id)
	whole, err := rt.Trace(id)
	if err != nil {
		t.Fatal(err)
	}
	total, _ := json.Marshal(whole)
	whole = nil
	peak, n := 0, 0
	for q := (runtime.TraceQuery{}); ; n++ {
		page, err := rt.TracePage(id, q)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := json.Marshal(page)
		peak = max(peak, len(text))
		if q.After = page.Next; q.After == "" {
			break
		}
	}
	stdruntime.KeepAlive(whole)
	if len(total) < 15<<20 || peak > 10<<20 {
		t.Errorf("a trace of %d MB has pages of up to %d MB", len(total)>>20, peak>>20)
	}
}
