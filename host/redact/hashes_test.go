package redact_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/redact"
)

// TestHashes: hashes of definitions are replaced wherever they stand, always by the same text, and those of files,
// commits and of what a definition has are not. The rest of the text keeps each byte.
func TestHashes(t *testing.T) {
	h := redact.NewHashes()
	sum := strings.Repeat("0a", 32)
	for _, c := range []struct {
		text     string
		replaced int
	}{
		{`{"sentinelId": "a", "hash": "SUM"}`, 1},
		{`{"hash":"SUM","revision":3}`, 1},
		{`{"runs":[{"run":"r","hash":"SUM","as":"é<"},{"run":"q","hash":"SUM"}],"next":""}`, 2},
		{`{"output":{"iterations":[{"number":1,"steps":[{"output":{"revision":2,"hash":"SUM"}}],"hash":"SUM"}]}}`, 2},
		{`{"pin":{"criteria_digest":"SUM"}}`, 1},
		{`{"path":"a.txt","hash":"SUM"}`, 0},
		{`{"run":"r","hash":"0a0a"}`, 0},
		{`{"run":"r","hash":null}`, 0},
		{`{"definition":{"revision":1,"hash":"SUM"}}`, 0},
		{`"hash"`, 0},
		{`{"run":"r","hash":"SUM"`, 0},
	} {
		text := strings.ReplaceAll(c.text, "SUM", sum)
		want := text
		if c.replaced > 0 {
			want = strings.ReplaceAll(text, sum, h.Of(sum))
		}
		got := string(h.JSON(json.RawMessage(text)))
		if got != want || strings.Count(got, h.Of(sum)) != c.replaced {
			t.Errorf("%s\ngot  %s\nwant %s", text, got, want)
		}
		if again := string(h.JSON(json.RawMessage(got))); again != got {
			t.Errorf("replaced again: %s, was %s", again, got)
		}
	}
	if other := redact.NewHashes().Of(sum); other == h.Of(sum) || len(other) >= len(sum) {
		t.Errorf("with another key %s, with this one %s", other, h.Of(sum))
	}
}
