package repair_test

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/runtime/internal/maintenance/repair"
	"github.com/sentinel-runtime/sentinel/runtime/internal/maintenance/statefolder"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/runtime/maintenance"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

func layout() repair.Layout {
	return repair.Layout{
		Runs: "runs", Results: "results", RunIndex: "index", Definitions: "definitions", Events: "events",
		RevisionKey: func(id sentinels.ID, n int) []byte { return fmt.Appendf(nil, "%s/%09d", id, n) },
		Marker: func(offset uint64) (store.Put, error) {
			return store.Put{Bucket: "events", Key: binary.BigEndian.AppendUint64(nil, offset), Value: []byte(`"marker"`)}, nil
		},
	}
}

func options(dir string) repair.Options {
	return repair.Options{Dir: dir, KeepRevisions: 3, Layout: layout(), Check: statefolder.Check}
}

// A folder is a state folder that a test writes without an engine.
type folder struct {
	dir string
	db  *store.DB
}

func newFolder(t *testing.T) *folder {
	t.Helper()
	f := &folder{dir: t.TempDir()}
	f.open(t)
	return f
}

func (f *folder) open(t *testing.T) {
	t.Helper()
	var err error
	if f.db, err = store.Open(t.Context(), f.dir, store.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.db.Close() })
}

