package runtime_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// kid starts a child run that waits, and does not wait for it.
const kid = `{"type":"child","await":false,"onError":"skip","outputTo":%q,"definition":{"name":"kid","steps":[{"type":"pause","event":"go"}],"loop":{"type":"once"}}}`

// leaves starts a child run that ends at once and leaves a child of its own
// behind, which waits.
const leaves = `{"type":"child","onError":"skip","outputTo":%q,"definition":{"name":"leaves","steps":[
	{"type":"child","await":false,"definition":{"name":"left","steps":[{"type":"pause","event":"go"}],"loop":{"type":"once"}}}],"loop":{"type":"once"}}}`

// starts is a definition with one step per name; a name that begins with "k" is
// a kid, with "l" a leaves, and "-" a wait for the event more.
func starts(names ...string) string {
	var list []string
	for _, name := range names {
		switch name[0] {
		case 'k':
			list = append(list, fmt.Sprintf(kid, name))
		case 'l':
			list = append(list, fmt.Sprintf(leaves, name))
		default:
			list = append(list, `{"type":"pause","event":"more"}`)
		}
	}
	return `{"name":"root","steps":[` + strings.Join(list, ",") + `],"loop":{"type":"once"}}`
}

// refused returns the names of the steps whose child was refused with the error
// limit, in order.
func refused(t *testing.T, res runtime.Result, names ...string) string {
	t.Helper()
	if res.Status != sentinels.StatusCompleted {
		t.Fatalf("run ended %s: %v", res.Status, res.Error)
	}
	var out []string
	for _, name := range names {
		var v struct{ Error *abi.Error }
		if err := json.Unmarshal(res.Variables[name], &v); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if v.Error == nil {
			continue
		}
		if v.Error.Code != abi.Limit || !strings.Contains(v.Error.Message, "children") {
			t.Errorf("%s: %+v", name, v.Error)
		}
		out = append(out, name)
	}
	return strings.Join(out, " ")
}

// A run has at most so many active child runs, and those that its ended children
// left behind are among them.
func TestChildrenAtOnce(t *testing.T) {
	for name, tt := range map[string]struct {
		steps   []string
		refused string
	}{
		"at the limit":                 {[]string{"k1", "k2"}, ""},
		"one more":                     {[]string{"k1", "k2", "k3"}, "k3"},
		"left behind by ended ones":    {[]string{"l1", "l2", "l3", "k1"}, "l3 k1"},
		"of both kinds, at the limit":  {[]string{"l1", "k1"}, ""},
		"of both kinds, and one more":  {[]string{"l1", "k1", "l2"}, "l2"},
		"a wait does not change it":    {[]string{"l1", "k1", "-", "k2"}, "k2"},
		"more than one is one too few": {[]string{"k1", "-", "l1"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			rt := open(t, newFakeHost(), store.NewMemory(), runtime.Options{Limits: runtime.Limits{Children: 2}})
			id := start(t, rt, starts(tt.steps...), runtime.StartOptions{})
			emit(t, rt, "more", "1")
			if got := refused(t, wait(t, rt, id), without(tt.steps, "-")...); got != tt.refused {
				t.Errorf("refused: %q, want %q", got, tt.refused)
			}
		})
	}
}

func without(list []string, s string) (out []string) {
	for _, v := range list {
		if v != s {
			out = append(out, v)
		}
	}
	return out
}

// Branches that start children at the same time do not pass the limit together.
func TestChildrenOfBranches(t *testing.T) {
	const branches, limit = 60, 50
	var list, names []string
	for i := range branches {
		names = append(names, fmt.Sprintf("k%d", i))
		list = append(list, "["+fmt.Sprintf(kid, names[i])+"]")
	}
	rt := open(t, newFakeHost(), store.NewMemory(), runtime.Options{})
	id := start(t, rt, `{"name":"root","steps":[{"type":"both","branches":[`+strings.Join(list, ",")+`]}],"loop":{"type":"once"}}`, runtime.StartOptions{})
	if n := len(strings.Fields(refused(t, wait(t, rt, id), names...))); n != branches-limit {
		t.Errorf("%d of %d children were refused, want %d", n, branches, branches-limit)
	}
}

