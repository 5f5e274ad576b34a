package host_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/runtime"
	runs "github.com/sentinel-runtime/sentinel/runtime/run"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// refusal returns a modelServer.refuse that answers the given requests with an error.
func refusal(status int, body string, requests ...int) func(int, http.ResponseWriter) bool {
	return func(n int, w http.ResponseWriter) bool {
		for _, refused := range requests {
			if n == refused {
				w.Header().Set("Retry-After-Ms", "20")
				http.Error(w, body, status)
				return true
			}
		}
		return false
	}
}

// TestFallbackOfTheConfiguration: a model that is overloaded is replaced by the configured one, also for
// the rest of the conversation, and the log says so; one that refuses a request is not.
func TestFallbackOfTheConfiguration(t *testing.T) {
	for status, answered := range map[int]string{http.StatusServiceUnavailable: "second", http.StatusBadRequest: ""} {
		s := newModelServer(t, func(r chatRequest) answer {
			if r.answers() == 0 {
				return answer{tool: "code_read", args: map[string]any{"path": "a.txt"}}
			}
			return answer{text: "hello"}
		})
		s.refuse = func(n int, w http.ResponseWriter) bool {
			s.mu.Lock()
			first := s.asked[n-1].Model == "first"
			s.mu.Unlock()
			if first {
				http.Error(w, `{"error":{"message":"no"}}`, status)
			}
			return first
		}
		ws := t.TempDir()
		t.Setenv("SENTINEL_MODELS_FALLBACK", "openai/second")
		write(t, ws, map[string]string{"a.txt": "x"})
		h := open(t, host.Options{Workspace: ws})
		res := run(t, h, `{"name":"m","steps":[{"type":"llm","model":"openai/first","prompt":"hi","tools":["code/read"],"outputTo":"r"}]}`, ws)
		var out struct{ Model string }
		_ = json.Unmarshal(res.Variables["r"], &out) // absent of a run that failed
		if (res.Status == sentinels.StatusCompleted) != (answered != "") || out.Model != answered {
			t.Fatalf("%d: %s with %v, answered by %q", status, res.Status, res.Error, out.Model)
		}
		list, _ := calls(t, h, res.Run)
		want := "sentinel_llm bad_fields"
		if answered != "" {
			want = "sentinel_llm unavailable,sentinel_llm,sentinel_command,sentinel_llm"
		}
		if strings.Join(list, ",") != want {
			t.Errorf("%d: calls %v", status, list)
		}
	}
}

// calls returns the host calls of the first step of a run, each as "function", or
// "function code" if it failed, and the number of model calls that were reserved and
// charged.
func calls(t *testing.T, h *host.Host, id sentinels.RunID) (list []string, charged int64) {
	t.Helper()
	recorded, err := h.Runtime().Trace(id)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range recorded.Iterations[0].Steps[0].Attempts {
		for _, c := range a.Calls {
			text := c.Function
			if c.Error != nil {
				text += " " + string(c.Error.Code)
			}
			if c.Usage != nil {
				charged += c.Usage.Calls
			}
			list = append(list, text)
		}
	}
	return list, charged
}

// Specification: "a turn that fails for a transient reason is tried again inside the
// step: three more tries ..., as parked journaled time; ... each
// try is reserved and shown".
func TestSpecTransientFailureOfAServer(t *testing.T) {
	for _, status := range []int{http.StatusServiceUnavailable, http.StatusTooManyRequests} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			s := newModelServer(t, func(chatRequest) answer { return answer{text: "hello"} })
			s.refuse = refusal(status, `{"error":{"message":"overloaded"}}`, 1, 2)
			h := open(t, host.Options{})
			res := run(t, h, `{"name":"m","steps":[{"type":"llm","prompt":"hi","outputTo":"r"}]}`, t.TempDir())
			if res.Status != sentinels.StatusCompleted || s.turns() != 3 || res.Usage.Calls != 3 {
				t.Fatalf("%s with %v after %d requests, usage %+v", res.Status, res.Error, s.turns(), res.Usage)
			}
			list, charged := calls(t, h, res.Run)
			if want := "sentinel_llm unavailable,sentinel_wait,sentinel_llm unavailable,sentinel_wait,sentinel_llm"; strings.Join(list, ",") != want || charged != 3 {
				t.Errorf("calls %v, %d charged", list, charged)
			}
		})
	}
}

