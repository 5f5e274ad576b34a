package llm

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

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
	// Providers are added to those of the environment. One with the name of a
	// known provider (openai, anthropic, ollama) takes what it leaves out from
	// there. Default none.
	Providers []Provider
	// Models override and extend the built-in table. Default none.
	Models []Model

	// Env reads an environment variable. Default os.Getenv.
	Env func(string) string
	// HTTPClient makes the requests. Its redirect policy is replaced. Default a
	// client without an overall time limit, since answers stream.
	HTTPClient *http.Client
	// Redact learns the keys and cleans errors. Default one of its own.
	Redact *redact.Redactor
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
)

// How a provider's models call tools.
const (
	ToolsAuto   = "auto"   // natively; calls in the text are understood too
	ToolsNative = "native" // natively only
	ToolsText   = "text"   // in the text: the tools are described in the system text
)

// A Provider is one server that answers turns.
type Provider struct {
	Name    string            `json:"name"`              // as in "name/model"
	Kind    string            `json:"kind,omitempty"`    // openai, anthropic; default openai
	BaseURL string            `json:"baseUrl,omitempty"` // for openai with its version: ".../v1"
	Key     string            `json:"-"`                 // never from a file; see KeyEnv
	KeyEnv  string            `json:"keyEnv,omitempty"`  // the variable that holds the key
	Model   string            `json:"model,omitempty"`   // the one for "auto"; default the server's first
	Tools   string            `json:"tools,omitempty"`   // auto, native, text; default native at the hosted services, else auto
	Local   bool              `json:"local,omitempty"`   // costs nothing, comes first for "auto"
	Headers map[string]string `json:"headers,omitempty"` // added to every request; values of names with auth, key, token... are secrets
}

// A Model is one row of the table of models. Prices are US dollars per million
// tokens.
type Model struct {
	Provider      string     `json:"provider,omitempty"` // empty for any
	Name          string     `json:"name"`
	Input         float64    `json:"input"`
	Output        float64    `json:"output"`
	CacheRead     float64    `json:"cacheRead,omitempty"`  // 0 is the input price
	CacheWrite    float64    `json:"cacheWrite,omitempty"` // 0 is the input price
	Long          *LongPrice `json:"long,omitempty"`
	Context       int64      `json:"context,omitempty"`       // window in tokens, 0 unknown
	MaxOutput     int64      `json:"maxOutput,omitempty"`     // in tokens, 0 unknown
	CharsPerToken float64    `json:"charsPerToken,omitempty"` // of English text; 0 is 4
	NoTools       bool       `json:"noTools,omitempty"`       // never chosen for a turn with tools
	NoSchema      bool       `json:"noSchema,omitempty"`      // schemas go into the system text
	NoTemperature bool       `json:"noTemperature,omitempty"` // refuses the parameter
}

// A LongPrice replaces the prices of a request whose input is larger.
type LongPrice struct {
	Above     int64   `json:"above"` // input tokens
	Input     float64 `json:"input"`
	Output    float64 `json:"output"`
	CacheRead float64 `json:"cacheRead,omitempty"`
}

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
