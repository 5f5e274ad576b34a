package sentinels_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/sentinel-runtime/sentinel/sentinels"
)

func compileSchema(t *testing.T, set *sentinels.TypeSet) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(sentinels.Schema(set, kinds(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("https://sentinel.invalid/schema.json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("https://sentinel.invalid/schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// TestSchemaAccepts checks that the schema accepts what Decode accepts.
func TestSchemaAccepts(t *testing.T) {
	schema := compileSchema(t, types(t))
	files, _ := filepath.Glob("testdata/spec/*.json")
	files = append(files, "testdata/good/recipe.json")
	for _, file := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(src))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(value); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
	// The canonical text of the file with all fields, without comments and aliases.
	src, err := os.ReadFile("testdata/good/everything.json")
	if err != nil {
		t.Fatal(err)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(sentinels.Encode(decode(t, string(src)))))
	if err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(value); err != nil {
		t.Error(err)
	}
}

// TestSchemaRefuses checks that it refuses mistakes that an editor should show.
func TestSchemaRefuses(t *testing.T) {
	schema := compileSchema(t, types(t))
	for name, src := range map[string]string{
		"key":            `{"name": "a", "stesp": [], "steps": []}`,
		"no steps":       `{"name": "a"}`,
		"step type":      `{"name": "a", "steps": [{"type": "comand"}]}`,
		"step key":       `{"name": "a", "steps": [{"type": "command", "command": "x", "parms": {}}]}`,
		"other's field":  `{"name": "a", "steps": [{"type": "command", "command": "x", "prompt": "y"}]}`,
		"inferred key":   `{"name": "a", "steps": [{"command": "x", "prompt": "y"}]}`,
		"value":          `{"name": "a", "steps": [{"type": "llm", "temperature": "hot"}]}`,
		"nested step":    `{"name": "a", "steps": [{"check": "$a", "then": [{"type": "emit"}]}]}`,
		"branch":         `{"name": "a", "steps": [{"branches": [[{"type": "emit"}]]}]}`,
		"definition":     `{"name": "a", "steps": [{"definition": {"steps": [], "x": 1}}]}`,
		"loop":           `{"name": "a", "steps": [], "loop": {"type": "forever"}}`,
		"rule key":       `{"name": "a", "steps": [{"executionId": "$a", "rules": [{"pattern": "x", "colour": 1}]}]}`,
		"trigger option": `{"name": "a", "steps": [], "trigger": {"type": "file", "paths": ["x"], "glob": "y"}}`,
		"other trigger":  `{"name": "a", "steps": [], "trigger": [{"type": "event", "event": "x", "timeZone": "UTC"}]}`,
		"without paths":  `{"name": "a", "steps": [], "trigger": {"type": "file"}}`,
		"without cron":   `{"name": "a", "steps": [], "trigger": {"type": "schedule"}}`,
		"option's value": `{"name": "a", "steps": [], "trigger": {"type": "webhook", "event": 1}}`,
		"reserved shape": `{"name": "a", "steps": [{"command": "x", "outputTo": "$a"}]}`,
	} {
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(src))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(value); err == nil {
			t.Errorf("%s: %s is accepted", name, src)
		}
	}
	for _, src := range []string{
		`{"name": "a", "steps": [{"type": "llm", "prompt": "x", "temperature": "$t", "parseToolCalls": "$yes"}]}`,
		`{"name": "a", "steps": [{"type": "loop", "each": "$items", "steps": []}]}`,
		`{"name": "a", "steps": [], "trigger": {"type": "cron", "schedule": "@daily", "timeZone": "UTC", "debounceMs": 1}}`,
		`{"name": "a", "steps": [{"if": "$a", "then": []}, {"event": "a:b", "payload": "$a"}]}`,
	} {
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(src))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(value); err != nil {
			t.Errorf("%s: %v", src, err)
		}
	}
}

// TestSchemaStable checks that the schema is deterministic, also without types.
func TestSchemaStable(t *testing.T) {
	if !bytes.Equal(sentinels.Schema(types(t), kinds(), nil), sentinels.Schema(types(t), kinds(), nil)) {
		t.Error("two generations differ")
	}
	compileSchema(t, nil)
}
