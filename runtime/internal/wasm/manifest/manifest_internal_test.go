package manifest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/sentinels"
)

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"name":"a","version":"1","abi":1,"steps":[{"type":"a","summary":"s","fields":{"type":"object"}}],"permissions":[{"use":"llm","reason":"r"}]}`))
	f.Add([]byte(`{"abi":2}`))
	f.Add([]byte(`{"name":"a","version":"1","abi":1,"steps":[{"type":"a","summary":"s","fields":{"type":"object"},"output":{},"provides":{"as":"command","name":"a/b"}}],"permissions":[{"use":"provide","names":["command"],"reason":"r"}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := Parse(text)
		if err == nil && (len(m.Steps) == 0 || !identifier.MatchString(m.Name)) {
			t.Fatalf("%q was decoded as %+v", text, m)
		}
		if err == nil && sentinels.CheckTypes(m.Types()) == nil && len(text) < 4<<10 {
			_ = m.CheckRoles() // as a host does after it has checked the limits
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

// TestRoleFaults: roles that a host cannot use are refused with the clause, before or after
// their schemas are compiled.
func TestRoleFaults(t *testing.T) {
	command := func(name, fields, output string) string {
		return fmt.Sprintf(`{"type":"a","summary":"s","fields":%s,"output":%s,"provides":{"as":"command","name":%q}}`, fields, output, name)
	}
	other := func(as, fields string) string {
		return fmt.Sprintf(`{"type":"a","summary":"s","fields":%s,"provides":{"as":%q}}`, fields, as)
	}
	with := func(names, steps string) string {
		return fmt.Sprintf(`{"name":"kit","version":"1","abi":1,"steps":[%s],"permissions":[{"use":"provide","names":[%s],"reason":"r"}]}`, steps, names)
	}
	object := `{"type":"object"}`
	lines := `{"type":"object","properties":{"lines":{"type":"array"}}}`
	for text, want := range map[string]string{
		with(`"command"`, command("kit/a", object, object)):                                                                                                       "",
		with(`"command"`, command("kit/a-b_2", object, object)):                                                                                                   "",
		with(`"command"`, command("other/a", object, object)):                                                                                                     "want the plugin's name",
		with(`"command"`, command("kit", object, object)):                                                                                                         "want the plugin's name",
		with(`"command"`, command("kit/", object, object)):                                                                                                        "want the plugin's name",
		with(`"command"`, command("kit/a/b", object, object)):                                                                                                     "want the plugin's name",
		with(`"command"`, command("kit/A", object, object)):                                                                                                       "want the plugin's name",
		with(`"command"`, command("", object, object)):                                                                                                            "want the plugin's name",
		with(`"command"`, `{"type":"a","summary":"s","fields":{"type":"object"},"provides":{"as":"command","name":"kit/a"}}`):                                     "output is missing: a command needs a JSON Schema of its output (A9.2)",
		with(`"command"`, command("kit/a", object, object)+`,`+strings.Replace(command("kit/a", object, object), `"type":"a"`, `"type":"b"`, 1)):                  `is also that of the step type "a"`,
		with(`"model"`, command("kit/a", object, object)):                                                                                                         `permissions does not have {"use": "provide", "names": ["command"]`,
		with(`"command","model"`, command("kit/a", object, object)):                                                                                               `names[1] "model": no step type provides it (A2.6)`,
		with(`"commands"`, command("kit/a", object, object)):                                                                                                      `"commands": no step type provides it`,
		with(`"trigger"`, other("trigger", object)):                                                                                                               "is not a role",
		with(`"output_classifier"`, `{"type":"a","summary":"s","fields":`+lines+`,"provides":{"as":"output_classifier","name":"kit/a"}}`):                         "has no name",
		with(`"output_classifier"`, other("output_classifier", lines)):                                                                                            "",
		with(`"output_classifier"`, other("output_classifier", object)):                                                                                           `properties does not have "lines"`,
		with(`"output_classifier"`, other("output_classifier", `{"type":"object","properties":{"lines":{"type":"string"}}}`)):                                     "A9.4",
		with(`"error_classifier"`, other("error_classifier", `{"type":"object","properties":{"message":{},"code":{},"source":{"enum":["step"]},"exitCode":{}}}`)): "A9.3",
		with(`"error_classifier"`, other("error_classifier", `{"type":"object","additionalProperties":true}`)):                                                    "",
		with(`"error_classifier"`, other("error_classifier", `{"type":"object","additionalProperties":true,"required":["code"]}`)):                                "A9.3",
		with(`"notifier"`, other("notifier", `{"type":"object","properties":{"title":{}}}`)):                                                                      "A9.5",
		with(`"model"`, other("model", `{"type":"object","properties":{"model":{}}}`)):                                                                            "A9.6",
		with(`"command"`, command("kit/a", `{"type":"object","properties":{"x":{"type":"string","x-sentinel":"shell"}}}`, object)):                                `field "x" has the mark shell`,
		with(`"command"`, command("kit/a", `{"type":"object","properties":{"name":{"type":"string"}}}`, object)):                                                  `"name" is common to all steps`,
		with(`"command"`, command("kit/a", `{"type":"object","properties":{"timeoutMs":{"type":"integer"}}}`, object)):                                            `field "timeoutMs" belongs to the host`,
		with(`"command"`, strings.Replace(command("kit/a", object, object), `"as"`, `"As"`, 1)):                                                                   `unknown key "As"`,
	} {
		m, err := Parse([]byte(text))
		if err == nil {
			err = m.CheckRoles()
		}
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%.200s: %v, want %q", text, err, want)
		}
	}
}
