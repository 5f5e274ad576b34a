package runtime_test

import (
	"encoding/json"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers/standard"
)

// The first run that completes after one that failed, and the first of firings that are skipped in a
// row, are events, and their data is what the schema says.
func TestRecoveredAndSkippedEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := open(t, newFakeHost(), store.NewMemory(), runtime.Options{Triggers: standard.Set()})
		defer rt.Close()
		for _, src := range []string{
			`{"id":"job","name":"j","loop":{"type":"once"},"steps":[{"type":"call","command":"world/none","condition":"$event.data.ok !== true"}],"trigger":{"type":"event","event":"go"}}`,
			`{"id":"busy","name":"b","loop":{"type":"once"},"steps":[{"type":"pause","event":"never"}],"trigger":{"type":"event","event":"knock"}}`,
			`{"id":"watch","name":"w","loop":{"type":"once"},"steps":[],"concurrency":"parallel","trigger":[{"type":"event","event":"sentinel:*:recovered"},{"type":"event","event":"sentinel:*:skipped"}]}`,
		} {
			if _, err := rt.Save(t.Context(), decode(t, rt, src), runtime.AnyRevision); err != nil {
				t.Fatal(err)
			}
		}
		if err := rt.Arm(t.Context()); err != nil {
			t.Fatal(err)
		}
		emit := func(name, data string) {
			t.Helper()
			if _, err := rt.Emit(t.Context(), sentinels.Event{Name: name, Data: json.RawMessage(data)}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		for _, ok := range []string{"true", "false", "false", "true", "true", "false", "true"} {
			emit("go", `{"ok": `+ok+`}`)
		}
		for range 4 {
			emit("knock", "{}")
		}
		list, err := rt.Runs(runtime.RunFilter{Sentinel: "watch"})
		if err != nil {
			t.Fatal(err)
		}
		jobs, err := rt.Runs(runtime.RunFilter{Sentinel: "job"})
		if err != nil || len(jobs) != 7 {
			t.Fatal(jobs, err)
		}
		slices.Reverse(jobs) // the oldest first
		var names []string
		for _, r := range slices.Backward(list) {
			e, err := runtime.StartEvent(rt, r.ID)
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, e.Name)
			var schema struct{ Properties map[string]any }
			var members map[string]any
			if err := json.Unmarshal(sentinels.RunEventSchema(e.Name), &schema); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(e.Data, &members); err != nil {
				t.Fatal(err)
			}
			for name := range members {
				if schema.Properties[name] == nil {
					t.Errorf("the schema of %s has no %s", e.Name, name)
				}
			}
			if len(members) != len(schema.Properties) {
				t.Errorf("%s: %s", e.Name, e.Data)
			}
			if i := len(names); e.Name == "sentinel:job:recovered" && i < 3 {
				at := []int{3, 6}[i-1]
				if members["run"] != string(jobs[at].ID) || members["after"] != string(jobs[at-1].ID) || members["status"] != "recovered" {
					t.Errorf("%s: %s", e.Name, e.Data)
				}
			}
		}
		if want := []string{"sentinel:job:recovered", "sentinel:job:recovered", "sentinel:busy:skipped"}; !slices.Equal(names, want) {
			t.Errorf("events %q, want %q", names, want)
		}
	})
}
