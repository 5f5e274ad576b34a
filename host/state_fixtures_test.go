package host_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/host/internal/fixturetest"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

const fixtures = "testdata/state"

// TestStateFixtures opens the state folder of each earlier version and format: its
// runs, waits, tickets, documents, large values and outputs are there, what waits
// continues, and a store of an earlier format is copied before it is migrated.
func TestStateFixtures(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(fixtures, "*.tar.gz"))
	if err != nil || len(files) < 2 {
		t.Fatalf("fixtures %v, %v", files, err)
	}
	current := 0
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".tar.gz"), func(t *testing.T) {
			project := t.TempDir()
			fixturetest.Unpack(t, file, project)
			dir := filepath.Join(project, ".sentinel")
			state := filepath.Join(dir, "state")
			if err := runtime.CheckStore(state); err != nil {
				t.Fatalf("check: %v", err)
			}
			var log bytes.Buffer
			h := open(t, host.Options{Dir: dir, Workspace: project, Logger: slog.New(slog.NewTextHandler(&log, nil))})
			if m := h.Runtime().Migration(); m == nil {
				current++
			} else if _, err := os.Stat(m.Snapshot); err != nil || !strings.Contains(log.String(), m.Snapshot) {
				t.Errorf("the snapshot before the migration: %v; log\n%s", err, &log)
			}
			if _, err := h.Runtime().ResumeAll(t.Context(), runtime.ResumeOptions{By: "server"}); err != nil {
				t.Fatal(err)
			}
			moveFixture(t, h, project)
			checkFixture(t, h)
		})
	}
	if current == 0 {
		t.Errorf("no fixture of the format %d of this program: make one with %s/make.sh", runtime.StoreFormat, fixtures)
	}
}

// moveFixture moves the runs of a fixture into a project. Before format 2 all workspaces are absolute,
// and that of the fixture does not exist here. One that is paused is not moved: that resumes it.
func moveFixture(t *testing.T, h *host.Host, project string) {
	t.Helper()
	list, err := h.Runtime().Runs(runtime.RunFilter{})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range list {
		if r.Status.Final() || r.Live || r.Status == sentinels.StatusPaused {
			continue
		}
		if err := h.Runtime().Resume(t.Context(), r.ID, runtime.ResumeOptions{By: "server"}); err == nil || !strings.Contains(err.Error(), "is gone") {
			t.Errorf("resume in %s: %v", r.Workspace, err)
		}
		if err := h.Runtime().Resume(t.Context(), r.ID, runtime.ResumeOptions{By: "server", Workspace: project}); err != nil {
			t.Error(err)
		}
	}
}

// checkFixture checks what make.sh has put into a fixture.
func checkFixture(t *testing.T, h *host.Host) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	rt := h.Runtime()
	list, err := rt.Runs(runtime.RunFilter{})
	if err != nil {
		t.Fatal(err)
	}
	runs := map[sentinels.ID]runtime.RunInfo{}
	for _, r := range list {
		runs[r.Sentinel] = r
	}
	if len(list) != 6 || len(runs) != 6 {
		t.Fatalf("%d runs of %d sentinels, want 6", len(list), len(runs))
	}
	if s := runs["done"].Status; s != sentinels.StatusCompleted {
		t.Errorf("done is %s", s)
	}
	if s := runs["broken"].Status; s != sentinels.StatusFailed {
		t.Errorf("broken is %s", s)
	}
	if s := runs["held"].Status; s != sentinels.StatusPaused {
		t.Errorf("held is %s", s)
	}
	// Large values are blobs.
	vars, err := rt.Variables(runs["done"].ID)
	if err != nil || len(vars["big"]) < 100_000 {
		t.Errorf("the large value has %d bytes, %v", len(vars["big"]), err)
	}
	// What waited continues.
	if asked := decide(t, h, runs["ask"].ID, "approve"); len(asked) != 1 {
		t.Errorf("asked %q", asked)
	}
	if _, err := rt.Emit(t.Context(), sentinels.Event{Name: "fixture:go"}); err != nil {
		t.Errorf("emit: %v", err)
	}
	for _, name := range []sentinels.ID{"ask", "event"} {
		r, err := rt.Wait(ctx, runs[name].ID)
		if err != nil || r.Status != sentinels.StatusCompleted || string(r.Variables["answer"]) == "" {
			t.Errorf("%s ended %s with %s, %v", name, r.Status, r.Variables, err)
		}
	}
	if r, err := rt.Wait(ctx, runs["cut"].ID); err != nil || r.Status != sentinels.StatusFailed {
		t.Errorf("the interrupted step ended %s, %v", r.Status, err)
	}
	for _, id := range []sentinels.RunID{runs["done"].ID, runs["cut"].ID} {
		if tr, err := rt.Trace(id); err != nil || len(tr.Iterations) == 0 {
			t.Errorf("trace of %s: %v", id, err)
		}
	}
	// Documents, tickets and events.
	for _, c := range []struct {
		command, params string
		want            []string
	}{
		{"ticket/list", `{}`, []string{"First ticket", "Second ticket"}},
		{"data/list", `{"collection": "notes"}`, []string{"a note"}},
		{"sentinel/revisions", `{"sentinelId": "done"}`, []string{`"revision":1`}},
		{"logs/read", fmt.Sprintf(`{"run": %q, "limit": 1}`, runs["done"].ID), []string{`"text":"printed\n"`, `"total":5`, `"dropped":0`}},
		{"logs/read", fmt.Sprintf(`{"run": %q}`, runs["broken"].ID), []string{`"text":"no\n"`, `"stream":"stderr"`}},
		{"logs/read", fmt.Sprintf(`{"run": %q}`, runs["cut"].ID), []string{`"text":"begun"`, "the host stopped while this ran"}},
	} {
		out, err := h.Call(t.Context(), c.command, json.RawMessage(c.params))
		for _, want := range c.want {
			if err != nil || !strings.Contains(strings.ReplaceAll(string(out), " ", ""), strings.ReplaceAll(want, " ", "")) {
				t.Errorf("%s: %q is not in %s, %v", c.command, want, out, err)
			}
		}
	}
	events, err := rt.Events("fixture:*", 10)
	if err != nil || !slices.ContainsFunc(events, func(e sentinels.Event) bool { return e.Name == "fixture:done" }) {
		t.Errorf("events %v, %v", events, err)
	}
}
