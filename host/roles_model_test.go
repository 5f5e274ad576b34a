package host_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sdk/role"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// modelKit returns a plugin whose model sends each turn to a server and answers what that
// answers.
func modelKit(host string) string {
	return `sentinel.plugin({name: "kit", version: "1", permissions: [{use: "provide", names: ["model"], reason: "r"}, {use: "http", names: ["` + host + `"], reason: "r"}],
		steps: {kit_model: {summary: "Answers turns.", fields: {type: "object", additionalProperties: true}, provides: {as: "model"}, run: (step, ctx) => {
			const r = ctx.http({method: "POST", url: "http://` + host + `/turn", body: JSON.stringify(step.fields)});
			if (r.status >= 400) throw new sentinel.Error("unavailable", "the server said " + r.status);
			return JSON.parse(r.body);
		}}}});`
}

// A turnServer answers the turns of a plugin from a script.
type turnServer struct {
	*httptest.Server
	mu    sync.Mutex
	turns []role.Turn
	keys  []string // idempotency keys of the requests
}

func newTurnServer(t *testing.T, script func(n int, turn role.Turn, w http.ResponseWriter)) *turnServer {
	t.Helper()
	s := &turnServer{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var turn role.Turn
		if err := json.NewDecoder(r.Body).Decode(&turn); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		s.mu.Lock()
		s.turns, s.keys = append(s.turns, turn), append(s.keys, r.Header.Get("Idempotency-Key"))
		n := len(s.turns)
		s.mu.Unlock()
		script(n, turn, w)
	}))
	t.Cleanup(s.Close)
	return s
}

