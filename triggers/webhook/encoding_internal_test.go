package webhook

import (
	"bytes"
	"compress/gzip"
	"errors"
	"testing"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/triggers"
)

// TestDecompressedBytesAreCharged: what a body becomes is taken from its budget as it grows, and a refusal
// ends the request before all of it is in memory.
func TestDecompressedBytesAreCharged(t *testing.T) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write(make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	full := abi.New(abi.Unavailable, "the budget is used up")
	for _, limit := range []int{1 << 20, 100_000} {
		used := 0
		body, err := decodeContent(triggers.Request{
			Header: map[string][]string{"Content-Encoding": {"gzip"}}, Body: packed.Bytes(),
			Charge: func(n int) error {
				if used += n; used > limit {
					return full
				}
				return nil
			},
		})
		switch {
		case limit < 1<<20:
			if !errors.Is(err, full) || used > 2*limit {
				t.Errorf("limit %d: %d bytes were charged, %v", limit, used, err)
			}
		case err != nil || len(body) != 1<<20 || used != 1<<20:
			t.Errorf("%d bytes, %d were charged, %v", len(body), used, err)
		}
	}
}