// Specification: "each
// try is reserved": a budget of two calls does not allow a third one.
func TestSpecTriesAreReserved(t *testing.T) {
	s := newModelServer(t, func(chatRequest) answer { return answer{text: "hello"} })
	s.refuse = refusal(503, "down", 1, 2, 3, 4)
	h := open(t, host.Options{})
	res := run(t, h, `{"name":"m","steps":[{"type":"llm","prompt":"hi"}],"budget":{"calls":2}}`, t.TempDir())
	if res.Status != sentinels.StatusTimedOut || s.turns() != 2 {
		t.Errorf("%s with %v after %d requests", res.Status, res.Error, s.turns())
	}
}

// Specification: "not for quota, billing, authentication, context length, content
// policy".
func TestSpecPermanentFailureOfAServer(t *testing.T) {
	for name, tt := range map[string]struct {
		status int
		body   string
		code   abi.Code
	}{
		"quota":          {429, `{"error":{"code":"insufficient_quota","message":"You exceeded your current quota"}}`, abi.Denied},
		"billing":        {400, `{"error":{"message":"Your credit balance is too low"}}`, abi.Denied},
		"authentication": {401, `{"error":{"message":"wrong key"}}`, abi.Denied},
		"context length": {400, `{"error":{"code":"context_length_exceeded","message":"maximum context length is 10 tokens"}}`, abi.Limit},
		"content policy": {400, `{"error":{"code":"content_policy_violation","message":"rejected"}}`, abi.Denied},
	} {
		t.Run(name, func(t *testing.T) {
			s := newModelServer(t, func(chatRequest) answer { return answer{text: "hello"} })
			requests := 1
			// A request that is too long is made again with the window that the server has named, and once
			// more with another limit for the reply.
			if name == "context length" {
				requests = 3
			}
			s.refuse = refusal(tt.status, tt.body, 1, 2, 3, 4)
			res := run(t, open(t, host.Options{}), `{"name":"m","steps":[{"type":"llm","prompt":"hi"}]}`, t.TempDir())
			if res.Status != sentinels.StatusFailed || abi.CodeOf(res.Error) != tt.code || s.turns() != requests {
				t.Errorf("%s with %v after %d requests", res.Status, res.Error, s.turns())
			}
		})
	}
}

// Specification: "with `onError: retry` the step's own limit replaces it".
func TestSpecOnErrorRetryOfAModel(t *testing.T) {
	s := newModelServer(t, func(chatRequest) answer { return answer{text: "hello"} })
	var refused atomic.Int64
	s.refuse = func(_ int, w http.ResponseWriter) bool {
		refused.Add(1)
		http.Error(w, "down", http.StatusServiceUnavailable)
		return true
	}
	res := run(t, open(t, host.Options{}), `{"name":"m","steps":[{"type":"llm","prompt":"hi","onError":{"retry":{"maxRetries":1,"baseDelayMs":1}}}]}`, t.TempDir())
	if res.Status != sentinels.StatusFailed || refused.Load() != 2 {
		t.Errorf("%s with %v after %d requests", res.Status, res.Error, refused.Load())
	}
}

// Specification: "`maxTokens` has a sensible default": the limit is sent with each turn,
// so that a quote holds.
func TestSpecDefaultOfMaxTokens(t *testing.T) {
	s := newModelServer(t, func(chatRequest) answer { return answer{text: "hello"} })
	h := open(t, host.Options{})
	for fields, want := range map[string]int64{``: 8192, `,"maxTokens":300`: 300, `,"model":"openai/gpt-4o"`: 16384} {
		run(t, h, `{"name":"m","steps":[{"type":"llm","prompt":"hi"`+fields+`}]}`, t.TempDir())
		if got := s.asked[len(s.asked)-1].MaxTokens; got != want {
			t.Errorf("with %q: %d tokens, want %d", fields, got, want)
		}
	}
}