// openModels opens a host with the provider own, whose model is that of the plugin.
func openModels(t *testing.T, s *turnServer, opt host.Options) *roles {
	t.Helper()
	for _, name := range []string{"OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "OLLAMA_HOST"} {
		t.Setenv(name, "")
	}
	opt.Config = filepath.Join(t.TempDir(), "config.json")
	config := `{"models":{"default":"own/small","providers":[{"name":"own","kind":"plugin","step":"kit_model"}],"known":[{"provider":"own","name":"small","input":2,"output":10}]}}`
	if err := os.WriteFile(opt.Config, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return openRoles(t, modelKit(strings.TrimPrefix(s.URL, "http://")), opt)
}

// allowModel allows the plugin its role and its server on this machine.
func (r *roles) allowModel() {
	r.Helper()
	must(r.T, r.Host, "plugin/allow", `{"name":"kit","private":true}`, nil)
}

// TestPluginModel: a provider of the kind plugin answers turns, with tools, prices, a budget
// and a schema, and is recorded and replayed like every other.
func TestPluginModel(t *testing.T) {
	s := newTurnServer(t, func(n int, turn role.Turn, w http.ResponseWriter) {
		last := turn.Messages[len(turn.Messages)-1]
		if last.Role == "user" && len(turn.Tools) > 0 {
			fmt.Fprintf(w, `{"text":"","finish":"tools","toolCalls":[{"name":%q,"arguments":{"path":"a.txt"}}],"usage":{"inputTokens":1000,"outputTokens":100}}`, turn.Tools[0].Name)
			return
		}
		text, _ := json.Marshal("it says " + last.Content)
		fmt.Fprintf(w, `{"text":%s,"finish":"stop","usage":{"inputTokens":500,"outputTokens":10}}`, text)
	})
	cassette := filepath.Join(t.TempDir(), "cassette.jsonl")
	r := openModels(t, s, host.Options{Record: cassette})
	write(t, r.workspace, map[string]string{"a.txt": "hello from the file"})
	src := `{"name":"m","steps":[{"type":"llm","prompt":"read it","tools":["code/read"],"outputTo":"out"}]}`
	var checked json.RawMessage
	must(t, r.Host, "sentinel/validate", map[string]any{"definition": json.RawMessage(src)}, &checked)
	if text := string(checked); !strings.Contains(text, "sentinel plugin allow kit") || !strings.Contains(text, "waits for approval") {
		t.Errorf("before it is allowed: %s", text)
	}
	r.allowModel()
	res := r.do(src)
	if text := string(res.Variables["out"]); res.Status != sentinels.StatusCompleted || !strings.Contains(text, "hello from the file") {
		t.Fatalf("%s: %s %v", res.Status, text, res.Error)
	}
	if u := res.Usage; u.InputTokens != 1500 || u.OutputTokens != 110 || u.Calls != 2 || fmt.Sprintf("%.6f", u.CostUSD) != "0.004100" {
		t.Errorf("usage %+v", u)
	}
	children, err := r.Runtime().Runs(runtime.RunFilter{Parent: res.Run})
	if err != nil || len(children) != 2 || children[0].Sentinel != "m@kit_model" {
		t.Errorf("children %+v, %v", children, err)
	}
	if turn := s.turns[0]; turn.Model != "small" || turn.MaxTokens <= 0 || len(turn.Tools) != 1 || s.keys[0] == "" || s.keys[0] == s.keys[1] {
		t.Errorf("turn %+v, keys %q", turn, s.keys)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	// The recording needs neither plugin nor server.
	again := open(t, host.Options{Workspace: r.workspace, Dir: t.TempDir(), Replay: cassette, Getenv: private(t)})
	replayed := run(t, again, src, r.workspace)
	if text := string(replayed.Variables["out"]); !strings.Contains(text, "hello from the file") || again.Divergences() != 0 {
		t.Errorf("replayed: %s %v, %d divergences", replayed.Variables["out"], replayed.Error, again.Divergences())
	}
	if len(s.turns) != 2 {
		t.Errorf("%d turns", len(s.turns))
	}
}

// TestPluginModelFaults: what a model of a plugin answers wrongly, or not at all, is the
// error of the turn.
func TestPluginModelFaults(t *testing.T) {
	answers := map[string]struct {
		body string
		code abi.Code
		text string
	}{
		"rubbish":     {`"hello"`, abi.Output, "want an object"},
		"null":        {`null`, abi.Output, "not null"},
		"no usage":    {`{"text":"a","finish":"stop"}`, abi.Output, "usage is missing"},
		"no finish":   {`{"text":"a","usage":{"inputTokens":1,"outputTokens":1}}`, abi.Output, "finish"},
		"negative":    {`{"text":"a","finish":"stop","usage":{"inputTokens":-1,"outputTokens":1}}`, abi.Output, "usage of -1"},
		"tools":       {`{"text":"a","finish":"tools","usage":{"inputTokens":1,"outputTokens":1}}`, abi.Output, "0 tool calls"},
		"arguments":   {`{"text":"a","finish":"tools","toolCalls":[{"name":"x","arguments":[1]}],"usage":{"inputTokens":1,"outputTokens":1}}`, abi.Output, "arguments"},
		"stops":       {"stop", abi.Unavailable, "own/small"},
		"busy":        {"503", abi.Unavailable, "the server said 503"},
		"not allowed": {"", abi.Denied, "sentinel plugin allow kit"},
	}
	var body string
	s := newTurnServer(t, func(_ int, _ role.Turn, w http.ResponseWriter) {
		switch body {
		case "stop":
			conn, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				conn.Close()
			}
		case "503":
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			fmt.Fprint(w, body)
		}
	})
	r := openModels(t, s, host.Options{})
	turn := sentinels.Turn{Messages: []sentinels.Message{{Role: "user", Content: "a"}}}
	for name, tt := range answers {
		r.allowModel()
		if body = tt.body; name == "not allowed" {
			must(t, r.Host, "plugin/allow", `{"name":"kit","private":true,"deny":["provide"]}`, nil)
		}
		_, err := r.Runtime().Turn(t.Context(), "", turn, nil)
		e := abi.As(err)
		if e == nil || e.Code != tt.code || !strings.Contains(e.Message+e.Hint, tt.text) || !strings.Contains(e.Message, "own") {
			t.Errorf("%s: %+v", name, e)
		}
	}
	// Settings that make no sense are refused when they are read.
	for config, want := range map[string]string{
		`{"name":"own","kind":"plugin"}`:                                         "needs step",
		`{"name":"own","kind":"plugin","step":"x","baseUrl":"http://127.0.0.1"}`: "not for the kind plugin",
		`{"name":"own","step":"x","baseUrl":"http://127.0.0.1"}`:                 "for the kind plugin only",
	} {
		file := filepath.Join(t.TempDir(), "config.json")
		if err := os.WriteFile(file, []byte(`{"models":{"providers":[`+config+`]}}`), 0o600); err != nil {
			t.Fatal(err)
		}
		h, err := host.Open(t.Context(), host.Options{Workspace: t.TempDir(), Config: file, Getenv: private(t)})
		if err == nil {
			h.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", config, err)
		}
	}
}
