package sentinels_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/sentinels"
)

func TestStandardize(t *testing.T) {
	text := []byte(`// first
{"name": "a", /* a kind that only the other host has */ "trigger": {"type": "order"}, "steps": [{"command": "shop/ship"},]}
`)
	kept := string(text)
	got, problems := sentinels.Standardize("a.json", text)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	var value any
	if err := json.Unmarshal(got, &value); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"name": "a", "trigger": map[string]any{"type": "order"}, "steps": []any{map[string]any{"command": "shop/ship"}},
	}
	if diff := cmp.Diff(any(want), value); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if string(text) != kept {
		t.Error("the text itself was changed")
	}
}

func TestStandardizeProblems(t *testing.T) {
	for text, want := range map[string]string{
		"{\n  \"a\": }":            "a.json:2:8",
		"{\"a\": 1,\n \"a\": 2}":   "a.json:2:2",
		"\xef\xbb\xbf{\"a\": 1}":   "a.json:1:1",
		"{\"a\": \"\xff\"}":        "a.json:1:8",
		"{\"a\": 1} {\"b\": true}": "a.json:1:10",
	} {
		got, problems := sentinels.Standardize("a.json", []byte(text))
		if got != nil || len(problems) != 1 || !strings.HasPrefix(problems[0].String(), want) {
			t.Errorf("Standardize(%q) = %s, %v, want a problem at %s", text, got, problems, want)
		}
	}
}

func TestCanonical(t *testing.T) {
	got, err := sentinels.Canonical(json.RawMessage(" { \"b\" : [ 1.0 , {} , [ ] , null ] , \"a\" : \"\\u00e4\\/\\u0007<\" } "))
	if want := `{"a":"ä/\u0007<","b":[1.0,{},[],null]}`; err != nil || string(got) != want {
		t.Errorf("%s, %v; want %s", got, err, want)
	}
	if _, err := sentinels.Canonical(json.RawMessage(`{`)); err == nil {
		t.Error("broken JSON has a canonical form")
	}
}
