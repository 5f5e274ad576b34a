package document_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/runtime/internal/document"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// TestQuota: an owner, and all owners together, have a bound in bytes; who has no owner has none. What is
// counted is the same after the store was opened again, and no data is taken for an owner.
func TestQuota(t *testing.T) {
	ctx := within(t)
	db := store.NewMemory()
	s := open(db)
	data := func(n int) json.RawMessage {
		return json.RawMessage(`{"x":` + strconv.Quote(strings.Repeat("x", n)) + `,"owner":"agent:a"}`)
	}
	put := func(owner, id string, n int) error {
		return s.Update(ctx, func(tx *document.Tx) error {
			tx.CountFor(document.Quota{Owner: owner, Most: 10_000, All: 15_000})
			_, err := tx.Put(ctx, "c", id, data(n), sentinels.AnyRevision)
			return err
		})
	}
	want := func(code abi.Code, err error) {
		t.Helper()
		if abi.CodeOf(err) != code && (code != "" || err != nil) {
			t.Errorf("%v, want %q", err, code)
		}
	}
	want("", put("", "person", 50_000))
	want("", put("agent:a", "a1", 4000))
	want("", put("agent:a", "a2", 4000))
	want(abi.Limit, put("agent:a", "a3", 4000))
	want("", put("", "person", 60_000))
	want("", put("agent:b", "b1", 4000))
	want(abi.Limit, put("agent:b", "b2", 4000)) // of all
	want("", put("agent:a", "a2", 3000))        // smaller
	want(abi.Limit, put("agent:b", "a2", 9000)) // that of another one counts for who writes it
	s = open(db)
	want(abi.Limit, put("agent:a", "a3", 4000))
	want("", put("", "a1", 4000)) // it is the person's now
	want("", put("agent:a", "a3", 4000))
	want(abi.Limit, put("agent:a", "a4", 4000))
	if err := s.Update(ctx, func(tx *document.Tx) error { return tx.Delete(ctx, "c", "a3", sentinels.AnyRevision) }); err != nil {
		t.Fatal(err)
	}
	want("", put("agent:a", "a4", 4000))
	// What is refused is not counted, also where the caller goes on.
	err := s.Update(ctx, func(tx *document.Tx) error {
		tx.CountFor(document.Quota{Owner: "agent:b", Most: 10_000, All: 15_000})
		for i := range 3 {
			_, err := tx.Put(ctx, "c", "huge"+strconv.Itoa(i), data(20_000), 0)
			want(abi.Limit, err)
		}
		_, err := tx.Put(ctx, "c", "b3", data(2000), 0)
		return err
	})
	want("", err)
}
