package llm_test

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host/llm"
	"github.com/sentinel-runtime/sentinel/host/llm/cassette"
	"github.com/sentinel-runtime/sentinel/internal/needs"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// startAimock starts a server that speaks the providers' protocols and was not
// written here, and returns its URL. It needs node and the npm package; without
// them the test is skipped with the line that installs it, and fails instead
// where SENTINEL_AIMOCK=required.
func startAimock(t *testing.T) string {
	t.Helper()
	lacking := func(what string) {
		t.Helper()
		text := "NOT TESTED against aimock: " + what + "; run: npm ci --prefix host/llm/testdata/aimock"
		if os.Getenv("SENTINEL_AIMOCK") == "required" {
			t.Fatal(text)
		}
		t.Skip(text)
	}
	if err := needs.Works("", nil, "node", "--version"); err != nil {
		lacking(err.Error())
	}
	folder, err := filepath.Abs("testdata/aimock")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(folder, "node_modules", "@copilotkit", "aimock")); err != nil {
		lacking("the package @copilotkit/aimock is not installed")
	}
	// The server ends when its input does, also if this process is killed.
	cmd := exec.Command("node", filepath.Join(folder, "serve.mjs"))
	cmd.Stderr = os.Stderr
	input, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { input.Close(); _ = cmd.Wait() })
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "http://127.0.0.1:") {
		t.Fatalf("aimock did not start: %q, %v", line, err)
	}
	return strings.TrimSpace(line)
}

func TestAimock(t *testing.T) {
	url := startAimock(t)
	for _, kind := range []string{"openai", "anthropic"} {
		vars := env("OPENAI_BASE_URL", url+"/v1", "OPENAI_API_KEY", key, "ANTHROPIC_BASE_URL", url, "ANTHROPIC_API_KEY", key)
		config := llm.Config{Env: vars, Default: map[string]string{"openai": "openai/gpt-4o", "anthropic": "anthropic/claude-sonnet-5-5"}[kind]}
		t.Run(kind, func(t *testing.T) {
			m := open(t, config)
			t.Run("text", func(t *testing.T) { aimockText(t, m) })
			t.Run("tools", func(t *testing.T) { aimockTools(t, m) })
			t.Run("faults", func(t *testing.T) { aimockFaults(t, m) })
			t.Run("cancel", func(t *testing.T) { aimockCancel(t, m) })
			t.Run("cassette", func(t *testing.T) { aimockCassette(t, m) })
		})
	}
}

func aimockText(t *testing.T, m *llm.Models) {
	var streamed []string
	reply, err := m.Turn(t.Context(), ask("say hello"), func(text string) { streamed = append(streamed, text) })
	if err != nil {
		t.Fatal(err)
	}
	if want := "Hello from a server that was not written here."; reply.Text != want || strings.Join(streamed, "") != want || len(streamed) < 2 || reply.Finish != "stop" {
		t.Errorf("got %+v, streamed %q", reply, streamed)
	}
	if reply.Usage.InputTokens == 0 || reply.Usage.OutputTokens == 0 || reply.Usage.CostUSD == 0 {
		t.Errorf("usage is %+v", reply.Usage)
	}
	if reply, err = m.Turn(t.Context(), ask("count tokens"), nil); err != nil || reply.Usage.InputTokens != 123 || reply.Usage.OutputTokens != 45 {
		t.Errorf("usage is %+v, %v", reply.Usage, err)
	}
	if reply, err = m.Turn(t.Context(), ask("stop early"), nil); err != nil || reply.Finish != "length" {
		t.Errorf("finish is %q, %v", reply.Finish, err)
	}
	turn := ask("answer as json")
	turn.Schema = json.RawMessage(schema)
	if reply, err = m.Turn(t.Context(), turn, nil); err != nil || string(reply.JSON) != `{"a": 1}` {
		t.Errorf("JSON is %s, %v", reply.JSON, err)
	}
}

