package llm

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/sentinel-runtime/sentinel/host/llm/anthropic"
	"github.com/sentinel-runtime/sentinel/host/llm/openai"
	"github.com/sentinel-runtime/sentinel/host/llm/providers"
	"github.com/sentinel-runtime/sentinel/host/llm/responses"
	"github.com/sentinel-runtime/sentinel/host/llm/steptype"
	"github.com/sentinel-runtime/sentinel/host/llm/wire"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Where the known providers are.
const (
	openAIBase    = "https://api.openai.com/v1"
	anthropicBase = "https://api.anthropic.com"
	ollamaBase    = "http://127.0.0.1:11434"
)

// client is a provider's protocol. Its errors are *wire.Failure.
type client interface {
	Stream(ctx context.Context, r wire.Request, delta func(string)) (wire.Answer, error)
	Models(ctx context.Context) ([]wire.Offer, error)
}

// provider is a Provider that is ready to be asked.
type provider struct {
	Provider
	official bool   // the maker's own service
	server   bool   // a server of the user: preferred to hosted services by "auto"
	near     bool   // by its address on this machine or network
	ready    bool   // has a key or needs none
	needs    string // the variables that would make it ready
	baseEnv  string // the variable with its address, if that is where it is from
	wrong    error  // what is wrong with that address; it is an error of turns, not of what needs no model
	client   client
	other    client // of the kind openai: Responses

	rows    []providers.Row // of the configuration
	limiter limiter

	mu      sync.Mutex
	served  string           // the first model it offers, once asked
	windows map[string]int64 // of the models it offers, in tokens; nil until it was asked
}

// providers merges the configured providers with those of the environment, in
// the order in which "auto" tries them.
func (m *Models) providers() ([]*provider, error) {
	// What the environment offers is a base that configuration changes, so that
	// {"name": "openai", "model": "..."} need not repeat where and with what key.
	known := m.known()
	var all []*provider
	places := map[*provider]string{} // of the configured ones
	for i, c := range m.config.Providers {
		at := "[" + strconv.Itoa(i) + "]"
		if c.Name == "" || strings.ContainsAny(c.Name, "/ ") {
			return nil, &Mistake{"providers", at + ".name", fmt.Sprintf("provider %q: a name has neither spaces nor slashes", c.Name)}
		}
		p := &provider{Provider: c, ready: true}
		places[p] = at
		if k := slices.IndexFunc(known, func(k *provider) bool { return k.Name == c.Name }); k >= 0 {
			if c.Kind != KindPlugin {
				p.fill(known[k], m.config.Env)
			}
			known = slices.Delete(known, k, k+1)
		}
		if p.KeyEnv != "" && p.Key == "" {
			p.Key = m.config.Env(p.KeyEnv)
		}
		p.server = p.server || p.Local
		all = append(all, p)
	}
	all = append(all, known...)
	seen := map[string]bool{}
	for _, p := range all {
		if seen[p.Name] {
			return nil, &Mistake{"providers", places[p], fmt.Sprintf("provider %q: configured twice", p.Name)}
		}
		seen[p.Name] = true
		if err := m.finish(p); err != nil {
			if places[p] != "" {
				return nil, &Mistake{"providers", places[p], err.Error()}
			}
			p.wrong = &abi.Error{Code: abi.BadFields, Permanent: true, Message: err.Error(),
				Hint: fmt.Sprintf("write http:// or https:// and a host in %s", p.baseEnv)}
			p.server, p.ready = true, true // it is what was asked for: no other one is taken in its place
		}
	}
	slices.SortStableFunc(all, func(a, b *provider) int { return rank(a) - rank(b) })
	return all, nil
}

// rank orders servers of one's own before hosted services.
func rank(p *provider) int {
	if p.server {
		return 0
	}
	return 1
}

// known returns the providers that need no configuration but the environment.
func (m *Models) known() []*provider {
	env := m.config.Env
	// Ollama has no key, so only its variable says that it is meant to be used;
	// naming it as "ollama/model" is as good.
	ollama := &provider{
		Provider: Provider{Name: "ollama", Kind: KindOpenAI, Local: true},
		server:   true, needs: "OLLAMA_HOST",
	}
	if host := env("OLLAMA_HOST"); host != "" {
		ollama.BaseURL, ollama.ready, ollama.baseEnv = ollamaURL(host), true, "OLLAMA_HOST"
	}
	hosted := func(name, base, baseEnv, keyEnv string) *provider {
		p := &provider{
			Provider: Provider{Name: name, Kind: name, BaseURL: env(baseEnv), Key: env(keyEnv), KeyEnv: keyEnv},
			needs:    keyEnv + " or " + baseEnv,
		}
		// A base URL of one's own stands for a server of one's own, which need
		// not want a key.
		p.server, p.baseEnv = p.BaseURL != "", baseEnv
		p.ready = p.server || p.Key != ""
		if p.BaseURL == "" {
			p.BaseURL = base
		}
		return p
	}
	return []*provider{
		ollama,
		hosted("openai", openAIBase, "OPENAI_BASE_URL", "OPENAI_API_KEY"),
		hosted("anthropic", anthropicBase, "ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY"),
	}
}

