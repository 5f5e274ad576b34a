package providers_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host/llm/providers"
)

// TestRows: each provider that documentation names has a row, and each rule a source.
func TestRows(t *testing.T) {
	have := map[string]bool{}
	for _, row := range providers.Rows() {
		have[row.Name] = true
		if special := row.Omit != nil || row.Call != nil || row.Protocol != "" || row.CompletionTokens; special != (row.Source != "") || len(row.Rules) == 0 {
			t.Errorf("%s: source %q", row.Name, row.Source)
		}
		for _, rule := range row.Rules {
			if !strings.HasPrefix(rule.Source, "https://") {
				t.Errorf("%s: %s: no source", row.Name, rule.Class)
			}
		}
	}
	for _, name := range strings.Fields("openai azure anthropic gemini deepseek kimi glm qwen mistral groq xai openrouter together ollama vllm sglang llama.cpp lmstudio copilot") {
		if !have[name] {
			t.Errorf("no row for %s", name)
		}
	}
	if _, err := time.Parse(time.DateOnly, providers.Date()); err != nil {
		t.Error(err)
	}
}

// TestJudge has errors in the words that users and documentation report; where they are from is
// the source of the rule. Each is judged by the provider's own row and, as behind a gateway,
// without one.
func TestJudge(t *testing.T) {
	for _, tt := range []struct {
		base, text   string
		status       int
		class        providers.Class
		window, most int64
	}{
		{"https://generativelanguage.googleapis.com/v1beta/openai", "You exceeded your current quota, please check your plan and billing details. * Quota exceeded for metric: generate_content_free_tier_input_token_count, limit: 125000 Please retry in 15.002899939s.", 429, providers.RateLimit, 0, 0},
		{"https://generativelanguage.googleapis.com/v1beta/openai", "The input token count (218152) exceeds the maximum number of tokens allowed (65536).", 400, providers.TooLong, 65536, 0},
		{"https://api.x.ai/v1", "This model's maximum prompt length is 131072 but the request contains 136973 tokens.", 400, providers.TooLong, 131072, 0},
		{"https://api.moonshot.ai/v1", "Invalid request: Your request exceeded model token limit: 262144 (requested: 300000)", 400, providers.TooLong, 262144, 0},
		{"https://api.moonshot.ai/v1", "exceeded_current_quota_error Your account org-1 <ak-2> is suspended, please check your plan and billing details", 429, providers.NoCredit, 0, 0},
		{"https://api.moonshot.ai/v1", "engine_overloaded_error The engine is currently overloaded, please try again later", 429, providers.Overloaded, 0, 0},
		{"https://open.bigmodel.cn/api/paas/v4", "1261 Prompt exceeds max length", 400, providers.TooLong, 0, 0},
		{"https://open.bigmodel.cn/api/paas/v4", "1113 Insufficient balance or no resource package. Please recharge.", 429, providers.NoCredit, 0, 0},
		{"https://open.bigmodel.cn/api/paas/v4", "1302 High concurrency usage of this API", 429, providers.RateLimit, 0, 0},
		{"https://dashscope.aliyuncs.com/compatible-mode/v1", "InternalError.Algo.InvalidParameter: Range of input length should be [1, 98304]", 400, providers.TooLong, 98304, 0},
		{"https://dashscope.aliyuncs.com/compatible-mode/v1", "Range of max_tokens should be [1, 8192]", 400, providers.OutputLimit, 0, 8192},
		{"https://dashscope.aliyuncs.com/compatible-mode/v1", "data_inspection_failed Input data may contain inappropriate content.", 400, providers.Refused, 0, 0},
		{"https://api.githubcopilot.com", "prompt token count of 93854 exceeds the limit of 90000", 400, providers.TooLong, 90000, 0},
		{"https://api.mistral.ai/v1", "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length", 400, providers.TooLong, 32768, 0},
		{"https://api.groq.com/openai/v1", "invalid_request_error tool_use_failed Failed to call a function. Please adjust your prompt. See 'failed_generation' for more details.", 400, providers.BrokenCall, 0, 0},
		{"https://api.groq.com/openai/v1", "Rate limit reached for model `llama` on tokens per minute (TPM): Limit 6000, Used 5000. Please try again in 9.5s. Need more tokens? Upgrade at https://console.groq.com/settings/billing", 429, providers.RateLimit, 0, 0},
		{"https://openrouter.ai/api/v1", "No endpoints found that support tool use. To learn more about provider routing, visit the docs", 404, providers.NoTools, 0, 0},
		{"https://openrouter.ai/api/v1", "This request requires more credits, or fewer max_tokens. You requested up to 8192 tokens, but can only afford 100", 402, providers.NoCredit, 0, 0},
		{"https://api.deepseek.com", "Insufficient Balance", 402, providers.NoCredit, 0, 0},
		{"https://api.deepseek.com", "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]", 400, providers.OutputLimit, 0, 8192},
		{"https://api.anthropic.com", "invalid_request_error max_tokens: 16384 > 8192, which is the maximum allowed number of output tokens for claude-3", 400, providers.OutputLimit, 0, 8192},
		{"https://api.anthropic.com", "invalid_request_error prompt is too long: 209353 tokens > 199999 maximum", 400, providers.TooLong, 199999, 0},
		{"https://api.anthropic.com", "overloaded_error Overloaded", 529, providers.Overloaded, 0, 0},
		{"https://api.openai.com/v1", "max_tokens is too large: 8192. This model supports at most 4096 completion tokens, whereas you provided 8192.", 400, providers.OutputLimit, 0, 4096},
		{"https://api.openai.com/v1", "insufficient_quota You exceeded your current quota, please check your plan and billing details.", 429, providers.NoCredit, 0, 0},
		{"https://x.openai.azure.com", "The response was filtered due to the prompt triggering Azure OpenAI's content management policy", 400, providers.Refused, 0, 0},
		{"http://127.0.0.1:8000/v1", "This model's maximum context length is 128000 tokens. However, you requested 65535 output tokens and your prompt contains at least 62466 input tokens, for a total of at least 128001 tokens.", 400, providers.TooLong, 128000, 0},
		{"http://127.0.0.1:8000/v1", "Input length (265330) exceeds model's maximum context length (262144).", 400, providers.TooLong, 262144, 0},
		{"http://127.0.0.1:30000/v1", "Requested token count exceeds the model's maximum context length of 4096 tokens. You requested a total of 9000 tokens", 400, providers.TooLong, 4096, 0},
		{"http://127.0.0.1:8080/v1", "the request exceeds the available context size (8192 tokens), try increasing it", 400, providers.TooLong, 8192, 0},
		{"http://127.0.0.1:1234/v1", "Trying to keep the first 9000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens", 400, providers.TooLong, 4096, 0},
		{"http://127.0.0.1:11434/v1", "registry.ollama.ai/library/gemma:2b does not support tools", 400, providers.NoTools, 0, 0},
		{"https://api.together.xyz/v1", "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8193. Given: 9000 inputs tokens", 422, providers.TooLong, 8193, 0},
		{"https://api.mistral.ai/v1", "invalid_function_call 3280 Tool call id was call_1_1 but must be a-z, A-Z, 0-9, with a length of 9.", 400, providers.CallIDs, 0, 9},
		{"https://api.groq.com/openai/v1", "tokens rate_limit_exceeded Request too large for model `m` in organization `o` service tier `on_demand` on tokens per minute (TPM): Limit 8000, Requested 32979, please reduce your message size and try again.", 413, providers.TooLong, 8000, 0},
		{"https://api.openai.com/v1", "invalid_request_error invalid_prompt Invalid prompt: your prompt was flagged as potentially violating our usage policy.", 400, providers.Refused, 0, 0},
		{"http://127.0.0.1:8000/v1", "BadRequestError 400 \"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set", 400, providers.NoTools, 0, 0},
		{"http://127.0.0.1:1/v1", "something else went wrong", 400, "", 0, 0},
	} {
		for _, base := range []string{tt.base, "http://gateway.internal/v1"} {
			v := providers.Of(base, "m").Judge(tt.status, tt.text, nil)
			if v.Class != tt.class || v.Window != tt.window || v.Most != tt.most {
				t.Errorf("%s, %.60q: %+v, want %s, window %d, most %d", base, tt.text, v, tt.class, tt.window, tt.most)
			}
		}
	}
}

