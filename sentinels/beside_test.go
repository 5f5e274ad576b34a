package sentinels_test

import (
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/sentinels"
)

// TestBeside: a "$ref" is a file beside the one that says so, by id or by path, and so are those of that file; what is in
// a comment is not read. Two files with one id are an error.
func TestBeside(t *testing.T) {
	files := map[string]string{
		"a.json": `{"name": "a", "steps": [{"definition": {"$ref": "./b.jsonc"}}]}`, "b.jsonc": `{"name": "b", "steps": []} // {"$ref": "./d.json"}`,
		"../up.json": `{"name": "up", "steps": [{"definition": {"$ref": "side"}}]}`, "../side.json": `{"name": "side", "steps": []}`,
		"sub/deep.json": `{"name": "deep", "steps": [{"definition": {"$ref": "c"}}, {"definition": {"$ref": "./e.json"}}, {"definition": {"$ref": "../../up.json"}}]}`,
		"sub/c.json":    `{"name": "c", "steps": []}`, "sub/e.json": `{"name": "e", "steps": []}`,
		"c.json": `{"name": "c", "steps": []}`, "d.json": `{"name": "d", "steps": []}`,
	}
	for text, want := range map[string]string{
		`{"steps": [{"definition": {"$ref": "a"}}, {"definition": {"$ref": "c"}}]}`: "a b c",
		`{"steps": [{"definition": {"$ref": "./c.json"}}]}`:                         "c",
		`{"steps": [{"definition": {"$ref": "c.json"}}]}`:                           "c",
		`{"steps": [{"definition": {"$ref": "stored"}}]}`:                           "",
		`{"steps": [{"definition": {"$ref": "../up.json"}}]}`:                       "side up",
		`{"steps": [{"definition": {"$ref": "./sub/deep.json"}}]}`:                  "c deep e side up",
		`{"steps": [{"definition": {"$ref": "../c.json"}}]}`:                        `no file "../c.json"`,
		`{"a": {"$ref": "c"}, "b": {"$ref": "./sub/../sub/c.json"}}`:                `"sub/c.json" in "$ref" is not the only file of sentinel "c", which "c.json" is too`,
		`{"steps": [{"definition": {"$ref": "..\\\\c.json"}}]}`:                     "",
		`{"steps": [{"definition": {"$ref": "/c.json"}}]}`:                          "",
		`{"steps": [ /* {"$ref": "./gone.json"} */ ]}`:                              "",
		`{"steps": [{"definition": {"$ref": "./gone.json"}}]}`:                      `no file "gone.json", which`,
		`{"steps": [{"definition": {"$ref": "./b.json"}}]}`:                         `no file "b.json", which`,
	} {
		found, err := sentinels.Beside([]byte(text), func(_ string, _ sentinels.ID, names []string, _ bool) (n sentinels.Neighbour, err error) {
			for _, name := range names {
				if content, ok := files[name]; ok {
					return sentinels.Neighbour{File: name, Text: []byte(content)}, nil
				}
			}
			return n, fs.ErrNotExist
		})
		var got []string
		for _, id := range slices.Sorted(maps.Keys(found)) {
			got = append(got, string(id))
		}
		if err != nil && want != "" {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", text, err)
			}
			continue
		}
		if diff := cmp.Diff(want, strings.Join(got, " ")); diff != "" || err != nil {
			t.Errorf("%s: %v %s", text, err, diff)
		}
	}
}
