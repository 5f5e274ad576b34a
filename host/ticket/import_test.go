package ticket_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/ticket"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// FuzzImport: a row of any kind is imported or refused with a reason, and what was
// imported is unchanged when it is imported again.
func FuzzImport(f *testing.F) {
	f.Add(`{"id":"a","title":"t","state":"merged","sentinel_feedback":"[\"x\"]","created_at":"2025-12-24 10:00:00"}`)
	f.Add(`{"id":"a","title":"t","acceptance_criteria":"{\"checks\":[]}","retry_after":1766570400,"depends_on":["a","b"]}`)
	f.Add(`{"id":"a","title":"t","verification_log":null,"impact_flags":"[]","priority":"7","verification_status":"verified"}`)
	d := open(f)
	f.Fuzz(func(t *testing.T, row string) {
		d := &desk{t: t, s: d.s, rt: d.rt, now: d.now}
		_ = d.do(func(ctx context.Context, tx ticket.Tx) error {
			first, err := d.s.Import(ctx, tx, "user", true, json.RawMessage(row))
			if err != nil {
				if code := abi.CodeOf(err); code != abi.BadFields && code != abi.Conflict {
					t.Errorf("%q: %v", row, err)
				}
				return err
			}
			again, err := d.s.Import(ctx, tx, "user", true, json.RawMessage(row))
			if err != nil || again.Action != ticket.ImportUnchanged || again.ID != first.ID {
				t.Errorf("%q again: %+v %v", row, again, err)
			}
			if _, err := d.s.Get(ctx, tx, first.ID); err != nil {
				t.Errorf("%q: %v", row, err)
			}
			return abi.New(abi.Cancelled, "nothing is kept")
		})
	})
}
