package llm

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/sentinel-runtime/sentinel/host/llm/providers"
	"github.com/sentinel-runtime/sentinel/host/llm/steptype"
	"github.com/sentinel-runtime/sentinel/host/redact"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Config says which models there are. The zero value takes everything from the
// environment.
type Config struct {
	// Default is the model of a turn that names none: "provider/name", a bare
	// name or "auto". Default "auto".
	Default string
	// Auto lists the candidates for "auto", best first, as "provider/name" or
	// just "provider". Default: local servers, then hosted providers by key.
	Auto []string
	// Capacity maps tiny, small, medium, large and sota to models. Default none: such
	// a name is then an error.
	Capacity Capacity
	// Fallback lists models for a turn that a rate limit, an overload or an outage has ended,
	// best first, as "provider/name" or just "provider". Default none.
	Fallback []string
	// Providers are added to those of the environment. One with the name of a
	// known provider (openai, anthropic, ollama) takes what it leaves out from
	// there. Default none.
	Providers []Provider
	// Models override and extend the built-in table. Default none.
	Models []Model
	// Servers override and extend the table of how servers differ. Default none.
	Servers []providers.Row

	// Env reads an environment variable. Default os.Getenv.
	Env func(string) string
	// HTTPClient makes the requests. Its redirect policy is replaced. Default a
	// client without an overall time limit, since answers stream.
	HTTPClient *http.Client
	// Redact learns the keys and cleans errors. Default one of its own.
	Redact *redact.Redactor
	// Steps executes the step types of providers of the kind plugin. Default none: their turns
	// are errors.
	Steps steptype.Steps
	// Validate reports how a value violates a JSON Schema. Default none: a
	// reply to a turn with a schema must then only be JSON.
	Validate func(schema, value json.RawMessage) error
	// Clock is asked for dates in Retry-After and durations in reports.
	// Default time.Now.
	Clock func() time.Time
	// Stall is how long a server may stay silent, before and between events.
	// Default 10 minutes; models that think may be silent for some.
	Stall time.Duration
	// Observe, if not nil, is called for every turn when it has ended, with the
	// context the turn was made with. It must not block.
	Observe func(context.Context, Report)
}

// Provider kinds.
const (
	KindOpenAI    = "openai"
	KindAnthropic = "anthropic"
	KindPlugin    = "plugin"
)

// Protocols of the kind openai. The second one is also the protocol of what such a model has
// said, where the first is [KindOpenAI].
const (
	ProtocolChat      = "chat"
	ProtocolResponses = "responses"
)

// How a provider's models call tools.
const (
	ToolsAuto   = "auto"   // natively; calls in the text are understood too
	ToolsNative = "native" // natively only
	ToolsText   = "text"   // in the text: the tools are described in the system text
)

// A Provider is one server that answers turns. The tags doc and check are in the schema
// of the configuration.
type Provider struct {
	Name     string            `json:"name" check:"required" doc:"as in provider/model; openai, anthropic and ollama are known"`
	Kind     string            `json:"kind,omitempty" check:"openai|anthropic|plugin" doc:"protocol: openai (Chat Completions or Responses), anthropic (Messages), or plugin for a step type of a plugin. Default: that of the known provider with this name, else openai"`
	Step     string            `json:"step,omitempty" doc:"for the kind plugin: the step type with the role model, whose plugin is allowed to provide it"`
	BaseURL  string            `json:"baseUrl,omitempty" doc:"http or https address; for openai with its version, such as http://127.0.0.1:8000/v1. Default: that of the known provider with this name"`
	Key      string            `json:"-"` // never from a file; see KeyEnv
	Protocol string            `json:"protocol,omitempty" check:"chat|responses" doc:"for the kind openai: Chat Completions or Responses. Default: responses for api.openai.com, else chat"`
	KeyEnv   string            `json:"keyEnv,omitempty" doc:"environment variable that holds the key. Default: that of the known provider with this name, else none"`
	Model    string            `json:"model,omitempty" doc:"model for auto. Default: the first that the server offers"`
	Tools    string            `json:"tools,omitempty" check:"auto|native|text" doc:"how its models call tools: native, text (described in the system text), or auto (natively, and calls in the text are read too). Default: native for the hosted services, else auto"`
	Local    bool              `json:"local,omitempty" doc:"its calls cost nothing, and it comes first for auto. Default: false"`
	Headers  map[string]string `json:"headers,omitempty" doc:"HTTP headers of every request; values of names with auth, key, token, secret, cookie or password are hidden"`
}

