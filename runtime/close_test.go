package runtime_test

import (
	"testing"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// The runs of a process that closes end one after the other. One that waits for
// a child must not take the end of the process for the child's failure, though
// the child hears of it first.
func TestCloseIsNoFailureOfAChild(t *testing.T) {
	const src = `{"name":"top","steps":[{"type":"child","definition":{"name":"kid","steps":[{"type":"pause","event":"go"}],"loop":{"type":"once"}}}],"loop":{"type":"once"}}`
	rounds := 20
	if testing.Short() {
		rounds = 5
	}
	for range rounds {
		db := store.NewMemory()
		rt := open(t, newFakeHost(), db, runtime.Options{})
		def := decode(t, rt, src)
		var tops []sentinels.RunID
		for range 100 {
			id, err := rt.Start(within(t), def, runtime.StartOptions{})
			if err != nil {
				t.Fatal(err)
			}
			tops = append(tops, id)
		}
		until(t, "all to wait", func() bool { return rt.Probe().Waiting() == 200 })
		rt.Close()
		left := db.Snapshot()
		for _, id := range tops {
			if err := left.Journal(string(id), 1, func(_ uint64, raw []byte) error {
				rec, err := journal.Decode(raw)
				if err == nil && rec.CallEnd != nil && rec.CallEnd.Error != nil {
					t.Errorf("run %s has a call that ended with: %v", id, rec.CallEnd.Error)
				}
				return err
			}); err != nil {
				t.Fatal(err)
			}
		}
		left.Close()
		if t.Failed() {
			return
		}
	}
}
