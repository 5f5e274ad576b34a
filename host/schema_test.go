package host_test

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// TestSchemaSize: "`sentinel schema` has the options of every trigger kind with meaning and
// default, `$event` of each, outputs of each step type and command". It is read by models, so
// it has a limit: 64 KB without plugins.
func TestSchemaSize(t *testing.T) {
	h := open(t, host.Options{})
	text := h.Schema()
	if len(text) >= 64<<10 {
		t.Errorf("the schema has %d bytes", len(text))
	}
	var schema struct {
		Defs struct {
			Trigger struct {
				Properties map[string]struct{ Description string }
				AllOf      []struct {
					Then struct {
						Description string
						Properties  map[string]struct{ Description string }
					}
				}
			}
		} `json:"$defs"`
		Outputs map[string]string `json:"x-outputs"`
	}
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../triggers/TRIGGERS.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := func(name, doc string) {
		if doc == "" || !bytes.Contains(page, []byte("\n| `"+name+"` |")) {
			t.Errorf("option %s: %q, and in TRIGGERS.md?", name, doc)
		}
	}
	for _, name := range []string{"filter", "debounceMs", "maxWaitMs", "allowConcurrent"} {
		documented(name, schema.Defs.Trigger.Properties[name].Description)
	}
	for i, k := range schema.Defs.Trigger.AllOf {
		if !strings.HasPrefix(k.Then.Description, "$event: ") {
			t.Errorf("kind %d: %q", i, k.Then.Description)
		}
		for name, p := range k.Then.Properties {
			documented(name, p.Description)
		}
	}
	outputs := map[string]string{} // an entry may have several commands of one family
	for names, shape := range schema.Outputs {
		first, others, _ := strings.Cut(names, ", ")
		outputs[first] = shape
		for other := range strings.SplitSeq(others, ", ") {
			outputs[first[:strings.LastIndex(first, "/")+1]+other] = shape
		}
	}
	for _, c := range h.Commands().List() {
		if c.Effect != "decides" && outputs[c.Name] == "" && len(c.Output()) > 0 && bytes.Contains(c.Output(), []byte(`"properties"`)) {
			t.Errorf("the output of %s is missing", c.Name)
		}
	}
	for _, name := range h.Runtime().Types().Types() {
		spec, _ := h.Runtime().Types().Lookup(name)
		if len(spec.Output) == 0 && !slices.Contains([]string{"shell", "http", "command", "fail", "stop"}, string(name)) { // those of commands; the last two have none
			t.Errorf("step type %s describes no output", name)
		}
	}
}

// TestSchemaFileIsCurrent holds sentinels/schema.json to the format and to the
// built-in step types; "make schema" writes it.
func TestSchemaFileIsCurrent(t *testing.T) {
	h := open(t, host.Options{})
	stored, err := os.ReadFile("../sentinels/schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var want, got bytes.Buffer
	if err := json.Compact(&got, stored); err != nil {
		t.Fatal(err)
	}
	if err := json.Compact(&want, h.Schema()); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want.Bytes()) {
		t.Error("sentinels/schema.json is not what the format and the step types say; run make schema")
	}
}

// TestSchemaAcceptsReferences checks that the schema accepts what runs: paths in "$ref", and references and durations
// in the place of numbers.
func TestSchemaAcceptsReferences(t *testing.T) {
	h := open(t, host.Options{})
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(h.Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource(sentinels.SchemaURL, doc); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile(sentinels.SchemaURL)
	if err != nil {
		t.Fatal(err)
	}
	for step, want := range map[string]bool{
		`{"definition": {"$ref": "convert"}}`:                                                                true,
		`{"definition": {"$ref": "./convert.json"}}`:                                                         true,
		`{"definition": {"$ref": "./children/convert.json"}}`:                                                true,
		`{"definition": {"$ref": "../shared/convert.jsonc"}}`:                                                true,
		`{"definition": {"$ref": "Shared Parts/convert.json"}}`:                                              true,
		`{"definition": {"$ref": "/convert.json"}}`:                                                          false,
		`{"definition": {"$ref": "./Convert.json"}}`:                                                         false,
		`{"definition": {"$ref": "./convert"}}`:                                                              false,
		`{"definition": {"$ref": "..\\convert.json"}}`:                                                       false,
		`{"type": "approve", "prompt": "x", "timeoutMs": "$inputs.d"}`:                                       true,
		`{"type": "approve", "prompt": "x", "timeoutMs": "1h30m"}`:                                           true,
		`{"type": "approve", "prompt": "x", "timeoutMs": 5}`:                                                 true,
		`{"type": "approve", "prompt": "x", "timeoutMs": "soon"}`:                                            false,
		`{"url": "https://a.example", "timeoutMs": "$inputs.d"}`:                                             true,
		`{"type": "wait", "durationMs": "$d"}`:                                                               true,
		`{"executionId": "$a.executionId", "timeoutMs": "$d"}`:                                               true,
		`{"type": "shell", "command": "x", "background": true, "ready": {"tcp": 80, "timeoutMs": "$d"}}`:     true,
		`{"type": "shell", "command": "x", "background": true, "ready": {"tcp": 80, "timeoutMs": "1 hour"}}`: false,
		`{"type": "shell", "command": "x", "timeoutMs": "5m"}`:                                               true,
		`{"type": "shell", "command": "x", "timeoutMs": "$d"}`:                                               false, // a limit of the runtime: read before there are variables
		`{"type": "shell", "command": "x", "timeoutMs": 0}`:                                                  false,
	} {
		text := `{"name": "a", "inputs": {"d": {"type": "string"}}, "steps": [` + step + `]}`
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(value); (err == nil) != want {
			t.Errorf("%s: %v", step, err)
		}
		if def, problems := h.Runtime().Decode([]byte(text), ""); (def != nil) != want {
			t.Errorf("%s: the decoder: %v", step, problems)
		}
	}
}
