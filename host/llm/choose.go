package llm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/llm/wire"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// chosen is a Choice with the provider to ask.
type chosen struct {
	Choice
	provider *provider
}

// Choose says which model a turn would be answered by, and why.
func (m *Models) Choose(ctx context.Context, turn sentinels.Turn) (Choice, error) {
	c, err := m.choose(ctx, turn)
	return c.Choice, m.clean(err)
}

// choose resolves the model of a turn. A default that is itself a model also
// answers turns that say "auto": it is what the operator configured.
func (m *Models) choose(ctx context.Context, turn sentinels.Turn) (chosen, error) {
	ref, by := turn.Model, "the turn names it"
	if isAuto(ref) {
		ref, by = m.config.Default, "the configured default"
	}
	if isAuto(ref) {
		return m.auto(ctx, turn)
	}
	if refs, ok := m.config.Capacity.of(ref); ok {
		return m.byCapacity(ctx, ref, refs, turn)
	}
	c, err := m.named(ref)
	c.Why = by + c.Why
	if err == nil && c.Model == "" {
		c.Model, _, err = m.modelOf(ctx, c.provider)
	}
	return c, err
}

// isAuto reports whether a reference leaves the choice to us.
func isAuto(ref string) bool { return ref == "" || ref == "auto" }

// named resolves "provider/name", "provider" and bare names. Model is empty
// when only the provider was named.
func (m *Models) named(ref string) (chosen, error) {
	// Names of models have slashes too, so one in the table is not split.
	name, model, slash := strings.Cut(ref, "/")
	if p := m.provider(name); p != nil && (slash || !m.inTable(ref)) {
		if !p.ready && p.Name != "ollama" { // ollama has a usual address
			return chosen{}, &abi.Error{
				Code: abi.NotFound, Permanent: true,
				Message: fmt.Sprintf("model %q: provider %q is not configured", ref, p.Name),
				Hint:    "set " + p.needs + "; or replay a recorded run with --replay FILE",
			}
		}
		return chosen{Choice{Provider: p.Name, Model: model}, p}, m.usable(p)
	}
	// A bare name: of the providers whose table row it has, the first that can
	// be asked. Free servers are left out, or every name would be theirs.
	var knows *provider
	for _, p := range m.all {
		if _, ok := m.row(p, ref); ok && !p.Local {
			if p.ready && m.usable(p) == nil {
				return chosen{Choice{Provider: p.Name, Model: ref, Why: ", and the table of models gives its provider"}, p}, nil
			}
			knows = p
		}
	}
	if knows == nil && slash && !m.inTable(ref) {
		return chosen{}, m.unknownProvider(ref)
	}
	if p := m.family(ref); knows == nil && p != nil && !m.inTable(ref) {
		if p.ready {
			return chosen{Choice{Provider: p.Name, Model: ref, Why: ", and its family gives its provider"}, p}, nil
		}
		// A server of the user may serve it: a gateway.
		if !slices.ContainsFunc(m.all, func(p *provider) bool { return p.ready && p.server }) {
			knows = p
		}
	}
	if knows != nil && knows.ready {
		return chosen{}, m.usable(knows)
	}
	if knows != nil {
		return chosen{}, &abi.Error{
			Code: abi.NotFound, Permanent: true,
			Message: fmt.Sprintf("model %q: its provider %q is not configured", ref, knows.Name),
			Hint:    "set " + knows.needs + "; or replay a recorded run with --replay FILE",
		}
	}
	// An unknown name can only be a model of a configured server
	// loaded. A hosted provider is not asked on a guess.
	for _, p := range m.all {
		if p.ready && p.server {
			return chosen{Choice{Provider: p.Name, Model: ref, Why: ", and it is asked of the local server since the table of models does not have it"}, p}, m.usable(p)
		}
	}
	return chosen{}, &abi.Error{
		Code: abi.NotFound, Permanent: true,
		Message: fmt.Sprintf("model %q: not in the table of models and its provider is not named", ref),
		Hint:    "write provider/name with one of the providers " + strings.Join(m.names(), ", "),
	}
}

// unknownProvider returns the error of a reference "name/model" where no provider has that name.
// No other provider is asked: the prompt may not be meant for it.
func (m *Models) unknownProvider(ref string) *abi.Error {
	name, model, _ := strings.Cut(ref, "/")
	hint := "write provider/name with one of the providers " + strings.Join(m.names(), ", ")
	if near := sentinels.Suggest(name, m.names()); len(near) > 0 {
		hint = fmt.Sprintf("did you mean %q?", near[0]+"/"+model)
	} else if i := slices.IndexFunc(m.all, func(p *provider) bool { return p.ready && p.server }); i >= 0 {
		hint += fmt.Sprintf("; a model of %s with a slash in its name is %q", m.all[i].Name, m.all[i].Name+"/"+ref)
	}
	return &abi.Error{Code: abi.NotFound, Permanent: true, Message: fmt.Sprintf("model %q: unknown provider %q", ref, name), Hint: hint}
}

