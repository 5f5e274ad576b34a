package runtime

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"reflect"
	"sync"

	"github.com/sentinel-runtime/sentinel/runtime/internal/history"
	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A StateRecorder notes the state of live runs behind each of their records.
//
// # Concurrency
//
// Safe for concurrent use.
type StateRecorder struct {
	mu     sync.Mutex
	states map[stateKey][sha256.Size]byte
}

type stateKey struct {
	run sentinels.RunID
	seq uint64
}

// RecordStates returns options for a runtime whose runs the recorder observes.
func RecordStates(opt Options, rec *StateRecorder) Options {
	rec.states = map[stateKey][sha256.Size]byte{}
	opt.applied = func(run sentinels.RunID, st *history.State) {
		sum := sha256.Sum256([]byte(describe(st)))
		rec.mu.Lock()
		defer rec.mu.Unlock()
		rec.states[stateKey{run, st.Seq}] = sum
	}
	return opt
}

// CheckFold folds the records of an ended run: from the first one, and from the end
// of each iteration. Behind each record it compares the state with that of the live
// run, and in the end with the run's result. It reports how many states it compared.
func CheckFold(rt *Runtime, id sentinels.RunID, live *StateRecorder) (states int, err error) {
	live.mu.Lock()
	defer live.mu.Unlock()
	var records []*journal.Record
	st := &history.State{}
	err = rt.db.Journal(string(id), 1, func(seq uint64, raw []byte) error {
		rec, err := journal.Decode(raw)
		if err != nil {
			return err
		}
		if err := st.Apply(seq, rec); err != nil {
			return err
		}
		records = append(records, rec)
		want, ok := live.states[stateKey{id, seq}]
		if !ok || !st.Complete() {
			return nil // of another process, or retention has removed what is before it
		}
		states++
		if got := describe(st); sha256.Sum256([]byte(got)) != want {
			return fmt.Errorf("after record %d, %s: the live run differs from the fold:\n%s", seq, rec.Kind, got)
		}
		return nil
	})
	if err != nil {
		return states, err
	}
	if res, err := rt.exec.StoredResult(RunInfo{ID: id}); err != nil {
		return states, err
	} else if res.Status != sentinels.StatusCompleted && st.FailedStep != res.Step && (st.FailedStep != "" || res.Error.Code != "failed") ||
		st.Iteration != res.Iterations {
		return states, fmt.Errorf("result: the records fold to %d iterations and the failed step %q, the run had %d and %q", st.Iteration, st.FailedStep, res.Iterations, res.Step)
	}
	return states, sameSuffixes(records)
}

// sameSuffixes folds the first record and the records from each end of an
// iteration, and compares the state after every record with the whole fold.
func sameSuffixes(records []*journal.Record) error {
	for from, rec := range records {
		if rec.IterationEnd == nil {
			continue
		}
		whole, suffix := &history.State{}, &history.State{}
		for i, rec := range records {
			seq := uint64(i + 1)
			if err := whole.Apply(seq, rec); err != nil {
				return err
			}
			if i == 0 || i >= from {
				if err := suffix.Apply(seq, rec); err != nil {
					return fmt.Errorf("from record %d: %w", from+1, err)
				}
			}
			if i >= from && !reflect.DeepEqual(whole, suffix) {
				return fmt.Errorf("after record %d, %s: from record %d the records fold to\n%s, all of them to\n%s", seq, rec.Kind, from+1, describe(suffix), describe(whole))
			}
		}
	}
	return nil
}

// describe returns a state as text, without the first record and the texts of
// definitions, which a live run does not hold.
func describe(st *history.State) string {
	without := *st
	without.Start = nil
	without.Definitions.Unload()
	size := int64(0)
	if st.Scope != nil {
		size = st.Scope.Size()
	}
	b, err := json.Marshal(struct {
		*history.State
		Size int64
	}{&without, size})
	if err != nil {
		return err.Error()
	}
	return string(b)
}
