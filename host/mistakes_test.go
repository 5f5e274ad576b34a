package host_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const mistakesFile = "testdata/mistakes.txt"

// A mistake is a definition and what validate says of it: lines of problems, and "valid" if
// they are all warnings.
type mistake struct {
	title, source string
	want          []string
}

// mistakes reads testdata/mistakes.txt.
func mistakes(t *testing.T) (list []mistake) {
	t.Helper()
	text, err := os.ReadFile(mistakesFile)
	if err != nil {
		t.Fatal(err)
	}
	for block := range strings.SplitSeq(strings.TrimPrefix(string(text), "== "), "\n== ") {
		title, rest, _ := strings.Cut(block, "\n")
		m := mistake{title: title}
		for line := range strings.Lines(rest) {
			if expected, ok := strings.CutPrefix(line, "\t"); ok {
				m.want = append(m.want, strings.TrimSuffix(expected, "\n"))
			} else if len(m.want) == 0 {
				m.source += line
			}
		}
		m.source = strings.TrimRight(m.source, "\n")
		list = append(list, m)
	}
	return list
}

// TestMistakes validates the definitions of testdata/mistakes.txt, the mistakes that authors
// make most, and compares each message and hint with the lines behind it. -update rewrites
// them.
func TestMistakes(t *testing.T) {
	h := open(t, environment("OPENAI_API_KEY", "sk-test-0123456789abcdef"))
	var all strings.Builder
	count := 0
	for _, m := range mistakes(t) {
		title, source, want := m.title, m.source, m.want
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
		if err := os.WriteFile(mistakesFile, []byte(all.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestMistakesEverywhere makes each mistake where a definition is stored, loaded and started:
// what validate refuses is refused there, with the same first problem, and the rest is stored.
func TestMistakesEverywhere(t *testing.T) {
	h := open(t, environment("OPENAI_API_KEY", "sk-test-0123456789abcdef"))
	for _, m := range mistakes(t) {
		valid, _ := validated(t, h, m.source, nil)
		folder := t.TempDir()
		write(t, folder, map[string]string{"m.json": m.source})
		calls := map[string]map[string]any{
			"sentinel/create": {"definition": m.source, "replace": true},
			"sentinel/load":   {"path": folder},
		}
		if !valid { // a valid one would execute what it says
			calls["sentinel/run"] = map[string]any{"definition": m.source}
			calls["sentinel/start"] = map[string]any{"definition": m.source}
		}
		for name, params := range calls {
			var out struct{ Problems []struct{ Problem string } }
			err := call(t, h, name, params, &out)
			refused := err != nil
			text := fmt.Sprint(err)
			if name == "sentinel/load" && err == nil {
				refused = len(out.Problems) > 0
				text = fmt.Sprint(out.Problems)
			}
			if refused == valid {
				t.Errorf("%s: validate says valid is %v, %s says %s", m.title, valid, name, text)
				continue
			}
			_, first, _ := strings.Cut(strings.TrimPrefix(m.want[0], "warning "), ": ")
			first, _, _ = strings.Cut(first, " | ")
			if refused && !strings.HasPrefix(m.want[0], "warning ") && !strings.Contains(text, first) {
				t.Errorf("%s: %s says %s, and not %s", m.title, name, text, first)
			}
		}
	}
}