// auto takes the first candidate that fits the turn.
func (m *Models) auto(ctx context.Context, turn sentinels.Turn) (chosen, error) {
	refs := m.candidates()
	if len(refs) == 0 {
		return chosen{}, &abi.Error{
			Code: abi.NotFound, Permanent: true,
			Message: "model \"auto\": no model is configured",
			Hint:    "set OLLAMA_HOST or OPENAI_BASE_URL for a local server, or OPENAI_API_KEY or ANTHROPIC_API_KEY; or replay a recorded run with --replay FILE",
		}
	}
	return m.firstFit(ctx, "auto", refs, turn)
}

// firstFit takes the first of the references, of which there is at least one, that is
// configured and fits the turn. name is what the turn says.
func (m *Models) firstFit(ctx context.Context, name string, refs []string, turn sentinels.Turn) (chosen, error) {
	var passed []string
	small := false
	for _, ref := range refs {
		c, err := m.named(ref)
		if err != nil && c.provider != nil && c.provider.wrong != nil {
			return chosen{}, err
		}
		if err != nil {
			passed = append(passed, err.Error())
			continue
		}
		why := name + ": " + c.provider.about()
		if c.Model == "" {
			var note string
			// A server that does not answer ends the search: see the package's
			// documentation.
			if c.Model, note, err = m.modelOf(ctx, c.provider); err != nil {
				return chosen{}, err
			}
			why += note
		}
		if reason := m.unfit(c, turn, &small); reason != "" {
			passed = append(passed, fmt.Sprintf("%s/%s %s", c.Provider, c.Model, reason))
			continue
		}
		if len(passed) > 0 {
			why += "; passed over: " + strings.Join(passed, "; ")
		}
		c.Why = why
		return c, nil
	}
	if small {
		return chosen{}, overflow(fmt.Sprintf("model %q: no candidate fits: %s", name, strings.Join(passed, "; ")))
	}
	return chosen{}, &abi.Error{
		Code: abi.NotFound, Permanent: true,
		Message: fmt.Sprintf("model %q: no candidate fits: %s", name, strings.Join(passed, "; ")),
		Hint:    "name a model with --model provider/name",
	}
}

// candidates are the references "auto" tries, best first.
func (m *Models) candidates() []string {
	if len(m.config.Auto) > 0 {
		return m.config.Auto
	}
	var refs []string
	for _, p := range m.all {
		if p.ready {
			refs = append(refs, p.Name)
		}
	}
	return refs
}

// about says in a few words why a provider stands where it does.
func (p *provider) about() string {
	if p.server {
		return fmt.Sprintf("%s is a configured server", p.Name)
	}
	if p.KeyEnv != "" {
		return fmt.Sprintf("%s has a key (%s)", p.Name, p.KeyEnv)
	}
	return p.Name + " is configured"
}

// unfit says why a model cannot answer a turn, or "". It sets small if its window is too small.
func (m *Models) unfit(c chosen, turn sentinels.Turn, small *bool) string {
	row := m.sized(c)
	if row.NoTools && len(turn.Tools) > 0 {
		return "has no tools"
	}
	// A model must have room for the input and for some answer, not for the
	// longest it may give.
	need := estimateTurn(turn, row.CharsPerToken) + min(row.maxTokens(turn), max(turn.MaxTokens, 1024))
	if row.Context > 0 && need > row.Context {
		*small = true
		return fmt.Sprintf("has a window of %d tokens and about %d are needed", row.Context, need)
	}
	return ""
}

// modelOf is the model of a provider for which only the provider was named.
func (m *Models) modelOf(ctx context.Context, p *provider) (model, note string, err error) {
	if p.Model != "" {
		return p.Model, ", with the model configured for it", nil
	}
	usual := m.builtin.Auto[p.Name]
	if p.official {
		if usual = m.builtin.Auto[p.Kind]; usual != "" {
			return usual, "", nil
		}
	}
	// What a server has loaded only it knows.
	served, err := p.first(ctx)
	if err != nil {
		// Some gateways do not list their models and serve the usual ones.
		if f, ok := errors.AsType[*wire.Failure](err); !ok || usual == "" || f.Kind != wire.Status || f.Status != 404 && f.Status != 405 {
			return "", "", m.fault(ctx, chosen{Choice{Provider: p.Name}, p}, err)
		}
	}
	switch {
	case served != "":
		return served, ", and this is the first model it lists", nil
	case usual != "":
		return usual, ", and it lists no models, so it is asked for the provider's usual one", nil
	}
	return "", "", &abi.Error{
		Code: abi.NotFound, Permanent: true,
		Message: fmt.Sprintf("provider %q: the server offers no model", p.Name),
		Hint:    "load one (with Ollama: ollama pull NAME) or name one with --model " + p.Name + "/NAME",
	}
}

// provider returns the provider of a name, or nil.
func (m *Models) provider(name string) *provider {
	if i := slices.IndexFunc(m.all, func(p *provider) bool { return p.Name == name }); i >= 0 {
		return m.all[i]
	}
	return nil
}

// inTable reports whether a whole reference is the name of a model.
func (m *Models) inTable(name string) bool {
	return slices.ContainsFunc(m.config.Models, func(row Model) bool { return row.Name == name }) ||
		slices.ContainsFunc(m.builtin.Models, func(row Model) bool { return row.Name == name })
}

// names are the providers' names, for hints.
func (m *Models) names() []string {
	var names []string
	for _, p := range m.all {
		names = append(names, p.Name)
	}
	return names
}
