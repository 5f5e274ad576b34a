package llm_test

import (
	"strings"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host/llm"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

func TestQuote(t *testing.T) {
	server := newFake(t, status(200, `{"object":"list","data":[{"id":"local-model"}]}`))
	near := []string{"OPENAI_BASE_URL", server.URL + "/v1"}
	hosted := []string{"OPENAI_API_KEY", key, "ANTHROPIC_API_KEY", key}
	tests := []struct {
		name   string
		env    []string
		config llm.Config
		turn   sentinels.Turn
		input  int64
		output int64
		cost   float64
		priced bool
	}{
		// 4000 characters are 1000 tokens, 6 for the message, a fifth more.
		{"known", hosted, llm.Config{Default: "gpt-4o"}, sentinels.Turn{MaxTokens: 1000}, 1208, 1000, (1208*2.5 + 1000*10) / 1e6, true},
		{"known, default limit", hosted, llm.Config{Default: "gpt-4o"}, sentinels.Turn{}, 1208, 16384, (1208*2.5 + 16384*10) / 1e6, true},
		{"limit of the model", hosted, llm.Config{Default: "gpt-4o"}, sentinels.Turn{MaxTokens: 1e6}, 1208, 16384, (1208*2.5 + 16384*10) / 1e6, true},
		{"cache writes cost more", hosted, llm.Config{Default: "claude-haiku-4-5"}, sentinels.Turn{MaxTokens: 1000}, 1208, 1000, (1208*1.25 + 1000*5) / 1e6, true},
		{"more tokens a character", hosted, llm.Config{Default: "claude-sonnet-5-5"}, sentinels.Turn{MaxTokens: 1000}, 1608, 1000, (1608*2.5 + 1000*10) / 1e6, true},
		{"dated name", hosted, llm.Config{Default: "openai/gpt-4o-2024-08-06"}, sentinels.Turn{MaxTokens: 1000}, 1208, 1000, (1208*2.5 + 1000*10) / 1e6, true},
		{"unknown", hosted, llm.Config{Default: "openai/gpt-99"}, sentinels.Turn{MaxTokens: 1000}, 1208, 1000, 0, false},
		{"configured price", hosted, llm.Config{Default: "openai/gpt-99", Models: []llm.Model{{Provider: "openai", Name: "gpt-99", Input: 1, Output: 2}}}, sentinels.Turn{MaxTokens: 1000}, 1208, 1000, (1208 + 2000) / 1e6, true},
		{"ollama", []string{"OLLAMA_HOST", server.URL}, llm.Config{}, sentinels.Turn{}, 1208, 8192, 0, true},
		{"near server", near, llm.Config{}, sentinels.Turn{}, 1208, 8192, 0, true},
		{"near gateway to a model that costs", near, llm.Config{Default: "openai/gpt-4o"}, sentinels.Turn{MaxTokens: 1000}, 1208, 1000, (1208*2.5 + 1000*10) / 1e6, true},
		{"far server", nil, llm.Config{Providers: []llm.Provider{{Name: "far", BaseURL: "https://llm.example/v1", Model: "x"}}}, sentinels.Turn{MaxTokens: 10}, 1208, 10, 0, false},
		{"far server declared local", nil, llm.Config{Providers: []llm.Provider{{Name: "far", BaseURL: "https://llm.example/v1", Model: "x", Local: true}}}, sentinels.Turn{MaxTokens: 10}, 1208, 10, 0, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.config.Env = env(tt.env...)
			tt.turn.Messages = []sentinels.Message{{Role: "user", Content: strings.Repeat("abcd", 1000)}}
			q, err := open(t, tt.config).Quote(t.Context(), tt.turn)
			if err != nil {
				t.Fatal(err)
			}
			if q.Worst.InputTokens != tt.input || q.Worst.OutputTokens != tt.output || q.Worst.Calls != 1 || q.Priced != tt.priced {
				t.Errorf("got %+v", q)
			}
			if d := q.Worst.CostUSD - tt.cost; d > 1e-9 || d < -1e-9 {
				t.Errorf("cost is %v, want %v", q.Worst.CostUSD, tt.cost)
			}
		})
	}
}

func TestLongRequestsHaveTheirOwnPrice(t *testing.T) {
	m := open(t, llm.Config{Env: env("ANTHROPIC_API_KEY", key), Default: "claude-haiku-5-5"})
	turn := ask(strings.Repeat("abc", 200_000)) // 200,000 tokens by three characters a token
	turn.MaxTokens = 1000
	q, err := m.Quote(t.Context(), turn)
	if err != nil {
		t.Fatal(err)
	}
	input := float64(q.Worst.InputTokens)
	if want := (input*0.625 + 1000*2.5) / 1e6; q.Worst.CostUSD < want*0.999 || q.Worst.CostUSD > want*1.001 {
		t.Errorf("cost is %v, want about %v", q.Worst.CostUSD, want)
	}
}

func TestBuiltinTable(t *testing.T) {
	models, auto, err := llm.BuiltinModels()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, row := range models {
		if seen[row.Name] {
			t.Errorf("%s is there twice", row.Name)
		}
		seen[row.Name] = true
		if row.Provider == "" || row.Input <= 0 || row.Output < row.Input || row.CacheRead > row.Input || row.Context <= row.MaxOutput || row.MaxOutput <= 0 {
			t.Errorf("implausible row %+v", row)
		}
		if _, err := time.Parse(time.DateOnly, row.Date); err != nil || !strings.HasPrefix(row.Source, "https://") {
			t.Errorf("%s: source %q of %q", row.Name, row.Source, row.Date)
		}
		if row.Long != nil && (row.Long.Input <= row.Input || row.Long.Above >= row.Context) {
			t.Errorf("implausible long price of %s", row.Name)
		}
	}
	for provider, name := range auto {
		if !seen[name] {
			t.Errorf("the model for auto at %s, %s, has no row", provider, name)
		}
	}
}
