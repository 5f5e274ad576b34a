package sentinel

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/sentinel-runtime/sentinel/sentinels"
)

// FuzzDecodeBundle holds the reader of bundles to: no panic, and what it takes can
// be written and is taken again. Anything but a bundle is passed on unchanged.
func FuzzDecodeBundle(f *testing.F) {
	for _, s := range []string{
		`{"format":1,"exportedAt":"2026-01-01T00:00:00Z","sentinels":[{"sentinelId":"a","definition":{"id":"a"},"revisions":[{"revision":1,"savedAt":"2026-01-01T00:00:00Z","deleted":true}]}]}`,
		`{"format":2,"sentinels":[]}`, `{"sentinels":null}`, `// a definition
{"name":"a","steps":[]}`, `{"format":1,"sentinels":[{}]} x`, `[]`, ``,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		b, err := decodeBundle(src, "fuzz")
		if err != nil {
			return
		}
		if len(b.Sentinels) == 0 || b.Format != bundleFormat {
			t.Fatalf("an empty bundle, or one of format %d, is taken", b.Format)
		}
		if len(b.Sentinels) == 1 && bytes.Equal(b.Sentinels[0].Definition, src) {
			return
		}
		text, err := json.Marshal(b)
		if err != nil {
			return // a year beyond 9999, which no writer makes
		}
		if _, err := decodeBundle(text, "again"); err != nil {
			t.Fatalf("%s is not taken: %v", text, err)
		}
	})
}

// FuzzRenameText holds the renaming to: the same value but for the id and the
// references, and back again the same.
func FuzzRenameText(f *testing.F) {
	f.Add([]byte(`{"id":"a","steps":[{"definition":{"$ref":"a"}},{"x":{"$ref":"b"}},{"y":[[{"$ref":"a","z":1}]]}],"s":"\u003c\ud800"}`))
	f.Add([]byte(`{"id":1,"id":2,"\u0069d":3}`))
	f.Fuzz(func(t *testing.T, src []byte) {
		if len(src) > 10_000 || bytes.Contains(src, []byte("fuzz-new")) {
			return
		}
		there, err := renameText(src, "fuzz-new", map[sentinels.ID]sentinels.ID{"a": "fuzz-new"})
		if err != nil {
			return
		}
		if !json.Valid(there) {
			t.Fatalf("%s became %s", src, there)
		}
		back, err := renameText(there, "a", map[sentinels.ID]sentinels.ID{"fuzz-new": "a"})
		if err != nil {
			t.Fatalf("%s: %v", there, err)
		}
		want, err := renameText(src, "a", nil)
		if err != nil {
			t.Fatal(err)
		}
		if a, b := canonical(t, want), canonical(t, back); a != b {
			t.Fatalf("%s went there and came back as %s", a, b)
		}
	})
}

func canonical(t *testing.T, text json.RawMessage) string {
	out, err := sentinels.Canonical(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return string(out)
}