// fill takes from k what a configured provider of the same name leaves out.
func (p *provider) fill(k *provider, env func(string) string) {
	p.needs, p.server = k.needs, k.server
	if p.Kind == "" {
		p.Kind = k.Kind
	}
	if p.BaseURL == "" {
		p.BaseURL = k.BaseURL
		p.ready = k.ready
	}
	p.Local = p.Local || k.Local
	if p.KeyEnv == "" {
		p.KeyEnv = k.KeyEnv
		if p.Key == "" {
			p.Key = k.Key
		}
	} else if p.Key == "" {
		p.Key = env(p.KeyEnv)
		p.ready = p.ready || p.Key != ""
	}
}

// finish checks a provider, completes it and makes its client.
func (m *Models) finish(p *provider) error {
	p.rows = m.config.Servers
	switch {
	case p.Kind == KindPlugin:
		return m.finishStep(p)
	case p.Step != "":
		return fmt.Errorf("provider %q: step is for the kind plugin only", p.Name)
	case p.Kind == "":
		p.Kind = KindOpenAI
	}
	if p.BaseURL == "" && p.Name == "ollama" {
		p.BaseURL = ollamaURL(ollamaBase)
	}
	base, err := url.Parse(p.BaseURL)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return fmt.Errorf("provider %q: base URL %q is no http or https address", p.Name, m.redact.String(p.BaseURL))
	}
	p.official = base.Host == "api.openai.com" || base.Host == "api.anthropic.com"
	// OPENAI_BASE_URL may well say what is the default anyway.
	if p.official && p.Name == p.Kind {
		p.server, p.ready = false, p.Key != ""
	}
	switch p.Protocol {
	case "":
	case ProtocolChat, ProtocolResponses:
		if p.Kind != KindOpenAI {
			return fmt.Errorf("provider %q: protocol is for the kind openai only", p.Name)
		}
	default:
		return fmt.Errorf("provider %q: invalid protocol %q: want chat or responses", p.Name, p.Protocol)
	}
	p.near = nearHost(base.Hostname())
	switch p.Tools {
	case "":
		p.Tools = ToolsAuto
		// The hosted models call natively. Reading their text for calls would
		// only let quoted ones pass for theirs.
		if p.official {
			p.Tools = ToolsNative
		}
	case ToolsAuto, ToolsNative, ToolsText:
	default:
		return fmt.Errorf("provider %q: tools %q is none of auto, native, text", p.Name, p.Tools)
	}
	switch p.Kind {
	case KindOpenAI:
		chat := openai.New(openai.Options{BaseURL: p.BaseURL, Key: p.Key, Headers: p.Headers, HTTP: m.http})
		p.client, p.other = chat, responses.New(chat)
	case KindAnthropic:
		p.client = anthropic.New(anthropic.Options{BaseURL: p.BaseURL, Key: p.Key, Headers: p.Headers, HTTP: m.http})
	default:
		return fmt.Errorf("provider %q: kind %q is none of openai, anthropic, plugin", p.Name, p.Kind)
	}
	return nil
}

// finishStep completes a provider whose turns a step type of a plugin answers. The plugin
// may be loaded and allowed later, so it is looked for when a model is named.
func (m *Models) finishStep(p *provider) error {
	switch {
	case p.Step == "":
		return fmt.Errorf("provider %q: the kind plugin needs step, a step type with the role model", p.Name)
	case p.BaseURL != "" || p.KeyEnv != "" || len(p.Headers) > 0:
		return fmt.Errorf("provider %q: baseUrl, keyEnv and headers are not for the kind plugin: its plugin has its own hosts and secrets", p.Name)
	}
	switch p.Tools {
	case "":
		p.Tools = ToolsNative
	case ToolsAuto, ToolsNative, ToolsText:
	default:
		return fmt.Errorf("provider %q: tools %q is none of auto, native, text", p.Name, p.Tools)
	}
	p.ready, p.client = true, &steptype.Client{Step: p.Step, Steps: m.config.Steps}
	return nil
}

