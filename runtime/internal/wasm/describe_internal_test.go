package wasm

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/subprocess"
	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm/compilecache"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// loopingGuest returns a module whose describe never ends.
func loopingGuest(t *testing.T) []byte {
	t.Helper()
	b, err := os.ReadFile("testdata/wat/describeloop.wasm")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestDescribeTime: a describe that does not end is interrupted. It is retried once
// if the machine was busy, and remembered, for a short time if the machine was busy then too.
func TestDescribeTime(t *testing.T) {
	for _, c := range []struct {
		name       string
		processor  time.Duration // processor time of the guest in each attempt
		limit      string        // of the last attempt
		remembered bool          // for longer than BusyMaxAge
	}{
		{"idle machine", 20 * time.Millisecond, "20ms", true},
		{"busy machine", time.Millisecond, "80ms", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := openInternal(t)
			h.child, h.describeTime = subprocess.Self(), 20*time.Millisecond
			var readings time.Duration
			h.threadTime = func() (time.Duration, bool) {
				readings++ // two for each attempt
				return readings / 2 * c.processor, true
			}
			for attempt := range 2 {
				readings = 0
				_, err := h.Load(t.Context(), loopingGuest(t), LoadOptions{})
				if abi.CodeOf(err) != abi.Timeout || !strings.Contains(err.Error(), "time limit of "+c.limit) {
					t.Errorf("load %d: %v of code %q, want a timeout after %s", attempt, err, abi.CodeOf(err), c.limit)
				}
				if attempt == 1 && readings > 0 {
					t.Error("the second load executed describe again")
				}
			}
			cache, err := h.childCache()
			if err != nil {
				t.Fatal(err)
			}
			sum := sha256.Sum256(loopingGuest(t))
			old := time.Now().Add(-compilecache.BusyMaxAge - time.Minute)
			if err := os.Chtimes(filepath.Join(cache.Dir(hex.EncodeToString(sum[:])), compilecache.DescribeRefusal), old, old); err != nil {
				t.Fatal(err)
			}
			if _, err := h.Load(t.Context(), loopingGuest(t), LoadOptions{}); abi.CodeOf(err) != abi.Timeout || readings > 0 == c.remembered {
				t.Errorf("a load %s later: %v, executed describe: %t, want %t", compilecache.BusyMaxAge, err, readings > 0, !c.remembered)
			}
			h.describeTime *= 10
			readings = 0
			if _, err := h.Load(t.Context(), loopingGuest(t), LoadOptions{}); abi.CodeOf(err) != abi.Timeout || readings == 0 {
				t.Errorf("load with a higher limit: %v, executed describe: %t, want a new attempt", err, readings > 0)
			}
		})
	}
}
