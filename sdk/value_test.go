package sdk_test

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/sdk"
)

func TestParseAndEncode(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"scalars", ` [ null , true,false,0,-1.50e+3,"" ] `, `[null,true,false,0,-1.50e+3,""]`},
		{"order of fields stays", `{"b":1,"a":{"d":2,"c":3}}`, `{"b":1,"a":{"d":2,"c":3}}`},
		{"long numbers keep their digits", `123456789012345678901234567890.10`, `123456789012345678901234567890.10`},
		{"escapes", `"\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00"`, `"\"\\/\u0008\u000c\n\r\té😀"`},
		{"half a pair", `"\ud83d x \ude00 \ud83d\u0041"`, `"� x � �A"`},
		{"plain UTF-8", `"héllo ✓ wörld"`, `"héllo ✓ wörld"`},
		{"empty", `[{},[]]`, `[{},[]]`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v, err := sdk.Parse(tt.in)
			if err != nil {
				t.Fatal(err)
			}
			if got := v.String(); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	many := make([]string, 40)
	for i := range many {
		many[i] = `"k` + strings.Repeat("x", i) + `":1`
	}
	for in, want := range map[string]string{
		``:              "unexpected end",
		`{`:             "expected a key",
		`{"a":1,}`:      "expected a key",
		`[1,]`:          "expected a value",
		`[1 2]`:         "expected , or ]",
		`{"a" 1}`:       "expected :",
		`{"a":1 "b":2}`: "expected , or }",
		`{"a":1,"a":2}`: "duplicate key",
		`{` + strings.Join(many, ",") + `,"kxx":1}`: "duplicate key",
		`01`:                     "text after the value",
		`1.`:                     "expected a digit",
		`1e`:                     "expected a digit",
		`-`:                      "expected a digit",
		`+1`:                     "expected a value",
		`nul`:                    "expected a value",
		`"a`:                     "string without an end",
		`"a\`:                    "unexpected end",
		`"\x"`:                   "unknown escape",
		`"\u12g4"`:               "expected four hex digits",
		"\"a\nb\"":               "control character in a string",
		"\"\xff\"":               "not UTF-8",
		strings.Repeat("[", 300): "nested too deeply",
		`{} x`:                   "text after the value",
	} {
		_, err := sdk.Parse(in)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Parse(%.40q) = %v, want %q", in, err, want)
		}
	}
}

func TestCanonical(t *testing.T) {
	a, _ := sdk.Parse(`{"b":[{"y":1,"x":2}],"a":0,"é":3,"":4}`)
	b, _ := sdk.Parse(`{"":4,"é":3,"a":0,"b":[{"x":2,"y":1}]}`)
	if a.Canonical() != b.Canonical() {
		t.Errorf("%s\n%s", a.Canonical(), b.Canonical())
	}
	if want := `{"":4,"a":0,"b":[{"x":2,"y":1}],"é":3}`; a.Canonical() != want {
		t.Errorf("got  %s\nwant %s", a.Canonical(), want)
	}
}

func TestBuild(t *testing.T) {
	v := sdk.Object(
		sdk.F("s", sdk.String("a\x00\"\xff")),
		sdk.F("none", sdk.Text("")),
		sdk.F("n", sdk.Int(math.MinInt64)),
		sdk.F("f", sdk.Float(0.25)),
		sdk.F("nan", sdk.Float(math.NaN())),
		sdk.F("inf", sdk.Float(math.Inf(-1))),
		sdk.F("l", sdk.List(sdk.Bool(true), sdk.Value{}, sdk.Null())),
		sdk.F("no list", sdk.Strings(nil)),
		sdk.F("empty", sdk.Strings([]string{})),
		sdk.F("s", sdk.String("later wins")),
	)
	const want = `{"s":"later wins","n":-9223372036854775808,"f":0.25,"nan":null,"inf":null,"l":[true,null],"empty":[]}`
	if got := v.String(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	changed := v.With("n", sdk.Int(1)).With("f", sdk.Value{}).With("new", sdk.Null())
	if got, want := changed.String(), `{"s":"later wins","n":1,"nan":null,"inf":null,"l":[true,null],"empty":[],"new":null}`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if v.String() != want {
		t.Error("With changed the value it was called on")
	}
	if got := sdk.Int(3).With("a", sdk.Int(1)).String(); got != `{"a":1}` {
		t.Errorf("With on a number: %s", got)
	}
	if got := sdk.String("a\x00\"\xff").String(); got != `"a\u0000\"�"` {
		t.Errorf("got %s", got)
	}
}

func TestRead(t *testing.T) {
	v, err := sdk.Parse(`{"i":3.0,"e":2e2,"f":1.5,"big":1e300,"s":"x","b":true,"z":null,"l":["a","b"],"m":["a",1]}`)
	if err != nil {
		t.Fatal(err)
	}
	ints := map[string]int64{"i": 3, "e": 200}
	for name, want := range ints {
		if n, ok := v.Get(name).AsInt(); !ok || n != want {
			t.Errorf("%s: %d %v", name, n, ok)
		}
	}
	for _, name := range []string{"f", "big", "s", "z", "missing"} {
		if n, ok := v.Get(name).AsInt(); ok {
			t.Errorf("%s read as %d", name, n)
		}
	}
	if b, ok := v.Get("b").AsBool(); !b || !ok {
		t.Error("b")
	}
	if _, ok := v.Get("s").AsBool(); ok {
		t.Error("s read as a boolean")
	}
	if l, ok := v.Get("l").AsStrings(); !ok || len(l) != 2 || l[1] != "b" {
		t.Errorf("l: %v %v", l, ok)
	}
	if _, ok := v.Get("m").AsStrings(); ok {
		t.Error("m read as strings")
	}
	if v.Get("z").Given() || !v.Get("z").Exists() || v.Get("missing").Exists() {
		t.Error("null and absent are not told apart")
	}
	if v.Get("l").At(1).StringOr("") != "b" || v.Get("l").At(2).Exists() || v.At(0).Exists() || v.Get("s").Get("x").Exists() {
		t.Error("At or Get went astray")
	}
	var zero sdk.Value
	if zero.String() != "null" || zero.Len() != 0 || zero.Kind() != sdk.KindAbsent {
		t.Error("the zero value is not an absent one")
	}
}

func TestCutStart(t *testing.T) {
	for _, tt := range []struct {
		s    string
		n    int
		want string
	}{{"héllo", 9, "héllo"}, {"héllo", 6, "héllo"}, {"héllo", 4, "llo"}, {"héllo", 5, "éllo"}, {"é", 1, ""}, {"", 3, ""}, {"ab", 0, ""}} {
		if got := sdk.CutStart(tt.s, tt.n); got != tt.want {
			t.Errorf("the last %d bytes of %q: %q, want %q", tt.n, tt.s, got, tt.want)
		}
	}
}

func TestCut(t *testing.T) {
	for _, tt := range []struct {
		s    string
		n    int
		want string
	}{{"abc", 5, "abc"}, {"abc", 2, "ab"}, {"aé", 2, "a"}, {"😀", 3, ""}, {"x", 0, ""}, {"", 1, ""}} {
		if got := sdk.Cut(tt.s, tt.n); got != tt.want {
			t.Errorf("Cut(%q, %d) = %q, want %q", tt.s, tt.n, got, tt.want)
		}
	}
}

// FuzzParse compares the codec with the standard one: a text that Parse accepts is JSON
// with the same value, and a text that it refuses is not JSON or refused on purpose.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{`{"a":[1,2.5e-3,"\ud83d\ude00é"],"b":null}`, `[[[]]]`, `"\ud83d"`, `{"a":1,"a":2}`, "\"\xff\"", `-0`, ` true `} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v, err := sdk.Parse(text)
		if err != nil {
			if json.Valid([]byte(text)) {
				for _, reason := range []string{"duplicate key", "not UTF-8", "nested too deeply"} {
					if strings.Contains(err.Error(), reason) {
						return
					}
				}
				t.Fatalf("refused JSON: %v", err)
			}
			return
		}
		var want, got any
		if err := json.Unmarshal([]byte(text), &want); err != nil {
			if strings.Contains(err.Error(), "cannot unmarshal number") {
				return // out of range for a float64
			}
			t.Fatalf("accepted a text that is not JSON: %v", err)
		}
		for _, encoded := range []string{v.String(), v.Canonical()} {
			if err := json.Unmarshal([]byte(encoded), &got); err != nil {
				t.Fatalf("wrote %q: %v", encoded, err)
			}
			a, _ := json.Marshal(want)
			b, _ := json.Marshal(got)
			if string(a) != string(b) {
				t.Fatalf("wrote %s for %s", b, a)
			}
		}
		again, err := sdk.Parse(v.String())
		if err != nil || again.String() != v.String() {
			t.Fatalf("second time: %v %s %s", err, again, v)
		}
	})
}

// TestLongTextsWithEscapes: a long text is read as a short one is, written as it was, and canonical
// whatever its escapes are.
func TestLongTextsWithEscapes(t *testing.T) {
	const escapes = `\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00\ud800é`
	plain := strings.Repeat("x", 8<<10)
	for _, long := range []string{plain + escapes, escapes + plain, plain + escapes + plain} {
		source := `{"a":"` + long + `"}`
		v, err := sdk.Parse(source)
		if err != nil {
			t.Fatal(err)
		}
		short, err := sdk.Parse(`{"a":"` + strings.ReplaceAll(long, plain, "") + `"}`)
		if err != nil {
			t.Fatal(err)
		}
		got, want := v.Get("a").StringOr(""), short.Get("a").StringOr("")
		if strings.ReplaceAll(got, plain, "") != want {
			t.Errorf("read as %q, want %q", strings.ReplaceAll(got, plain, ""), want)
		}
		if v.String() != source {
			t.Error("written in another form than it was read")
		}
		if want := `{"a":` + sdk.String(got).String() + `}`; v.Canonical() != want {
			t.Error("the canonical form has escapes as they were read")
		}
	}
	for _, bad := range []string{`\x`, `\u12g4`, `\`} {
		if _, err := sdk.Parse(`"` + plain + bad + `"`); err == nil {
			t.Errorf("a long text with %s is accepted", bad)
		}
	}
}

// TestObjectsOfManyFields: an object of eight times as many fields takes about eight times as long, as a step
// with thousands of values would otherwise keep a processor for minutes.
func TestObjectsOfManyFields(t *testing.T) {
	took := func(n int) time.Duration {
		fields := make([]sdk.Field, n)
		for i := range fields {
			fields[i] = sdk.F("value"+strconv.Itoa(i), sdk.Null())
		}
		fastest := time.Duration(math.MaxInt64)
		for range 5 {
			start := time.Now()
			if v := sdk.Object(append(fields, sdk.F("value17", sdk.Int(1)))...); v.Len() != n || v.Get("value17").String() != "1" {
				t.Fatalf("%d fields of %d", v.Len(), n)
			}
			fastest = min(fastest, time.Since(start))
		}
		return fastest
	}
	var ratio float64
	for range 10 { // other work of the machine may fall into any measurement
		if ratio = float64(took(16_000)) / float64(took(2_000)); ratio < 20 {
			return
		}
	}
	t.Errorf("eight times as many fields took %.0f times as long", ratio)
}
