package cond

import (
	"fmt"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/sdk/abitest/abidoc"
)

// TestLimitTable compares the limits of an evaluation with clause A8.7.
func TestLimitTable(t *testing.T) {
	o := Options{}.withDefaults()
	abidoc.Want(t, "A8.7", map[string]string{
		"sentinel_eval: source":             fmt.Sprintf("%s, %d brackets within each other, regular expressions of %s", abidoc.Bytes(maxSource), maxDepth, abidoc.Bytes(maxPattern)),
		"sentinel_eval: variables it reads": fmt.Sprintf("%s in all, %s arrays and objects within each other", abidoc.Bytes(maxData), abidoc.Count(maxDataDepth)),
		"sentinel_eval: evaluation":         fmt.Sprintf("%d s of processor time, %d s in all, %s, %d calls within each other", o.ChildTimeout/time.Second, waitFactor*o.ChildTimeout/time.Second, abidoc.Bytes(o.ChildMemory), callStack),
	})
}
