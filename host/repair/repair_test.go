package repair_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/repair"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

func TestMain(m *testing.M) {
	runtime.ServeChild()
	os.Exit(m.Run())
}

// fill makes a state folder with events in it and a snapshot of the first half.
func fill(t *testing.T) (state string) {
	t.Helper()
	state = t.TempDir()
	rt, err := runtime.Open(t.Context(), runtime.Options{Dir: state})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		if _, err := rt.Emit(t.Context(), sentinels.Event{Name: "e", ID: fmt.Sprint(i)}); err != nil {
			t.Fatal(err)
		}
		if i == 50 {
			if _, err := rt.Snapshot(t.Context(), "hourly"); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := rt.Close(); err != nil {
		t.Fatal(err)
	}
	return state
}

func told(t *testing.T, r repair.Report) string {
	t.Helper()
	var b strings.Builder
	if err := r.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func holds(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q is missing from:\n%s", part, text)
		}
	}
}

func TestRecover(t *testing.T) {
	state := fill(t)
	r, err := repair.Recover(t.Context(), repair.Options{State: state})
	if err != nil {
		t.Fatal(err)
	}
	holds(t, told(t, r), "is sound", "Nothing was changed")

	// Without its heads nothing of the file can be read; the snapshot is all.
	file := filepath.Join(state, "store.db")
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	clear(b[:8192])
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if r, err = repair.Recover(t.Context(), repair.Options{State: state, DryRun: true}); err != nil {
		t.Fatal(err)
	}
	holds(t, told(t, r), "is damaged in 1 places", "head pages", "fills in", "trial", "51 from the snapshot")
	if r, err = repair.Recover(t.Context(), repair.Options{State: state}); err != nil {
		t.Fatal(err)
	}
	holds(t, told(t, r), "is kept as "+file+".damaged-")
	rt, err := runtime.Open(t.Context(), runtime.Options{Dir: state})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	if events, err := rt.Events("", 1000); err != nil || len(events) != 51 {
		t.Errorf("%d events, %v; the snapshot had 51", len(events), err)
	}
	if _, err := repair.Recover(t.Context(), repair.Options{State: state}); !errors.Is(err, runtime.ErrHeld) {
		t.Errorf("while it is open: %v", err)
	}
	if _, err := repair.Compact(t.Context(), state); !errors.Is(err, runtime.ErrHeld) {
		t.Errorf("compact while it is open: %v", err)
	}
}

func TestCompact(t *testing.T) {
	state := fill(t)
	done, err := repair.Compact(context.Background(), state)
	if err != nil || done.After == 0 || done.After > done.Before {
		t.Errorf("%+v, %v", done, err)
	}
	if _, err := repair.Compact(context.Background(), t.TempDir()); abi.CodeOf(err) != abi.NotFound {
		t.Errorf("nothing there: %v", err)
	}
}

// The text names ten of a kind and counts the rest.
func TestTextIsBounded(t *testing.T) {
	r := repair.Report{RepairReport: runtime.RepairReport{Damaged: 100, Store: "s", Blobs: []string{"lost"}}}
	for i := range 30 {
		r.Places = append(r.Places, fmt.Sprintf("place %d", i))
		r.Runs.Paused = append(r.Runs.Paused, sentinels.RunID(fmt.Sprintf("run%d", i)))
	}
	text := told(t, r)
	holds(t, text, "place 9", "and 90 more", "30 runs paused", "run9", "and 20 more", "sentinel resume RUN", "no sound snapshot", "1 large values are missing")
	if strings.Contains(text, "place 10") || strings.Contains(text, "run10") {
		t.Errorf("names more than ten:\n%s", text)
	}
}