// Specification: "A reply that is a JSON array is one (`$r[0]`, `each: "$r"`, `.length`)."
func TestSpecArrayOfAModel(t *testing.T) {
	newModelServer(t, func(chatRequest) answer { return answer{text: `[{"name":"a"},{"name":"b"}]`} })
	res := run(t, open(t, host.Options{}), `{"name":"m","steps":[
		{"type":"llm","prompt":"hi","outputTo":"r"},
		{"type":"loop","each":"$r","as":"one","steps":[{"type":"shell","command":"printf '%s %s %s %s' \"$one.name\" \"$r[0].name\" \"$r.length\"","outputTo":"said"}]},
		{"type":"condition","check":"$r.length === 2 && $r[0].name === 'a' && $r.some(x => x.name === 'b')","then":[{"type":"shell","command":"echo yes","outputTo":"checked"}]}
	]}`, t.TempDir())
	if res.Status != sentinels.StatusCompleted {
		t.Fatalf("%s with %v", res.Status, res.Error)
	}
	if got := variable(t, res, "said"); !strings.Contains(got, "b a 2") {
		t.Errorf("$said is %s", got)
	}
	if got := variable(t, res, "checked"); !strings.Contains(got, "yes") {
		t.Errorf("$checked is %s", got)
	}
}

// Specification: "`model` may be a list tried in order".
func TestSpecListOfModelsOfServers(t *testing.T) {
	s := newModelServer(t, func(chatRequest) answer { return answer{text: "hello"} })
	s.refuse = refusal(http.StatusUnauthorized, `{"error":{"message":"no access to this model"}}`, 1)
	h := open(t, host.Options{})
	res := run(t, h, `{"name":"m","steps":[{"type":"llm","prompt":"hi","model":["anthropic/claude-sonnet-5-5","openai/first","openai/second"],"outputTo":"r"}]}`, t.TempDir())
	if res.Status != sentinels.StatusCompleted || s.turns() != 2 || !strings.Contains(variable(t, res, "r"), `"model":"second"`) {
		t.Errorf("%s with %v after %d requests", res.Status, res.Error, s.turns())
	}
	list, _ := calls(t, h, res.Run)
	if want := "sentinel_llm not_found,sentinel_llm denied,sentinel_llm"; strings.Join(list, ",") != want {
		t.Errorf("calls %v, want %s", list, want)
	}
}

// Specification: "if the worst case exceeds what is left, the call goes out with a lower
// cap while at least 256 tokens remain, and says so."
func TestSpecLowerLimitOfAReply(t *testing.T) {
	s := newModelServer(t, func(chatRequest) answer { return answer{text: "hello"} })
	h := open(t, host.Options{})
	for step, field := range map[string]string{
		`{"type":"llm","prompt":"hi","outputTo":"r"}`:                              "note",
		`{"command":"ai/generate","params":{"prompt":"hi"},"outputTo":"r"}`:        "text",
		`{"type":"llm","prompt":"hi","outputTo":"r","model":"openai/gpt-4o-mini"}`: "note",
	} {
		res := run(t, h, `{"name":"m","steps":[`+step+`],"budget":{"tokens":600}}`, t.TempDir())
		limit := s.asked[len(s.asked)-1].MaxTokens
		if res.Status != sentinels.StatusCompleted || limit < 256 || limit > 600 {
			t.Errorf("%s: %s with %v, %d tokens", step, res.Status, res.Error, limit)
		}
		if note := fmt.Sprintf("The budget left %d tokens for the reply.", limit); field == "note" && !strings.Contains(variable(t, res, "r"), note) {
			t.Errorf("%s: $r is %s", step, variable(t, res, "r"))
		}
		log, err := os.ReadFile(h.RunLog(res.Run))
		if line := fmt.Sprintf("the budget leaves %d tokens for the reply of model openai/", limit); err != nil || !strings.Contains(string(log), line) {
			t.Errorf("%s: the log has no %q: %v\n%s", step, line, err, log)
		}
	}
	before := s.turns()
	res := run(t, h, `{"name":"m","steps":[{"type":"llm","prompt":"hi"}],"budget":{"tokens":250}}`, t.TempDir())
	if res.Status != sentinels.StatusTimedOut || s.turns() != before || res.Error == nil || !strings.Contains(res.Error.Message, "takes at least") ||
		!strings.Contains(res.Error.Hint, "raise budget.tokens") {
		t.Errorf("with 250 tokens: %s with %+v after %d requests", res.Status, res.Error, s.turns()-before)
	}
}