func (f *folder) write(t *testing.T, b store.Batch) {
	t.Helper()
	if err := f.db.Enqueue(b).Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func (f *folder) put(t *testing.T, bucket, key, value string) {
	t.Helper()
	f.write(t, store.Batch{Puts: []store.Put{{Bucket: bucket, Key: []byte(key), Value: []byte(value)}}})
}

// add appends records to a run's journal, the first with number from.
func (f *folder) add(t *testing.T, run sentinels.RunID, from uint64, records ...*journal.Record) {
	t.Helper()
	var b store.Batch
	for i, rec := range records {
		rec.Time, rec.Elapsed = time.Now().UnixMicro(), int64(i)*1000
		raw, err := journal.Encode(rec)
		if err != nil {
			t.Fatal(err)
		}
		b.Appends = append(b.Appends, store.Append{Run: string(run), Seq: from + uint64(i), Record: raw})
	}
	f.write(t, b)
}

// repairFromSnapshot takes a snapshot, closes the folder and repairs it from that
// snapshot, so that every journal may be cut.
func (f *folder) repairFromSnapshot(t *testing.T) maintenance.RepairReport {
	t.Helper()
	s, err := f.db.Snapshot(t.Context(), store.SnapshotOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.db.Close(); err != nil {
		t.Fatal(err)
	}
	opt := options(f.dir)
	opt.From = filepath.Base(s.Path)
	report, err := repair.Run(t.Context(), opt)
	if err != nil {
		t.Fatal(err)
	}
	f.open(t)
	return report
}

func (f *folder) summary(t *testing.T, run sentinels.RunID) (all map[string]any) {
	t.Helper()
	raw, ok, err := f.db.Get("runs", []byte(run))
	if err != nil || !ok {
		t.Fatalf("summary of %s: %t, %v", run, ok, err)
	}
	if err := json.Unmarshal(raw, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

func newRun() sentinels.RunID { return sentinels.RunID(uuid.Must(uuid.NewV7()).String()) }

func begin(run sentinels.RunID, cursor uint64) *journal.Record {
	return &journal.Record{Kind: journal.RunStart, RunStart: &journal.RunStartBody{
		Sentinel: "s", Root: run, Workspace: "/w", Hash: "h", Revision: 4, EventCursor: cursor,
		Definition: journal.Value{JSON: json.RawMessage(`{"id":"s"}`)}}}
}

func iteration(n int) *journal.Record {
	return &journal.Record{Kind: journal.IterationStart, IterationStart: &journal.IterationStartBody{Iteration: n, Hash: "h"}}
}

func iterationEnd(n int) *journal.Record {
	return &journal.Record{Kind: journal.IterationEnd, IterationEnd: &journal.IterationEndBody{Iteration: n, Hash: "h"}}
}

// A run that has not ended is paused, its summary follows from the journal, and
// the fields that a repair does not know stay.
func TestPauses(t *testing.T) {
	f, run := newFolder(t), newRun()
	f.add(t, run, 1, begin(run, 0), iteration(1), iterationEnd(1), iteration(2))
	f.put(t, "runs", string(run), `{"id":"`+string(run)+`","sentinel":"s","status":"waiting","decisions":[{"call":"1!1"}],"limit":"x","iteration":1,"usage":{"calls":7},"crashes":{"1":{"count":2}}}`)
	report := f.repairFromSnapshot(t)
	if d := cmp.Diff(maintenance.RepairedRuns{FromSnapshot: []sentinels.RunID{run}, Paused: []sentinels.RunID{run}}, report.Runs); d != "" {
		t.Error(d)
	}
	got := f.summary(t, run)
	for field, want := range map[string]any{
		"status": "paused", "decisions": nil, "limit": "", "iteration": 2.0, "snapshot": 3.0, "usage": map[string]any{"calls": 7.0}, "crashes": map[string]any{"1": map[string]any{"count": 2.0}},
	} {
		if d := cmp.Diff(want, got[field]); d != "" {
			t.Errorf("%s: %s", field, d)
		}
	}
	var last *journal.Record
	if err := f.db.Journal(string(run), 5, func(_ uint64, raw []byte) (err error) {
		last, err = journal.Decode(raw)
		return err
	}); err != nil || last == nil || last.Status == nil || last.Status.Status != sentinels.StatusPaused || last.Status.Reason == "" {
		t.Errorf("newest record %+v, %v", last, err)
	}
}

// What a run is follows from its journal: without a summary, with one that is
// older than the end, and without a journal to continue from.
func TestSummaries(t *testing.T) {
	f := newFolder(t)
	rebuilt, odd, ended, lost, over := newRun(), newRun(), newRun(), newRun(), newRun()
	f.add(t, rebuilt, 1, begin(rebuilt, 0), iteration(1))
	f.add(t, odd, 1, begin(odd, 0), iteration(1))
	f.put(t, "runs", string(odd), `{"id":"`+string(over)+`"}`) // of another run
	f.add(t, ended, 1, begin(ended, 0), &journal.Record{Kind: journal.RunEnd, RunEnd: &journal.RunEndBody{Status: sentinels.StatusCompleted}})
	for _, run := range []sentinels.RunID{ended, lost} {
		f.put(t, "runs", string(run), `{"id":"`+string(run)+`","status":"running"}`)
	}
	f.put(t, "runs", string(over), `{"id":"`+string(over)+`","status":"stopped"}`)
	report := f.repairFromSnapshot(t)
	want := maintenance.RepairedRuns{
		Whole: 1, FromSnapshot: []sentinels.RunID{rebuilt, odd, ended}, Rebuilt: []sentinels.RunID{rebuilt, odd}, Lost: []sentinels.RunID{lost}, Paused: []sentinels.RunID{rebuilt, odd},
	}
	if d := cmp.Diff(want, report.Runs); d != "" {
		t.Error(d)
	}
	for run, status := range map[sentinels.RunID]string{rebuilt: "paused", odd: "paused", ended: "completed", lost: "failed", over: "stopped"} {
		if got := f.summary(t, run)["status"]; got != status {
			t.Errorf("%s, want %s", got, status)
		}
	}
	got := f.summary(t, rebuilt)
	if got["sentinel"] != "s" || got["workspace"] != "/w" || got["root"] != string(rebuilt) || got["revision"] != 4.0 || got["iteration"] != 1.0 {
		t.Errorf("rebuilt: %v", got)
	}
}

// A journal is kept up to the record that does not fit, and one with a hole only if
// an iteration has ended since.
func TestJournals(t *testing.T) {
	f := newFolder(t)
	hole, trimmed, misfit := newRun(), newRun(), newRun()
	for _, run := range []sentinels.RunID{hole, trimmed} {
		f.add(t, run, 1, begin(run, 0), iteration(1), iterationEnd(1), iteration(2), iterationEnd(2))
	}
	f.write(t, store.Batch{Trims: []store.Trim{{Run: string(hole), From: 2, To: 3}, {Run: string(trimmed), From: 2, To: 3}}})
	f.write(t, store.Batch{Trims: []store.Trim{{Run: string(hole), From: 5, To: 5}}})
	// The end of a call that has no start.
	f.add(t, misfit, 1, begin(misfit, 0), iteration(1), &journal.Record{
		Kind: journal.CallEnd, Path: "1", Attempts: []int{1}, CallEnd: &journal.CallEndBody{Seq: 1, EventSeq: 3},
	})
	report := f.repairFromSnapshot(t)
	if d := cmp.Diff([]sentinels.RunID{trimmed, misfit}, report.Runs.Paused); d != "" {
		t.Errorf("paused: %s", d)
	}
	if d := cmp.Diff([]sentinels.RunID{hole}, report.Runs.Lost); d != "" {
		// It has no summary, so one is made and the run is failed.
		t.Errorf("lost: %s", d)
	}
	if got := f.summary(t, trimmed); got["snapshot"] != 5.0 || got["iteration"] != 2.0 {
		t.Errorf("trimmed: %v", got)
	}
	if seq, _, err := f.db.LastSeq(string(misfit)); err != nil || seq != 3 {
		t.Errorf("misfit: %d records, %v; want the two that fit and the pause", seq, err)
	}
}

// What is missing is reported, and the event log continues after every offset that
// a run knows.
func TestMissing(t *testing.T) {
	f, run := newFolder(t), newRun()
	f.add(t, run, 1, begin(run, 9))
	for _, offset := range []uint64{2, 3, 5} {
		f.write(t, store.Batch{Puts: []store.Put{{Bucket: "events", Key: binary.BigEndian.AppendUint64(nil, offset), Value: []byte("{}")}}})
	}
	f.put(t, "definitions", "d", `{"id":"d","revision":5}`)
	f.put(t, "definitions", "d/000000004", `{"id":"d","revision":4}`)
	digest := strings.Repeat("ab", 32)
	f.put(t, "results", string(run), `{"b":"`+digest+`"}`)
	f.put(t, "index", "version", "1")
	report := f.repairFromSnapshot(t)
	if d := cmp.Diff([]string{"d/000000003", "d/000000005"}, report.Revisions); d != "" {
		t.Errorf("revisions: %s", d)
	}
	if d := cmp.Diff([]string{digest}, report.Blobs); d != "" || report.Events != 1 {
		t.Errorf("%d events, blobs: %s", report.Events, d)
	}
	if _, ok, err := f.db.Get("events", binary.BigEndian.AppendUint64(nil, 9)); !ok || err != nil {
		t.Errorf("no event at offset 9: %v", err)
	}
	if _, ok, err := f.db.Get("index", []byte("version")); ok || err != nil {
		t.Errorf("the index is kept: %v", err)
	}
}

// A sound store is left alone, a missing or held one refused, and a result that
// does not pass the check replaces nothing.
func TestRefuses(t *testing.T) {
	f := newFolder(t)
	f.put(t, "runs", "x", "{}")
	if _, err := repair.Run(t.Context(), options(f.dir)); !errors.Is(err, statefolder.ErrHeld) {
		t.Errorf("held: %v", err)
	}
	if _, err := repair.Run(t.Context(), options(t.TempDir())); abi.CodeOf(err) != abi.NotFound {
		t.Errorf("missing: %v", err)
	}
	s, err := f.db.Snapshot(t.Context(), store.SnapshotOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.db.Close(); err != nil {
		t.Fatal(err)
	}
	if report, err := repair.Run(t.Context(), options(f.dir)); err != nil || !report.Sound {
		t.Errorf("sound: %+v, %v", report, err)
	}
	opt, bad := options(f.dir), errors.New("bad result")
	opt.From, opt.Check = s.Path, func(string) error { return bad }
	report, err := repair.Run(t.Context(), opt)
	if !errors.Is(err, bad) || report.Kept != "" {
		t.Errorf("%+v, %v", report, err)
	}
	left, _ := filepath.Glob(filepath.Join(f.dir, "*"))
	for _, name := range left {
		if base := filepath.Base(name); base == "repairing" || strings.HasPrefix(base, "store.db.") {
			t.Errorf("left: %s", base)
		}
	}
	if _, err := os.Stat(filepath.Join(f.dir, "store.db")); err != nil {
		t.Error(err)
	}
}
