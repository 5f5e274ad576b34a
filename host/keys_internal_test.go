package host

import (
	"fmt"
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
	rt, err := runtime.Open(ctx, runtime.Options{Dir: t.TempDir(), Indexes: []*runtime.DocumentIndex{byUse}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = rt.Close() })
	use := func(now time.Time, id, digest string) (fresh bool, err error) {
		err = rt.Documents().Update(ctx, func(tx *runtime.DocumentTx) (err error) {
			fresh, err = useKey(ctx, tx, now, id, "a/b", "k", map[string]string{"p": digest})
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
