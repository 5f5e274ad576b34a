package code_test

import (
	"strings"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/command/code"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

func TestEditKeepsTheEndOfEachLine(t *testing.T) {
	tests := []struct {
		name   string
		before string
		in     params
		want   string
	}{
		{"mixed, old of LF", "a\nb\r\nc\nd\n", params{"old": "b\nc", "new": "x\ny"}, "a\nx\r\ny\nd\n"},
		{"mixed, one line", "a\nb\r\nc\n", params{"old": "c", "new": "x"}, "a\nb\r\nx\n"},
		{"mixed, lines go", "a\nb\r\nc\nd\r\n", params{"old": "b\nc\n", "new": ""}, "a\nd\r\n"},
		{"new with CR LF in a file of CR LF", "a\r\nb\r\nc\r\n", params{"old": "a\nb", "new": "x\r\ny\r\nz"}, "x\r\ny\r\nz\r\nc\r\n"},
		{"new with CR LF in a file of LF", "a\nb\n", params{"old": "a", "new": "x\r\ny"}, "x\ny\nb\n"},
		{"old with CR LF in a file of LF", "a\nb\nc\n", params{"old": "a\r\nb", "new": "x\r\ny"}, "x\ny\nc\n"},
		{"a CR at the end of new", "a\r\nb\r\n", params{"old": "a", "new": "x\r"}, "x\r\nb\r\n"},
		{"one line of CR LF in a file of LF", "a\nb\nc\r\nd\ne\n", params{"old": "a\nb\nc\nd", "new": "a\nB\nc\nd"}, "a\nB\nc\r\nd\ne\n"},
		{"inserted in a file of LF with one line of CR LF", "a\nb\nc\r\nd\n", params{"old": "a\nb", "new": "a\nx\ny\nb"}, "a\nx\ny\nb\nc\r\nd\n"},
		{"inserted between lines of CR LF", "a\nb\nc\nd\r\ne\r\n", params{"old": "d\ne", "new": "d\nx\ne"}, "a\nb\nc\nd\r\nx\r\ne\r\n"},
		{"inserted between two that differ", "a\nb\nc\r\nd\n", params{"old": "b\nc", "new": "b\nx\nc"}, "a\nb\nx\nc\r\nd\n"},
		{"inserted at the start", "a\r\nb\n", params{"old": "a", "new": "x\na"}, "x\r\na\r\nb\n"},
		{"added at the end", "a\nb\r\nc", params{"old": "c", "new": "c\nd\n"}, "a\nb\r\nc\r\nd\r\n"},
		{"all in a mixed file", "a\nb\r\na\r\nb\na", params{"old": "a", "new": "x\ny", "replaceAll": true}, "x\ny\nb\r\nx\r\ny\nb\nx\ny"},
		{"twice in a line", "a a\r\nb\n", params{"old": "a", "new": "x", "replaceAll": true}, "x x\r\nb\n"},
		{"over adjacent lines", "a\r\na\nb\r\n", params{"old": "a\n", "new": "x\n", "replaceAll": true}, "x\r\nx\nb\r\n"},
		{"lines are joined", "a\r\nb\nc\n", params{"old": "a\nb", "new": "a b"}, "a b\r\nc\n"},
		{"a list", "a\nb\r\nc\n", params{"edits": []params{{"old": "a\nb", "new": "x\nb"}, {"old": "b\r\nc", "new": "b\r\ny"}}}, "x\nb\r\ny\n"},
		{"a file of one line", "a", params{"old": "a", "new": "x\r\ny\n"}, "x\r\ny\n"},
		{"a CR within a line", "a\rb\nc\r\n", params{"old": "a\rb", "new": "x\ry"}, "x\ry\nc\r\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := newHarness(t, code.Options{}, map[string]string{"f": tt.before})
			tt.in["path"] = "f"
			b.do("code/edit", tt.in)
			if got := b.get("f"); got != tt.want {
				t.Errorf("%q became\n%q, want\n%q", tt.before, got, tt.want)
			}
		})
	}
}

