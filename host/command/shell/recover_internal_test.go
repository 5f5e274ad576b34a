package shell

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/internal/regularfile"
)

// The start of a host brings every kept execution into memory. Its work grows with their number, and not with the
// square of it, which took minutes for the 5,000 executions that are kept.
func TestRecoveryListsTheFolderOnce(t *testing.T) {
	work := func(executions int) float64 {
		dir := t.TempDir()
		store := files{dir: dir}
		for i := range executions {
			id := fmt.Sprintf("%016x", i)
			if err := store.Save(t.Context(), Record{ID: id, State: Ended, StartedAt: time.Unix(int64(i), 0)}); err != nil {
				t.Fatal(err)
			}
			header := appendFileHeader(nil, 0)
			if err := regularfile.WriteFile((&spill{dir: dir, id: id}).path(0), header, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		m, err := New(Options{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := m.Recover(t.Context()); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		if e := m.known(fmt.Sprintf("%016x", executions-1)); e == nil || len(e.out.parts) != 1 {
			t.Errorf("the last of %d executions has not its output", executions)
		}
		return float64(after.Mallocs - before.Mallocs)
	}
	few, many := work(100), work(800)
	if grows := many / few; grows > 12 { // 8 if it is linear, over 30 if each execution lists the folder
		t.Errorf("8 times the executions took %.1f times the allocations (%.0f, %.0f)", grows, few, many)
	}
}
