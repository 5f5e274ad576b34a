package abitest

import (
	"fmt"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// manifestChecks compare the manifest with GUEST.md.
var manifestChecks = []check{
	{"A2.1", "name, version, abi and permissions are in the manifest", func(j *judge) {
		m := j.manifest()
		for key, want := range map[string]any{"name": "conformance", "version": "1.0.0"} {
			if m[key] != want {
				j.faultf("%s is %v, want %v", key, m[key], want)
			}
		}
		if stateless, ok := m["stateless"]; ok && stateless != false {
			j.faultf("stateless is %v, want it absent or false", stateless)
		}
	}},
	{"A2.2", "every step type has its summary, schema, infer, aliases and readOnly", func(j *judge) {
		steps := map[string]map[string]any{}
		list, _ := j.manifest()["steps"].([]any)
		for _, s := range list {
			if s, ok := s.(map[string]any); ok {
				typ, _ := s["type"].(string)
				steps[typ] = s
			}
		}
		if len(list) != 5 {
			j.faultf("%d step types, want 5", len(list))
		}
		for _, typ := range []string{"kit_echo", "kit_fail", "kit_call", "kit_blocks", "kit_pages"} {
			s, ok := steps[typ]
			if !ok {
				j.faultf("step type %s is missing", typ)
				continue
			}
			if text, _ := s["summary"].(string); text == "" {
				j.faultf("%s has no summary", typ)
			}
			fields, _ := s["fields"].(map[string]any)
			if fields["type"] != "object" || fields["additionalProperties"] != false {
				j.faultf("%s: the schema is not of type object without additional properties: %s", typ, encode(s["fields"]))
			}
		}
		echo := steps["kit_echo"]
		j.want("infer of kit_echo", must(`["echo"]`), echo["infer"], nil)
		j.want("aliases of kit_echo", must(`{"say":"echo"}`), echo["aliases"], nil)
		j.want("readOnly of kit_echo", true, echo["readOnly"], nil)
		j.want("output of kit_echo", must(`{"type":"object"}`), echo["output"], nil)
	}},
	{"A2.6", "a role of a step type is in the manifest", func(j *judge) {
		list, _ := j.manifest()["steps"].([]any)
		for _, s := range list {
			s, _ := s.(map[string]any)
			var want any
			if s["type"] == "kit_echo" {
				want = must(`{"as":"command","name":"conformance/echo"}`)
			}
			j.want(fmt.Sprintf("provides of %v", s["type"]), want, s["provides"], nil)
		}
	}},
	{"A2.3", "a mark of a field is in the manifest", func(j *judge) {
		list, _ := j.manifest()["steps"].([]any)
		for _, s := range list {
			s, _ := s.(map[string]any)
			if s["type"] != "kit_blocks" {
				continue
			}
			fields, _ := s["fields"].(map[string]any)
			properties, _ := fields["properties"].(map[string]any)
			field, _ := properties["steps"].(map[string]any)
			j.want("the mark of kit_blocks.steps", abi.MarkSteps, field[abi.Keyword], nil)
		}
	}},
	{"A2.4", "permissions has every use, with names and a reason", func(j *judge) {
		names := map[string]string{"command": `["*"]`, "spawn": `["*"]`, "http": `["*.example.com"]`, "folder": `["data:rw"]`, "secret": `["TOKEN"]`, "provide": `["command"]`}
		asked := map[string]bool{}
		list, _ := j.manifest()["permissions"].([]any)
		for _, a := range list {
			a, _ := a.(map[string]any)
			use, _ := a["use"].(string)
			asked[use] = true
			if reason, _ := a["reason"].(string); reason == "" {
				j.faultf("the permission for %s has no reason", use)
			}
			if want, ok := names[use]; ok {
				j.want("names of the permission for "+use, must(want), a["names"], nil)
			} else if !empty(a["names"]) {
				j.faultf("the permission for %s has names: %s", use, encode(a["names"]))
			}
		}
		for _, use := range abi.Uses() {
			if !asked[string(use)] {
				j.faultf("permissions has no use %s", use)
			}
		}
	}},
}

// manifest returns the manifest of the guest.
func (j *judge) manifest() map[string]any {
	text, err := j.guest.Describe(j.ctx)
	if err != nil {
		j.fatalf("describe: %s", errorText(err))
	}
	m, ok := j.read("the manifest", text).(map[string]any)
	if !ok {
		j.fatalf("the manifest is not an object")
	}
	if v := m["abi"]; !sameValue(v, abi.Version) {
		j.faultf("abi is %v, want %d", v, abi.Version)
	}
	return m
}
