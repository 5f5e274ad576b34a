package host_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host"
)

// oddNames are names of all kinds that JSON allows: of prototypes, of our own keys, with marks of
// each language, empty and long.
func oddNames() []string {
	return []string{
		"", " ", "a b", "a.b", "a/b", "a[0]", "0", "-1", "01", "é", "日本語", "👍", "\u2028", "\U0010ff80", "\n", "\t", "\\", `"`, "'", "`", `"); x("`,
		"$", "$$", "$x", "${x}", "{{x}}", "$x.y", "$event", "%x%", "__proto__", "constructor", "prototype", "toString", "valueOf", "hasOwnProperty", "toJSON", "then", "length",
		"expr", "secret", "$ref", "json", "text", "id", "name", "type", "data", "batch", "true", "null", "undefined", strings.Repeat("x", 1000), strings.Repeat("é", 1000),
	}
}

// TestNamesOfAllKinds: an object whose keys have all kinds of names is the same after a step set,
// an expression, a loop over its keys, a shell step, a child, an event that starts a run, and a
// document. So is one with a single key, which could pass for something else.
func TestNamesOfAllKinds(t *testing.T) {
	h := open(t, host.Options{})
	if err := h.Runtime().Arm(t.Context()); err != nil {
		t.Fatal(err)
	}
	all, single := map[string]any{}, []any{}
	for i, name := range oddNames() {
		all[name] = map[string]any{name: fmt.Sprint(i)}
		single = append(single, map[string]any{name: name})
	}
	data := map[string]any{"all": all, "single": single}
	must(t, h, "sentinel/create", map[string]any{"definition": map[string]any{
		"id": "hears", "name": "hears", "trigger": map[string]any{"type": "event", "event": "names:*"},
		"steps": []any{
			map[string]any{"type": "set", "values": map[string]any{"heard": "$event.data"}},
			map[string]any{"command": "data/create", "params": map[string]any{"collection": "heard", "id": "d", "data": map[string]any{"value": "$heard"}}},
			map[string]any{"type": "emit", "event": "heard:names", "data": map[string]any{"value": "$heard"}},
		},
	}}, nil)
	var out struct {
		Status    string
		Error     json.RawMessage
		Variables map[string]any
	}
	must(t, h, "sentinel/run", map[string]any{"inputs": map[string]any{"data": data}, "definition": map[string]any{
		"name": "names", "inputs": map[string]any{"data": "object"}, "variables": map[string]any{"collected": map[string]any{}},
		"steps": []any{
			map[string]any{"type": "set", "values": map[string]any{"copied": "$data", "spread": map[string]any{"expr": "({all: {...$data.all}, single: $data.single.map(x => ({...x}))})"}}},
			map[string]any{"type": "set", "values": map[string]any{"rebuilt": map[string]any{"expr": "({all: Object.fromEntries(Object.entries($data.all)), single: $data.single})"}}},
			map[string]any{"type": "loop", "each": "$data.single", "as": "one", "steps": []any{
				map[string]any{"type": "set", "values": map[string]any{"key": map[string]any{"expr": "Object.keys($one)[0]"}}},
				map[string]any{"type": "set", "values": map[string]any{"collected": map[string]any{"expr": "({...$collected, [$key]: $data.all[$key]})"}}},
			}},
			map[string]any{"type": "shell", "argv": []any{"cat"}, "stdin": "$data", "parse": "json", "outputTo": "printed"},
			map[string]any{"type": "sentinel", "definition": map[string]any{
				"name": "kid", "inputs": map[string]any{"data": "object"}, "steps": []any{map[string]any{"type": "set", "values": map[string]any{"back": "$data"}}},
			}, "inputs": map[string]any{"data": "$data"}, "outputTo": "child"},
			map[string]any{"type": "set", "values": map[string]any{"child": "$child.back"}},
			map[string]any{"type": "parallel", "branches": []any{
				[]any{map[string]any{"type": "wait", "event": "heard:names", "timeoutMs": 60000, "outputTo": "came"}, map[string]any{"type": "set", "values": map[string]any{"heard": "$came.event.data.value"}}},
				[]any{map[string]any{"type": "emit", "event": "names:all", "data": "$data"}},
			}},
			map[string]any{"command": "data/read", "params": map[string]any{"collection": "heard", "id": "d"}, "outputTo": "document"},
			map[string]any{"type": "set", "values": map[string]any{"stored": "$document.document.data.value", "collected": map[string]any{"all": "$collected", "single": "$data.single"}}},
		},
	}}, &out)
	if out.Status != "completed" {
		t.Fatalf("%s: %s", out.Status, out.Error)
	}
	for _, name := range []string{"copied", "spread", "rebuilt", "collected", "printed", "child", "heard", "stored"} {
		got, _ := out.Variables[name].(map[string]any)
		gotAll, _ := got["all"].(map[string]any)
		for key, want := range all {
			if !reflect.DeepEqual(gotAll[key], want) {
				t.Errorf("%s: key %.20q: %.80v, want %.80v", name, key, gotAll[key], want)
			}
		}
		if len(gotAll) != len(all) || !reflect.DeepEqual(got["single"], any(single)) {
			t.Errorf("%s: %d keys of %d, single %.200v", name, len(gotAll), len(all), got["single"])
		}
	}
}

// TestNamesOfVariables: each name is one of a variable, an input, an output and a step that works
// everywhere, or a problem of the definition.
func TestNamesOfVariables(t *testing.T) {
	h := open(t, host.Options{})
	checked := map[string]bool{}
	for _, name := range append(oddNames(), "_", "x_1", strings.Repeat("y", 64), "X9", "caller", "arguments", "this", "class", "eval", "NaN", "Object", "PATH", "HOME") {
		definition := map[string]any{
			"name": "n", "inputs": map[string]any{name: "string"}, "steps": []any{
				map[string]any{"id": "s-1", "type": "shell", "command": fmt.Sprintf(`printf '%%s' "$%s"`, name), "outputTo": "printed", "parse": "trim"},
				map[string]any{"type": "set", "values": map[string]any{"copied": "$" + name, "evaluated": map[string]any{"expr": "$" + name + " + '!'"}, "in_inputs": map[string]any{"expr": fmt.Sprintf("$inputs[%q]", name)}}},
				map[string]any{"type": "set", "values": map[string]any{name: "new"}},
				map[string]any{"type": "set", "values": map[string]any{"changed": "$" + name}},
			},
		}
		text, err := json.Marshal(definition)
		if err != nil {
			t.Fatal(err)
		}
		if valid, problems := validated(t, h, string(text), nil); !valid {
			if len(problems) == 0 {
				t.Errorf("%.40q is refused without a problem", name)
			}
			continue
		}
		checked[name] = true
		var out struct {
			Status    string
			Error     json.RawMessage
			Variables map[string]any
		}
		must(t, h, "sentinel/run", map[string]any{"definition": definition, "inputs": map[string]any{name: "v"}}, &out)
		want := map[string]any{"printed": "v", "copied": "v", "evaluated": "v!", "in_inputs": "v", "changed": "new"}
		for key, v := range want {
			if out.Variables[key] != v {
				t.Errorf("%.40q: %s is %v, want %v (%s %s)", name, key, out.Variables[key], v, out.Status, out.Error)
			}
		}
	}
	for _, name := range []string{"constructor", "toString", "length", "then", "_", "eval", "class"} {
		if !checked[name] {
			t.Errorf("the variable %q is refused", name)
		}
	}
}
