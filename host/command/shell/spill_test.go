package shell_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/host/command/shell"
)

func openSpill(t *testing.T, dir string, max int64) *shell.Spill {
	t.Helper()
	s, err := shell.OpenSpill(dir, "id", max)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// readSpill returns the lines of an output as NUMBER STREAM TEXT, with a + behind an open one.
func readSpill(t *testing.T, s *shell.Spill) (list []string) {
	t.Helper()
	lines, err := s.Read(0, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range lines {
		list = append(list, l.String())
	}
	return list
}

// manyLines are numbered lines of output.
func manyLines(from, to int) string {
	var b strings.Builder
	for i := from; i < to; i++ {
		fmt.Fprintf(&b, "line %d of many\n", i)
	}
	return b.String()
}

func TestSpillSurvivesReopening(t *testing.T) {
	dir := t.TempDir()
	s := openSpill(t, dir, 64<<10)
	for i := range 50 {
		if err := s.Append('o', manyLines(100*i, 100*i+100)); err != nil {
			t.Fatal(err)
		}
	}
	before := readSpill(t, s)
	droppedLines, droppedBytes := s.Dropped()
	if droppedLines == 0 || len(before)+droppedLines != 5000 {
		t.Fatalf("%d lines and %d dropped", len(before), droppedLines)
	}
	f, err := os.OpenFile(s.NewestFile(), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("unfinished header"); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	s = openSpill(t, dir, 64<<10)
	if after := readSpill(t, s); !slices.Equal(before, after) {
		t.Errorf("after reopening %d lines, want %d", len(after), len(before))
	}
	if l, b := s.Dropped(); l != droppedLines || b != droppedBytes {
		t.Errorf("after reopening %d lines, %d bytes dropped, want %d, %d", l, b, droppedLines, droppedBytes)
	}
	if err := s.Append('o', manyLines(5000, 5001)); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Read(5000, 10); err != nil || len(got) != 1 || got[0].String() != "5000 o line 5000 of many" {
		t.Errorf("the next line: %v, %v", got, err)
	}
}

// TestSpillEndsAnywhere cuts a file at each byte, as a kill during a write does. All bytes that are
// there are read, a message says how many of a chunk are not, and more can be written behind them.
func TestSpillEndsAnywhere(t *testing.T) {
	const first, second = "one\ntwo\n", "three\nfour\nfive\n"
	dir := t.TempDir()
	s := openSpill(t, dir, 1<<20)
	if err := s.Append('o', first); err != nil {
		t.Fatal(err)
	}
	name := filepath.Base(s.NewestFile())
	begin := size(t, s.NewestFile())
	if err := s.Append('e', second); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(s.NewestFile())
	if err != nil {
		t.Fatal(err)
	}
	header := len(whole) - begin - len(second) // of a chunk
	for cut := range len(whole) + 1 {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, name), whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		s := openSpill(t, dir, 1<<20)
		var want []string
		has := cut - begin - header // bytes of the second chunk
		missing := len(second) - has
		switch {
		case cut < begin: // in the first
			if has, missing = cut-(begin-len(first)), 0; has >= 0 {
				want, missing = numbered('o', 0, first[:has]), len(first)-has
			}
		case has < 0:
			want, missing = numbered('o', 0, first), 0
		default:
			want = append(numbered('o', 0, first), numbered('e', 2, second[:has])...)
		}
		if missing > 0 {
			want = append(want, fmt.Sprintf("%d h [%d bytes of output are missing here: the host was stopped while it stored them]", len(want), missing))
		}
		for range 2 { // nothing is repaired again
			if diff := cmp.Diff(want, readSpill(t, s)); diff != "" {
				t.Fatalf("cut at %d of %d (-want +got):\n%s", cut, len(whole), diff)
			}
			s = openSpill(t, dir, 1<<20)
		}
		if err := s.Append('o', "later\n"); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(append(want, fmt.Sprintf("%d o later", len(want))), readSpill(t, openSpill(t, dir, 1<<20))); diff != "" {
			t.Fatalf("written behind a cut at %d (-want +got):\n%s", cut, diff)
		}
	}
}

// numbered returns what readSpill returns for a text.
func numbered(stream byte, from int, text string) (list []string) {
	for line := range strings.Lines(text) {
		l, closed := strings.CutSuffix(line, "\n")
		if !closed {
			l += "+"
		}
		list = append(list, fmt.Sprintf("%d %c %s", from+len(list), stream, l))
	}
	return list
}

func size(t *testing.T, file string) int {
	t.Helper()
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	return int(info.Size())
}

// TestSpillIsDamaged changes each byte of the headers of a file. What stands before is read, and no error keeps the
// output from being opened.
func TestSpillIsDamaged(t *testing.T) {
	dir := t.TempDir()
	s := openSpill(t, dir, 1<<20)
	texts := []string{"one\n", "two\nthree\n", "four\n"}
	for _, text := range texts {
		if err := s.Append('o', text); err != nil {
			t.Fatal(err)
		}
	}
	whole, err := os.ReadFile(s.NewestFile())
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Base(s.NewestFile())
	for at := range whole {
		if slices.ContainsFunc(texts, func(text string) bool {
			begin := strings.Index(string(whole), text)
			return at >= begin && at < begin+len(text)
		}) {
			continue
		}
		dir := t.TempDir()
		damaged := slices.Clone(whole)
		damaged[at] ^= 0x10
		if err := os.WriteFile(filepath.Join(dir, name), damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		got := readSpill(t, openSpill(t, dir, 1<<20))
		again := readSpill(t, openSpill(t, dir, 1<<20))
		if !slices.Equal(got, again) {
			t.Errorf("byte %d: %q, then %q", at, got, again)
		}
		if _, err := os.Stat(filepath.Join(dir, name+".damaged")); err == nil && len(got) == 0 {
			continue // of the magic bytes
		}
		if at >= 8 && at < 16 && len(got) == 4 {
			continue // the number of bytes that were dropped
		}
		var missing int
		if n := len(got); n == 0 || !strings.HasPrefix("0 o one,1 o two,2 o three,", strings.Join(append(slices.Clone(got[:n-1]), ""), ",")) {
			t.Errorf("byte %d: %q", at, got)
		} else if _, err := fmt.Sscanf(got[n-1][strings.IndexByte(got[n-1], '['):], "[%d bytes of stored output are damaged and were left out]", &missing); err != nil || missing == 0 {
			t.Errorf("byte %d: %q", at, got[n-1])
		}
	}
}

// TestSpillConvertsLines opens an output of the first format, which had a line of text for each line.
func TestSpillConvertsLines(t *testing.T) {
	files := map[string]string{
		"id.0.log": "0\to\t7\tone\n1\to\t7\ttwo\r\n2\te\t7\tproblem\n3\tO\t8\topen\n4\to\t8\t\n5\th\t9\t[a message]\nnot a line\n8\to\t9\teight\n",
		"id.3.log": "#123\n20\to\t9\ta\tb\n21\to\t9\tlast\n22\to\t9\tunfinished",
		"ab.0.log": "0\to\t7\tof another\n",
	}
	want := []string{"0 o one", "1 o two", "2 e problem", "3 o open+", "4 o ", "5 h [a message]", "8 o eight", "20 o a\tb", "21 o last"}
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		s := openSpill(t, dir, 1<<20)
		if diff := cmp.Diff(want, readSpill(t, s)); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
		if lines, bytes := s.Dropped(); lines != 22-len(want) || bytes != 123 {
			t.Errorf("%d lines and %d bytes dropped", lines, bytes)
		}
		left, err := filepath.Glob(filepath.Join(dir, "id.*"))
		if err != nil || len(left) != 2 || filepath.Base(left[0]) != "id.0.out" || filepath.Base(left[1]) != "id.3.out" {
			t.Errorf("files %q, %v", left, err)
		}
		// A process that was killed had not removed a file that it had converted.
		if err := os.WriteFile(filepath.Join(dir, "id.3.log"), []byte(files["id.3.log"]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := openSpill(t, dir, 1<<20)
	if err := s.Append('o', "next\n"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(append(want, "22 o next"), readSpill(t, openSpill(t, dir, 1<<20))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// FuzzSpill opens a file of any bytes. It is an output: what is read of it is the same when it is
// opened again, and more can be written.
func FuzzSpill(f *testing.F) {
	dir := f.TempDir()
	s, err := shell.OpenSpill(dir, "id", 1<<20)
	if err != nil {
		f.Fatal(err)
	}
	for i, text := range []string{"one\n", "two\nthree\n", "\x00\xff\r\n"} {
		if err := s.Append("oeh"[i], text); err != nil {
			f.Fatal(err)
		}
	}
	whole, err := os.ReadFile(s.NewestFile())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole, false)
	f.Add(whole[:len(whole)-2], false)
	f.Add(whole[:20], false)
	f.Add([]byte("0\to\t7\tone\n1\tE\t7\ttwo\n#12\n7\th\t8\t\n"), true)
	f.Add([]byte("0\to\t999999999999999999\t\n999999999999999999\to\t1\t\n"), true)
	f.Fuzz(func(t *testing.T, data []byte, lines bool) {
		dir, name := t.TempDir(), "id.0.out"
		if lines {
			name = "id.0.log"
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
		before := readSpill(t, openSpill(t, dir, 1<<20))
		s := openSpill(t, dir, 1<<20)
		if got := readSpill(t, s); !slices.Equal(got, before) {
			t.Fatalf("%q, then %q", before, got)
		}
		if err := s.Append('o', "next\n"); err != nil {
			t.Fatal(err)
		}
		if got := readSpill(t, openSpill(t, dir, 1<<20)); len(got) != len(before)+1 || !slices.Equal(got[:len(before)], before) || !strings.HasSuffix(got[len(before)], " o next") {
			t.Fatalf("%q, and with one more line %q", before, got)
		}
	})
}
