package host_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestMistakes validates the definitions of testdata/mistakes.txt, the mistakes that authors
// make most, and compares each message and hint with the lines behind it. -update rewrites
// them.
func TestMistakes(t *testing.T) {
	const file = "testdata/mistakes.txt"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	h := open(t, environment("OPENAI_API_KEY", "sk-test-0123456789abcdef"))
	var all strings.Builder
	count := 0
	for block := range strings.SplitSeq(strings.TrimPrefix(string(text), "== "), "\n== ") {
		title, rest, _ := strings.Cut(block, "\n")
		var definition, want []string
		for line := range strings.Lines(rest) {
			if expected, ok := strings.CutPrefix(line, "\t"); ok {
				want = append(want, strings.TrimSuffix(expected, "\n"))
			} else if len(want) == 0 {
				definition = append(definition, line)
			}
		}
		source := strings.TrimRight(strings.Join(definition, ""), "\n")
		valid, got := validated(t, h, source, nil)
		if len(got) == 0 {
			got = []string{"valid"}
		} else if valid {
			got = append(got, "valid")
		}
		if diff := cmp.Diff(want, got); diff != "" && !*update {
			t.Errorf("%s\n%s\n(-want +got):\n%s", title, source, diff)
		}
		all.WriteString("== " + title + "\n" + source + "\n\t" + strings.Join(got, "\n\t") + "\n")
		count++
	}
	if count < 60 {
		t.Errorf("%d mistakes, want at least 60", count)
	}
	if flag.Lookup("update") != nil && *update {
		if err := os.WriteFile(file, []byte(all.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
