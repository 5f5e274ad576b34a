package runtime_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A status, with what there is to decide, can be seen only when its record is
// queued: a crash that leaves what a reader of the status writes leaves the status
// too.
func TestStatusIsSeenWhenItsRecordIsQueued(t *testing.T) {
	db := newRecordingStore()
	rt, _ := askingLife(t, db)
	var statuses []sentinels.Status
	db.onEnqueue(func(b store.Batch) {
		for _, a := range b.Appends {
			rec, err := journal.Decode(a.Record)
			if err != nil {
				t.Error(err)
				return
			}
			var next sentinels.Status
			switch {
			case rec.Status != nil:
				next = rec.Status.Status
			case rec.RunEnd != nil:
				next = rec.RunEnd.Status
			default:
				continue
			}
			info, err := rt.Status(sentinels.RunID(a.Run))
			if err != nil {
				t.Error(err)
				return
			}
			if info.Status == next {
				t.Errorf("status %s is seen before its record is queued", next)
			}
			if next == sentinels.StatusWaiting && info.Status == sentinels.StatusRunning && len(info.Decisions) > 0 {
				t.Errorf("%+v are seen before their record is queued", info.Decisions)
			}
			statuses = append(statuses, next)
		}
	})
	id := start(t, rt, `{"name":"s","steps":[{"type":"actask"}],"loop":{"type":"once"}}`, runtime.StartOptions{})
	untilStatus(t, rt, id, sentinels.StatusWaiting)
	if err := rt.Pause(within(t), id, "ann"); err != nil {
		t.Fatal(err)
	}
	if err := rt.Resume(within(t), id, runtime.ResumeOptions{}); err != nil {
		t.Fatal(err)
	}
	decide(t, rt, id, runtime.Decision{Verdict: "approve", By: "ann"})
	wait(t, rt, id)
	want := []sentinels.Status{
		sentinels.StatusWaiting, sentinels.StatusPaused, sentinels.StatusWaiting, sentinels.StatusRunning, sentinels.StatusCompleted,
	}
	if diff := cmp.Diff(want, statuses); diff != "" {
		t.Errorf("statuses (-want +got):\n%s", diff)
	}
}
