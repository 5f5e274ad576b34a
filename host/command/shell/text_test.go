package shell_test

import (
	"fmt"
	"os"
	"slices"
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

func TestSpillSurvivesReopening(t *testing.T) {
	dir := t.TempDir()
	s, err := shell.OpenSpill(dir, "id", 64<<10)
	if err != nil {
		t.Fatal(err)
	}
	add := func(from, to int) {
		t.Helper()
		var lines []shell.Stored
		for i := from; i < to; i++ {
			lines = append(lines, shell.NewStored('o', fmt.Sprintf("line %d of many", i)))
		}
		if err := s.Append(lines); err != nil {
			t.Fatal(err)
		}
	}
	add(0, 5000)
	before, err := s.Read(0, 1<<20)
	droppedLines, droppedBytes := s.Dropped()
	if err != nil || droppedLines == 0 || len(before)+droppedLines != 5000 {
		t.Fatalf("%d lines and %d dropped, %v", len(before), droppedLines, err)
	}
	f, err := os.OpenFile(s.NewestFile(), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("5000\to\t1\ttorn"); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = shell.OpenSpill(dir, "id", 64<<10); err != nil {
		t.Fatal(err)
	}
	after, err := s.Read(0, 1<<20)
	if err != nil || !slices.Equal(before, after) {
		t.Errorf("after reopening %d lines, want %d, %v", len(after), len(before), err)
	}
	if l, b := s.Dropped(); l != droppedLines || b != droppedBytes {
		t.Errorf("after reopening %d lines, %d bytes dropped, want %d, %d", l, b, droppedLines, droppedBytes)
	}
	add(5000, 5001)
	if got, err := s.Read(5000, 10); err != nil || len(got) != 1 || got[0].Text() != "line 5000 of many" {
		t.Errorf("the next line: %v, %v", got, err)
	}
}

func FuzzClean(f *testing.F) {
	for _, seed := range []string{"a\x1b[31mb", "\x1b]", "\x1bP\x1b\\", "\r\r", "\xff", "\x1b[", "\x1b(", "\u009b"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		got := shell.Clean(line)
		if !utf8.ValidString(got) || strings.ContainsAny(got, "\n\x1b\x00") || shell.Clean([]byte(got)) != got {
			t.Fatalf("%q became %q", line, got)
		}
	})
}

func FuzzParseLine(f *testing.F) {
	f.Add([]byte("0\to\t1\ttext"))
	f.Add([]byte("#12"))
	f.Add([]byte("9999999999999999999\to\t1\t"))
	f.Fuzz(func(t *testing.T, line []byte) {
		l, ok := shell.ParseLine(line)
		if !ok {
			return
		}
		again, ok := shell.ParseLine([]byte(strings.TrimSuffix(string(shell.AppendLine(nil, l)), "\n")))
		if !ok || again != l {
			t.Fatalf("%q: %v became %v", line, l, again)
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