// TestOwnRules: an empty account with OpenAI is a limit of a minute with Qwen, in the same words.
func TestOwnRules(t *testing.T) {
	const text = "insufficient_quota You exceeded your current quota, please check your plan and billing details."
	for base, want := range map[string]providers.Class{
		"https://dashscope.aliyuncs.com/compatible-mode/v1": providers.RateLimit, "https://api.openai.com/v1": providers.NoCredit, "http://gateway.internal/v1": providers.NoCredit,
	} {
		if v := providers.Of(base, "m").Judge(429, text, nil); v.Class != want {
			t.Errorf("%s: %+v, want %s", base, v, want)
		}
	}
}

func TestOf(t *testing.T) {
	for _, tt := range [][3]string{
		{"https://api.deepseek.com/anthropic", "x", "deepseek"}, {"https://evil-deepseek.com", "x", ""}, {"https://openrouter.ai/api/v1", "moonshotai/kimi-k2", "openrouter"},
		{"http://10.0.0.1/v1", "moonshotai/kimi-k2-thinking", "kimi"}, {"http://10.0.0.1/v1", "google/gemini-3-pro", "gemini"}, {"http://10.0.0.1/v1", "m", ""}, {"://", "m", ""},
	} {
		if got := providers.Of(tt[0], tt[1]).Name; got != tt[2] {
			t.Errorf("%s with %s: %q, want %q", tt[0], tt[1], got, tt[2])
		}
	}
}

