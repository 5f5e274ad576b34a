package sentinels_test

import (
	"slices"
	"testing"

	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Spec 002: "RecipeDefinition: ragTemplate. SentinelDefinition: recipe + ragSources (same
// concept)", and "existing recipes continue working unchanged".
func TestTemplateOfARecipeNamesSources(t *testing.T) {
	for template, want := range map[string]struct {
		sources, warned []string
	}{
		`{"messageHistory": {"maxMessages": 30, "orderBy": "chronological"}}`:                                                          {[]string{"chat"}, nil},
		`{"messageHistory": {"maxMessages": 5}, "artifacts": {"types": ["image"]}, "participants": {"a": true}}`:                       {[]string{"chat", "participants"}, []string{"ragTemplate.artifacts"}},
		`{"messageHistory": {}, "participants": {"includeRoles": false, "includeHistory": null}, "sources": [], "roomMetadata": true}`: {[]string{"chat"}, []string{"ragTemplate.roomMetadata"}},
		`{"messageHistory": null, "roomStrategy": false}`:                                                                              {nil, nil},
		`{}`:   {nil, nil},
		`null`: {nil, nil},
	} {
		text := []byte(`{"name": "ask", "pipeline": [{"type": "x"}], "ragTemplate": ` + template + `}`)
		r := sentinels.Inspect(text, sentinels.DecodeOptions{})
		var warned []string
		for _, p := range r.Problems {
			if p.Kind != sentinels.KindWarning || p.Line == 0 || p.Hint == "" {
				t.Errorf("%s: problem %+v", template, p)
			}
			warned = append(warned, p.Path)
		}
		if !slices.Equal(r.Definition.RAGSources, want.sources) || !slices.Equal(warned, want.warned) || r.Definition.Recipe != "" {
			t.Errorf("%s: sources %q, warnings for %q", template, r.Definition.RAGSources, warned)
		}
		if sources, ok := sentinels.TemplateSources(text); !ok || !slices.Equal(sources, want.sources) {
			t.Errorf("%s: template sources %q, %v", template, sources, ok)
		}
		again, problems := sentinels.Decode(sentinels.Encode(r.Definition), sentinels.DecodeOptions{})
		if len(problems) > 0 || again.Hash() != r.Definition.Hash() {
			t.Errorf("%s: stored form %s: %v", template, sentinels.Encode(r.Definition), problems)
		}
	}
	for text, want := range map[string][]string{
		`{"name": "a", "steps": [], "ragTemplate": {"messageHistory": {}}, "ragSources": ["git"]}`: {"git"},
		`{"name": "a", "steps": [], "ragTemplate": {"messageHistory": {}}, "recipe": "coding"}`:    nil,
	} {
		if d, problems := sentinels.Decode([]byte(text), sentinels.DecodeOptions{}); len(problems) > 0 || !slices.Equal(d.RAGSources, want) {
			t.Errorf("%s: sources %q, %v", text, d.RAGSources, problems)
		}
	}
	if _, ok := sentinels.TemplateSources([]byte(`["git"]`)); ok {
		t.Error("a list of sources has a template")
	}
}
