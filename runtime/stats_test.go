package runtime_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/sentinel-runtime/sentinel/runtime"
)

func TestStats(t *testing.T) {
	rt, err := runtime.Open(context.Background(), runtime.Options{Dir: t.TempDir(), Commands: newFakeHost()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rt.Close() })
	if err := runtime.AddModule(rt, steps()); err != nil {
		t.Fatal(err)
	}
	before := rt.Stats()
	start(t, rt, fmt.Sprintf(awaiting, "w"), runtime.StartOptions{})
	startLarge(t, rt, "x", "")
	after := rt.Stats()
	if after.Runs != 1 || after.Commits <= before.Commits || after.Records < 10 || after.StoreBytes == 0 || after.Blobs == 0 || after.BlobBytes < 70<<10 {
		t.Errorf("before %+v, after %+v", before, after)
	}
}