// Specification: "Status at a limit stays `timed_out` with a `reason` from a closed list
// (`maxIterations timeoutMs budget.tokens budget.costUsd budget.calls`) in
// result, event, list and exit message; a run that reaches `maxMemoryMb` is `failed` with that reason."
func TestSpecReasonsOfLimits(t *testing.T) {
	newModelServer(t, func(chatRequest) answer { return answer{text: "hello"} })
	var mu sync.Mutex
	ended := map[sentinels.RunID]string{}
	h := open(t, host.Options{Observer: runtime.Observer{Progress: func(p runtime.Progress) {
		if p.Event == runtime.OnRunEnd {
			mu.Lock()
			defer mu.Unlock()
			ended[p.Run] = string(p.Status) + " " + p.Reason
		}
	}}})
	const turn = `"steps":[{"type":"llm","prompt":"hi","model":"gpt-4o"}]`
	definitions := map[string]string{
		"maxIterations":  `"steps":[{"type":"shell","command":"true"}],"loop":{"type":"until","check":"false"},"maxIterations":2`,
		"timeoutMs":      `"steps":[{"type":"wait","durationMs":60000}],"timeoutMs":50`,
		"budget.tokens":  turn + `,"budget":{"tokens":20}`,
		"budget.costUsd": turn + `,"budget":{"costUsd":0.000001}`,
		"budget.calls":   turn + `,"loop":{"type":"count","max":9},"budget":{"calls":1}`,
		"maxMemoryMb":    `"steps":[{"type":"shell","command":"x=$(head -c 100000000 /dev/zero | tr '\\0' a); sleep 50; echo ${#x}"}],"safety":{"maxMemoryMb":40}`,
	}
	if diff := cmp.Diff(slices.Concat(runs.TimedOut(), runs.Failed()), []string{"maxIterations", "timeoutMs", "budget.tokens", "budget.costUsd", "budget.calls", "maxMemoryMb"}); diff != "" {
		t.Errorf("the closed list (-want +got):\n%s", diff)
	}
	for _, reason := range slices.Concat(runs.TimedOut(), runs.Failed()) {
		status := sentinels.StatusTimedOut
		if slices.Contains(runs.Failed(), reason) {
			status = sentinels.StatusFailed
		}
		if _, err := os.Stat("/proc/self/statm"); err != nil && reason == runs.ReasonMemory {
			continue // the memory of processes is read from /proc
		}
		res := run(t, h, `{"name":"m",`+definitions[reason]+`}`, t.TempDir())
		if res.Status != status || res.Reason != reason || res.Error == nil || !strings.HasPrefix(res.Error.Message, reason+" reached: ") {
			t.Errorf("%s: the result is %s %q, error %v", reason, res.Status, res.Reason, res.Error)
		}
		mu.Lock()
		if got := ended[res.Run]; got != string(status)+" "+reason {
			t.Errorf("%s: the event says %q", reason, got)
		}
		mu.Unlock()
		raw, err := h.Call(t.Context(), "sentinel/list", json.RawMessage(`{"only":"runs"}`))
		var page struct {
			Runs []runtime.RunInfo `json:"runs"`
		}
		if err != nil || json.Unmarshal(raw, &page) != nil {
			t.Fatal(err, string(raw))
		}
		at := slices.IndexFunc(page.Runs, func(r runtime.RunInfo) bool { return r.ID == res.Run })
		if at < 0 || page.Runs[at].Status != status || page.Runs[at].Reason != reason {
			t.Errorf("%s: the list is %s", reason, raw)
		}
	}
	// A limit that is not in the list is an error of the definition.
	res := run(t, h, `{"name":"m","steps":[{"type":"loop","count":9,"steps":[{"type":"shell","command":"true"}]}],"safety":{"maxSteps":3}}`, t.TempDir())
	if res.Status != sentinels.StatusFailed || res.Reason != "" || abi.CodeOf(res.Error) != abi.Limit || res.Error.Hint == "" {
		t.Errorf("maxSteps: %s %q, error %+v", res.Status, res.Reason, res.Error)
	}
}

// variable returns a variable of a result as JSON.
func variable(t *testing.T, res runtime.Result, name string) string {
	t.Helper()
	var v any
	if err := json.Unmarshal(res.Variables[name], &v); err != nil {
		t.Fatalf("$%s: %v: %s", name, err, res.Variables[name])
	}
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
