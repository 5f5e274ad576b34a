package sentinels_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/sentinel-runtime/sentinel/sentinels"
)

// FuzzDecode finds panics, problems without a position and definitions that change by
// encoding and decoding.
func FuzzDecode(f *testing.F) {
	for _, pattern := range []string{"testdata/spec/*.json", "testdata/good/*.json", "testdata/bad/*.json"} {
		files, _ := filepath.Glob(pattern)
		for _, file := range files {
			if src, err := os.ReadFile(file); err == nil && len(src) < 8<<10 {
				f.Add(src)
			}
		}
	}
	opt := options(f)
	f.Fuzz(func(t *testing.T, src []byte) {
		d, problems := sentinels.Decode(src, opt)
		if (d == nil) != (len(problems) > 0) {
			t.Fatalf("definition %v with problems %v", d, problems)
		}
		for _, p := range problems {
			if p.Line < 1 || p.Column < 1 || p.Message == "" {
				t.Fatalf("incomplete problem %+v", p)
			}
		}
		if d == nil {
			return
		}
		text := sentinels.Encode(d)
		again, problems := sentinels.Decode(text, opt)
		if len(problems) > 0 {
			if len(text) > sentinels.MaxBytes || problems[0].Kind == sentinels.KindLimit {
				return // the encoded text can exceed the limits
			}
			t.Fatalf("%v\n%s", problems, text)
		}
		if diff := cmp.Diff(d, again, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("encoded and decoded (-before +after):\n%s", diff)
		}
		if d.Hash() != again.Hash() {
			t.Fatal("the hash changed")
		}
		sentinels.Check(d, opt.Types).Locate("", src, opt.Types)
	})
}

// FuzzResolve checks that the result is valid JSON, and that a text without dollars
// does not change.
func FuzzResolve(f *testing.F) {
	for _, s := range []string{`"$n"`, `{"a":["$list[0] $$ $review"]}`, `"\u0024obj.a.b_1[0]"`, `"$utf.length$"`, `"$$$$n$"`} {
		f.Add(s)
	}
	schema := json.RawMessage(`{"type":"string","properties":{"a":{"items":{"type":"string"}}}}`)
	f.Fuzz(func(t *testing.T, s string) {
		sentinels.ResolveText(s, lookup)
		sentinels.ExpressionReferences(s)
		raw := json.RawMessage(s)
		if !json.Valid(raw) {
			return
		}
		for _, resolve := range []func() (json.RawMessage, []string, error){
			func() (json.RawMessage, []string, error) { return sentinels.Resolve(raw, lookup) },
			func() (json.RawMessage, []string, error) { return sentinels.ResolveAs(raw, schema, lookup) },
		} {
			out, unknown, err := resolve()
			if err != nil {
				t.Fatal(err)
			}
			if !json.Valid(out) {
				t.Fatalf("%s became %s", raw, out)
			}
			if len(sentinels.References(raw)) == 0 && len(unknown) > 0 {
				t.Fatalf("%s: unknown %q without a reference", raw, unknown)
			}
		}
		sentinels.Text(raw)
		if out, err := sentinels.Canonical(raw); err != nil || !json.Valid(out) {
			t.Fatalf("canonical %s, %v", out, err)
		}
	})
}

// FuzzShellLine checks that the rewritten line has no byte of a value in it.
func FuzzShellLine(f *testing.F) {
	for _, s := range []string{`echo "$s" '$s' $(echo $s) ${s}`, "cat <<E\n$s\nE\n", "`'$s'`", `$'\'$s'`, `"${x:-$s}"`, "$((1<<$n))", `# $s`} {
		f.Add(s)
	}
	const secret = "\x01;rm\x01"
	f.Fuzz(func(t *testing.T, line string) {
		if strings.Contains(line, "\x01") || strings.Contains(line, "SENTINEL_") {
			return
		}
		value, _ := json.Marshal(secret)
		out, env, _ := sentinels.ShellLine(line, func(name string) (json.RawMessage, bool) { return value, name == "s" })
		if strings.Contains(out, "\x01") {
			t.Fatalf("%q became %q", line, out)
		}
		for name, text := range env {
			if !strings.Contains(out, "${"+name+"}") || text != secret {
				t.Fatalf("%q became %q with %q", line, out, env)
			}
			out = strings.ReplaceAll(out, "${"+name+"}", "$s")
		}
		if len(env) <= 1 && out != line {
			t.Fatalf("%q came back as %q", line, out)
		}
	})
}
