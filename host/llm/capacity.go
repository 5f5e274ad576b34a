package llm

import (
	"context"
	"fmt"
	"strings"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Capacity maps the names of capacities to models, so that a definition can ask for
// one without naming a provider. Each list is tried like [Config.Auto].
type Capacity struct {
	Tiny   []string `json:"tiny" doc:"models for tiny, best first, provider/name or only provider"`
	Small  []string `json:"small" doc:"models for small"`
	Medium []string `json:"medium" doc:"models for medium"`
	Large  []string `json:"large" doc:"models for large"`
	SOTA   []string `json:"sota" doc:"models for sota, the best there is"`
}

// of returns the models of a capacity; ok is false for any other name.
func (c Capacity) of(name string) (refs []string, ok bool) {
	switch name {
	case "tiny":
		return c.Tiny, true
	case "small":
		return c.Small, true
	case "medium":
		return c.Medium, true
	case "large":
		return c.Large, true
	case "sota":
		return c.SOTA, true
	}
	return nil, false
}

// A modelRef is a configured reference to a model, and the key that has it.
type modelRef struct{ key, name string }

// refs returns every configured reference to a model.
func (c Config) refs() []modelRef {
	var list []modelRef
	add := func(key string, names ...string) {
		for _, name := range names {
			list = append(list, modelRef{key, name})
		}
	}
	add("auto", c.Auto...)
	add("fallback", c.Fallback...)
	add("default", c.Default)
	for _, name := range []string{"tiny", "small", "medium", "large", "sota"} {
		refs, _ := c.Capacity.of(name)
		add("capacity."+name, refs...)
	}
	return list
}

// byCapacity chooses a model of a capacity.
func (m *Models) byCapacity(ctx context.Context, name string, refs []string, turn sentinels.Turn) (chosen, error) {
	if len(refs) == 0 {
		return chosen{}, &abi.Error{
			Code: abi.NotFound, Permanent: true,
			Message: fmt.Sprintf("model %q: no model is configured for this capacity", name),
			Hint:    fmt.Sprintf("set models.capacity.%s in the configuration, such as [\"%s\"], or name provider/name", name, strings.Join(m.names(), `", "`)),
		}
	}
	return m.firstFit(ctx, name, refs, turn)
}

// families are the beginnings of the names of models that one provider makes.
var families = []struct{ begin, provider string }{
	{"claude-", "anthropic"},
	{"gpt-", "openai"}, {"chatgpt-", "openai"}, {"codex-", "openai"}, {"o1", "openai"}, {"o3", "openai"}, {"o4", "openai"},
}

// family returns the provider of a name that the table of models does not have: the
// maker of its family, or the configured provider with whose name it begins, such as
// mistral for mistral-large. It is nil for an unknown family.
func (m *Models) family(name string) *provider {
	for _, p := range m.all {
		if strings.HasPrefix(name, p.Name+"-") {
			return p
		}
	}
	for _, f := range families {
		rest, ok := strings.CutPrefix(name, f.begin)
		// o1 and o1-mini are of the family, o10b is not.
		if ok && (strings.HasSuffix(f.begin, "-") || rest == "" || rest[0] == '-') {
			return m.provider(f.provider)
		}
	}
	return nil
}
