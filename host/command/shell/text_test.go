package shell_test

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/host/command/shell"
	"github.com/sentinel-runtime/sentinel/host/redact"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

func TestClean(t *testing.T) {
	tests := []struct{ in, want string }{
		{"plain", "plain"},
		{"a\tb", "a\tb"},
		{"\x1b[31mred\x1b[0m", "red"},
		{"\x1b]0;title\x07text", "text"},
		{"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"},
		{"\x1b(Bx\x1b7y\x1b", "xy"},
		{"\x1b[12", ""},
		{"10%\r50%\r100%", "10%\r50%\r100%"}, // data
		{"end\r", "end\r"},
		{"\xff\xfeok", "\uFFFDok"},
		{"bell\x07 back\x08 nul\x00", "bell back nul"},
		{"c1 \u009b31m", "c1 31m"},
		{"é", "é"},
	}
	for _, tt := range tests {
		if got := shell.Clean([]byte(tt.in)); got != tt.want {
			t.Errorf("%q became %q, want %q", tt.in, got, tt.want)
		}
	}
}

func TestSplitter(t *testing.T) {
	var s shell.Splitter
	var got []string
	emit := func(text string) { got = append(got, text) }
	for _, piece := range []string{"a", "b\nc\n\n", "d\xc3", "\xa9\n", "dos\r", "\n", "1%\r2%\r\n", "last\r"} {
		s.Push([]byte(piece), emit)
	}
	s.Flush(emit)
	if diff := cmp.Diff([]string{"ab", "c", "", "dé", "dos\r", "1%\r2%\r", "last\r"}, got); diff != "" {
		t.Error(diff)
	}
	got = nil
	s.Push([]byte(strings.Repeat("é", 40_000)), emit)
	s.Flush(emit)
	if len(got) != 3 || strings.Join(got, "") != strings.Repeat("é", 40_000) {
		t.Errorf("a long line became %d pieces", len(got))
	}
}

// TestSplitterWithoutSecrets has a secret at every place around the cut of a long line, also
// with control characters within, and in reads of every length.
func TestSplitterWithoutSecrets(t *testing.T) {
	const secret = "S3cr3t/Value+0123456789abcd"
	r := new(redact.Redactor)
	if err := r.Register(secret); err != nil {
		t.Fatal(err)
	}
	for _, form := range []string{secret, "S3cr3t/\x1b[1mVal\x00ue+0123456789abcd", "UzNjcjN0L1ZhbHVlKzAxMjM0NTY3ODlhYmNk", "S3cr3t%2FValue%2B0123456789abcd"} {
		for before := 32<<10 - len(form) - 2; before <= 32<<10+2; before++ {
			s := shell.NewSplitter(r)
			var got strings.Builder
			emit := func(text string) { got.WriteString(text) }
			line := strings.Repeat("-", before) + form + strings.Repeat("-", 100)
			half := before + len(form)/2
			s.Push([]byte(line[:half]), emit)
			s.Push([]byte(line[half:]), emit)
			s.Flush(emit)
			if want := strings.Repeat("-", before) + redact.Mark + strings.Repeat("-", 100); got.String() != want {
				t.Fatalf("%q behind %d bytes: ...%s", form, before, got.String()[before-20:])
			}
		}
	}
}

// FuzzSplitter gives bytes with a secret in two parts, and at once. The lines are the same, have no
// secret, and all else: as each line has it that is looked at alone.
func FuzzSplitter(f *testing.F) {
	const secret = "S3cr3t/Value+0123456789abcd"
	f.Add([]byte("a\nb $\n\x1b[1mc$d\x1b[0m\n$"), uint(7), false)
	f.Add([]byte("S3cr3t/\x1b[1mValue+0123456789abcd\n%20%53\n S3cr3t%2FValue%2B0123456789abcd\n\xff$\r\n"), uint(20), true)
	f.Add([]byte("UzNjcjN0L1ZhbHVlKzAxMjM0NTY3ODlhYmNk and 50%\n$ S3cr3t...\n"), uint(12), true)
	r := new(redact.Redactor)
	if err := r.Register(secret); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte, cut uint, long bool) {
		data = bytes.ReplaceAll(data, []byte("$"), []byte(secret))
		if long {
			data = append(bytes.Repeat([]byte("-"), 32<<10-len(data)%64), data...)
		}
		at := int(cut % uint(len(data)+1))
		split := func(pieces ...[]byte) (list []string) {
			s := shell.NewSplitter(r)
			emit := func(line string) { list = append(list, line) }
			for _, piece := range pieces {
				s.Push(bytes.Clone(piece), emit)
			}
			s.Flush(emit)
			return list
		}
		whole := split(data)
		if diff := cmp.Diff(whole, split(data[:at], data[at:])); diff != "" {
			t.Fatalf("cut at %d (-whole +parts):\n%s", at, diff)
		}
		var each []string
		for line := range bytes.Lines(data) {
			each = append(each, split(line)...)
		}
		if diff := cmp.Diff(each, whole); diff != "" {
			t.Fatalf("(-each +whole):\n%s", diff)
		}
		for _, line := range whole {
			if shown := shell.Clean([]byte(line)); strings.Contains(line, secret) || strings.Contains(shown, secret) || r.String(shown) != shown {
				t.Fatalf("%q has a secret", line)
			}
		}
	})
}

