package files_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers"
	"github.com/sentinel-runtime/sentinel/triggers/files"
)

// TestJoin: two events become one with each path once, and nothing left out uncounted.
func TestJoin(t *testing.T) {
	armed, err := files.New(files.Options{}).Arm(trigger(`{"paths":["**"]}`), triggers.Env{Workspace: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	join := func(older, newer string) (out struct {
		Paths   []string
		Changes []struct{ Path, Op string }
		More    int
		Offline bool
	}) {
		t.Helper()
		e, err := armed.(triggers.Joiner).Join(&sentinels.Event{ID: "1", Data: []byte(older)}, &sentinels.Event{ID: "2", Data: []byte(newer)})
		if err != nil || e.ID != "2" {
			t.Fatal(e, err)
		}
		if err := json.Unmarshal(e.Data, &out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	got := join(`{"paths":["a","b","c","d"],"changes":[{"path":"a","op":"created"},{"path":"b","op":"modified"},{"path":"c","op":"deleted"},{"path":"d","op":"modified"}],"offline":true}`,
		`{"paths":["a","b","c","e"],"changes":[{"path":"a","op":"modified"},{"path":"b","op":"deleted"},{"path":"c","op":"created"},{"path":"e","op":"created"}],"more":2}`)
	want := `[{a created} {b deleted} {c created} {d modified} {e created}]`
	if diff := cmp.Diff([]string{"a", "b", "c", "d", "e"}, got.Paths); diff != "" || fmt.Sprint(got.Changes) != want || got.More != 2 || !got.Offline {
		t.Errorf("%+v\n%s", got, diff)
	}
	many := func(from, n int) string {
		d := map[string]any{}
		var paths []string
		var changes []map[string]string
		for i := range n {
			p := fmt.Sprint("f", from+i)
			paths, changes = append(paths, p), append(changes, map[string]string{"path": p, "op": "modified"})
		}
		d["paths"], d["changes"] = paths, changes
		b, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	if got := join(many(0, 800), many(400, 800)); len(got.Paths) != 1000 || got.More != 200 || len(got.Changes) != 1000 {
		t.Errorf("%d paths, %d more", len(got.Paths), got.More)
	}
}
