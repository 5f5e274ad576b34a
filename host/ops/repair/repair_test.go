package repair_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/ops/repair"
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
	holds(t, told(t, r), "is damaged in 1 places", "meta pages", "fills in", "trial", "51 from the snapshot")
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

// Of a value with a flipped bit the snapshot's is taken, and the report says so.
func TestRecoverAFlippedValue(t *testing.T) {
	state := fill(t)
	file := filepath.Join(state, "store.db")
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text := []byte(`"id":"17"`)
	for at := bytes.Index(b, text); at >= 0; at = bytes.Index(b, text) {
		b[at+6] ^= 1
	}
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := runtime.Open(t.Context(), runtime.Options{Dir: state}); !errors.Is(err, runtime.ErrDamaged) || !strings.Contains(err.Error(), `table "events" key`) {
		t.Errorf("open: %v", err)
	}
	r, err := repair.Recover(t.Context(), repair.Options{State: state})
	if err != nil {
		t.Fatal(err)
	}
	holds(t, told(t, r), "is damaged in 1 places", `table "events" key`, "99 kept, 1 from the snapshot, 1 unreadable")
	rt, err := runtime.Open(t.Context(), runtime.Options{Dir: state})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	events, err := rt.Events("", 1000)
	if err != nil || len(events) != 100 {
		t.Fatalf("%d events, %v", len(events), err)
	}
	for i, e := range events {
		if e.ID != fmt.Sprint(i) {
			t.Errorf("event %d has the id %q", i, e.ID)
		}
	}
}

// A store that is gone, or empty, is not replaced by a new one: its newest
// snapshot is, and without one nothing is.
func TestRecoverAMissingStore(t *testing.T) {
	for _, empty := range []bool{false, true} {
		t.Run(fmt.Sprintf("empty %t", empty), func(t *testing.T) {
			state := fill(t)
			file := filepath.Join(state, "store.db")
			lose := func() {
				t.Helper()
				if err := os.Remove(file); err != nil {
					t.Fatal(err)
				}
				if !empty {
					return
				}
				if err := os.WriteFile(file, nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			lose()
			if _, err := runtime.Open(t.Context(), runtime.Options{Dir: state}); !errors.Is(err, runtime.ErrDamaged) || !strings.Contains(abi.As(err).Hint, "sentinel recover") {
				t.Fatalf("open: %v", err)
			}
			r, err := repair.Recover(t.Context(), repair.Options{State: state})
			if err != nil {
				t.Fatal(err)
			}
			holds(t, told(t, r), "blobs", "fills in", "51 from the snapshot", "in place again")
			lose()
			if err := os.RemoveAll(filepath.Join(state, "snapshots")); err != nil {
				t.Fatal(err)
			}
			_, err = repair.Recover(t.Context(), repair.Options{State: state})
			if e := abi.As(err); e == nil || e.Code != abi.NotFound || !strings.Contains(e.Hint, "store.db") {
				t.Errorf("without a snapshot: %v", err)
			}
		})
	}
}

// What fills in is of the same store. A snapshot of another one that was here is
// used only when it is asked for.
func TestRecoverPassesOverAnotherStore(t *testing.T) {
	older, younger := fill(t), fill(t)
	list, err := runtime.Snapshots(older)
	if err != nil || len(list) != 1 {
		t.Fatalf("%v, %v", list, err)
	}
	name := filepath.Base(list[0].Path)
	newest := strings.Replace(name, name[:4], "2099", 1)
	if err := os.Rename(list[0].Path, filepath.Join(younger, "snapshots", newest)); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(younger, "store.db"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(younger, "store.db"), bytes.ReplaceAll(b, []byte(`"id":"17"`), []byte(`"id":"16"`)), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := repair.Recover(t.Context(), repair.Options{State: younger, DryRun: true})
	if err != nil || r.Snapshot == nil || filepath.Base(r.Snapshot.Path) == newest {
		t.Fatalf("%+v, %v; want its own snapshot", r.Snapshot, err)
	}
	holds(t, told(t, r), newest, "another store")
	r, err = repair.Recover(t.Context(), repair.Options{State: younger, DryRun: true, From: newest})
	if err != nil || r.Snapshot == nil || filepath.Base(r.Snapshot.Path) != newest {
		t.Errorf("asked for: %+v, %v", r.Snapshot, err)
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
