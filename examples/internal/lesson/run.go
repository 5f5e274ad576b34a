package lesson

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/runtime"
)

// limit ends a run that hangs; the longest lesson takes a few seconds.
const limit = 3 * time.Minute

// Workspace makes the folder that a lesson works in with its setup.sh, in the
// current folder, and returns it. More arguments go to the script.
func Workspace(t *testing.T, args ...string) string {
	t.Helper()
	need(t, "sh", "git", "go")
	// What a lesson builds is no part of our own module.
	t.Setenv("GOWORK", "off")
	t.Setenv("GOFLAGS", "")
	dir := filepath.Join(t.TempDir(), "work")
	cmd := exec.Command("sh", append([]string{"setup.sh", dir}, args...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("setup.sh: %v\n%s", err, out)
	}
	return dir
}

// Git runs git in a folder and returns what it prints.
func Git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// Run runs the definition of a file in a workspace and returns the host,
// still open, with the result. The state is outside the workspace.
func Run(t *testing.T, file, workspace string, opt host.Options, start runtime.StartOptions) (*host.Host, runtime.Result) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	src, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	opt.Workspace = workspace
	opt.State = filepath.Join(t.TempDir(), "state")
	opt.CacheDir = compiled
	h, err := host.Open(ctx, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	def, problems := h.Runtime().Decode(src, file)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	start.Workspace = workspace
	id, err := h.Runtime().Start(ctx, def, start)
	if err != nil {
		t.Fatal(err)
	}
	res, err := h.Runtime().Wait(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	return h, res
}

// compiled is where the runs of this process, and the programs that it starts, keep compiled plugins, so that
// they are compiled once. [Main] makes it.
var compiled string

// NoDivergence fails the test if the run asked its cassette for anything but
// what had been recorded, or for less.
func NoDivergence(t *testing.T, h *host.Host) {
	t.Helper()
	var report strings.Builder
	if err := h.WriteDivergences(&report); err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(report.String(), ", no divergence\n") {
		t.Errorf("the cassette does not fit the run; `go test -update` writes it again.\n%s", report.String())
	}
}

// Go runs the go tool in a folder.
func Go(dir string, args ...string) (string, error) {
	cmd := exec.Command("go", args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// need skips the test where a program is missing.
func need(t *testing.T, programs ...string) {
	t.Helper()
	for _, name := range programs {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("the lesson needs %s: %v", name, err)
		}
	}
}

// Unmodified fails the test if the lesson's definition is not, byte for byte,
// the one of the specification that it is about.
func Unmodified(t *testing.T, file, spec string) {
	t.Helper()
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(filepath.Join("..", "..", "sentinels", "testdata", "spec", spec))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s is not the specification's %s (-specification +lesson):\n%s", file, spec, diff)
	}
}

// Shows fails the test for every text that is not in what a script printed.
func Shows(t *testing.T, out string, texts ...string) {
	t.Helper()
	for _, want := range texts {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not shown", want)
		}
	}
	if t.Failed() {
		t.Log(out)
	}
}