// aimockTools walks through a tool loop as the llm step does.
func aimockTools(t *testing.T, m *llm.Models) {
	turn := withTools(ask("read the file"), "code/read", "code/shell/execute")
	reply, err := m.Turn(t.Context(), turn, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(reply.ToolCalls) != 1 || reply.ToolCalls[0].Name != "code/read" || string(reply.ToolCalls[0].Arguments) != `{"path":"a.txt"}` || reply.Finish != "tools" || reply.Text != "I will look." {
		t.Fatalf("got %+v", reply)
	}
	turn.Messages = append(turn.Messages,
		sentinels.Message{Role: "assistant", Content: reply.Text, ToolCalls: reply.ToolCalls},
		sentinels.Message{Role: "tool", ToolCallID: reply.ToolCalls[0].ID, Name: "code/read", Content: `{"text":"hello"}`})
	if reply, err = m.Turn(t.Context(), turn, nil); err != nil || reply.Text != "It says hello." || len(reply.ToolCalls) != 0 {
		t.Errorf("got %+v, %v", reply, err)
	}
	reply, err = m.Turn(t.Context(), withTools(ask("two tools"), "code/read", "code/shell/execute"), nil)
	if err != nil || len(reply.ToolCalls) != 2 || reply.ToolCalls[1].Name != "code/shell/execute" || reply.ToolCalls[0].ID == reply.ToolCalls[1].ID {
		t.Errorf("got %+v, %v", reply, err)
	}
	reply, err = m.Turn(t.Context(), withTools(ask("tool in text"), "code/read"), nil)
	if err != nil || len(reply.ToolCalls) != 1 || reply.Text != "Sure." || reply.Finish != "tools" {
		t.Errorf("got %+v, %v", reply, err)
	}
}

func aimockFaults(t *testing.T, m *llm.Models) {
	tests := []struct {
		say       string
		code      abi.Code
		permanent bool
		retryMs   int64
	}{
		{"limit me", abi.Unavailable, false, 17_000},
		{"be busy", abi.Unavailable, false, 0},
		{"refuse the key", abi.Denied, true, 0},
		{"too much text", abi.Limit, true, 0},
		{"cut the stream", abi.Unavailable, false, 0},
		{"hang up", abi.Unavailable, false, 0},
		{"talk nonsense", abi.Unavailable, false, 0},
		{"drop me", abi.Unavailable, false, 0},
		{"slam the door", abi.Unavailable, false, 0},
	}
	for _, tt := range tests {
		_, err := m.Turn(t.Context(), ask(tt.say), nil)
		if e := asError(t, err); e.Code != tt.code || e.Permanent != tt.permanent || e.RetryAfterMs != tt.retryMs {
			t.Errorf("%s: got %+v", tt.say, e)
		}
	}
}

func aimockCancel(t *testing.T, m *llm.Models) {
	ctx, cancel := context.WithCancel(t.Context())
	started := time.Now()
	_, err := m.Turn(ctx, ask("speak slowly"), func(string) { cancel() })
	if e := asError(t, err); e.Code != abi.Cancelled {
		t.Errorf("got %+v", e)
	}
	if took := time.Since(started); took > 30*time.Second { // the whole text takes a minute
		t.Errorf("the turn went on for %s", took)
	}
}

func aimockCassette(t *testing.T, m *llm.Models) {
	file := filepath.Join(t.TempDir(), "run.jsonl")
	recorder, err := cassette.Record(file, m, cassette.RecordOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer recorder.Close()
	live, err := recorder.Turn(t.Context(), ask("say hello"), nil)
	if err != nil {
		t.Fatal(err)
	}
	_, limited := recorder.Turn(t.Context(), ask("limit me"), nil)
	player, err := cassette.Open(file, cassette.PlayOptions{Strict: true})
	if err != nil {
		t.Fatal(err)
	}
	played, err := player.Turn(t.Context(), ask("say hello"), nil)
	live.Provider = cassette.Provider
	if err != nil || played.Text != live.Text || played.Usage != live.Usage || played.Model != live.Model {
		t.Errorf("played %+v, %v, recorded %+v", played, err, live)
	}
	if _, err = player.Turn(t.Context(), ask("limit me"), nil); err == nil || *asError(t, err) != *asError(t, limited) {
		t.Errorf("played %v, recorded %v", err, limited)
	}
}
