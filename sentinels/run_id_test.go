package sentinels_test

import (
	"testing"

	"github.com/sentinel-runtime/sentinel/sentinels"
)

// TestNoSentinelHasTheIDOfARun: an id is not that of a run, and no name gives one.
func TestNoSentinelHasTheIDOfARun(t *testing.T) {
	const run = "01a2292e-f7a9-767a-a5eb-5f464810e4f6"
	if !sentinels.RunID(run).WellFormed() {
		t.Error("the id of a run is not well-formed")
	}
	for _, other := range []string{"", run[1:], run + "0", "01a2292ef7a9-767a-a5eb-5f464810e4f6-", "01a2292g-f7a9-767a-a5eb-5f464810e4f6", "01A2292E-F7A9-767A-A5EB-5F464810E4F6"} {
		if sentinels.RunID(other).WellFormed() {
			t.Errorf("%q is well-formed", other)
		}
	}
	for _, name := range []string{run, "01A2292E F7A9 767A A5EB 5F464810E4F6"} {
		if id := sentinels.Slug(name); sentinels.RunID(id).WellFormed() || !id.Valid() {
			t.Errorf("the name %q gives the id %q", name, id)
		}
	}
}
