package sentinels_test

import (
	"encoding/json"
	"os"
	"path/filepath"
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
		sentinels.Check(t.Context(), d, opt.Types).Locate("", src, opt.Types)
	})
}

// FuzzCanonical checks that every value has a canonical form, which is its own.
func FuzzCanonical(f *testing.F) {
	for _, s := range []string{`{"b":[1.0, {}],"a":"\u00e4\/"}`, `{"a":1,"a":2}`, `"\ud800"`, ` [null , true] `} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if !json.Valid([]byte(s)) {
			return
		}
		out, err := sentinels.Canonical(json.RawMessage(s))
		if err != nil || !json.Valid(out) {
			t.Fatalf("canonical %s, %v", out, err)
		}
		if again, err := sentinels.Canonical(out); err != nil || string(again) != string(out) {
			t.Fatalf("%s became %s, %v", out, again, err)
		}
	})
}
