package sentinels_test

import (
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Spec 002: "Export to JSON: data/read --collection=sentinels --filter=... > build-fix.json",
// and "sentinel definitions are entities: stored in the database, queryable via data/*,
// exportable to JSON". What shows a definition is accepted where one is read.
func TestDecodeAcceptsExports(t *testing.T) {
	const def = `{"uniqueId": "build-fix", "name": "Build", "runCount": 3, "steps": [{"type": "x"}]}`
	want, problems := sentinels.Decode([]byte(def), sentinels.DecodeOptions{})
	if problems != nil {
		t.Fatal(problems)
	}
	for name, text := range map[string]string{
		"data/read":       `{"document": {"collection": "sentinels", "id": "build-fix", "revision": 2, "createdAt": "2026-01-01T00:00:00Z", "data": ` + def + `}}`,
		"data/list item":  `{"collection": "sentinels", "id": "build-fix", "revision": 2, "data": ` + def + `}`,
		"sentinel/export": `{"sentinelId": "build-fix", "name": "Build", "revision": 2, "hash": "0", "definition": ` + def + `}`,
	} {
		r := sentinels.Inspect([]byte(text), sentinels.DecodeOptions{})
		if len(r.Problems) > 0 || r.Definition.Hash() != want.Hash() {
			t.Errorf("%s: %v", name, r.Problems)
		}
		edited := *want
		edited.Description = "edited"
		rewritten, err := sentinels.Rewrite([]byte(text), &edited, sentinels.DecodeOptions{})
		again, _ := sentinels.Decode(rewritten, sentinels.DecodeOptions{})
		if err != nil || again.Hash() != edited.Hash() || !strings.Contains(string(rewritten), `"revision": 2`) {
			t.Errorf("%s is rewritten to %s: %v", name, rewritten, err)
		}
	}
	for _, text := range []string{
		`{"document": {"collection": "notes", "id": "a", "data": ` + def + `}}`,
		`{"data": ` + def + `}`,
		`{"definition": ` + def + `}`,
		`{"document": 1}`,
	} {
		if d, _ := sentinels.Decode([]byte(text), sentinels.DecodeOptions{}); d != nil {
			t.Errorf("%s is read as a definition", text)
		}
	}
}

// Problems of an export have the path in the definition and the position in the text.
func TestProblemsOfExportHavePlace(t *testing.T) {
	text := "{\"document\": {\"collection\": \"sentinels\", \"id\": \"a\", \"data\":\n  {\"name\": \"a\", \"steps\": [{\"type\": 1}]}}}"
	_, problems := sentinels.Decode([]byte(text), sentinels.DecodeOptions{File: "a.json"})
	if len(problems) != 1 || problems[0].String() != "a.json:2:36: steps[0].type: is a number, want a string" {
		t.Errorf("problems = %v", problems)
	}
}

// Spec 002: "class SentinelEntity extends BaseEntity": entities of other programs have
// null for what is not set, dates, and fields of later versions.
func TestEntityKeysAreDroppedWithWarnings(t *testing.T) {
	text := `{"uniqueId": "a", "name": "a", "recipe": null, "trigger": null, "safety": {"maxIterations": 2}, "timeoutMs": null, "description": null,
		"createdAt": "2026-01-01", "updatedAt": "2026-01-01", "status": "saved", "executions": [], "executionCount": 4, "lastSuccess": true,
		"parentPersonaId": "p", "activeHandle": null, "isTemplate": false, "parentId": "b", "escalationRules": [{"on": "failed"}],
		"lastRunAt": null, "runCount": 3, "averageDurationMs": 2,
		"steps": [{"type": "x"}], "loop": {"type": "until", "check": "true"}}`
	r := sentinels.Inspect([]byte(text), sentinels.DecodeOptions{})
	if errs := r.Problems.Errors(); len(errs) > 0 || r.Definition == nil || r.Definition.Recipe != "" {
		t.Fatalf("problems = %v", errs)
	}
	warned := map[string]string{}
	for _, p := range r.Problems {
		warned[p.Path] = p.Message + " " + p.Hint
		if p.Line == 0 {
			t.Errorf("%v has no position", p)
		}
	}
	for _, key := range strings.Fields("recipe trigger timeoutMs description activeHandle") {
		if warned[key] != "is null and is dropped " {
			t.Errorf("%s: %q", key, warned[key])
		}
	}
	for _, key := range strings.Fields("createdAt updatedAt status executions executionCount lastSuccess parentPersonaId isTemplate parentId escalationRules") {
		if !strings.HasPrefix(warned[key], "is not part of a definition and is dropped") {
			t.Errorf("%s: %q", key, warned[key])
		}
	}
	if !strings.Contains(warned["escalationRules"], "sentinel:ID:failed") || len(warned) != 15 {
		t.Errorf("warnings = %v", warned)
	}
	// A null limit is none.
	_, problems := sentinels.Decode([]byte(`{"name": "a", "steps": [], "timeoutMs": null, "safety": null, "loop": {"type": "continuous"}}`), sentinels.DecodeOptions{})
	if len(problems) != 1 || problems[0].Kind != sentinels.KindBound {
		t.Errorf("problems = %v", problems)
	}
}
