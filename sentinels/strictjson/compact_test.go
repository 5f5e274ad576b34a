package strictjson_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// TestIsCompact puts each text at all offsets within a word.
func TestIsCompact(t *testing.T) {
	for text, want := range map[string]bool{
		`{"a b":[1,"c d",{}],"é":"\" \\"}`: true,
		`"\\ \" \\\" é"`:                   true,
		`"\u0020 \\"`:                      true,
		`[true,"a" ]`:                      false,
		`["a\\", "b"]`:                     false,
		`["a\\\"",  "b"]`:                  false,
		"{\"a\":\n1}":                      false,
		"[1,\t2]":                          false,
		"[1,\r2]":                          false,
	} {
		for shift := range 17 {
			for _, fill := range []string{"7", "é"} {
				shifted := `["` + strings.Repeat(fill, shift) + `",` + text + `,"` + strings.Repeat(fill, 16-shift) + `"]`
				if got := strictjson.IsCompact([]byte(shifted)); got != want {
					t.Errorf("%s: %t", shifted, got)
				}
			}
		}
	}
}

// FuzzIsCompact: a text is compact if encoding/json leaves it as it is.
func FuzzIsCompact(f *testing.F) {
	for _, text := range []string{`{"a b":"\\\" c"}`, `[ 1]`, "[\"\\\\\",\"\u2028\",\"\xff\x1f \"]", `["1234567\\" ,""]`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var compact bytes.Buffer
		if json.Compact(&compact, text) != nil {
			strictjson.IsCompact(text) // whatever it is
			return
		}
		if got, want := strictjson.IsCompact(text), bytes.Equal(compact.Bytes(), text); got != want {
			t.Errorf("%q: %t, want %t", text, got, want)
		}
	})
}

func BenchmarkIsCompact(b *testing.B) {
	text := []byte(`[` + strings.Repeat(`{"name":"some text","note":"a \"b\"","b":[1,2,3]},`, 20_000) + `0]`)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if !strictjson.IsCompact(text) {
			b.Fatal("not compact")
		}
	}
}
