package termtext_test

import (
	"testing"

	"github.com/sentinel-runtime/sentinel/host/internal/termtext"
)

// TestPrinted: what a program has printed keeps its colors and can do nothing else with a terminal.
func TestPrinted(t *testing.T) {
	for _, c := range []struct{ line, colored, plain string }{
		{"plain\ttext é", "plain\ttext é", "plain\ttext é"},
		{"\x1b[1;31mred\x1b[0m end", "\x1b[1;31mred\x1b[0m end\x1b[0m", "red end"},
		{"10%\r20%\r100%", "100%", "100%"},
		{"\x1b[2Jcleared\x1b]0;title\x07\x1b[10;10H", "cleared", "cleared"},
		{"\x1b[31mred\x1b[2A up", "\x1b[31mred up\x1b[0m", "red up"},
		{"bell\x07 \xff\u202e \x9b31m", `bell\x07 \xff\u202e \x9b31m`, `bell\x07 \xff\u202e \x9b31m`},
		{"\x1b[38;5;1", "", ""},
		{"a\x1b[31;mb\x1b[?25lc", "a\x1b[31;mbc\x1b[0m", "abc"},
	} {
		if got := string(termtext.Printed(c.line, true)); got != c.colored {
			t.Errorf("%q with colors: %q, want %q", c.line, got, c.colored)
		}
		if got := string(termtext.Printed(c.line, false)); got != c.plain {
			t.Errorf("%q: %q, want %q", c.line, got, c.plain)
		}
	}
}
