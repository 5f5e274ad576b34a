package output_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/host/cli/output"
	"github.com/sentinel-runtime/sentinel/host/internal/termtext"
)

// written returns rows as they are written.
func written(t *testing.T, rows []output.Row) []string {
	t.Helper()
	var b strings.Builder
	if err := output.Table(output.Printer{Writer: &b}, rows); err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
}

// TestTablesFit: empty columns go, and the widest cells are cut. A colour ends with its cell.
func TestTablesFit(t *testing.T) {
	red := output.Palette(true).Bad("a long reason why this one failed")
	rows := []output.Row{
		{"RUN", "SENTINEL", "EMPTY", "WHY"},
		{"dd5f95b3", "nightly", "", "short"},
		{"1381a483", "a-name-that-is-quite-long", "", red},
	}
	for width := 7; width < 100; width++ {
		for _, line := range written(t, output.Fit(output.Filled(rows), width)) {
			if n := output.Width(termtext.Text(line)); n > width {
				t.Fatalf("in %d columns a row has %d: %q", width, n, line)
			}
		}
	}
	want := []string{
		"RUN       SENTINEL        WHY",
		"dd5f95b3  nightly         short",
		"1381a483  a-name-that-i…  \x1b[31ma long reason…\x1b[0m",
	}
	if diff := cmp.Diff(want, written(t, output.Fit(output.Filled(rows), 40))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]output.Row{{"A", "B"}}, output.Fit(output.Filled([]output.Row{{"A", "B"}}), 80)); diff != "" {
		t.Errorf("a table without rows (-want +got):\n%s", diff)
	}
}

// TestPairsAreWrapped: the last column at words, also in a colour, and a word that is too long anywhere.
func TestPairsAreWrapped(t *testing.T) {
	rows := []output.Row{
		{"why", output.Palette(true).Dim("exit code 4: the disk is full")},
		{"workspace", "/a/very/long/path/without/blanks"},
		{"run", "1"},
	}
	want := []string{
		"why        \x1b[2mexit code 4: the disk\x1b[0m",
		"           \x1b[2mis full\x1b[0m",
		"workspace  /a/very/long/path/wit",
		"           hout/blanks",
		"run        1",
	}
	if diff := cmp.Diff(want, written(t, output.WrapLast(rows, 32))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	rows = []output.Row{{"name", `"a value that is longer than the terminal"`, "what it is for, in words"}, {"other", "1", "short"}}
	for width := 40; width < 90; width++ {
		lines := written(t, output.WrapLast(rows, width))
		for _, line := range lines {
			if n := output.Width(termtext.Text(line)); n > width {
				t.Errorf("in %d columns a row has %d: %q", width, n, line)
			}
		}
		if text := strings.Join(strings.Fields(strings.Join(lines, " ")), " "); !strings.HasPrefix(text, "name ") || !strings.Contains(text, "words") {
			t.Errorf("in %d columns: %q", width, lines)
		}
	}
	if rows := output.WrapLast(nil, 32); len(rows) > 0 {
		t.Errorf("of no rows: %q", rows)
	}
}

// TestHelpIsWrapped at words: prose as a paragraph, flags in their column, lists with their indent, and
// examples and code not at all.
func TestHelpIsWrapped(t *testing.T) {
	help := `Do it.

A paragraph whose lines were filled by its author at about a hundred columns,
goes on here.
- an item of a list that is longer than the terminal is wide, as here

Examples:
  sentinel run a-name-that-is-longer-than-the-terminal --with flags

Flags:
      --since string   only runs that started then or later: a duration or a day
` + "```\ncode that is longer than the terminal is wide stays as it is\n```"
	want := `Do it.

A paragraph whose lines were filled by its
author at about a hundred columns, goes on
here.
- an item of a list that is longer than the
  terminal is wide, as here

Examples:
  sentinel run a-name-that-is-longer-than-the-terminal --with flags

Flags:
      --since string   only runs that started
                       then or later: a
                       duration or a day
` + "```\ncode that is longer than the terminal is wide stays as it is\n```"
	if diff := cmp.Diff(want, output.Wrap(help, 46)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
