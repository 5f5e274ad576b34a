package bench_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	stdruntime "runtime"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/cli"
	"github.com/sentinel-runtime/sentinel/host/ops/bench"
	"github.com/sentinel-runtime/sentinel/runtime"
)

// asProgram has this program be sentinel: what starts the binary is measured with
// it, without a build.
const asProgram = "SENTINEL_BENCH_AS_PROGRAM"

func TestMain(m *testing.M) {
	runtime.ServeChild()
	if os.Getenv(asProgram) != "" {
		os.Exit(cli.Main(context.Background(), os.Args...))
	}
	os.Exit(m.Run())
}

// measured measures rows quickly.
func measured(t *testing.T, opt bench.Options) map[string]bench.Row {
	t.Helper()
	var out bytes.Buffer
	opt.Format, opt.Quick, opt.Dir = "json", true, t.TempDir()
	if err := bench.Run(t.Context(), &out, opt); err != nil {
		t.Fatal(err)
	}
	rows := map[string]bench.Row{}
	for d := json.NewDecoder(&out); d.More(); {
		var r bench.Row
		if err := d.Decode(&r); err != nil {
			t.Fatal(err)
		}
		t.Logf("%+v", r)
		rows[r.Name] = r
	}
	if len(rows) != len(opt.Only) {
		t.Fatalf("%d rows, want %d", len(rows), len(opt.Only))
	}
	return rows
}

// Rows of the host process are measured with children that serve.
func TestServingRows(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a dozen processes")
	}
	t.Setenv(asProgram, "1")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	only := []string{"idle", "idle-run", "scheduled", "fire", "restart", "reads", "live-file", "live-plugin", "live-api", "edit", "feed"}
	for name, r := range measured(t, bench.Options{Only: only, Binary: self}) {
		switch name {
		case "idle", "idle-run", "scheduled":
			if r.Verdict == bench.Skipped && stdruntime.GOOS != "linux" {
				continue
			}
		case "reads":
			continue // what is lost may be nothing, and on a busy machine less than that
		case "edit":
			if r.Verdict != bench.OK {
				t.Errorf("an edit was not in the next iteration: %+v", r)
			}
		}
		if r.Median <= 0 || r.Verdict == bench.Skipped {
			t.Errorf("row %s is not measured: %+v", name, r)
		}
	}
}

// Every row that can be measured in this process is; those that start the
// program say why they are not.
func TestRows(t *testing.T) {
	only := []string{"start", "run", "step", "fresh", "condition", "condition-child", "throughput"}
	rows := measured(t, bench.Options{Only: only})
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
		"unknown row":   {Only: []string{"speed"}},
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
