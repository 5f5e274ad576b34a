package main

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/runtime"
)

func TestMain(m *testing.M) {
	runtime.ServeChild()
	os.Exit(m.Run())
}

const inMemory = `Bergen, monday: completed, {"line":1}
Bergen, tuesday: completed, {"line":2}
Bergen's diary:
  "On monday take an umbrella: heavy rain."
  "On tuesday go without: sun."
Cairo, monday: completed, {"line":1}
Cairo, tuesday: completed, {"line":2}
Cairo's diary:
  "On monday go without: sun."
  "On tuesday go without: haze."
`

func TestInMemory(t *testing.T) {
	var out strings.Builder
	if err := run(t.Context(), &out, ""); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(inMemory, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestInFolder: a second start finds what the first one wrote.
func TestInFolder(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: two starts take long under the race detector")
	}
	dir := t.TempDir()
	var out strings.Builder
	for range 2 {
		out.Reset()
		if err := run(t.Context(), &out, dir); err != nil {
			t.Fatal(err)
		}
	}
	for line, want := range map[string]int{
		"Bergen, tuesday: completed, {\"line\":4}\n": 1,
		"\"On monday take an umbrella":               2,
		"\"On tuesday go without: haze.\"":           2,
	} {
		if got := strings.Count(out.String(), line); got != want {
			t.Errorf("%q is there %d times, want %d:\n%s", line, got, want, out.String())
		}
	}
}
