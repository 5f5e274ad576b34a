package bench_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/bench"
	"github.com/sentinel-runtime/sentinel/runtime"
)

func TestMain(m *testing.M) {
	runtime.ServeChild()
	os.Exit(m.Run())
}

// Every row that can be measured in this process is; those that start the
// program say why they are not.
func TestRows(t *testing.T) {
	only := []string{"start", "run", "step", "fresh", "condition", "condition-child", "throughput"}
	var out bytes.Buffer
	if err := bench.Run(context.Background(), &out, bench.Options{Format: "json", Quick: true, Only: only, Dir: t.TempDir()}); err != nil {
		t.Fatal(err)
	}
	d, rows := json.NewDecoder(&out), map[string]bench.Row{}
	for d.More() {
		var r bench.Row
		if err := d.Decode(&r); err != nil {
			t.Fatal(err)
		}
		rows[r.Name] = r
	}
	if len(rows) != len(only) {
		t.Fatalf("%d rows, want %d", len(rows), len(only))
	}
	for _, name := range only {
		r := rows[name]
		switch {
		case name == "start":
			if r.Verdict != bench.Skipped || r.Note == "" {
				t.Errorf("row start of a program that is not sentinel: %+v, want it skipped with the reason", r)
			}
			continue
		case r.Median <= 0 || r.Must <= 0 || r.Aim <= 0 || r.Unit == "" || r.What == "":
			t.Errorf("row %s is not whole: %+v", name, r)
		case name != "fresh" && (r.Reference == "" || r.Ratio <= 0):
			t.Errorf("row %s stands beside nothing: %+v", name, r)
		}
		over := r.Median > r.Must
		if name == "throughput" {
			over = r.Median < r.Must
		}
		if (r.Verdict == bench.Over) != over {
			t.Errorf("row %s: %v against %v is called %s", name, r.Median, r.Must, r.Verdict)
		}
	}
}

func TestTable(t *testing.T) {
	dir := t.TempDir()
	var out strings.Builder
	if err := bench.Run(context.Background(), &out, bench.Options{Quick: true, Only: []string{"condition", "start"}, Dir: dir}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"median", "must", "condition ", "fast lane; beside decoding", "skipped"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the table does not say %q:\n%s", want, out.String())
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("%d entries are left in the folder, %v", len(left), err)
	}
}

func TestRefuses(t *testing.T) {
	for want, opt := range map[string]bench.Options{
		"no such row":   {Only: []string{"speed"}},
		`format "xml"`:  {Format: "xml"},
		"bench-missing": {Dir: "bench-missing", Only: []string{"condition"}},
	} {
		if err := bench.Run(context.Background(), new(bytes.Buffer), opt); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want an error about %q", opt, err, want)
		}
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	why := errors.New("had enough")
	cancel(why)
	if err := bench.Run(ctx, new(bytes.Buffer), bench.Options{Quick: true, Only: []string{"run"}, Dir: t.TempDir()}); err == nil {
		t.Error("a cancelled measurement has a result")
	}
}
