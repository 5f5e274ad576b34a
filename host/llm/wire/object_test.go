package wire_test

import (
	"encoding/json"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/llm/wire"
)

// FuzzReadText: a text is read as encoding/json reads it.
func FuzzReadText(f *testing.F) {
	for _, seed := range []string{`"a"`, `""`, `"`, `"a"b"`, `"ä\n"`, `"a\"b"`, "\"\xff\"", "\"\x01\"", `1`, `null`, ``, `"a" `, `"\ud800"`, `"a\\"`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var want string
		isText := len(raw) > 0 && raw[0] == '"' && json.Unmarshal(raw, &want) == nil
		if got, ok := wire.ReadText(raw); ok != isText || ok && got != want {
			t.Errorf("%q: %q, %t; want %q, %t", raw, got, ok, want, isText)
		}
	})
}
