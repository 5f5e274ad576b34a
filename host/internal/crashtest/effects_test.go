//go:build linux

package crashtest_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A run of a program as it noted it itself.
type run struct {
	program
	life   int
	key    string // idempotency key
	cookie string // of this start
	ended  bool
}

// effects reads what the programs noted, by start.
func effects(t *testing.T, workspace string) []run {
	t.Helper()
	var runs []run
	byCookie := map[string]int{}
	for _, line := range lines(t, filepath.Join(workspace, "effects")) {
		f := strings.Fields(line)
		if len(f) != 8 {
			t.Fatalf("line %q of the effects is torn", line)
		}
		number, err := strconv.Atoi(strings.TrimPrefix(f[1], "life-"))
		if err != nil {
			t.Fatal(err)
		}
		pass, err := strconv.Atoi(f[7])
		if err != nil {
			t.Fatal(err)
		}
		r := run{program{sentinels.RunID(f[2]), pass, f[3], f[6]}, number, f[4], f[5], false}
		i, known := byCookie[r.cookie]
		switch {
		case f[0] == "start" && !known:
			byCookie[r.cookie] = len(runs)
			runs = append(runs, r)
		case f[0] == "end" && known && !runs[i].ended:
			runs[i].ended = true
		default:
			t.Fatalf("line %q of the effects is out of place", line)
		}
	}
	return runs
}

// decisions counts the decisions by run, iteration and path of a call, also with
// its number, and those about a background program by run and execution id.
func decisions(t *testing.T, workspace string) map[program]int {
	t.Helper()
	count := map[program]int{}
	for _, line := range lines(t, filepath.Join(workspace, "decisions")) {
		f := strings.Fields(line)
		pass, err := strconv.Atoi(f[2])
		if err != nil {
			t.Fatal(err)
		}
		path, what, _ := strings.Cut(f[3], "!")
		run := sentinels.RunID(f[1])
		count[program{run: run, iteration: pass, path: path}]++
		count[program{run: run, iteration: pass, path: path, name: what}]++
		count[program{run: run, name: what}]++
	}
	return count
}

func lines(t *testing.T, path string) []string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")[:strings.Count(string(text), "\n")]
}
