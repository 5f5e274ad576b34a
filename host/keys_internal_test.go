package host

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// TestKeysAreForgottenByAge: a key is bound to its request for 30 days, and each new key
// removes two older than that.
func TestKeysAreForgottenByAge(t *testing.T) {
	ctx := t.Context()
	rt, err := runtime.Open(ctx, runtime.Options{Dir: t.TempDir(), Indexes: []*runtime.DocumentIndex{byUse, byOwner}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = rt.Close() })
	use := func(now time.Time, id, digest string) (fresh bool, err error) {
		err = rt.Documents().Update(ctx, func(tx *runtime.DocumentTx) (err error) {
			fresh, err = useKey(ctx, tx, now, keyUse{id: id, command: "a/b", key: "k", params: map[string]string{"p": digest}})
			return err
		})
		return fresh, err
	}
	stored := func() (n int) {
		err := rt.Documents().Update(ctx, func(tx *runtime.DocumentTx) error {
			return tx.Scan(ctx, usedKeys, "", false, func(sentinels.Document) bool { n++; return true })
		})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	now := time.Now()
	for i := range 5 {
		if fresh, err := use(now, fmt.Sprint(i), "1"); !fresh || err != nil {
			t.Fatalf("key %d: %v, %v", i, fresh, err)
		}
	}
	if fresh, err := use(now.Add(29*24*time.Hour), "0", "1"); fresh || err != nil {
		t.Errorf("same request: %v, %v", fresh, err)
	}
	if _, err := use(now.Add(29*24*time.Hour), "0", "2"); abi.CodeOf(err) != abi.Conflict {
		t.Errorf("other request: %v", err)
	}
	later := now.Add(31 * 24 * time.Hour)
	if fresh, err := use(later, "4", "2"); !fresh || err != nil {
		t.Errorf("after 31 days: %v, %v", fresh, err)
	}
	if n := stored(); n != 3 { // 5, without the one that was replaced and two old ones, and the new one
		t.Errorf("%d keys are stored, want 3", n)
	}
}

// TestKeysOfAgentsAreBounded: an agent that uses more keys than are kept loses its oldest ones, and no other agent
// or person does. A key that is removed for another reason no longer counts.
func TestKeysOfAgentsAreBounded(t *testing.T) {
	ctx := t.Context()
	rt, err := runtime.Open(ctx, runtime.Options{Dir: t.TempDir(), Indexes: []*runtime.DocumentIndex{byUse, byOwner}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = rt.Close() })
	const most = 5
	now := time.Now()
	use := func(owner, id string) {
		t.Helper()
		err := rt.Documents().Update(ctx, func(tx *runtime.DocumentTx) error {
			fresh, err := useKey(ctx, tx, now, keyUse{id: id, owner: owner, most: most, command: "a/b", key: id})
			if err == nil && !fresh {
				t.Errorf("key %q is known", id)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	stored := func() (ids []string) {
		err := rt.Documents().Update(ctx, func(tx *runtime.DocumentTx) error {
			return tx.Scan(ctx, usedKeys, "", false, func(d sentinels.Document) bool { ids = append(ids, d.ID); return true })
		})
		if err != nil {
			t.Fatal(err)
		}
		return ids
	}
	for i := range most + 2 {
		use("", fmt.Sprintf("person%d", i))
		use("agent:other", fmt.Sprintf("other%d", i))
	}
	for i := range 3 * most {
		use("agent:ci", fmt.Sprintf("%02d", i))
	}
	want := []string{"10", "11", "12", "13", "14", "other2", "other3", "other4", "other5", "other6"}
	for i := range most + 2 {
		want = append(want, fmt.Sprintf("person%d", i))
	}
	if got := stored(); !slices.Equal(got, want) {
		t.Errorf("stored are %q, want %q", got, want)
	}
	err = rt.Documents().Update(ctx, func(tx *runtime.DocumentTx) error {
		doc, err := tx.Get(ctx, usedKeys, "14")
		if err != nil {
			return err
		}
		return dropKey(ctx, tx, doc)
	})
	if err != nil {
		t.Fatal(err)
	}
	use("agent:ci", "15")
	if got := stored(); !slices.Equal(got[:most], []string{"10", "11", "12", "13", "15"}) {
		t.Errorf("after the removal of one: %q", got)
	}
}
