package sentinels_test

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/sentinels"
)

// change returns d with edits of its JSON text.
func change(t testing.TB, d *sentinels.Definition, opt sentinels.DecodeOptions, edits ...func(map[string]any)) *sentinels.Definition {
	t.Helper()
	var fields map[string]any
	if err := json.Unmarshal(sentinels.Encode(d), &fields); err != nil {
		t.Fatal(err)
	}
	for _, edit := range edits {
		edit(fields)
	}
	text, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	next, problems := sentinels.Decode(text, opt)
	if len(problems) > 0 {
		t.Fatalf("%v\n%s", problems, text)
	}
	return next
}

func step(fields string) any {
	var v any
	if err := json.Unmarshal([]byte(fields), &v); err != nil {
		panic(err)
	}
	return v
}

func stepsOf(f map[string]any) []any { return f["steps"].([]any) }

func insert(i int, fields string) func(map[string]any) {
	return func(f map[string]any) {
		s := append([]any(nil), stepsOf(f)[:i]...)
		f["steps"] = append(append(s, step(fields)), stepsOf(f)[i:]...)
	}
}

func remove(i int) func(map[string]any) {
	return func(f map[string]any) {
		f["steps"] = append(append([]any(nil), stepsOf(f)[:i]...), stepsOf(f)[i+1:]...)
	}
}

func set(i int, name string, value any) func(map[string]any) {
	return func(f map[string]any) { stepsOf(f)[i].(map[string]any)[name] = value }
}

// written is a file with comments and a layout of its own.
const written = `// What it is for.
{ // the sentinel
  "name": "w", // its name

  // How it ends.
  "loop": { "type": "count", "max": 3 },
  "timeoutMs": 60000,
  "steps": [
    // first
    { "command": "a/b", "params": { "x": 1 } }, // one
    // second
    {
      "type": "condition",
      "if": "$x", // the old name
      "then": [
        { "type": "emit", "event": "a", "payload": { "b": [1,2,  3] } }
      ]
    }, // two

    /* third */ { "command": "c/d" } // three
    // the end
  ],
  "tags": ["one"],
}
`

func TestRewriteKeepsWhatDoesNotChange(t *testing.T) {
	opt := options(t)
	d, problems := sentinels.Decode([]byte(written), opt)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	for _, c := range []struct {
		name  string
		edits []func(map[string]any)
		lines []string // "-" and "+" lines of the difference
	}{
		{"nothing", nil, nil},
		{"a parameter", []func(map[string]any){set(0, "params", map[string]any{"x": 2})}, []string{
			`-    { "command": "a/b", "params": { "x": 1 } }, // one`, `+    { "command": "a/b", "params": { "x": 2 } }, // one`}},
		{"under its other name", []func(map[string]any){set(1, "check", "$y")}, []string{
			`-      "if": "$x", // the old name`, `+      "if": "$y", // the old name`}},
		{"a new field", []func(map[string]any){set(1, "outputTo", "o")}, []string{
			`-      ]`, `+      ],`, `+      "outputTo": "o"`}},
		{"a step in front", []func(map[string]any){insert(0, `{"type":"command","command":"n/n"}`)}, []string{
			`+    {"type": "command", "command": "n/n"},`}},
		{"a step between", []func(map[string]any){insert(1, `{"type":"command","command":"n/n"}`)}, []string{
			`+    {"type": "command", "command": "n/n"},`}},
		{"a step at the end", []func(map[string]any){insert(3, `{"type":"command","command":"n/n"}`)}, []string{
			`-    /* third */ { "command": "c/d" } // three`, `+    /* third */ { "command": "c/d" }, // three`, `+    {"type": "command", "command": "n/n"}`}},
		{"the first step goes with its comments", []func(map[string]any){remove(0)}, []string{
			`-    // first`, `-    { "command": "a/b", "params": { "x": 1 } }, // one`}},
		{"the last one too", []func(map[string]any){remove(2)}, []string{
			`-    }, // two`, `-`, `-    /* third */ { "command": "c/d" } // three`, `+    } // two`}},
		{"a limit where it stands", []func(map[string]any){func(f map[string]any) { f["safety"] = map[string]any{"timeoutMs": 5} }}, []string{
			`-  "timeoutMs": 60000,`, `+  "timeoutMs": 5,`}},
		{"no limit", []func(map[string]any){func(f map[string]any) { delete(f, "safety") }}, []string{`-  "timeoutMs": 60000,`}},
		{"a key with its comma", []func(map[string]any){func(f map[string]any) { f["isPublic"] = true }}, []string{`+  "isPublic": true,`}},
		{"a longer list", []func(map[string]any){func(f map[string]any) { f["tags"] = []any{"zero", "one", "two"} }}, []string{
			`-  "tags": ["one"],`, `+  "tags": ["zero", "one", "two"],`}},
		{"steps that change places", []func(map[string]any){func(f map[string]any) {
			s := stepsOf(f)
			f["steps"] = []any{s[1], s[0], s[2]}
		}}, []string{`-    // first`, `-    { "command": "a/b", "params": { "x": 1 } }, // one`, `+    // first`, `+    { "command": "a/b", "params": { "x": 1 } }, // one`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			next := change(t, d, opt, c.edits...)
			for _, src := range []string{written, strings.ReplaceAll(written, "\n", "\r\n")} {
				got := rewritten(t, []byte(src), next, opt)
				if strings.Contains(src, "\r") && strings.Count(got, "\r\n") != strings.Count(got, "\n") {
					t.Errorf("different line ends in one text:\n%q", got)
				}
				if diff := cmp.Diff(c.lines, changedLines(written, strings.ReplaceAll(got, "\r\n", "\n"))); diff != "" {
					t.Errorf("changed lines (-want +got):\n%s\n%s", diff, got)
				}
			}
		})
	}
}

