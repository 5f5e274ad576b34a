package store

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"testing"
)

// FuzzParseRun checks that parseRun accepts one spelling only: formatting the
// key gives the same text, so two texts never have the same key.
func FuzzParseRun(f *testing.F) {
	f.Add("0197a3c4-5b6d-7e8f-9a0b-000000000001")
	f.Add("0197A3C4-5B6D-7E8F-9A0B-000000000001")
	f.Add("ffffffff-ffff-ffff-ffff-fffffffffff")
	f.Fuzz(func(t *testing.T, text string) {
		key, err := parseRun(text)
		if err != nil {
			return
		}
		back := fmt.Sprintf("%x-%x-%x-%x-%x", key[:4], key[4:6], key[6:8], key[8:10], key[10:])
		if back != text {
			t.Errorf("%q became %q", text, back)
		}
	})
}

func FuzzParseDigest(f *testing.F) {
	f.Add("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
	f.Add("../../../../../../../../../../../../../../../../../../etc/passwd")
	f.Fuzz(func(t *testing.T, text string) {
		sum, err := parseDigest(text)
		if err == nil && hex.EncodeToString(sum[:]) != text {
			t.Errorf("%q became %x", text, sum)
		}
	})
}

func TestKeysSortAsNumbers(t *testing.T) {
	var run runKey
	last := run.at(0)
	for _, seq := range []uint64{1, 2, 255, 256, 1 << 32, All - 1, All} {
		key := run.at(seq)
		if bytes.Compare(last[:], key[:]) >= 0 {
			t.Errorf("key of %d does not sort behind the one before", seq)
		}
		last = key
	}
	run[15] = 1
	if next := run.at(0); bytes.Compare(last[:], next[:]) >= 0 {
		t.Error("runs overlap")
	}
}
