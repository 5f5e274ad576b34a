package runtime_test

import (
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers/standard"
)

// A schedule whose run does not come, here because it is paused, fires those that wait for the
// event, also when the host comes back only later.
func TestOverdueEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const nightly = `{"id":"nightly","name":"n","loop":{"type":"once"},"steps":[],"trigger":{"type":"schedule","cronExpression":"0 * * * *","timeZone":"UTC","expectWithinMs":600000,"expect":"completed"}}`
		const alarm = `{"id":"alarm","name":"a","loop":{"type":"once"},"steps":[],"trigger":{"type":"event","event":"sentinel:*:overdue"}}`
		db := store.NewMemory()
		opt := runtime.Options{Triggers: standard.Set()}
		rt := open(t, newFakeHost(), db, opt)
		for _, src := range []string{nightly, alarm} {
			if _, err := rt.Save(t.Context(), decode(t, rt, src), runtime.AnyRevision); err != nil {
				t.Fatal(err)
			}
		}
		alarms := func() []runtime.RunInfo {
			t.Helper()
			list, err := rt.Runs(runtime.RunFilter{Sentinel: "alarm"})
			if err != nil {
				t.Fatal(err)
			}
			return list
		}
		if err := rt.Arm(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(75 * time.Minute)
		synctest.Wait()
		if n := len(alarms()); n != 0 {
			t.Fatalf("%d alarms although the run has completed", n)
		}
		if err := rt.PauseTriggers(t.Context(), "nightly", runtime.TriggerPause{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		list := alarms()
		if len(list) != 1 {
			t.Fatalf("%d alarms, want 1", len(list))
		}
		e, err := runtime.StartEvent(rt, list[0].ID)
		if err != nil {
			t.Fatal(err)
		}
		var data struct {
			Sentinel sentinels.ID
			Status   string
			Planned  time.Time
			Expect   string
			Reason   string
		}
		if err := json.Unmarshal(e.Data, &data); err != nil {
			t.Fatal(err)
		}
		var schema struct{ Properties map[string]any }
		if err := json.Unmarshal(sentinels.RunEventSchema(e.Name), &schema); err != nil {
			t.Fatal(err)
		}
		var members map[string]any
		if err := json.Unmarshal(e.Data, &members); err != nil {
			t.Fatal(err)
		}
		for name := range members {
			if schema.Properties[name] == nil {
				t.Errorf("the schema has no %s", name)
			}
		}
		if data.Sentinel != "nightly" || data.Status != "overdue" || data.Planned.Hour() != 2 || data.Expect != "completed" || data.Reason != "the triggers are paused" {
			t.Errorf("%s %s", e.Name, e.Data)
		}

		left := db.Snapshot()
		rt.Close()
		time.Sleep(5 * time.Hour)
		rt = open(t, newFakeHost(), left, opt)
		if err := rt.Arm(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if n := len(alarms()); n != 2 {
			t.Errorf("%d alarms after five hours without a host, want 2", n)
		}
		rt.Close()
	})
}

// TestOverdueBesideUnstoredRun: a run of an agent's definition that is not stored is not the one that the schedule of the
// stored sentinel with its id expects; its author chose the id. One of a person is, clause T4.10.
func TestOverdueBesideUnstoredRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const nightly = `{"id":"nightly","name":"n","loop":{"type":"once"},"steps":[],"trigger":{"type":"schedule","cronExpression":"0 * * * *","timeZone":"UTC","expectWithinMs":600000}}`
		const alarm = `{"id":"alarm","name":"a","loop":{"type":"once"},"steps":[],"trigger":{"type":"event","event":"sentinel:*:overdue"}}`
		for _, c := range []struct {
			name    string
			start   runtime.StartOptions
			overdue bool
		}{
			{"of an agent's definition", runtime.StartOptions{As: "agent:ci"}, true},
			{"of a person's file", runtime.StartOptions{}, false},
			{"of the stored definition", runtime.StartOptions{Revision: 1}, false},
		} {
			rt := open(t, newFakeHost(), store.NewMemory(), runtime.Options{Triggers: standard.Set()})
			for _, src := range []string{nightly, alarm} {
				if _, err := rt.Save(t.Context(), decode(t, rt, src), runtime.AnyRevision); err != nil {
					t.Fatal(err)
				}
			}
			if err := rt.Arm(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := rt.PauseTriggers(t.Context(), "nightly", runtime.TriggerPause{}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Until(time.Now().Truncate(time.Hour).Add(time.Hour + time.Minute))) // within the time of the next run
			if _, err := rt.Start(t.Context(), decode(t, rt, nightly), c.start); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			time.Sleep(20 * time.Minute)
			synctest.Wait()
			alarms, err := rt.Runs(runtime.RunFilter{Sentinel: "alarm"})
			if err != nil {
				t.Fatal(err)
			}
			if overdue := len(alarms) > 0; overdue != c.overdue {
				t.Errorf("with a run %s: overdue %t, want %t", c.name, overdue, c.overdue)
			}
			rt.Close()
		}
	})
}
