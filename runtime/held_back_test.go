package runtime_test

import (
	"errors"
	"testing"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

const parentOfWait = `{"name":"top","steps":[{"type":"sentinel","definition":{"name":"kid","steps":[{"type":"wait","event":"never"}]}}]}`

// childOf returns the child of a run as soon as it waits.
func childOf(t *testing.T, rt *runtime.Runtime, top sentinels.RunID) (kid sentinels.RunID) {
	t.Helper()
	until(t, "the child", func() bool {
		runs, err := rt.Runs(runtime.RunFilter{Parent: top})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range runs {
			kid = r.ID
		}
		return kid != ""
	})
	return kid
}

// TestPauseThatComesDuringAResumeStays: a resume that may not end the pause of a person ends none, of the run itself, of
// one below it, and of one that no process executes, also if the pause comes after the resume has looked.
func TestPauseThatComesDuringAResumeStays(t *testing.T) {
	errPerson := errors.New("a person paused it")
	pause := func(t *testing.T, rt *runtime.Runtime, id sentinels.RunID, by string, tree bool) {
		t.Helper()
		if err := rt.PauseWith(within(t), id, runtime.PauseOptions{By: by, Over: true, Tree: tree}); err != nil {
			t.Fatal(err)
		}
	}
	// resume resumes top for the agent. The person pauses id when the agent's pause number n is looked at.
	resume := func(t *testing.T, rt *runtime.Runtime, top, id sentinels.RunID, n int) error {
		return rt.Resume(within(t), top, runtime.ResumeOptions{By: "agent", Tree: true, Over: func(by string) error {
			if by != "agent" {
				return errPerson
			}
			if n--; n == 0 {
				pause(t, rt, id, "user", true)
			}
			return nil
		}})
	}
	check := func(t *testing.T, rt *runtime.Runtime, id sentinels.RunID, by string) {
		t.Helper()
		if info := status(t, rt, id); info.PausedBy() != by {
			t.Errorf("%s is %s, %q, want paused by %q", info.Sentinel, info.Status, info.Reason, by)
		}
	}
	t.Run("itself", func(t *testing.T) {
		rt := openBuiltin(t, newRecordingStore(), runtime.Options{Commands: &scriptedHost{}})
		id := start(t, rt, `{"name":"p","steps":[{"type":"wait","event":"never"}]}`, runtime.StartOptions{})
		pause(t, rt, id, "agent", true)
		if err := resume(t, rt, id, id, 1); !errors.Is(err, errPerson) {
			t.Errorf("the resume: %v", err)
		}
		check(t, rt, id, "user")
	})
	t.Run("below", func(t *testing.T) {
		rt := openBuiltin(t, newRecordingStore(), runtime.Options{Commands: &scriptedHost{}})
		top := start(t, rt, parentOfWait, runtime.StartOptions{})
		kid := childOf(t, rt, top)
		pause(t, rt, top, "agent", true)
		// The run above is looked at before and at its resume, then the child.
		if err := resume(t, rt, top, kid, 3); err != nil {
			t.Errorf("the resume: %v", err)
		}
		check(t, rt, top, "")
		check(t, rt, kid, "user")
	})
	t.Run("stored", func(t *testing.T) {
		f := newRecordingStore()
		rt := openBuiltin(t, f, runtime.Options{Commands: &scriptedHost{}})
		top := start(t, rt, parentOfWait, runtime.StartOptions{})
		kid := childOf(t, rt, top)
		pause(t, rt, top, "agent", true)
		f = crashed(t, f, rt)
		rt = openBuiltin(t, f, runtime.Options{Commands: &scriptedHost{}})
		pause(t, rt, top, "user", true)
		if err := resume(t, rt, top, top, 1); !errors.Is(err, errPerson) {
			t.Errorf("the resume: %v", err)
		}
		check(t, rt, top, "user")
		check(t, rt, kid, "user")
	})
}

// TestEndKeepsWhoHeldTheRunBack: the summary and the journal of a run that ended have who stopped it, who had paused it
// then, and what a person was asked about its steps, whether a process executed it or not.
func TestEndKeepsWhoHeldTheRunBack(t *testing.T) {
	type ended struct {
		by, pause string
		question  runtime.DecisionKind
	}
	check := func(t *testing.T, f *recordingStore, rt *runtime.Runtime, id sentinels.RunID, want ended) {
		t.Helper()
		info := status(t, rt, id)
		if got := (ended{info.EndedBy, info.EndedPause, info.EndedQuestion}); !info.Status.Final() || got != want {
			t.Errorf("%s, the summary has %+v, want %+v", info.Status, got, want)
		}
		if n := f.count(t, func(r *journal.Record) bool {
			return r.RunEnd != nil && ended{r.RunEnd.By, r.RunEnd.PausedBy, r.RunEnd.Asked} == want
		}); n != 1 {
			t.Errorf("the journal has %d ends with %+v, want 1", n, want)
		}
	}
	for name, finally := range map[string]string{"": "", " with finally": `,"finally":[{"command":"test/echo"}]`} {
		for _, stored := range []string{"active", "stored", "without its workspace"} {
			t.Run(stored+name, func(t *testing.T) {
				f := newRecordingStore()
				rt := openBuiltin(t, f, runtime.Options{Commands: &scriptedHost{}})
				id := start(t, rt, `{"name":"p","steps":[{"type":"wait","event":"never"}]`+finally+`}`, runtime.StartOptions{Workspace: "/w"})
				if err := rt.Pause(within(t), id, "ann"); err != nil {
					t.Fatal(err)
				}
				if stored != "active" {
					f = crashed(t, f, rt)
					rt = openBuiltin(t, f, runtime.Options{Commands: &scriptedHost{}, WorkspaceExists: func(string) bool { return stored == "stored" }})
				}
				if err := rt.StopWith(within(t), id, runtime.StopOptions{By: "bob"}); err != nil {
					t.Fatal(err)
				}
				check(t, f, rt, id, ended{by: "bob", pause: "ann"})
			})
		}
	}
	for name, again := range map[string]bool{"quarantined": true, "quarantined, stored": false} {
		t.Run(name, func(t *testing.T) {
			f, id := quarantined(t)
			rt, _ := life(t, f)
			resumeAll(t, rt)
			untilStatus(t, rt, id, sentinels.StatusQuarantined)
			if !again {
				f = crashed(t, f, rt)
				rt, _ = life(t, f)
			}
			if err := rt.Stop(within(t), id); err != nil {
				t.Fatal(err)
			}
			check(t, f, rt, id, ended{question: runtime.DecisionQuarantine})
		})
	}
	t.Run("decided", func(t *testing.T) {
		f, id := quarantined(t)
		rt, _ := life(t, f)
		resumeAll(t, rt)
		untilStatus(t, rt, id, sentinels.StatusQuarantined)
		if err := rt.Decide(within(t), id, runtime.Decision{Verdict: "fail", By: "ann"}); err != nil {
			t.Fatal(err)
		}
		wait(t, rt, id)
		check(t, f, rt, id, ended{by: "ann"})
	})
}