// A run that is resumed counts the same children as before. One that could not
// be taken over counts again once it is.
func TestChildrenAfterResume(t *testing.T) {
	names := []string{"l1", "k1", "k2", "k3", "k4"}
	db := store.NewMemory()
	limits := runtime.Options{Limits: runtime.Limits{Children: 2}}
	rt := open(t, newFakeHost(), db, limits)
	root := start(t, rt, starts("l1", "k1", "-", "k2", "-", "k3", "k4"), runtime.StartOptions{})
	until(t, "three to wait", func() bool { return runtime.Subscribers(rt) == 3 })
	child := only(t, rt, "kid")
	commit(t, rt)
	snap := db.Snapshot()
	rt.Close()
	records := journalOf(t, snap, child)
	enqueue(t, snap, store.Batch{Trims: []store.Trim{{Run: string(child), To: store.All}}})

	k2 := make(chan struct{})
	limits.Observer.Progress = func(p runtime.Progress) {
		if p.Event == runtime.OnStepEnd && p.Run == root && p.Address == "3" {
			close(k2)
		}
	}
	rt = open(t, newFakeHost(), snap, limits)
	if err := rt.Resume(within(t), root, runtime.ResumeOptions{}); err != nil {
		t.Fatal(err)
	}
	if status(t, rt, child).Live {
		t.Fatal("a run without a journal was taken over")
	}
	enqueue(t, snap, store.Batch{Appends: records})
	if err := rt.Resume(within(t), child, runtime.ResumeOptions{}); err != nil {
		t.Fatal(err)
	}
	emit(t, rt, "more", "1") // k2 is one too many
	select {
	case <-k2:
	case <-within(t).Done():
		t.Fatal("step k2 did not end")
	}
	if err := rt.Stop(within(t), child); err != nil {
		t.Fatal(err)
	}
	emit(t, rt, "more", "2") // k3 takes the place of the stopped one
	if got := refused(t, wait(t, rt, root), names...); got != "k2 k4" {
		t.Errorf("refused: %q, want %q", got, "k2 k4")
	}
}

// only returns the run of a sentinel that has one.
func only(t *testing.T, rt *runtime.Runtime, of sentinels.ID) sentinels.RunID {
	t.Helper()
	runs, err := rt.Runs(runtime.RunFilter{})
	if err != nil {
		t.Fatal(err)
	}
	runs = slices.DeleteFunc(runs, func(r runtime.RunInfo) bool { return r.Name != string(of) })
	if len(runs) != 1 {
		t.Fatalf("%d runs of %s", len(runs), of)
	}
	return runs[0].ID
}

// commit returns once everything enqueued before is durable.
func commit(t *testing.T, rt *runtime.Runtime) {
	t.Helper()
	emit(t, rt, "committed", "")
}

func enqueue(t *testing.T, db store.Store, b store.Batch) {
	t.Helper()
	if err := db.Enqueue(b).Wait(context.Background()); err != nil {
		t.Fatal(err)
	}
}

func journalOf(t *testing.T, db store.Store, id sentinels.RunID) (records []store.Append) {
	t.Helper()
	if err := db.Journal(string(id), 1, func(seq uint64, raw []byte) error {
		records = append(records, store.Append{Run: string(id), Seq: seq, Record: append([]byte(nil), raw...)})
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return records
}

// Finding 20 of writing sentinels with the binary alone: a $ref to a sentinel that is
// missing made three attempts. It is permanent, also where it was there at the start.
func TestFinding20MissingIsPermanent(t *testing.T) {
	rt := open(t, newFakeHost(), store.NewMemory(), runtime.Options{})
	id := start(t, rt, `{"name":"root","steps":[{"type":"child","definition":{"$ref":"gone"},"onError":{"retry":{"maxRetries":3,"baseDelayMs":1}}}],"loop":{"type":"once"}}`, runtime.StartOptions{})
	res := wait(t, rt, id)
	if res.Status != sentinels.StatusFailed || res.Error == nil || res.Error.Code != abi.NotFound || !res.Error.Permanent || res.Error.Hint == "" {
		t.Fatalf("%s: %+v", res.Status, res.Error)
	}
	trace, err := rt.Trace(id)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(trace.Iterations[0].Steps[0].Attempts); n != 1 {
		t.Errorf("%d attempts, want 1", n)
	}
}
