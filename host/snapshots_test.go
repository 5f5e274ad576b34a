package host_test

import (
	"context"
	"testing"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/runtime"
)

// The setting snapshots.keep is how many snapshots of one reason stay.
func TestSnapshotsAreKeptAsConfigured(t *testing.T) {
	h := open(t, host.Options{Dir: t.TempDir(), Set: map[string]string{"snapshots.keep": "2"}})
	for range 3 {
		if _, err := h.Runtime().Snapshot(context.Background(), "upgrade"); err != nil {
			t.Fatal(err)
		}
	}
	list, err := runtime.Snapshots(h.State())
	if err != nil || len(list) != 2 {
		t.Errorf("%d snapshots are kept, want 2: %v", len(list), err)
	}
}
