package termtext_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/sentinel-runtime/sentinel/host/internal/termtext"
)

func TestLine(t *testing.T) {
	for in, want := range map[string]string{
		"": "",
		"plain text, übung, 日本語, שלום, 😀":                   "plain text, übung, 日本語, שלום, 😀",
		"family 👩\u200d👩\u200d👧, heart ❤️, می\u200cخواهم":   "family 👩\u200d👩\u200d👧, heart ❤️, می\u200cخواهم",
		"\x1b[2K\x1b]0;title\a":                             `\x1b[2K\x1b]0;title\x07`,
		"a\nb\r\nc\td":                                      `a\nb\r\nc\td`,
		"nul\x00 del\x7f c1\u009b31m":                       `nul\x00 del\x7f c1\x9b31m`,
		"\u202eesrever\u202c \u2066x\u2069":                 `\u202eesrever\u202c \u2066x\u2069`,
		"\u061c\u200b\u200e\u2028\u2029":                    `\u061c\u200b\u200e\u2028\u2029`,
		"\ufeff\U000e0041":                                  `\ufeff\U000e0041`,
		"./build\u3164\u00ad\u115f\uffa0\u2800\u034f\u180e": `./build\u3164\xad\u115f\uffa0\u2800\u034f\u180e`,
		"a\u200cb\ufe0f я\ufe00 é\U000e0100 1\ufe0f\u20e3":  `a\u200cb\ufe0f я\ufe00 é\U000e0100 ` + "1\ufe0f\u20e3",
		"\U0001d173\U0001bca0\U00013430\U00016fe4\ufff0":    `\U0001d173\U0001bca0\U00013430\U00016fe4\ufff0`,
		"not UTF-8: \x9b2J\xff":                             `not UTF-8: \x9b2J\xff`,
		`a backslash \x1b stays`:                            `a backslash \x1b stays`,
		"replacement \ufffd stays":                          "replacement \ufffd stays",
	} {
		if got := string(termtext.Line(in)); got != want {
			t.Errorf("Line(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestBlock(t *testing.T) {
	for in, want := range map[string]string{
		"one":                   "one",
		"one\n\ttwo\r\nthree\n": "one\n  \ttwo\n  three",
		"a\x1b[A\n\u202eb\rc":   "a\\x1b[A\n  \\u202eb\\rc",
	} {
		if got := string(termtext.Block(in, "  ")); got != want {
			t.Errorf("Block(%q) = %q, want %q", in, got, want)
		}
	}
}

// named is a string type, as names of sentinels are.
type named string

func TestOverwrite(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "a\nb": "a\nb", "one\rtwo\rthree": "three", "1%\r2%\r": "2%", "a\r\nb\rc\r\n": "a\nc\n", "\r\r": "",
	} {
		if got := termtext.Overwrite(in); got != want {
			t.Errorf("Overwrite(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestSprintf(t *testing.T) {
	green := termtext.Text("\x1b[32mok\x1b[0m")
	got := termtext.Sprintf("%s|%s|%v|%q|%-6s|%*d|%v|%v|%.3s", green, "\x1b", errors.New("x\ny"), "a\n", named("\u202e"), 4, 7, nil, time.Second, "a\x1bcd")
	want := "\x1b[32mok\x1b[0m|\\x1b|x\\ny|\"a\\n\"|\\u202e     |   7|<nil>|1s|a\\x1bc"
	if string(got) != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestJSON(t *testing.T) {
	for in, want := range map[string]string{
		`{"a":1}`:                `{"a":1}`,
		"{\n  \"a\": \"b\"\n}\n": "{\n  \"a\": \"b\"\n}\n",
		`"\u003cb\u003E \u0026"`: `"<b> &"`,
		`"\\u003c \" \u001b"`:    `"\\u003c \" \u001b"`,
		"\"\u202e\u009b\x7f\"":   `"\u202e\u009b\u007f"`,
		"\"\U000e0041\"":         `"\udb40\udc41"`,
		"\"\xff\"":               `"\ufffd"`,
		`"日本 😀"`:                 `"日本 😀"`,
	} {
		if got := string(termtext.JSON([]byte(in))); got != want {
			t.Errorf("JSON(%q) = %q, want %q", in, got, want)
		}
	}
}

// TestWriter splits characters and sequences between writes.
func TestWriter(t *testing.T) {
	const in = "a\n\tü😀\x1b[2K\u202e\x9b\xe2\x82"
	for n := 1; n <= len(in); n++ {
		var out strings.Builder
		w := termtext.NewWriter(&out)
		for rest := in; rest != ""; rest = rest[min(n, len(rest)):] {
			if m, err := w.Write([]byte(rest[:min(n, len(rest))])); err != nil || m != min(n, len(rest)) {
				t.Fatal(m, err)
			}
		}
		if got, want := out.String(), "a\n\tü😀\\x1b[2K\\u202e\\x9b"; got != want { // the end of in is no whole character
			t.Errorf("by %d: %q, want %q", n, got, want)
		}
	}
}

// FuzzEscape holds that no unsafe character is left and that JSON keeps its value.
func FuzzEscape(f *testing.F) {
	f.Add("\x1b[2K\u202e\n\"\\u003c")
	f.Fuzz(func(t *testing.T, s string) {
		if line := string(termtext.Line(s)); strings.ContainsFunc(line, steers) {
			t.Fatalf("Line(%q) = %q", s, line)
		}
		for line := range strings.SplitSeq(string(termtext.Block(s, "  ")), "\n") {
			if strings.ContainsFunc(strings.ReplaceAll(line, "\t", ""), steers) {
				t.Fatalf("Block(%q) has line %q", s, line)
			}
		}
		quoted, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var before, after any
		text := termtext.JSON(quoted)
		if err := errors.Join(json.Unmarshal(quoted, &before), json.Unmarshal(text, &after)); err != nil || !reflect.DeepEqual(before, after) {
			t.Fatalf("JSON(%s) = %s: %v", quoted, text, err)
		}
		if strings.ContainsFunc(string(text), steers) {
			t.Fatalf("JSON(%s) = %s", quoted, text)
		}
	})
}

// steers is an independent statement of what must not be left.
func steers(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) }

// TestBlanks: what would push the end of a text out of sight is counted, and all else is as it was.
func TestBlanks(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "a": "a", "a\n\n\n\nb\n": "a\n\n\n\nb\n",
		"a" + strings.Repeat("\n", 3001) + "rm":            "a\n[3000 blank lines]\nrm",
		"a" + strings.Repeat("\n \t\u00a0", 40) + "\nrm":   "a\n[40 blank lines]\nrm",
		"@@\n" + strings.Repeat("+\n", 50) + "+rm\n-\n-\n": "@@\n+[50 blank lines]\n+rm\n-\n-\n",
		"a" + strings.Repeat(" ", 59) + "b":                "a" + strings.Repeat(" ", 59) + "b",
		"a" + strings.Repeat("\u200b\u2800", 40) + "b":     "a[80 blanks]b", // invisible
		strings.Repeat("+\n-\n \u200b\n", 40) + "+rm":      "[120 blank lines]\n+rm",
		"a" + strings.Repeat(" \u2003", 50) + "b é":        "a[100 blanks]b é",
		"a" + strings.Repeat("\t", 90):                     "a[90 blanks]",
	} {
		if got := termtext.Blanks(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