func TestFinish(t *testing.T) {
	for class, reasons := range map[providers.Class]string{
		providers.Failed:     "error network_error abort insufficient_system_resource OTHER",
		providers.Refused:    "SAFETY sensitive content_filter refusal RECITATION",
		providers.Length:     "MAX_TOKENS model_length length",
		providers.BrokenCall: "MALFORMED_FUNCTION_CALL",
		providers.TooLong:    "model_context_window_exceeded",
		providers.Stop:       "stop tool_calls eos end_turn something_new",
	} {
		for _, reason := range strings.Fields(reasons) {
			if got := (providers.Row{}).Finished(reason); got != class {
				t.Errorf("%s is %s, want %s", reason, got, class)
			}
		}
	}
}

func TestWait(t *testing.T) {
	now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		header string // name: value, separated by |
		text   string
		want   time.Duration
	}{
		{"", "Please try again in 9.5s. Visit the page", 9500 * time.Millisecond},
		{"", "Please try again in 1m30.5s.", 90500 * time.Millisecond},
		{"", "try again in 250ms", 250 * time.Millisecond},
		{"", "Please retry in 15.002899939s.", 15002899939},
		{"", "Please retry after 26 seconds.", 26 * time.Second},
		{"", "Please wait 2 minutes and try again", 2 * time.Minute},
		{"", "try again later", 0},
		{"Retry-After: 5s", "", 5 * time.Second},
		{"Retry-After: 7", "try again in 9.5s", 7 * time.Second},
		{"Retry-After: Sat, 28 Nov 2026 12:00:30 GMT", "", 30 * time.Second},
		{"Retry-After-Ms: 1500", "", 1500 * time.Millisecond},
		{"Retry-After: -3", "", 0}, {"Retry-After: NaN", "", 0}, {"Retry-After: soon", "", 0},
		{"X-Ratelimit-Remaining-Requests: 3|X-Ratelimit-Reset-Requests: 1h0m0s|X-Ratelimit-Remaining-Tokens: 0|X-Ratelimit-Reset-Tokens: 7.66s", "", 7660 * time.Millisecond},
		{"X-Ratelimit-Reset-Requests: 6m0s|X-Ratelimit-Reset-Tokens: 20ms", "", 20 * time.Millisecond},
		{"Anthropic-Ratelimit-Requests-Remaining: 0|Anthropic-Ratelimit-Requests-Reset: 2026-11-28T12:00:10Z", "", 10 * time.Second},
		{"X-Ratelimit-Remaining: 0|X-Ratelimit-Reset: 1795867240000", "", 40 * time.Second},
	} {
		h := http.Header{}
		for _, line := range strings.Split(tt.header, "|") {
			name, value, _ := strings.Cut(line, ": ")
			h.Set(name, value)
		}
		if got := providers.Wait(h, tt.text, now); got.Round(time.Microsecond) != tt.want.Round(time.Microsecond) {
			t.Errorf("%q %q: %s, want %s", tt.header, tt.text, got, tt.want)
		}
	}
}

func FuzzWait(f *testing.F) {
	f.Add("5s", "try again in 1m3.5s")
	f.Add("1e400", "retry after 99999999999999999999999 hours")
	f.Fuzz(func(t *testing.T, header, text string) {
		h := http.Header{}
		h.Set("Retry-After", header)
		h.Set("X-Ratelimit-Reset", header)
		if got := providers.Wait(h, text, time.Unix(0, 0)); got < 0 {
			t.Fatal(got)
		}
	})
}
