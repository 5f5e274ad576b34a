// Package repair rebuilds a damaged store, goes back to a snapshot, compacts a
// store, and reports in words what came of it.
//
// The rules of a repair are those of [runtime.Repair].
package repair

import (
	"context"
	"io"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/host/internal/termtext"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Options say what to repair.
type Options struct {
	// State is the state folder. Required.
	State string
	// From is a snapshot to go back to, a path or the name of a file in
	// State/snapshots. Default: salvage the store.
	From string
	// DryRun says what would come of it and replaces nothing. Default false.
	DryRun bool
}

// Report says what was done, what came from where, and what is missing.
type Report struct {
	runtime.RepairReport
}

// Recover rebuilds the store of a state folder that no process has open. With a
// sound store and no snapshot to go back to it does nothing and says so.
func Recover(ctx context.Context, opt Options) (Report, error) {
	r, err := runtime.Repair(ctx, runtime.RepairOptions{Dir: opt.State, From: opt.From, DryRun: opt.DryRun})
	return Report{r}, err
}

// Compact makes the store of a state folder as small as what it holds.
func Compact(ctx context.Context, state string) (runtime.Compacted, error) {
	return runtime.CompactStore(ctx, state)
}

// maxNames bounds how many of a kind the text names; the JSON form has all.
const maxNames = 10

// WriteText writes the report for people. File and run names are escaped.
func (r Report) WriteText(w io.Writer) error {
	t := &text{to: w}
	if r.Sound {
		t.line("The store %s is sound. Nothing was changed.", r.Store)
		return t.err
	}
	if r.Damaged > 0 {
		t.line("The store %s is damaged in %d places:", r.Store, r.Damaged)
		for _, place := range r.Places[:min(len(r.Places), maxNames)] {
			t.line("  %s", place)
		}
		t.rest(r.Damaged - min(len(r.Places), maxNames))
	}
	for _, s := range r.Unusable {
		t.line("A snapshot cannot be used: %s", s)
	}
	if r.Snapshot != nil {
		t.line("The snapshot of %s, %s, fills in what is lost.", r.Snapshot.Taken.Format(time.RFC3339), r.Snapshot.Path)
	} else {
		t.line("There is no sound snapshot, so what is lost stays lost.")
	}
	t.line("")
	for _, b := range r.Buckets {
		state := "whole"
		if !b.Whole {
			state = "not whole"
		}
		t.line("%-16s %s: %d kept, %d from the snapshot, %d unreadable", b.Name, state, b.Salvaged, b.FromSnapshot, b.Unreadable)
	}
	t.line("%-16s %d whole", "runs", r.Runs.Whole)
	t.runs("with an older journal, from the snapshot", r.Runs.FromSnapshot)
	t.runs("with a journal that ends early", r.Runs.Cut)
	t.runs("with a summary rebuilt from the journal", r.Runs.Rebuilt)
	t.runs("without a journal to go on from; they are failed now", r.Runs.Lost)
	t.runs("paused, because what they did last may be missing and would be done again; sentinel resume RUN lets one go on", r.Runs.Paused)
	t.names("revisions of definitions are missing", r.Revisions)
	t.names("large values are missing", r.Blobs)
	if r.Events > 0 {
		t.line("%d events are missing from the log", r.Events)
	}
	t.line("")
	switch {
	case r.DryRun:
		t.line("This was a trial: nothing was changed.")
	case r.Kept != "":
		t.line("The store is in place again. The one before is kept as %s.", r.Kept)
	default:
		t.line("The store is in place again.")
	}
	return t.err
}

// A text writes lines until one fails.
type text struct {
	to  io.Writer
	err error
}

func (t *text) line(format string, args ...any) {
	if t.err == nil {
		_, t.err = io.WriteString(t.to, string(termtext.Sprintf(format, args...)+"\n"))
	}
}

func (t *text) rest(n int) {
	if n > 0 {
		t.line("  and %d more", n)
	}
}

func (t *text) runs(what string, ids []sentinels.RunID) {
	names := make([]string, 0, len(ids))
	for _, id := range ids {
		names = append(names, string(id))
	}
	t.names("runs "+what, names)
}

func (t *text) names(what string, names []string) {
	if len(names) == 0 {
		return
	}
	t.line("%d %s:", len(names), what)
	t.line("  %s", strings.Join(names[:min(len(names), maxNames)], "\n  "))
	t.rest(len(names) - maxNames)
}
