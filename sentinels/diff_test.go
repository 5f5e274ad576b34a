package sentinels_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/sentinels"
)

func TestDiff(t *testing.T) {
	opt := options(t)
	d, problems := sentinels.Decode([]byte(written), opt)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	for _, c := range []struct {
		name  string
		edits []func(map[string]any)
		want  []string
	}{
		{"nothing", nil, nil},
		{"a step in front", []func(map[string]any){insert(0, `{"type":"command","command":"n/n"}`)}, []string{
			`add steps[0] @0: -> {"type":"command","command":"n/n"}`}},
		{"a step behind, and one field of a step that went on", []func(map[string]any){set(1, "check", "$y"), insert(0, `{"type":"command","command":"n/n"}`)}, []string{
			`add steps[0] @0: -> {"type":"command","command":"n/n"}`, `replace steps[2].check from steps[1].check @2: "$x" -> "$y"`}},
		{"a step less", []func(map[string]any){remove(1)}, []string{
			`remove steps[1] @1: {"type":"condition","check":"$x","then":[{"type":"emit","data":{"b":[1,2,3]},"event":"a"}]} -> `}},
		{"places", []func(map[string]any){func(f map[string]any) { s := stepsOf(f); f["steps"] = []any{s[1], s[2], s[0]} }}, []string{
			`move steps[2] from steps[0] @2:  -> {"type":"command","command":"a/b","params":{"x":1}}`}},
		{"deep", []func(map[string]any){func(f map[string]any) {
			stepsOf(f)[1].(map[string]any)["then"].([]any)[0].(map[string]any)["data"] = map[string]any{"b": []any{1, 3}, "c d": nil}
		}}, []string{
			`remove steps[1].then[0].data.b[1] @1.then.0: 2 -> `, `add steps[1].then[0].data["c d"] @1.then.0:  -> null`}},
		{"another type", []func(map[string]any){func(f map[string]any) { stepsOf(f)[2] = step(`{"type":"llm","prompt":"p"}`) }}, []string{
			`add steps[2] @2:  -> {"type":"llm","prompt":"p"}`, `remove steps[2] @2: {"type":"command","command":"c/d"} -> `}},
		{"outside", []func(map[string]any){func(f map[string]any) {
			f["safety"] = map[string]any{"timeoutMs": 5}
			delete(f, "tags")
			f["name"] = "other"
			f["id"] = "w"
		}}, []string{
			`remove tags @: ["one"] -> `, `replace name @: "w" -> "other"`, `replace safety.timeoutMs @: 60000 -> 5`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, ch := range sentinels.Diff(d, change(t, d, opt, c.edits...)) {
				from := ""
				if ch.From != "" {
					from = " from " + ch.From
				}
				got = append(got, fmt.Sprintf("%s %s%s @%s: %s -> %s", ch.Op, ch.Path, from, ch.Address, ch.Old, ch.New))
			}
			for i := range c.want {
				c.want[i] = strings.Replace(c.want[i], ": ->", ":  ->", 1)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Two random definitions have changes exactly if their hashes differ, and the addresses
// of the changes are those of steps.
func TestDiffAnything(t *testing.T) {
	for seed := range uint64(200) {
		m := &maker{Rand: rand.New(rand.NewPCG(seed, 4))}
		a := m.definition(0)
		m.steps = 0
		b := m.definition(0)
		if seed%5 == 0 {
			b = a
		}
		changes := sentinels.Diff(a, b)
		if (len(changes) > 0) != (a.Hash() != b.Hash()) {
			t.Errorf("seed %d: %d changes", seed, len(changes))
		}
		for _, c := range changes {
			of := b
			if c.Op == sentinels.ChangeRemove {
				of = a
			}
			if strings.HasPrefix(c.Path, "steps[") != (c.Address != "") {
				t.Errorf("seed %d: the address of %q is %q", seed, c.Path, c.Address)
			}
			if c.Address != "" {
				if _, err := of.StepAt(c.Address); err != nil {
					t.Errorf("seed %d, %s: %v", seed, c.Path, err)
				}
			}
		}
	}
}

// DiffText returns a unified diff.
func TestDiffText(t *testing.T) {
	opt := options(t)
	d, problems := sentinels.Decode([]byte(written), opt)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	if text := sentinels.DiffText(d, d, "a", "b"); text != "" {
		t.Errorf("a definition differs from itself:\n%s", text)
	}
	next := change(t, d, opt, set(0, "command", "z/z"), func(f map[string]any) { f["isPublic"] = true })
	want := `--- w@1
+++ w@2
@@ -4,7 +4,7 @@
   "steps": [
     {
       "type": "command",
-      "command": "a/b",
+      "command": "z/z",
       "params": {
         "x": 1
       }
@@ -40,5 +40,6 @@
   },
   "tags": [
     "one"
-  ]
+  ],
+  "isPublic": true
 }
`
	if diff := cmp.Diff(want, sentinels.DiffText(d, next, "w@1", "w@2")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// patch(1) applies diffs of random definitions.
func TestDiffTextPatches(t *testing.T) {
	if _, err := exec.LookPath("patch"); err != nil {
		t.Skip("there is no patch(1) to ask")
	}
	dir := t.TempDir()
	for seed := range uint64(25) {
		m := &maker{Rand: rand.New(rand.NewPCG(seed, 5))}
		a := m.definition(0)
		m.steps = 0
		b := m.definition(0)
		text := sentinels.DiffText(a, b, "a", "b")
		file := filepath.Join(dir, "a")
		if err := os.WriteFile(file, sentinels.Encode(a), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("patch", "-s", file)
		cmd.Stdin = strings.NewReader(text)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("seed %d: %v\n%s\n%s", seed, err, out, text)
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != string(sentinels.Encode(b)) {
			t.Fatalf("seed %d: patched to\n%s\n%v", seed, got, err)
		}
	}
}
