package runtime_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
)

// TestNoItemBeginsAfterAFailure crashes a loop at each record behind the failure of an item: no item that had not begun
// begins afterwards, whether the others continue to their end (onItemError) or are cancelled (failFast). Items begin in
// their order, so one before another that is recorded has begun too, although its first record came later.
func TestNoItemBeginsAfterAFailure(t *testing.T) {
	const steps = `[{"type":"fail","message":"no","condition":"$item === 1"},{"command":"test/hang","params":{"item":"$item"}}]`
	for name, src := range map[string]string{
		"fail": `{"name":"p","steps":[{"type":"loop","each":{"from":1,"to":9},"maxConcurrent":3,"onItemError":"fail","steps":` + steps + `}],"safety":{"onInterrupt":"retry"}}`,
		"stop": `{"name":"p","steps":[{"type":"loop","each":{"from":1,"to":9},"maxConcurrent":3,"onItemError":"stop","steps":` + steps + `}],"safety":{"onInterrupt":"retry"}}`,
		"failFast": `{"name":"p","variables":{"item":1},"steps":[{"type":"parallel","failFast":true,"maxConcurrent":2,"branches":[` +
			strings.TrimSuffix(strings.Repeat(steps+",", 4), ",") + `]}],"safety":{"onInterrupt":"retry"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			f := newRecordingStore()
			hang := &scriptedHost{Commands: map[string][]response{"test/hang": {{Hang: true}}}}
			seen := newWatcher()
			o := runtime.Options{Commands: hang, Limits: runtime.Limits{Crashes: 1000}, Observer: runtime.Observer{Progress: seen.progress}}
			rt := openBuiltin(t, f, o)
			id := start(t, rt, src, runtime.StartOptions{Workspace: "/w"})
			failed := func(rec *journal.Record) bool {
				return rec.StepEnd != nil && rec.StepEnd.Error != nil && rec.StepEnd.Skipped == "" && strings.Contains(rec.Path, "#")
			}
			until(t, "an item to fail", func() bool { return f.count(t, failed) > 0 })
			end := f.after(t, 1, failed)
			rt.Close()
			before := f.prefix(t, end)
			begun := func(s *recordingStore) (paths []string) {
				s.count(t, func(rec *journal.Record) bool {
					if strings.Contains(rec.Path, "#") { // a step that its condition skips has no start
						list := rec.Path[:strings.LastIndex(rec.Path, ".")]
						if !slices.Contains(paths, list) {
							paths = append(paths, list)
						}
					}
					return false
				})
				return paths
			}
			had := begun(before)
			last := 0
			for _, list := range had {
				last = max(last, number(t, list))
			}
			for range 10 { // the scheduler decides which block is first
				db := f.prefix(t, end)
				rt := openBuiltin(t, db, runtime.Options{Commands: &scriptedHost{}, Limits: runtime.Limits{Crashes: 1000}})
				if err := rt.Resume(within(t), id, runtime.ResumeOptions{}); err != nil {
					t.Fatal(err)
				}
				wait(t, rt, id)
				rt.Close()
				for _, list := range begun(db) {
					if !slices.Contains(had, list) && (name == "failFast" || number(t, list) > last) {
						t.Fatalf("%s began after the crash; begun before: %s", list, fmt.Sprint(had))
					}
				}
			}
		})
	}
}

// number returns the number of the block in the path of a list.
func number(t *testing.T, list string) int {
	t.Helper()
	var n int
	if _, err := fmt.Sscanf(list, "0#%d.", &n); err != nil {
		t.Fatalf("%s: %v", list, err)
	}
	return n
}