// usable returns why a provider cannot answer: its address in the environment is wrong, or its
// plugin cannot answer now.
func (m *Models) usable(p *provider) error {
	if p.wrong != nil {
		return p.wrong
	}
	if p.Kind != KindPlugin {
		return nil
	}
	e := &abi.Error{Code: abi.Unavailable, Permanent: true, Message: "this host executes no step types as models"}
	if m.config.Steps != nil {
		if e = abi.As(m.config.Steps.Known(p.Step)); e == nil {
			return nil
		}
	}
	return &abi.Error{Code: e.Code, Permanent: true, Message: fmt.Sprintf("provider %q: %s", p.Name, e.Message), Hint: e.Hint}
}

// protocol returns the protocol that a model is asked by: a kind, or [ProtocolResponses].
func (m *Models) protocol(c chosen) string {
	if c.provider.Kind != KindOpenAI {
		return c.provider.Kind
	}
	row, _ := m.row(c.provider, c.Model)
	if cmp.Or(row.Protocol, c.provider.Protocol, c.row().Protocol) == ProtocolResponses {
		return ProtocolResponses
	}
	return KindOpenAI
}

// clientOf returns the client for a model.
func (m *Models) clientOf(c chosen) client {
	if m.protocol(c) == ProtocolResponses {
		return c.provider.other
	}
	return c.provider.client
}

// first returns the first model the server offers that answers turns. It asks
// once; a failure is not kept.
func (p *provider) first(ctx context.Context) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.served != "" {
		return p.served, nil
	}
	offers, err := p.list(ctx)
	if err != nil {
		return "", err
	}
	// Servers list models that only embed or rank beside those that talk.
	for _, o := range offers {
		if !strings.Contains(o.Name, "embed") && !strings.Contains(o.Name, "rerank") {
			p.served = o.Name
			break
		}
	}
	return p.served, nil
}

// list asks the server for its models. The caller holds the lock.
func (p *provider) list(ctx context.Context) ([]wire.Offer, error) {
	offers, err := p.client.Models(ctx)
	if err != nil {
		return nil, err
	}
	p.windows = make(map[string]int64, len(offers))
	for _, o := range offers {
		if o.Context > 0 {
			p.windows[o.Name] = o.Context
		}
	}
	return offers, nil
}

// window returns the window of a model that the server lists, in tokens, or 0. It asks once:
// a server that gives no list is not asked again, and what its models take is then learned
// from a refusal.
func (p *provider) window(ctx context.Context, model string) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.windows == nil {
		ctx, cancel := context.WithTimeout(ctx, listTime)
		defer cancel()
		if _, err := p.list(ctx); err != nil {
			p.windows = map[string]int64{}
		}
	}
	return p.windows[model]
}

// listedWindow is window for a model whose server was asked already.
func (p *provider) listedWindow(model string) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.windows[model]
}

// ollamaURL reads OLLAMA_HOST as Ollama does: scheme and port may be missing,
// and the address it listens on may stand for one to connect to.
func ollamaURL(host string) string {
	host = strings.TrimSuffix(strings.TrimSpace(host), "/")
	scheme, rest, ok := strings.Cut(host, "://")
	if !ok {
		scheme, rest = "http", host
	}
	rest, path, _ := strings.Cut(rest, "/")
	name, port := rest, ""
	if i := strings.LastIndex(rest, ":"); i >= 0 && !strings.HasSuffix(rest, "]") && strings.Count(rest, ":") == 1 || strings.Contains(rest, "]:") {
		name, port = rest[:i], rest[i+1:]
	}
	// The address of every interface is one to listen on, not to connect to.
	switch {
	case name == "" || name == "0.0.0.0" || name == "[::]" || name == "::":
		name = "127.0.0.1"
	case strings.Count(name, ":") > 1 && !strings.HasPrefix(name, "["):
		name = "[" + name + "]"
	}
	if port == "" {
		switch {
		case !ok || scheme == "http" && path == "":
			port = "11434"
		case scheme == "https":
			port = "443"
		default:
			port = "80"
		}
	}
	out := scheme + "://" + name + ":" + port
	if path != "" {
		out += "/" + path
	}
	if !strings.HasSuffix(out, "/v1") {
		out += "/v1"
	}
	return out
}

// nearHost reports whether a host is on this machine or network by its name.
func nearHost(host string) bool {
	if addr, err := netip.ParseAddr(host); err == nil {
		return addr.IsLoopback() || addr.IsPrivate() || addr.IsLinkLocalUnicast()
	}
	return host == "localhost" || strings.HasSuffix(host, ".localhost") ||
		strings.HasSuffix(host, ".local") || strings.HasSuffix(host, ".internal")
}
