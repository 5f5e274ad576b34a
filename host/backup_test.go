package host_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/host/ops/backup"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A backup that is taken while 30 runs execute has each of them as of one moment: with
// the large values that its records name, ready to continue in another folder.
func TestBackupWithRuns(t *testing.T) {
	h := open(t, host.Options{})
	def, problems := h.Runtime().Decode([]byte(`{"id": "busy", "timeoutMs": 600000, "variables": {"n": 0}, "loop": {"type": "continuous", "intervalMs": 100}, "steps": [
		{"type": "set", "values": {"n": {"expr": "$n + 1"}, "big": {"expr": "'x'.repeat(70000) + $n"}}},
		{"type": "emit", "event": "busy:step", "data": "$n"}
	]}`), "busy.json")
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	var ids []sentinels.RunID
	for range 30 {
		id, err := h.Runtime().Start(t.Context(), def, runtime.StartOptions{Workspace: h.Workspace()})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	var dirs []string
	for range 2 {
		// Between two backups all runs make progress, and retention removes what it can.
		var pruning sync.WaitGroup
		pruning.Go(func() {
			if _, err := h.Runtime().Prune(t.Context(), runtime.Retention{MaxRuns: 1}); err != nil {
				t.Error(err)
			}
		})
		for after := h.Runtime().EventPosition("busy:step"); h.Runtime().EventPosition("busy:step") < after+30; {
			if _, _, _, err := h.Runtime().NextEvent(t.Context(), "busy:step", h.Runtime().EventPosition("busy:step")); err != nil {
				t.Fatal(err)
			}
		}
		var archive bytes.Buffer
		if err := h.Backup(t.Context(), &archive, false, func() {}); err != nil {
			t.Fatal(err)
		}
		pruning.Wait()
		project := t.TempDir()
		dir := filepath.Join(project, ".sentinel")
		if _, err := backup.Restore(t.Context(), &archive, backup.Target{Dir: dir, Project: project}); err != nil {
			t.Fatal(err)
		}
		dirs = append(dirs, dir)
	}
	snapshots, err := runtime.Snapshots(h.State())
	if err != nil || len(snapshots) > 0 {
		t.Errorf("snapshots are left: %v, %v", snapshots, err)
	}
	if err := h.Close(); err != nil { // its runs would compute beside those of the copies
		t.Fatal(err)
	}
	for i, dir := range dirs {
		checkRestored(t, fmt.Sprintf("backup %d", i), dir, ids)
	}
}

// checkRestored opens a restored folder and lets each run finish an iteration.
func checkRestored(t *testing.T, what, dir string, ids []sentinels.RunID) {
	t.Helper()
	next := open(t, host.Options{Dir: dir, Workspace: filepath.Dir(dir)})
	if _, err := next.Runtime().ResumeAll(t.Context(), runtime.ResumeOptions{By: "server"}); err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		vars, err := next.Runtime().Variables(id)
		if err != nil || string(vars["n"]) != "0" && len(vars["big"]) < 70_000 {
			t.Errorf("%s: run %s: variables of %d bytes, %v", what, id, len(vars["big"]), err)
		}
		if err := next.Runtime().Stop(t.Context(), id); err != nil {
			t.Errorf("%s: run %s: %v", what, id, err)
		}
	}
	for _, id := range ids {
		if r, err := next.Runtime().Wait(t.Context(), id); err != nil || r.Status != sentinels.StatusStopped || r.Iterations == 0 {
			t.Errorf("%s: run %s is %s after %d iterations: %s, %v", what, id, r.Status, r.Iterations, r.Error, err)
		}
	}
	if err := next.Close(); err != nil {
		t.Error(err)
	}
}

// A damaged store is not backed up: the copy would be damaged too. The error says what to
// do, and nothing was written.
func TestBackupOfDamagedStore(t *testing.T) {
	h := open(t, host.Options{})
	res := run(t, h, `{"id": "a", "steps": [{"type": "set", "values": {"text": "the value that is damaged"}}]}`, h.Workspace())
	if res.Status != sentinels.StatusCompleted {
		t.Fatal(res)
	}
	file := filepath.Join(h.State(), "store.db")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	for at := 0; ; at++ { // also in pages that are free now
		i := bytes.Index(text[at:], []byte("that is damaged"))
		if i < 0 {
			break
		}
		at += i
		if _, err := f.WriteAt([]byte("THAT"), int64(at)); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	var archive bytes.Buffer
	begun := false
	err = h.Backup(t.Context(), &archive, false, func() { begun = true })
	if !errors.Is(err, runtime.ErrDamaged) || begun || archive.Len() > 0 || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("begun %v, %d bytes, %v", begun, archive.Len(), err)
	}
}