// A Model is one row of the table of models.
type Model struct {
	Provider      string     `json:"provider,omitempty" doc:"name of its provider. Default: any"`
	Name          string     `json:"name" check:"required" doc:"as the server names it; a date or -latest at its end may be left out"`
	Input         float64    `json:"input" doc:"price of input, in US dollars per million tokens. Default: 0, free"`
	Output        float64    `json:"output" doc:"price of output, in US dollars per million tokens. Default: 0, free"`
	CacheRead     float64    `json:"cacheRead,omitempty" doc:"price of input read from the provider's cache, in US dollars per million tokens. Default: the price of input"`
	CacheWrite    float64    `json:"cacheWrite,omitempty" doc:"price of input written to the provider's cache, in US dollars per million tokens. Default: the price of input"`
	Long          *LongPrice `json:"long,omitempty" doc:"prices of a request with more input. Default: the same"`
	Protocol      string     `json:"protocol,omitempty" check:"chat|responses" doc:"protocol of the kind openai for this model. Default: that of its provider"`
	Context       int64      `json:"context,omitempty" doc:"size of the context window, in tokens. Default: unknown"`
	MaxOutput     int64      `json:"maxOutput,omitempty" doc:"longest reply, in tokens. Default: unknown"`
	CharsPerToken float64    `json:"charsPerToken,omitempty" doc:"characters of English text per token, for estimates. Default: 4"`
	NoTools       bool       `json:"noTools,omitempty" doc:"it cannot call tools, and is never chosen for a turn with tools"`
	NoSchema      bool       `json:"noSchema,omitempty" doc:"it takes no JSON Schema: schemas go into the system text"`
	NoTemperature bool       `json:"noTemperature,omitempty" doc:"it refuses the parameter temperature"`
	Source        string     `json:"source,omitempty" doc:"address of its price, for people"`
	Date          string     `json:"date,omitempty" doc:"day on which its price was read, such as 2026-11-28"`
}

// A LongPrice replaces the prices of a request whose input is larger.
type LongPrice struct {
	Above     int64   `json:"above" check:"required" doc:"tokens of input above which these prices hold"`
	Input     float64 `json:"input" check:"required" doc:"price of input, in US dollars per million tokens"`
	Output    float64 `json:"output" check:"required" doc:"price of output, in US dollars per million tokens"`
	CacheRead float64 `json:"cacheRead,omitempty" doc:"price of input read from the cache, in US dollars per million tokens. Default: the price of input"`
}

// A Mistake is a value of the configuration that [Open] refuses.
type Mistake struct {
	Key  string // of Config as the file names it: default, auto, fallback, capacity, providers, known or servers
	Path string // of the value in it, such as [0].baseUrl; "" for all of it
	Text string
}

// Error returns the text.
func (m *Mistake) Error() string { return m.Text }

// A Choice is the model for a turn and the reason.
type Choice struct {
	Provider string
	Model    string
	Why      string
}

// A Report is what there is to say of a turn that is over, beside its reply.
type Report struct {
	Choice
	Served    string // the model as the server names it, "" if it did not
	Usage     sentinels.Usage
	Estimated bool     // the server counted no tokens
	Notes     []string // what was sent or read differently than asked
	Duration  time.Duration
	Err       error // already redacted
}

// defaultStall is long because a thinking model may send nothing for minutes.
const defaultStall = 10 * time.Minute
