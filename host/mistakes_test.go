package host_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
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

// TestHintsLeadToNoNextError writes what the hints of TestMistakes and those of steps with several
// foreign words say, and validates the result: a suggested line has no foreign word.
func TestHintsLeadToNoNextError(t *testing.T) {
	h := open(t, environment("OPENAI_API_KEY", "sk-test-0123456789abcdef"))
	var sources []string
	for _, m := range mistakes(t) {
		if m.title != "type sleep" { // its key means nothing in a step that waits
			sources = append(sources, m.source)
		}
	}
	for _, word := range strings.Fields("approval confirm foreach repeat sleep ai fetch curl event if subworkflow log throw python") {
		sources = append(sources, `{"name": "x", "steps": [{"type": "`+word+`", "timeout": "2m", "retries": 3, "when": "true", "needs": ["a"]}]}`,
			`{"name": "x", "steps": [{"type": "`+word+`", "timeoutSeconds": 5, "continueOnError": true}]}`)
	}
	for word, keys := range map[string]string{"watch": `"path": "p"`, "file": `"glob": "p", "exclude": "q"`, "hook": `"secret": "s", "path": "p"`,
		"timer": `"every": "5m"`, "cron": `"cron": "0 3 * * *", "tz": "UTC"`, "events": `"name": "a:b"`} {
		sources = append(sources, `{"name": "x", "steps": [{"type": "stop"}], "on": {"type": "`+word+`", "if": "$event.data.a", "max": 3, `+keys+`}}`)
	}
	written := 0
	for _, source := range sources {
		_, problems := validated(t, h, source, nil)
		reported := func(p string) bool {
			text, _, _ := strings.Cut(p, " | ")
			return slices.ContainsFunc(problems, func(before string) bool { return before == text || strings.HasPrefix(before, text+" | ") })
		}
		for _, problem := range problems {
			mended, parent, ok := mend(source, problem)
			if !ok {
				continue
			}
			written++
			_, next := validated(t, h, mended, nil)
			for _, p := range next {
				if path, _, _ := strings.Cut(p, ": "); !reported(p) && strings.HasPrefix(path, parent) && foreignPattern.MatchString(p) {
					t.Errorf("%s\n%s\nleads to %s\n%s", source, problem, mended, p)
				}
			}
		}
	}
	if written < 100 {
		t.Errorf("%d hints are written, want at least 100", written)
	}
}

var (
	foreignPattern = regexp.MustCompile(`: unknown (key|step type|value) | has no option `)
	segmentPattern = regexp.MustCompile(`[^.\[\]]+`)
	memberPattern  = regexp.MustCompile(`^(?:, )?"(\w+)": `)
)

// mend writes the line of a problem's hint into a definition in place of the foreign word, and
// returns the path of the object that has it. It reports false for a hint in words.
func mend(source, problem string) (mended, parent string, ok bool) {
	text, hint, _ := strings.Cut(problem, " | write ")
	path, _, _ := strings.Cut(text, ": ")
	var root any
	if hint == "" || !foreignPattern.MatchString(text) || json.Unmarshal([]byte(source), &root) != nil {
		return "", "", false
	}
	segments := segmentPattern.FindAllString(path, -1)
	name := segments[len(segments)-1]
	holder := root
	for _, segment := range segments[:len(segments)-1] {
		switch value := holder.(type) {
		case map[string]any:
			holder = value[segment]
		case []any:
			i, _ := strconv.Atoi(segment)
			holder = value[i]
		}
	}
	object, ok := holder.(map[string]any)
	if !ok {
		return "", "", false
	}
	hint = strings.NewReplacer(`[...]`, `[{"type": "stop"}]`, `: ...`, `: "..."`, `: NAME`, `: "NAME"`).Replace(hint)
	delete(object, name)
	if strings.HasPrefix(hint, "{") {
		clear(object)
		if json.NewDecoder(strings.NewReader(hint)).Decode(&object) != nil {
			return "", "", false
		}
	} else {
		found := false
		for m := memberPattern.FindStringSubmatch(hint); m != nil; m = memberPattern.FindStringSubmatch(hint) {
			var value any
			hint = hint[len(m[0]):]
			d := json.NewDecoder(strings.NewReader(hint))
			if d.Decode(&value) != nil {
				return "", "", false
			}
			if len(segments) > 1 && segments[len(segments)-2] == m[1] {
				return "", "", false // the line is in place of the whole object
			}
			object[m[1]], found = value, true
			hint = hint[d.InputOffset():]
		}
		if !found {
			return "", "", false
		}
	}
	b, err := json.Marshal(root)
	return string(b), strings.TrimSuffix(strings.TrimSuffix(path, name), "."), err == nil
}
