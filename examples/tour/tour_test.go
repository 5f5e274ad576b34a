package tour_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/examples/internal/lesson"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// limit ends a tour that hangs; it takes a quarter of a minute.
const limit = 3 * time.Minute

// TestTour takes the tour with the program as it is shipped: it is killed on the
// way, so the test binary in its place would not do. Every step of the script
// checks itself; here is looked at whether all of them came.
func TestTour(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: the script is not run")
	}
	for _, program := range []string{"sh", "git", "go", "curl", "openssl"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("the tour needs %s: %v", program, err)
		}
	}
	binary := filepath.Join(t.TempDir(), "sentinel")
	if out, err := lesson.Go(".", "build", "-o", binary, "github.com/sentinel-runtime/sentinel/host/cmd/sentinel"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "./tour.sh", binary)
	cmd.Env = append(os.Environ(), "TMPDIR="+t.TempDir(), "SENTINEL_DEMO=replay",
		"OPENAI_API_KEY=", "OPENAI_BASE_URL=", "ANTHROPIC_API_KEY=", "OLLAMA_HOST=")
	// An interrupt has the script end what it started.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	lesson.Shows(t, string(out),
		"The model's answer is scripted",
		"ok: it beats every second",
		"ok: the trace has passes of revision 4",
		"ok: there is no revision 5",
		"passes, each made once",
		"Three things must change",
		"event review:taken from sentinel/developer",
		"ok: and built once",
		"ok: it says 401",
		"ok: the step under way came to its end",
		"ok: and no decision was needed",
		"the tour is over",
	)
}

// TestDefinitions: what the tour drops into the folder is right, with -short too.
func TestDefinitions(t *testing.T) {
	files, err := filepath.Glob("sentinels/*.json")
	if err != nil || len(files) < 6 {
		t.Fatalf("%d definitions, want at least 6: %v", len(files), err)
	}
	for _, name := range files {
		src, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, problems := sentinels.Decode(src, sentinels.DecodeOptions{File: name}); len(problems) > 0 {
			t.Error(problems)
		}
	}
}
