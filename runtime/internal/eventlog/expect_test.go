package eventlog_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/runtime/internal/eventlog"
)

func TestRunPatterns(t *testing.T) {
	for definition, want := range map[string][]string{
		`{"name":"x"}`: nil,
		`{"trigger":[{"type":"event","event":"sentinel:a:failed"}],"steps":[{"type":"wait","event":"sentinel:*:*"}]}`: {"sentinel:a:failed", "sentinel:*:*"},
		`{"steps":[{"type":"emit","event":"sentinel:deployed"},{"type":"wait","event":"sentinel:**"}]}`:               nil,
		`{"steps":[{"type":"wait","event":"sentinel:$inputs.id:failed"}]}`:                                            {"sentinel:*:*"},
		`{"steps":[{"type":"wait","event":"$pattern"}]}`:                                                              {"sentinel:*:*"},
		`{"variables":{"d":"{\"event\":\"sentinel:a:failed\"}"}}`:                                                     {"sentinel:*:*"},
		`{"steps":["sentinel:a:failed`:                                                                                nil,
	} {
		if diff := cmp.Diff(want, eventlog.RunPatterns([]byte(definition))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", definition, diff)
		}
	}
}

func TestExpected(t *testing.T) {
	loads := 0
	x := eventlog.NewExpected(func(x *eventlog.Expected) {
		loads++
		x.Set("stored", "sentinel:a:failed")
	})
	has := func(name string, want bool) {
		t.Helper()
		if x.Has(name) != want {
			t.Errorf("%s: %v, want %v", name, !want, want)
		}
	}
	has("sentinel:a:failed", true)
	has("sentinel:a:started", false)
	x.Set("one", "sentinel:b:failed", "sentinel:*:started")
	x.Set("two", "sentinel:b:failed")
	has("sentinel:a:started", true)
	x.Set("one", "sentinel:c:paused")
	has("sentinel:a:started", false)
	has("sentinel:b:failed", true)
	x.Set("two")
	has("sentinel:b:failed", false)
	has("sentinel:c:paused", true)
	for i := range 1001 {
		x.Add(fmt.Sprintf("sentinel:s%d:failed", i))
	}
	has("sentinel:any:started", true) // too many to compare with
	if loads != 1 {
		t.Errorf("loaded %d times", loads)
	}
}
