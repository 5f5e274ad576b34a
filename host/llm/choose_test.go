package llm_test

import (
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/llm"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// lister serves a list of models and nothing else.
func lister(t *testing.T, names ...string) *fake {
	t.Helper()
	var items []string
	for _, name := range names {
		items = append(items, `{"id":"`+name+`","object":"model","created":1,"owned_by":"x"}`)
	}
	return newFake(t, status(200, `{"object":"list","data":[`+strings.Join(items, ",")+`]}`))
}

func TestChoose(t *testing.T) {
	ollama := lister(t, "nomic-embed-text", "qwen3:8b", "llama3.2")
	gateway := newFake(t, status(404, "{}"))
	tests := []struct {
		name   string
		env    []string
		config llm.Config
		model  string
		turn   func(*sentinels.Turn)
		want   string // provider/model, or "code: words"
		why    string
	}{
		{name: "nothing configured", want: "not_found: no model is configured"},
		{name: "ollama by auto", env: []string{"OLLAMA_HOST", ollama.URL, "OPENAI_API_KEY", key}, want: "ollama/qwen3:8b", why: "first model it lists"},
		{name: "base url before key", env: []string{"OPENAI_BASE_URL", ollama.URL + "/v1", "ANTHROPIC_API_KEY", key}, want: "openai/qwen3:8b", why: "configured server"},
		{name: "gateway without a list", env: []string{"OPENAI_BASE_URL", gateway.URL + "/v1"}, want: "openai/gpt-6-sol", why: "lists no models"},
		{name: "openai by key", env: []string{"OPENAI_API_KEY", key, "ANTHROPIC_API_KEY", key}, want: "openai/gpt-6-sol", why: "OPENAI_API_KEY"},
		{name: "anthropic by key", env: []string{"ANTHROPIC_API_KEY", key}, want: "anthropic/claude-sonnet-5-5", why: "ANTHROPIC_API_KEY"},
		{name: "official base url is no server", env: []string{"OPENAI_BASE_URL", "https://api.openai.com/v1", "ANTHROPIC_API_KEY", key}, want: "anthropic/claude-sonnet-5-5"},
		{name: "explicit", env: []string{"OPENAI_API_KEY", key}, model: "openai/gpt-4o-mini", want: "openai/gpt-4o-mini", why: "the turn names it"},
		{name: "explicit with slashes", env: []string{"OPENAI_API_KEY", key}, model: "openai/meta/llama-3", want: "openai/meta/llama-3"},
		{name: "explicit without key", model: "openai/gpt-4o", want: "not_found: OPENAI_API_KEY"},
		{name: "explicit ollama needs no variable", model: "ollama/phi4", want: "ollama/phi4"},
		{name: "provider alone", env: []string{"OLLAMA_HOST", ollama.URL}, model: "ollama", want: "ollama/qwen3:8b"},
		{name: "bare in the table", env: []string{"OPENAI_API_KEY", key, "ANTHROPIC_API_KEY", key}, model: "claude-haiku-5-5", want: "anthropic/claude-haiku-5-5", why: "table"},
		{name: "bare with a date", env: []string{"ANTHROPIC_API_KEY", key}, model: "claude-haiku-4-5-20251001", want: "anthropic/claude-haiku-4-5-20251001"},
		{name: "bare without key", env: []string{"OPENAI_API_KEY", key}, model: "claude-haiku-5-5", want: "not_found: ANTHROPIC_API_KEY"},
		{name: "bare unknown goes to the server", env: []string{"OLLAMA_HOST", ollama.URL}, model: "phi4", want: "ollama/phi4", why: "local server"},
		{name: "an unknown provider, with a server", env: []string{"OLLAMA_HOST", ollama.URL}, model: "dwn/big", want: `not_found: model "dwn/big": unknown provider "dwn" write provider/name`},
		{name: "an unknown provider with the name of one before a dash", env: []string{"OPENAI_API_KEY", key}, model: "openai-x/gpt-4o", want: `not_found: unknown provider "openai-x"`},
		{
			name: "a name with a slash in the table", env: []string{"OLLAMA_HOST", ollama.URL}, config: llm.Config{Models: []llm.Model{{Provider: "ollama", Name: "meta/llama-3"}}},
			model: "meta/llama-3", want: "ollama/meta/llama-3",
		},
		{name: "bare unknown", env: []string{"OPENAI_API_KEY", key}, model: "phi4", want: "not_found: provider/name"},
		{name: "default", env: []string{"OPENAI_API_KEY", key}, config: llm.Config{Default: "gpt-4o"}, want: "openai/gpt-4o", why: "configured default"},
		{name: "auto beats default only as default", env: []string{"OPENAI_API_KEY", key}, config: llm.Config{Default: "gpt-4o"}, model: "auto", want: "openai/gpt-4o"},
		{name: "configured candidates", env: []string{"OPENAI_API_KEY", key, "ANTHROPIC_API_KEY", key}, config: llm.Config{Auto: []string{"anthropic/claude-opus-5-5", "openai"}}, want: "anthropic/claude-opus-5-5"},
		{
			name: "too small a window", env: []string{"OPENAI_API_KEY", key},
			config: llm.Config{Auto: []string{"openai/gpt-4o", "openai/gpt-4.1"}},
			turn:   func(turn *sentinels.Turn) { turn.System = strings.Repeat("word ", 120_000) },
			want:   "openai/gpt-4.1", why: "passed over: openai/gpt-4o has a window of 128000",
		},
		{
			name: "no tools", env: []string{"OLLAMA_HOST", ollama.URL, "OPENAI_API_KEY", key},
			config: llm.Config{Auto: []string{"ollama/gemma", "openai"}, Models: []llm.Model{{Provider: "ollama", Name: "gemma", NoTools: true}}},
			turn:   func(turn *sentinels.Turn) { *turn = withTools(*turn, "code/read") },
			want:   "openai/gpt-6-sol", why: "has no tools",
		},
		{
			name: "nothing fits", env: []string{"OPENAI_API_KEY", key}, config: llm.Config{Auto: []string{"openai/gpt-4o"}},
			turn: func(turn *sentinels.Turn) { turn.System = strings.Repeat("word ", 120_000) },
			want: "limit: no candidate fits",
		},
		{
			name:   "configured provider comes first and takes its key from the variable it names",
			env:    []string{"WORK_KEY", key, "OPENAI_API_KEY", key},
			config: llm.Config{Providers: []llm.Provider{{Name: "work", BaseURL: "https://llm.example/v1", KeyEnv: "WORK_KEY", Model: "big"}}},
			want:   "work/big", why: "WORK_KEY",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.config.Env = env(tt.env...)
			m := open(t, tt.config)
			turn := ask("x")
			turn.Model = tt.model
			if tt.turn != nil {
				tt.turn(&turn)
			}
			got, err := m.Choose(t.Context(), turn)
			if code, words, isError := strings.Cut(tt.want, ": "); isError {
				e := asError(t, err)
				if e.Code != abi.Code(code) || !strings.Contains(e.Message+" "+e.Hint, words) || e.Hint == "" {
					t.Errorf("got %+v", e)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got.Provider+"/"+got.Model != tt.want || !strings.Contains(got.Why, tt.why) || got.Why == "" {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// Specification: "`model` may be ... a capacity name mapped in configuration; names route
// by family."
func TestSpecCapacityAndFamily(t *testing.T) {
	ollama := lister(t, "qwen3:8b")
	both := []string{"OPENAI_API_KEY", key, "ANTHROPIC_API_KEY", key}
	capacity := llm.Capacity{
		Tiny: []string{"ollama/qwen3:0.6b"}, Small: []string{"gpt-5-mini"}, Medium: []string{"openai"},
		Large: []string{"anthropic/claude-opus-5-5", "openai/gpt-5"}, SOTA: []string{"gpt-4o", "anthropic/claude-opus-5-5"},
	}
	mistral := []llm.Provider{{Name: "mistral", BaseURL: "https://llm.example/v1", KeyEnv: "OPENAI_API_KEY"}}
	for _, tt := range []struct {
		model  string
		env    []string
		config llm.Config
		long   bool
		want   string // provider/model, or words of the error not_found
	}{
		{"tiny", both, llm.Config{Capacity: capacity}, false, "ollama/qwen3:0.6b"},
		{"small", both, llm.Config{Capacity: capacity}, false, "openai/gpt-5-mini"},
		{"medium", both, llm.Config{Capacity: capacity}, false, "openai/gpt-6-sol"},
		{"large", both, llm.Config{Capacity: capacity}, false, "anthropic/claude-opus-5-5"},
		{"large", both[:2], llm.Config{Capacity: capacity}, false, "openai/gpt-5"},
		{"sota", both, llm.Config{Capacity: capacity}, true, "anthropic/claude-opus-5-5"}, // the window of gpt-4o is too small
		{"", both, llm.Config{Capacity: capacity, Default: "small"}, false, "openai/gpt-5-mini"},
		{"large", both, llm.Config{}, false, `model "large": no model is configured for this capacity set models.capacity.large`},
		{"large", nil, llm.Config{Capacity: capacity}, false, `model "large": no candidate fits`},

		{"claude-next-9", both, llm.Config{}, false, "anthropic/claude-next-9"},
		{"gpt-99-nano", both, llm.Config{}, false, "openai/gpt-99-nano"},
		{"o4", both, llm.Config{}, false, "openai/o4"},
		{"o4-large", both, llm.Config{}, false, "openai/o4-large"},
		{"o4x", both, llm.Config{}, false, "not in the table of models"},
		{"mistral-large", both, llm.Config{Providers: mistral}, false, "mistral/mistral-large"},
		{"claude-next-9", both[:2], llm.Config{}, false, "set ANTHROPIC_API_KEY"},
		{"gpt-99-nano", append([]string{"OLLAMA_HOST", ollama.URL}, both...), llm.Config{}, false, "openai/gpt-99-nano"},
		{"gpt-99-nano", []string{"OLLAMA_HOST", ollama.URL}, llm.Config{}, false, "ollama/gpt-99-nano"}, // a gateway may serve it
	} {
		t.Run(tt.model, func(t *testing.T) {
			tt.config.Env = env(tt.env...)
			turn := ask("x")
			turn.Model = tt.model
			if tt.long {
				turn.System = strings.Repeat("word ", 120_000)
			}
			got, err := open(t, tt.config).Choose(t.Context(), turn)
			if err != nil {
				if e := asError(t, err); e.Code != abi.NotFound || !e.Permanent || !strings.Contains(e.Message+" "+e.Hint, tt.want) {
					t.Errorf("got %+v, want %s", e, tt.want)
				}
				return
			}
			if got.Provider+"/"+got.Model != tt.want || got.Why == "" {
				t.Errorf("got %+v, want %s", got, tt.want)
			}
		})
	}
	if _, err := llm.Open(llm.Config{Env: env(), Capacity: llm.Capacity{Large: []string{"nobodys/x"}}}); err == nil || !strings.Contains(err.Error(), `unknown provider "nobodys"`) {
		t.Errorf("an unknown provider in a capacity: %v", err)
	}
}

func TestAServerThatIsDownIsNotReplacedByAHostedOne(t *testing.T) {
	down := newFake(t, status(200, ""))
	down.Close()
	hosted := newFake(t, chat("hello"))
	m := open(t, llm.Config{
		Env:       env("OLLAMA_HOST", down.URL),
		Providers: []llm.Provider{{Name: "hosted", BaseURL: hosted.URL + "/v1", Model: "x"}},
	})
	_, err := m.Turn(t.Context(), ask("secret"), nil)
	if e := asError(t, err); e.Code != abi.Unavailable {
		t.Errorf("got %+v", e)
	}
	if len(hosted.seen()) != 0 {
		t.Error("the text went to the hosted provider")
	}
}

func TestOllamaURL(t *testing.T) {
	for in, want := range map[string]string{
		"127.0.0.1":                 "http://127.0.0.1:11434/v1",
		"127.0.0.1:1234":            "http://127.0.0.1:1234/v1",
		"0.0.0.0":                   "http://127.0.0.1:11434/v1",
		":8000":                     "http://127.0.0.1:8000/v1",
		"http://box:11434/":         "http://box:11434/v1",
		"http://box":                "http://box:11434/v1",
		"https://ollama.example":    "https://ollama.example:443/v1",
		"https://x.example/ollama":  "https://x.example:443/ollama/v1",
		"http://127.0.0.1:11434/v1": "http://127.0.0.1:11434/v1",
		"[::1]:9999":                "http://[::1]:9999/v1",
		"::1":                       "http://[::1]:11434/v1",
		"[::]":                      "http://127.0.0.1:11434/v1",
	} {
		if got := llm.OllamaURL(in); got != want {
			t.Errorf("OllamaURL(%q) is %q, want %q", in, got, want)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	tests := map[string]llm.Config{
		"base URL":                 {Providers: []llm.Provider{{Name: "x", BaseURL: "ftp://x"}}},
		"kind":                     {Providers: []llm.Provider{{Name: "x", BaseURL: "http://x", Kind: "smoke"}}},
		"tools":                    {Providers: []llm.Provider{{Name: "x", BaseURL: "http://x", Tools: "maybe"}}},
		"neither spaces":           {Providers: []llm.Provider{{Name: "a/b", BaseURL: "http://x"}}},
		"configured twice":         {Providers: []llm.Provider{{Name: "x", BaseURL: "http://x"}, {Name: "x", BaseURL: "http://x"}}},
		"unknown provider":         {Default: "unknown/x"},
		"needs a name, and prices": {Models: []llm.Model{{Name: "x", Input: -1}}},
	}
	for words, config := range tests {
		config.Env = env()
		if _, err := llm.Open(config); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("got %v, want something about %q", err, words)
		}
	}
}

func TestTheEnvironmentOfTheProcessIsNotRead(t *testing.T) {
	t.Setenv("OPENAI_CUSTOM_HEADERS", "X-Leak: yes")
	t.Setenv("OPENAI_ORG_ID", "org")
	t.Setenv("ANTHROPIC_CUSTOM_HEADERS", "X-Leak: yes")
	t.Setenv("ANTHROPIC_AUTH_TOKEN", "other-token-of-the-user")
	f := newFake(t, chat("hello"))
	if _, err := openAI(t, f).Turn(t.Context(), ask("x"), nil); err != nil {
		t.Fatal(err)
	}
	_, _ = anthropicModels(t, f).Turn(t.Context(), ask("x"), nil)
	for _, r := range f.seen() {
		for _, name := range []string{"X-Leak", "Openai-Organization"} {
			if r.header.Get(name) != "" {
				t.Errorf("%s: header %s was sent", r.path, name)
			}
		}
		if strings.Contains(r.header.Get("Authorization"), "other-token") {
			t.Errorf("%s: a token of the environment was sent", r.path)
		}
	}
}
