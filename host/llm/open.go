package llm

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/sentinel-runtime/sentinel/host/llm/providers"
	"github.com/sentinel-runtime/sentinel/host/redact"
	"github.com/sentinel-runtime/sentinel/internal/lazyregexp"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Models answers turns.
//
// # Concurrency
//
// All methods are safe for concurrent use. Turns do not wait for each other,
// except that a server's models are listed once.
type Models struct {
	config  Config
	builtin prices
	redact  *redact.Redactor
	http    *http.Client
	own     *http.Transport // made here, nil if the caller brought one
	proxy   proxyFunc       // of requests by own
	all     []*provider     // in the order "auto" tries them

	mu      sync.Mutex
	learned map[string]habits // by "provider/model"
}

// Open checks a configuration and returns its Models. It makes no request: a
// server that is down or a wrong key shows at the first turn. Nothing
// configured is an error only when a turn is requested.
func Open(config Config) (*Models, error) {
	env := config.Env
	if env == nil {
		env = os.Getenv
	}
	// Keys pasted into files of variables often end in a newline.
	config.Env = func(name string) string { return strings.TrimSpace(env(name)) }
	if config.Redact == nil {
		config.Redact = &redact.Redactor{}
	}
	if config.Clock == nil {
		config.Clock = time.Now
	}
	if config.Stall <= 0 {
		config.Stall = defaultStall
	}
	m := &Models{config: config, redact: config.Redact, learned: map[string]habits{}}
	m.proxy = proxyOf(config.Env)
	m.http, m.own = newClient(config.HTTPClient, m.proxy)
	servers, wrong := providers.Prepare(config.Servers)
	if wrong != nil {
		return nil, &Mistake{"servers", wrong.Path, wrong.Text}
	}
	m.config.Servers = servers
	var err error
	if m.builtin, err = builtinPrices(); err != nil {
		return nil, err
	}
	for i, row := range config.Models {
		if !row.valid() {
			return nil, &Mistake{"known", fmt.Sprintf("[%d]", i), fmt.Sprintf("model %q: needs a name, and prices and limits of 0 or more", row.Name)}
		}
	}
	if m.all, err = m.providers(); err != nil {
		return nil, err
	}
	for _, p := range m.all {
		// A key too short to hide without harm is a placeholder.
		_ = m.redact.Register(p.Key)
		for name, value := range p.Headers {
			if secretHeader.MatchString(name) {
				_ = m.redact.Register(value)
			}
		}
		if strings.Contains(p.BaseURL, "@") {
			_ = m.redact.Register(p.BaseURL)
		}
	}
	for _, ref := range config.refs() {
		name, _, slash := strings.Cut(ref.name, "/")
		if slash && m.provider(name) == nil && !m.inTable(ref.name) {
			return nil, &Mistake{ref.key, "", fmt.Sprintf("model %q: unknown provider %q: want one of %s", ref.name, name, strings.Join(m.names(), ", "))}
		}
	}
	return m, nil
}

// secretHeader matches the names of headers whose values are secrets.
var secretHeader = lazyregexp.New(`(?i)auth|key|token|secret|cookie|password`)

// Close closes idle connections. Turns may still be made; they open new
// ones. Closing twice is allowed.
func (m *Models) Close() error {
	if m.own != nil {
		m.own.CloseIdleConnections()
	}
	return nil
}

// ProviderInfo describes a provider, for people.
type ProviderInfo struct {
	Name    string
	Kind    string
	BaseURL string // redacted
	Model   string // the one for "auto", "" if the server is asked
	Ready   bool
	Local   bool
	Needs   string // the variables that would make it ready
}

// Providers lists the providers in the order "auto" tries them.
func (m *Models) Providers() []ProviderInfo {
	var out []ProviderInfo
	for _, p := range m.all {
		info := ProviderInfo{
			Name: p.Name, Kind: p.Kind, BaseURL: m.redact.String(p.BaseURL),
			Model: p.Model, Ready: p.ready && p.wrong == nil, Local: p.Local, Needs: p.needs,
		}
		if p.wrong != nil {
			info.Needs = "an http or https address in " + p.baseEnv
		}
		if info.Model == "" && p.official {
			info.Model = m.builtin.Auto[p.Kind]
		}
		out = append(out, info)
	}
	return out
}

var _ interface {
	Quote(context.Context, sentinels.Turn) (Quote, error)
	Turn(context.Context, sentinels.Turn, func(string)) (sentinels.Reply, error)
} = (*Models)(nil)