func TestWriteKeepsTheEndOfEachLine(t *testing.T) {
	many := func(from, to string, end string) string {
		return strings.Repeat(from+end, 2000) + strings.Repeat(to+end, 2000)
	}
	tests := []struct {
		name, before, content, lineEnds, want string
		kept                                  any
	}{
		{"LF over CR LF", "a\r\nb\r\n", "a\nx\nb\n", "", "a\r\nx\r\nb\r\n", 3.0},
		{"CR LF over LF", "a\nb\n", "a\r\nx\r\nb\r\n", "", "a\nx\nb\n", 3.0},
		{"LF over mixed", "a\nb\r\nc\nd\n", "x\na\nb\nC\nd\n", "", "x\na\nb\r\nC\nd\n", 1.0},
		{"as in the file", "a\nb\r\n", "a\nb\r\nc\n", "", "a\nb\r\nc\r\n", 1.0},
		{"mixed, all is new", "a\r\nb\r\nc\n", "x\ny\nz\nw\n", "", "x\r\ny\r\nz\nw\n", 2.0},
		{"more lines than are aligned", "h\n" + many("a", "b", "\r\n"), "h\n" + many("b", "c", "\n"), "keep", "h\n" + many("b", "c", "\r\n"), 4000.0},
		{"given", "a\r\nb\r\n", "a\nx\nb\n", "given", "a\nx\nb\n", nil},
		{"a file of one line", "a", "x\r\ny\r\n", "", "x\r\ny\r\n", nil},
		{"binary", "\x00a\r\n", "x\n", "", "x\n", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := newHarness(t, code.Options{}, map[string]string{"f": tt.before})
			in := params{"path": "f", "content": tt.content}
			if tt.lineEnds != "" {
				in["lineEnds"] = tt.lineEnds
			}
			p, err := b.preview("code/write", in)
			if err != nil {
				t.Fatal(err)
			}
			in["ifHash"] = p.Pin["ifHash"]
			out := b.do("code/write", in)
			if got := b.get("f"); got != tt.want {
				t.Errorf("%.200q became\n%.200q, want\n%.200q", tt.before, got, tt.want)
			}
			if out["keptLineEnds"] != tt.kept || out["bytes"] != float64(len(tt.want)) || out["hash"] != b.hash("f") {
				t.Errorf("result %v", out)
			}
			if out["added"] != nil && int(out["added"].(float64)) != p.Added || out["removed"] != nil && int(out["removed"].(float64)) != p.Removed {
				t.Errorf("the preview has %d added and %d removed lines, the result %v", p.Added, p.Removed, out)
			}
			b.do("code/write", in) // repeated after a crash
			if got := b.get("f"); got != tt.want {
				t.Errorf("repeated it became %.200q", got)
			}
		})
	}
	b := newHarness(t, code.Options{}, map[string]string{"f": "a\r\nb\r\n"})
	b.do("fs/write", params{"path": "f", "content": "a\nc\n"})
	if got := b.get("f"); got != "a\r\nc\r\n" {
		t.Errorf("fs/write wrote %q", got)
	}
}

// TestNearTextShowsWhatCannotBeSeen checks the hint for text that looks like that of the file.
func TestNearTextShowsWhatCannotBeSeen(t *testing.T) {
	for name, tt := range map[string]struct {
		file, old string
		want      []string
	}{
		"tab":              {"a\n\tb c\nd\n", "a\n    b c", []string{"with other white space it is at line 1", "line 2 of the file is `\\tb c`, and of the old text `    b c`"}},
		"no-break space":   {"a\nb\u00a0c\n", "b c", []string{"with other white space it is at line 2", "`b\\u00a0c`", "`b c`"}},
		"composed letter":  {"caf\u00e9 au lait\n", "cafe\u0301 au lait", []string{"with other characters that look the same it is at line 1", "`café au lait`", "`cafe\\u0301 au lait`"}},
		"zero width":       {"a\u200bb\n", "ab", []string{"look the same", "`a\\u200bb`"}},
		"CR":               {"a\r\r\nb\n", "a\nb", []string{"with other white space", "`a\\r`"}},
		"space at the end": {"one two \nthree\n", "one two\nthree", []string{"with other white space", "`one two\\x20`"}},
		"in a line":        {"x := call(a,\u00a0b)\n", "call(a, b)", []string{"the most similar text is at line 1", "call(a,\\u00a0b)"}},
		"blank lines":      {"a\n\nb\n", "a\nb", []string{"at line 1", "blank lines differ"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newHarness(t, code.Options{}, map[string]string{"f": tt.file})
			_, err := b.try(command.ByStep, "code/edit", params{"path": "f", "old": tt.old, "new": "z"})
			e := abi.As(err)
			if e == nil || e.Code != abi.NotFound {
				t.Fatalf("%+v", e)
			}
			for _, want := range tt.want {
				if !strings.Contains(e.Hint, want) {
					t.Errorf("%q is not in the hint:\n%s", want, e.Hint)
				}
			}
		})
	}
	b := newHarness(t, code.Options{}, map[string]string{"f": "a\n"})
	_, err := b.try(command.ByStep, "code/edit", params{"path": "f", "old": "a\n", "new": "a\r\n"})
	if e := abi.As(err); e == nil || e.Code != abi.BadFields || !strings.Contains(e.Message, "lineEnds") {
		t.Errorf("an edit of a line end: %v", err)
	}
}

// TestNearTextIsLinear checks that the hint for old text that nearly is in a file of equal
// lines takes time in proportion to the file, not to its square: four times the lines are
// much less than sixteen times the work.
func TestNearTextIsLinear(t *testing.T) {
	spent := func(n int) time.Duration {
		line := strings.Repeat("x := y + 1; ", 20) + "\n"
		text, old := strings.Repeat(line, n), strings.Repeat("\t"+line, n/2)+"another\n"
		best := time.Hour
		for range 3 {
			start := time.Now()
			if hint := code.NearText(text, old); !strings.Contains(hint, "most similar") {
				t.Fatal(hint)
			}
			best = min(best, time.Since(start))
		}
		return best
	}
	small, large := spent(12_500), spent(50_000)
	t.Logf("12,500 lines: %v, 50,000 lines: %v", small, large)
	if large > 10*small {
		t.Errorf("12,500 lines take %v, 50,000 lines %v", small, large)
	}
}
