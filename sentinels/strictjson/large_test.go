package strictjson_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

func TestLargeParts(t *testing.T) {
	limits := strictjson.LargeLimits{Bytes: 10, Members: 4, Inline: 30, Depth: 3}
	long := `"a \"long\" text\\"`
	for text, want := range map[string][]string{
		``:                      nil,
		`7`:                     nil,
		long:                    nil, // the whole text
		`[1,2,3,4,5,6,7,8,9,0]`: nil,
		`[1, ` + long + `, 2]`:  {long},
		`{"a":` + long + `,"b":{"c":[` + long + `]}}`:             {long, long},
		`{"a":{"a key that is long":1}}`:                          nil,
		`{"a":[1,2,3,4,5,6,7,8,9,0]}`:                             {`[1,2,3,4,5,6,7,8,9,0]`}, // many members
		`{"a":{"b":1,"c":2,"d":3,"e":{"f":[]},"g":` + long + `}}`: {`{"b":1,"c":2,"d":3,"e":{"f":[]},"g":` + long + `}`},
		`{"a":["1234567","1234567","1234567","1234567"]}`:         {`["1234567","1234567","1234567","1234567"]`}, // too much of it would remain
		`{"a":[[[[[` + long + `]]]],1,2,3,4,5,6,7,8]}`:            {long},                                        // too deep as a whole
		`{"a":"` + strings.Repeat(`\\`, 5) + `"}`:                 {`"` + strings.Repeat(`\\`, 5) + `"`},
	} {
		var got []string
		for _, p := range strictjson.LargeParts([]byte(text), limits) {
			got = append(got, text[p.From:p.To])
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
	text := `{"a":{"b":` + long + `},"long \"key\" of c":` + long + `}`
	if diff := cmp.Diff([]strictjson.LargePart{{10, 29, 2, "a"}, {len(text) - 1 - len(long), len(text) - 1, 1, `long \"key\" of c`}}, strictjson.LargeParts([]byte(text), limits)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// FuzzLargeParts: parts are values, in order, and the text with others in their place is JSON.
func FuzzLargeParts(f *testing.F) {
	for _, text := range []string{`{"a":["\\\"","x"],"b":{"c":{}}}`, `[[[1,2],[3]],"]"]`, `{"":"","a":[{"b":"c,:"}]}`, `{`, `"`, `]`, `1,2`, `{"a"`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		limits := strictjson.LargeLimits{Bytes: 3, Members: 3, Inline: 8, Depth: 4}
		if !json.Valid(text) {
			return
		}
		out, done := "", 0
		for _, p := range strictjson.LargeParts(text, limits) {
			if p.From < done || p.To > len(text) || !json.Valid(text[p.From:p.To]) {
				t.Fatalf("%q: part %d to %d behind %d", text, p.From, p.To, done)
			}
			out += string(text[done:p.From]) + "0"
			done = p.To
		}
		if out += string(text[done:]); !json.Valid([]byte(out)) {
			t.Fatalf("%q without its parts is %q", text, out)
		}
	})
}

func BenchmarkLargeParts(b *testing.B) {
	text := []byte(`{"a":{"v":[` + strings.Repeat(`{"a":"some text","b":[1,2,3]},`, 33_000) + `0]}}`)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if parts := strictjson.LargeParts(text, strictjson.LargeLimits{Bytes: 16 << 10, Members: 64, Inline: 64 << 10, Depth: 200}); len(parts) != 1 {
			b.Fatal(fmt.Sprint(parts))
		}
	}
}
