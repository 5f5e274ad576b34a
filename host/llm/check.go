package llm

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Check returns what is wrong with the name of a model, without asking a server: an error
// if nothing can have the name, [sentinels.KindAbsent] if its provider is not configured, a
// warning if it is probably misspelt. priced reports whether its price is known, or is not
// needed.
func (m *Models) Check(ref string) (problem *sentinels.Problem, priced bool) {
	warn := func(kind sentinels.Kind, hint, format string, args ...any) *sentinels.Problem {
		return &sentinels.Problem{Kind: kind, Hint: hint, Message: fmt.Sprintf(format, args...)}
	}
	if isAuto(ref) {
		ref = m.config.Default
	}
	if isAuto(ref) {
		if len(m.candidates()) == 0 {
			return warn(sentinels.KindWarning, "set OLLAMA_HOST or OPENAI_BASE_URL for a local server, or OPENAI_API_KEY or ANTHROPIC_API_KEY",
				"no model is configured, and the step names none"), true
		}
		return nil, true
	}
	name, _, slash := strings.Cut(ref, "/")
	known := m.provider(name) != nil || m.inTable(ref)
	c, err := m.named(ref)
	switch {
	case err != nil && !known && slash && len(m.knowing(ref)) == 0:
		return warn(sentinels.KindUnknown, m.unknownProvider(ref).Hint, "unknown provider %q", name), true
	case err != nil && !known && len(m.knowing(ref)) == 0:
		hint := "write provider/name with one of the providers " + strings.Join(m.names(), ", ")
		if like := sentinels.Suggest(ref, m.models(nil)); len(like) > 0 {
			hint = fmt.Sprintf("did you mean %q?", like[0])
		}
		return warn(sentinels.KindUnknown, hint, "unknown model %q", ref), true
	case err != nil:
		e := m.clean(err)
		hint := ""
		if p := m.provider(name); p != nil && p.Kind == KindPlugin {
			hint = abi.As(err).Hint
		}
		for _, p := range append(m.knowing(ref), m.provider(name)) {
			if p != nil && !p.ready {
				hint = "set " + p.needs
			}
		}
		return warn(sentinels.KindAbsent, hint, "%s", e.Error()), true
	}
	if c.Model == "" {
		return nil, true
	}
	_, priced = m.priced(c.provider, c.Model)
	if _, listed := m.row(c.provider, c.Model); !listed && c.provider.official {
		hint := "the table has " + strings.Join(m.models(c.provider), ", ")
		if like := sentinels.Suggest(c.Model, m.models(c.provider)); len(like) > 0 {
			hint = fmt.Sprintf("did you mean %q?", c.Provider+"/"+like[0])
		}
		return warn(sentinels.KindWarning, hint, "the table of models does not have %q", ref), priced
	}
	return nil, priced
}

// knowing returns the providers whose table has a model of that name.
func (m *Models) knowing(ref string) []*provider {
	var out []*provider
	for _, p := range m.all {
		if _, ok := m.row(p, ref); ok && !p.Local {
			out = append(out, p)
		}
	}
	return out
}

// models returns the names in the table of models of a provider, of all for nil.
func (m *Models) models(p *provider) []string {
	var names []string
	for _, row := range slices.Concat(m.config.Models, m.builtin.Models) {
		if p == nil || row.Provider == "" || row.Provider == p.Name || row.Provider == p.Kind {
			names = append(names, row.Name)
		}
	}
	return names
}
