package store_test

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
)

// TestKill kills an appending process at random moments. It expects all
// acknowledged records, journals without gaps, pairs that agree with them, and
// the named blobs.
func TestKill(t *testing.T) {
	kills := 60
	if testing.Short() {
		kills = 8
	}
	dir := t.TempDir()
	var acked [childRuns]uint64
	for n := range kills {
		appendAndKill(t, dir, n > 0, time.Duration(rand.IntN(40_000))*time.Microsecond, &acked)
		if closed, err := store.WasClosed(dir); closed || err != nil {
			t.Fatalf("after kill %d: counts as closed, %v", n, err)
		}
		if n%10 == 0 {
			if err := store.Verify(dir); err != nil {
				t.Fatalf("after kill %d: %v", n, err)
			}
		}
		checkKilled(t, dir, n, &acked)
	}
	var total uint64
	for _, seq := range acked {
		total += seq
	}
	t.Logf("%d kills, %d records acknowledged, none lost", kills, total)
	if total == 0 {
		t.Error("nothing was ever acknowledged")
	}
}

// appendAndKill starts a child, waits for its first acknowledgement and then
// for the given time, and kills it.
func appendAndKill(t *testing.T, dir string, again bool, after time.Duration, acked *[childRuns]uint64) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childVar+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	var kill *time.Timer
	for lines.Scan() {
		var i int
		var seq uint64
		switch line := lines.Text(); {
		case strings.HasPrefix(line, "unclean "):
			// checkKilled has closed the store since the last kill.
			if line != "unclean false" {
				t.Errorf("child printed %q", line)
			}
		default:
			if n, _ := fmt.Sscanf(line, "%d %d", &i, &seq); n != 2 {
				continue // a line torn by the kill, or an error that ends the child
			}
			if seq != acked[i]+1 && !(again && seq > acked[i]) {
				t.Errorf("run %d: %d acknowledged after %d", i, seq, acked[i])
			}
			acked[i] = seq
		}
		if kill == nil {
			kill = time.AfterFunc(after, func() { cmd.Process.Kill() })
		}
	}
	if err := cmd.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Fatalf("child ended by itself: %v", err)
	}
}

func checkKilled(t *testing.T, dir string, n int, acked *[childRuns]uint64) {
	t.Helper()
	db := open(t, dir)
	defer closeStore(t, db)
	if !db.Unclean() {
		t.Errorf("after kill %d: not unclean", n)
	}
	for i := range acked {
		run := childRun(i)
		var last uint64
		err := db.Journal(run, 0, func(seq uint64, record []byte) error {
			if seq != last+1 {
				return fmt.Errorf("record %d follows %d", seq, last)
			}
			last = seq
			text, digest, named := strings.Cut(string(record), " ")
			if text != fmt.Sprint(seq) {
				return fmt.Errorf("record %d contains %q", seq, record)
			}
			if named {
				_, err := db.Blob(digest)
				return err
			}
			return nil
		})
		if err != nil {
			t.Fatalf("after kill %d: run %d: %v", n, i, err)
		}
		if last < acked[i] {
			t.Fatalf("after kill %d: run %d ends at %d, %d was acknowledged", n, i, last, acked[i])
		}
		value, found, err := db.Get("last", []byte(run))
		if err != nil || found != (last > 0) || (found && string(value) != fmt.Sprint(last)) {
			t.Fatalf("after kill %d: run %d ends at %d, its pair is %q, %v", n, i, last, value, err)
		}
		acked[i] = last // the next child continues from there
	}
}
