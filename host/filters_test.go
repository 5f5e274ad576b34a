package host_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Why a parameter that selects takes a value that nothing has.
const (
	freeText   = "words to look for"
	freeGlob   = "a pattern of names or paths"
	freeName   = "a name that users and agents give: nothing lists those that there are"
	freePlace  = "a place in the order of ids, which need not be taken"
	freeThing  = "a thing that may have been removed, whose traces are looked for"
	freePrompt = "what a text is made for; it selects nothing"
)

// openValues are the parameters of commands that read and accept any value.
var openValues = map[string]string{
	"audit/list actor": freeName, "audit/list event": freeGlob, "checkpoint/list run": freeThing, "code/search glob": freeGlob, "code/search pattern": freeText,
	"collaboration/chat/history room": freeName, "data/list after": freePlace, "data/list collection": freeName, "events/tail pattern": freeGlob, "fs/list pattern": freeGlob, "fs/list after": freePlace,
	"inbox/list by": freeName, "inbox/list id": freeThing, "logs/list run": freeThing, "logs/search pattern": freeText, "logs/search run": freeThing,
	"memory/recall key": freeName, "memory/recall query": freeText, "memory/recall sentinelId": freeThing, "memory/recall tags": freeName,
	"rag/build paths": freeGlob, "rag/build query": freePrompt, "rag/build room": freeName, "rag/search paths": freeGlob, "rag/search query": freeText,
	"search_tools query": freeText, "search_tools tools": freeGlob,
	"sentinel/list after": freePlace, "sentinel/list personaId": freeName, "sentinel/list sentinelId": freeThing, "sentinel/list tag": freeName, "sentinel/triggers after": freePlace,
	"memory/recall after": freePlace, "ticket/list after": freePlace, "ticket/list assignee_id": freeName, "ticket/list label": freeName, "ticket/list project": freeName, "ticket/list query": freeText,
}

// TestFiltersRefuseUnknownValues: a command that reads refuses a value of a filter, or a position
// of a page, that it does not know, in place of an empty list. The others are in the table.
func TestFiltersRefuseUnknownValues(t *testing.T) {
	h := open(t, host.Options{})
	const unknown = "nope_xyz"
	unseen := map[string]bool{}
	for key := range openValues {
		unseen[key] = true
	}
	for _, c := range h.Commands().List() {
		if c.Effect != command.Reads {
			continue
		}
		var schema struct {
			Properties map[string]struct{ Type any }
			Required   []string
		}
		if err := json.Unmarshal(c.Input(), &schema); err != nil {
			t.Fatalf("%s: %v", c.Name, err)
		}
		for name, p := range schema.Properties {
			var value any = unknown
			kinds, _ := p.Type.([]any)
			switch {
			case p.Type == "array" || slices.Contains(kinds, any("array")):
				value = []string{unknown}
			case p.Type != "string" && !slices.Contains(kinds, any("string")):
				continue
			}
			params := map[string]any{}
			for _, required := range schema.Required {
				params[required] = unknown
			}
			params[name] = value
			in, err := json.Marshal(params)
			if err != nil {
				t.Fatal(err)
			}
			out, err := h.Call(t.Context(), c.Name, in)
			key := c.Name + " " + name
			switch reason := openValues[key]; {
			case reason == "" && err == nil:
				t.Errorf("%s %s is accepted: %.200s", key, unknown, out)
			case reason != "" && err != nil:
				t.Errorf("%s %s is in the table, but refused: %v", key, unknown, err)
			case err != nil && abi.CodeOf(err) == abi.Internal:
				t.Errorf("%s %s: %v", key, unknown, err)
			}
			delete(unseen, key)
		}
	}
	for key := range unseen {
		t.Errorf("%q is in the table, and no command has it", key)
	}
	for _, call := range [][2]string{
		{"events/tail", `{"pattern": "sentinel:*:faild"}`}, {"sentinel/list", `{"status": "completed,nope"}`},
		{"ticket/list", `{"state": ["ready,done"]}`}, {"ticket/list", `{"parent_id": "T-9"}`},
	} {
		if _, err := h.Call(t.Context(), call[0], json.RawMessage(call[1])); err == nil {
			t.Errorf("%s %s is accepted", call[0], call[1])
		}
	}
}
