package definitions

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/sentinels"
)

// TestReadmeShowsTemplate: "README and `--help` show exactly what it writes."
func TestReadmeShowsTemplate(t *testing.T) {
	page, err := os.ReadFile("../../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	text, err := fromTemplate(templates[0].name, templates[0].name)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```jsonc\n")
	shown, _, _ := strings.Cut(rest, "```")
	if diff := cmp.Diff(string(text), shown); diff != "" {
		t.Errorf("the first example in README.md (-want +got):\n%s", diff)
	}
}

func TestTemplateNames(t *testing.T) {
	text, err := fromTemplate("hello", ` My "first" one `)
	if err != nil || !strings.Contains(string(text), `"id": "my-first-one",`) || !strings.Contains(string(text), `"name": "My \"first\" one",`) {
		t.Errorf("%v\n%s", err, text)
	}
	for _, name := range []string{"", " ", "a\nb"} {
		if _, err := fromTemplate("hello", name); err == nil {
			t.Errorf("the name %q is accepted", name)
		}
	}
	files, err := templateFiles.ReadDir("templates")
	single := 0
	for _, one := range templates {
		if len(one.all) == 0 {
			single++
		}
		for _, name := range one.all {
			if !slices.Contains(templateNames(), name) {
				t.Errorf("%s: %s is not a template", one.name, name)
			}
		}
	}
	if shipped := sentinels.Shipped(); err != nil || len(files)+len(shipped) != single {
		t.Errorf("%d files, %v, %d templates, %v", len(files), shipped, single, err)
	}
}

// A sentinel that is part of the program is written as it is, or under another name.
func TestShippedSentinels(t *testing.T) {
	for _, id := range sentinels.Shipped() {
		text, err := fromTemplate(string(id), string(id))
		if want, _ := sentinels.ShippedText(id); err != nil || string(text) != string(want) {
			t.Errorf("%s: %v", id, err)
		}
		text, err = fromTemplate(string(id), `My "own"`)
		if err != nil || !strings.HasPrefix(string(text), "{\n  \"id\": \"my-own\",\n  \"name\": \"My \\\"own\\\"\",\n") {
			t.Errorf("%s: %v\n%.80s", id, err, text)
		}
	}
}