// rewritten rewrites src and checks that the result decodes to d.
func rewritten(t testing.TB, src []byte, d *sentinels.Definition, opt sentinels.DecodeOptions) string {
	t.Helper()
	got, err := sentinels.Rewrite(src, d, opt)
	if err != nil {
		t.Fatal(err)
	}
	again, problems := sentinels.Decode(got, opt)
	if len(problems) > 0 {
		t.Fatalf("%v\n%s", problems, got)
	}
	if again.Hash() != d.Hash() {
		t.Fatalf("it decodes to another definition:\n%s\nwant\n%s", got, sentinels.Encode(d))
	}
	return string(got)
}

// changedLines compares texts by dynamic programming.
func changedLines(before, after string) []string {
	a, b := strings.Split(before, "\n"), strings.Split(after, "\n")
	best := make([][]int, len(a)+1)
	for i := range best {
		best[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if best[i][j] = max(best[i+1][j], best[i][j+1]); a[i] == b[j] {
				best[i][j] = best[i+1][j+1] + 1
			}
		}
	}
	var minus, plus []string
	for i, j := 0, 0; i < len(a) || j < len(b); {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			i, j = i+1, j+1
		case j == len(b) || i < len(a) && best[i+1][j] >= best[i][j+1]:
			minus, i = append(minus, "-"+a[i]), i+1
		default:
			plus, j = append(plus, "+"+b[j]), j+1
		}
	}
	return append(minus, plus...)
}

// A recipe stays a recipe, and its conditions may be without dollars.
func TestRewriteOfARecipe(t *testing.T) {
	opt := options(t)
	src, err := os.ReadFile(filepath.Join("testdata", "good", "recipe.json"))
	if err != nil {
		t.Fatal(err)
	}
	d, problems := sentinels.Decode(src, opt)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	got := rewritten(t, src, change(t, d, opt, set(0, "outputTo", "otherName")), opt)
	if n := len(changedLines(string(src), got)); n > 4 || !strings.Contains(got, `"pipeline"`) {
		t.Errorf("%d lines changed:\n%s", n, got)
	}
}

// A text that is not a definition, or has its id twice, is replaced.
func TestRewriteFallsBack(t *testing.T) {
	opt := options(t)
	d, problems := sentinels.Decode([]byte(written), opt)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	for _, src := range []string{"", "{", "null", `{"name":"x"}`, "\ufeff" + written} {
		if got := rewritten(t, []byte(src), d, opt); got != string(sentinels.Encode(d)) {
			t.Errorf("%q became\n%s", src, got)
		}
	}
}

// Texts of random definitions are rewritten to other random definitions.
func TestRewriteAnything(t *testing.T) {
	opt := options(t)
	kept := 0
	for seed := range uint64(300) {
		m := &maker{Rand: rand.New(rand.NewPCG(seed, 2))}
		a := m.definition(0)
		m.steps = 0
		b := m.definition(0)
		if seed%2 == 0 { // a small change instead of another definition
			b = change(t, a, opt, insert(0, `{"type":"command","command":"x/y"}`))
		}
		src := "// kept\n" + string(sentinels.Encode(a))
		if strings.HasPrefix(rewritten(t, []byte(src), b, opt), "// kept") {
			kept++
		}
	}
	if kept < 295 {
		t.Errorf("only %d of 300 texts were changed, the others replaced", kept)
	}
}

// FuzzRewrite rewrites random texts to random definitions.
func FuzzRewrite(f *testing.F) {
	f.Add([]byte(written), uint64(1), true)
	for _, pattern := range []string{"testdata/spec/*.json", "testdata/good/*.json"} {
		files, _ := filepath.Glob(pattern)
		for i, file := range files {
			if src, err := os.ReadFile(file); err == nil && len(src) < 8<<10 {
				f.Add(src, uint64(i), i%2 == 0)
			}
		}
	}
	opt := options(f)
	f.Fuzz(func(t *testing.T, src []byte, seed uint64, small bool) {
		m := &maker{Rand: rand.New(rand.NewPCG(seed, 3))}
		next := m.definition(0)
		if d, problems := sentinels.Decode(src, opt); small && len(problems) == 0 {
			// A step more, one less, other limits.
			out := *d
			out.Steps = append(append([]sentinels.Step(nil), m.step(3)), d.Steps[min(len(d.Steps), m.IntN(2)):]...)
			out.Safety.TimeoutMs = int64(m.IntN(3))
			if again, problems := sentinels.Decode(sentinels.Encode(&out), opt); len(problems) == 0 {
				next = again
			}
		}
		got, err := sentinels.Rewrite(src, next, opt)
		if err != nil {
			if _, problems := sentinels.Decode(sentinels.Encode(next), opt); len(problems) > 0 {
				return // the encoded text exceeds the limits
			}
			t.Fatal(err)
		}
		again, problems := sentinels.Decode(got, opt)
		if len(problems) > 0 || again.Hash() != next.Hash() {
			t.Fatalf("%v\n%s", problems, got)
		}
	})
}
