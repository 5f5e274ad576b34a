package shell_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/host/command/shell"
)

// Specification: "its text, as used in prompts, is at most 32 KB: errors first, then
// warnings with three lines around each, then the last 50, [n lines left out] where cut;
// everything if it fits."
func TestTextOfAWatch(t *testing.T) {
	var s shell.Summary
	pad := strings.Repeat("x", 60)
	class := map[int]string{100: "warning", 500: "error", 502: "error", 900: "warning", 1001: "error"}
	line := func(i int) string { return fmt.Sprintf("%d %s %s", i, class[i], pad) }
	for i := range 2000 {
		c := class[i]
		if c == "" {
			c = "verbose"
		}
		s.Add(line(i), c)
	}
	var want []string
	add := func(leftOut, from, to int) {
		if leftOut > 0 {
			want = append(want, fmt.Sprintf("[%d lines left out]", leftOut))
		}
		for i := from; i <= to; i++ {
			want = append(want, line(i))
		}
	}
	add(393, 497, 505) // errors, with what explains them
	add(94, 998, 1004)
	add(97, 97, 103) // warnings
	add(391, 897, 903)
	add(945, 1950, 1999) // the last 50
	if diff := cmp.Diff(want, strings.Split(s.String(), "\n")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestTextOfAWatchIsEverythingIfItFits to the last byte.
func TestTextOfAWatchIsEverythingIfItFits(t *testing.T) {
	for _, excess := range []int{0, 1} {
		var s shell.Summary
		var all []string
		for i := range 1024 {
			text := fmt.Sprintf("%031d", i)
			if i == 1023 {
				text += strings.Repeat("x", excess)
			}
			all = append(all, text)
			s.Add(text, []string{"verbose", "error", "warning"}[i%3])
		}
		if whole := s.String() == strings.Join(all, "\n"); whole != (excess == 0) {
			t.Errorf("%d bytes more than fit: whole is %v", excess, whole)
		}
	}
	var s shell.Summary
	if s.String() != "" {
		t.Errorf("no lines: %q", s.String())
	}
	s.Skip(3)
	s.Add("a", "info")
	s.Skip(2)
	if got := s.String(); got != "[3 lines left out]\na\n[2 lines left out]" {
		t.Errorf("with lines that are not kept: %q", got)
	}
}

// TestTextOfAWatchIsBounded accounts for every line of random outputs, within the size.
func TestTextOfAWatchIsBounded(t *testing.T) {
	note := regexp.MustCompile(`^\[(\d+) lines left out\]$`)
	seeds := uint64(200)
	if testing.Short() {
		seeds = 40
	}
	for seed := range seeds {
		r := rand.New(rand.NewPCG(seed, 1))
		var s shell.Summary
		total, errors := 0, 0
		first := ""
		classes := []string{"error", "warning", "verbose", "info", "success"}[r.IntN(3):]
		long := []int{10, 300, 9000, 40000}[r.IntN(4)]
		for range 1 + r.IntN(3000) {
			if r.IntN(500) == 0 {
				n := r.IntN(100)
				s.Skip(n)
				total += n
			}
			class := classes[r.IntN(len(classes))]
			text := fmt.Sprintf("%d %s ", total, class) + strings.Repeat([]string{"x", "<", "é"}[r.IntN(3)], r.IntN(long)/2)
			if class == "error" {
				if errors++; errors == 1 {
					first = strconv.Itoa(total) + " error "
				}
			}
			s.Add(text, class)
			total++
		}
		text := s.String()
		quoted, err := json.Marshal(text)
		if err != nil || len(text) > 32<<10 || len(quoted) > 64<<10+2 {
			t.Fatalf("seed %d: %d bytes, %d as JSON, %v", seed, len(text), len(quoted), err)
		}
		seen := 0
		for _, l := range strings.Split(text, "\n") {
			n := 1
			if m := note.FindStringSubmatch(l); m != nil {
				n, _ = strconv.Atoi(m[1])
			}
			seen += n
		}
		if seen != total {
			t.Fatalf("seed %d: the text accounts for %d of %d lines", seed, seen, total)
		}
		if errors > 0 && !strings.Contains("\n"+text, "\n"+first) {
			t.Fatalf("seed %d: the first error is not there: %.300s", seed, text)
		}
	}
}