// TestExcerptOfBlocks: an excerpt of lines that come together is that of lines that come one by one.
func TestExcerptOfBlocks(t *testing.T) {
	texts := map[string]string{
		"short":  "one\ntwo\nthree",
		"lines":  manyLines(0, 500),
		"signs":  strings.Repeat("<&>\t\"\\\n", 300),
		"empty":  strings.Repeat("\n", 3000),
		"long":   "begin\n" + strings.Repeat("x", 5000) + "\n" + strings.Repeat("end\n", 400) + strings.Repeat("y", 3000),
		"colors": strings.Repeat("\x1b[1mbold\x1b[0m\n10%\r20%\r\n", 300),
	}
	for name, text := range texts {
		for _, size := range []int{100, 1 << 10, 5000, 100_000} {
			for _, data := range []bool{false, true} {
				for _, short := range []int{0, size / 2} {
					want, dropped, complete := shell.ExcerptOf(size, short, data, 1, text)
					if size == 100_000 && !complete || dropped > 0 == complete && !strings.Contains(want, "[line cut]") {
						t.Errorf("%s in %d: %d dropped, complete %v", name, size, dropped, complete)
					}
					for _, n := range []int{2, 7, 100, 10_000} {
						got, d, c := shell.ExcerptOf(size, short, data, n, text)
						if got != want || d != dropped || c != complete {
							t.Errorf("%s in %d, by %d lines: %d dropped, complete %v, want %d, %v\n%.300q\nwant\n%.300q", name, size, n, d, c, dropped, complete, got, want)
						}
					}
				}
			}
		}
	}
}

func TestRules(t *testing.T) {
	tests := []struct {
		rule  shell.Rule
		field string
	}{
		{shell.Rule{Pattern: "a", Classification: "ERROR", Action: "Suppress"}, ""},
		{shell.Rule{Pattern: "a"}, ""},
		{shell.Rule{Pattern: "("}, "rules[0].pattern"},
		{shell.Rule{Pattern: ""}, "rules[0].pattern"},
		{shell.Rule{Pattern: strings.Repeat("a", 1025)}, "rules[0].pattern"},
		{shell.Rule{Pattern: "(a{500}){500}"}, "rules[0].pattern"},
		{shell.Rule{Pattern: "a", Classification: "fatal"}, "rules[0].classification"},
		{shell.Rule{Pattern: "a", Action: "drop"}, "rules[0].action"},
	}
	for _, tt := range tests {
		_, stored, err := shell.CompileRules([]shell.Rule{tt.rule})
		if tt.field == "" {
			if err != nil || stored[0].Classification == "" || stored[0].Action == "" {
				t.Errorf("%+v: %v, %v", tt.rule, stored, err)
			}
			continue
		}
		if e := abi.As(err); e == nil || e.Code != abi.BadFields || e.Field != tt.field {
			t.Errorf("%+v: %v", tt.rule, err)
		}
	}
	if _, _, err := shell.CompileRules(make([]shell.Rule, 101)); abi.CodeOf(err) != abi.BadFields {
		t.Errorf("101 rules: %v", err)
	}
}

func FuzzClean(f *testing.F) {
	for _, seed := range []string{"a\x1b[31mb", "\x1b]", "\x1bP\x1b\\", "\r\r", "\xff", "\x1b[", "\x1b(", "\u009b", "plain and more than 8\nbytes\n", "tabs\tare\ttext\n", "del\x7f12345678", "long and wide \u2028", "é and \u0085"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		got := shell.Clean(line)
		isPlain := true
		for l := range bytes.Lines(line) {
			l = bytes.TrimSuffix(l, []byte("\n"))
			isPlain = isPlain && shell.Clean(l) == string(l)
		}
		if shell.Plain(line) != isPlain {
			t.Fatalf("%q: plain is %v", line, !isPlain)
		}
		if !utf8.ValidString(got) || strings.ContainsAny(got, "\n\x1b\x00") || shell.Clean([]byte(got)) != got {
			t.Fatalf("%q became %q", line, got)
		}
	})
}

func FuzzRules(f *testing.F) {
	f.Add("error TS\\d+", "Error", "Emit", "x error TS12")
	f.Add("(", "", "", "")
	f.Add("(?i)^a|b$", "verbose", "suppress", "B")
	f.Fuzz(func(t *testing.T, pattern, class, action, text string) {
		set, stored, err := shell.CompileRules([]shell.Rule{{Pattern: pattern, Classification: class, Action: action}})
		if err != nil {
			if abi.CodeOf(err) != abi.BadFields {
				t.Fatal(err)
			}
			return
		}
		class1, matched, emit := shell.Classify(set, text)
		if !matched && (class1 != "verbose" || emit) || matched && class1 != stored[0].Classification {
			t.Fatalf("%q on %q: %s %v %v", pattern, text, class1, matched, emit)
		}
		if _, again, err := shell.CompileRules(stored); err != nil || again[0] != stored[0] {
			t.Fatalf("stored rules do not stay: %v, %v", again, err)
		}
	})
}
