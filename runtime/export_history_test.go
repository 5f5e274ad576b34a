package runtime

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"

	"github.com/sentinel-runtime/sentinel/runtime/internal/history"
	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// CheckFold compares the state that the records of an ended run fold to with what
// the live run wrote: at the end of each iteration, which holds the whole state,
// and with its result. It folds every suffix that begins at the end of an
// iteration too, and reports how many iterations it compared.
func CheckFold(rt *Runtime, id sentinels.RunID) (iterations int, err error) {
	var records []*journal.Record
	st, err := rt.fold(id, 1, func(seq uint64, rec *journal.Record, st *history.State) error {
		records = append(records, rec)
		if rec.IterationEnd == nil {
			return nil
		}
		iterations++
		return sameEnd(rt, st, rec.IterationEnd)
	})
	if err != nil {
		return iterations, err
	}
	if res, err := rt.storedResult(RunInfo{ID: id}); err != nil {
		return iterations, err
	} else if err := sameResult(rt, st, res); err != nil {
		return iterations, err
	}
	return iterations, sameSuffixes(records)
}

func sameEnd(rt *Runtime, st *history.State, b *journal.IterationEndBody) error {
	for _, d := range []struct {
		what      string
		got, want any
	}{
		{"iteration", st.Iteration, b.Iteration},
		{"usage", st.Usage, b.Usage},
		{"cursors", nonNil(st.Cursors), nonNil(b.Cursors)},
		{"limit extension", st.Extension, valueOf(b.Extension)},
		{"failed step", st.FailedStep, ""},
		{"open branches", len(st.Branches), 0},
	} {
		if !reflect.DeepEqual(d.got, d.want) {
			return fmt.Errorf("end of iteration %d: %s: the records fold to %+v, the run had %+v", b.Iteration, d.what, d.got, d.want)
		}
	}
	got, err := rt.liveScope(st.Scope)
	if err != nil {
		return err
	}
	want, err := rt.liveScope(&history.Scope{Variables: b.Variables, Last: b.Last})
	if err != nil {
		return err
	}
	return sameScope(fmt.Sprintf("end of iteration %d", b.Iteration), got.snapshot(), want.snapshot(), got.lastValue(), want.lastValue())
}

func sameResult(rt *Runtime, st *history.State, res Result) error {
	sc, err := rt.liveScope(st.Scope)
	if err != nil {
		return err
	}
	if res.Status != sentinels.StatusCompleted && st.FailedStep != res.Step {
		return fmt.Errorf("result: the records fold to the failed step %q, the run had %q", st.FailedStep, res.Step)
	}
	if st.Iteration != res.Iterations {
		return fmt.Errorf("result: the records fold to %d iterations, the run had %d", st.Iteration, res.Iterations)
	}
	return sameScope("result", sc.snapshot(), res.Variables, sc.lastValue(), res.Output)
}

func sameScope(where string, got, want map[string]json.RawMessage, gotLast, wantLast json.RawMessage) error {
	got, want = maps.Clone(got), maps.Clone(want)
	got["output of the last step"], want["output of the last step"] = gotLast, wantLast
	for name := range want {
		if _, ok := got[name]; !ok {
			return fmt.Errorf("%s: the records do not fold to a variable %q", where, name)
		}
	}
	for name, g := range got {
		w, ok := want[name]
		if !ok || !equalJSON(g, w) {
			return fmt.Errorf("%s: variable %q: the records fold to %s, the run had %s", where, name, g, w)
		}
	}
	return nil
}

func equalJSON(a, b json.RawMessage) bool {
	var x, y any
	if len(a) > 0 && json.Unmarshal(a, &x) != nil || len(b) > 0 && json.Unmarshal(b, &y) != nil {
		return false
	}
	return reflect.DeepEqual(x, y)
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

func describe(st *history.State) string {
	b, err := json.Marshal(st)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func nonNil(m map[string]uint64) map[string]uint64 {
	if m == nil {
		return map[string]uint64{}
	}
	return m
}

func valueOf(e *journal.LimitExtension) journal.LimitExtension {
	if e == nil {
		return journal.LimitExtension{}
	}
	return *e
}
