package manifest

import (
	"fmt"
	"strings"
	"testing"
)

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"name":"a","version":"1","abi":1,"steps":[{"type":"a","summary":"s","fields":{"type":"object"}}],"permissions":[{"use":"llm","reason":"r"}]}`))
	f.Add([]byte(`{"abi":2}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := Parse(text)
		if err == nil && (len(m.Steps) == 0 || !identifier.MatchString(m.Name)) {
			t.Fatalf("%q was decoded as %+v", text, m)
		}
	})
}

func TestManifestFaults(t *testing.T) {
	step := `{"type":"a","summary":"s","fields":{"type":"object"}}`
	for text, want := range map[string]string{
		`nonsense`: "describe: invalid manifest: line 1, column",
		`{"name":"a","version":"1","abi":2,"steps":[],"later":1}`:                                               "speaks ABI 2",
		`{"name":"A b","version":"1","abi":1,"steps":[` + step + `]}`:                                           `name "A b"`,
		`{"name":"a","version":"1","abi":1,"steps":[]}`:                                                         "steps is empty",
		`{"name":"a","version":"1","abi":1,"steps":[` + step + `,` + step + `]}`:                                "is listed twice",
		`{"name":"a","version":"1","abi":1,"steps":[{"type":"a","summary":"s","fields":{"type":"array"}}]}`:     "not a JSON Schema of type object",
		`{"name":"a","version":"1","abi":1,"steps":[` + step + `],"permissions":[{"use":"root","reason":"x"}]}`: `"root" is not known`,
		`{"name":"a","version":"1","abi":1,"steps":[` + step + `],"permissions":[{"use":"llm"}]}`:               "reason is empty",
		`{"name":"a","version":"1","abi":1,"steps":[` + step + `],"permission":[{"use":"llm","reason":"r"}]}`:   `unknown key "permission"`,
		`{"name":"a","NAME":"b","version":"1","abi":1,"steps":[` + step + `]}`:                                  `unknown key "NAME"`,
		`{"name":"a","version":"1","abi":1,"Abi":1,"steps":[` + step + `]}`:                                     `unknown key "Abi"`,
		`{"name":"a","version":"1","abi":1,"steps":[` + step + `],"PERMISSIONS":[{"use":"llm","reason":"r"}]}`:  `unknown key "PERMISSIONS"`,
		`{"name":"a","version":"1","abi":1,"steps":[` + step + `],"name":"b"}`:                                  `duplicate key "name"`,
		`{"name":"a","version":"1","abi":1,"steps":[` + step + `],"permissions":[],"\u0070ermissions":[]}`:      `duplicate key "permissions"`,
		`{"name":"a","version":"1","abi":1,"steps":[{"type":"a","summary":"s","fields":{"Type":"object"}}]}`:    "not a JSON Schema of type object",
		asking("command", "code/re*"):            `permissions[0].names[0] "code/re*" is not a command`,
		asking("command", "/*"):                  "is not a command",
		asking("command", "*/read"):              "is not a command",
		asking("llm", "open*ai"):                 "has a * before its end",
		asking("emit", "*:done"):                 "has a * before its end",
		asking("folder", "../data"):              "does not match",
		asking("secret", "token"):                "does not match",
		asking("http", "a b.example.com"):        "without spaces",
		asking("http", strings.Repeat("a", 257)): "1 to 256 bytes",
		`{"name":"a","version":"1","abi":1,"steps":[` + strings.Repeat(step+",", 10_000) + step + `],"permissions":[]}`: "the limit is 262144",
	} {
		if _, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Parse(%.90s): %v, want %q", text, err, want)
		}
	}
}

// asking returns a manifest that asks for one name of a use.
func asking(use, name string) string {
	return fmt.Sprintf(`{"name":"a","version":"1","abi":1,"steps":[{"type":"a","summary":"s","fields":{"type":"object"}}],"permissions":[{"use":%q,"names":[%q],"reason":"r"}]}`, use, name)
}

func TestManifestNames(t *testing.T) {
	for use, names := range map[string][]string{
		"command": {"*", "code/*", "code/read", "mcp/a/b"}, "llm": {"*", "openai/*", "gpt-5"}, "emit": {"git:*", "done"}, "spawn": {"*", "nightly"},
		"folder": {"data", "data:rw"}, "secret": {"TOKEN"}, "http": {"api.example.com", "*.example.com:8443"},
	} {
		for _, name := range names {
			if _, err := Parse([]byte(asking(use, name))); err != nil {
				t.Errorf("%s %q: %v", use, name, err)
			}
		}
	}
}
