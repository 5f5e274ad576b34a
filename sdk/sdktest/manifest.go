package sdktest

import (
	"regexp"
	"slices"
	"sync"

	"github.com/sentinel-runtime/sentinel/sdk"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

var name = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[a-z][a-z0-9_]{0,63}$`)
})

// common are the fields of every step, which belong to the host (clause A2.2).
var common = []string{"type", "id", "name", "condition", "outputTo", "parse", "onError", "timeoutMs", "onInterrupt"}

// replaceable are those of them that a step type may define itself instead.
var replaceable = []string{"parse", "timeoutMs"}

// marks are the values of the keyword x-sentinel.
var marks = []string{
	abi.MarkExpression, abi.MarkSteps, abi.MarkBranches, abi.MarkShell, abi.MarkInterpreter, abi.MarkRaw,
	abi.MarkDefinition, abi.MarkTools, abi.MarkParams, abi.MarkVariable, abi.MarkValues,
}

// Manifest checks the plugin's manifest against clause A2 of ABI.md and returns it. It
// also reports missing documentation: a step or a field without a description, a permission
// without a reason.
func Manifest(t T, p sdk.Plugin) sdk.Value {
	t.Helper()
	text := p.Describe()
	if again := p.Describe(); again != text {
		t.Fatalf("describe returned two manifests:\n%s\n%s", text, again)
	}
	m := parse(t, text)
	if !name().MatchString(p.Name) {
		t.Errorf("plugin name %q: want %s", p.Name, name)
	}
	if p.Version == "" {
		t.Errorf("plugin %q: no version", p.Name)
	}
	seen := map[string]bool{}
	for _, step := range m.Get("steps").Items() {
		typ := step.Get("type").StringOr("")
		if seen[typ] || !name().MatchString(typ) {
			t.Errorf("step type %q: duplicate, or does not match %s", typ, name)
		}
		seen[typ] = true
		checkStep(t, typ, step)
	}
	for _, permission := range m.Get("permissions").Items() {
		if permission.Get("reason").StringOr("") == "" {
			t.Errorf("permission %s: no reason", permission)
		}
	}
	return m
}

func checkStep(t T, typ string, step sdk.Value) {
	t.Helper()
	if step.Get("summary").StringOr("") == "" {
		t.Errorf("step type %q: no summary", typ)
	}
	schema := step.Get("fields")
	if schema.Get("type").StringOr("") != "object" {
		t.Errorf("step type %q: fields: want a JSON Schema of type object", typ)
	}
	properties := schema.Get("properties")
	for field, s := range properties.Fields() {
		if slices.Contains(common, field) && !slices.Contains(replaceable, field) {
			t.Errorf("step type %q: field %q belongs to the host", typ, field)
		}
		if s.Get("description").StringOr("") == "" {
			t.Errorf("step type %q: field %q: no description", typ, field)
		}
		if mark, ok := s.Get(abi.Keyword).AsString(); ok && !slices.Contains(marks, mark) {
			t.Errorf("step type %q: field %q: unknown mark %q", typ, field, mark)
		}
	}
	has := func(field string) bool { return properties.Get(field).Exists() }
	for _, field := range schema.Get("required").Items() {
		if !has(field.StringOr("")) {
			t.Errorf("step type %q: required field %s is not described", typ, field)
		}
	}
	aliases := step.Get("aliases")
	for alias, field := range aliases.Fields() {
		if has(alias) || slices.Contains(common, alias) || !has(field.StringOr("")) {
			t.Errorf("step type %q: alias %q for %s: hides a field, or its field is not described", typ, alias, field)
		}
	}
	for _, field := range step.Get("infer").Items() {
		if name := field.StringOr(""); !has(name) && !aliases.Get(name).Given() {
			t.Errorf("step type %q: infer %s is neither a field nor an alias", typ, field)
		}
	}
}
