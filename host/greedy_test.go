package host_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// greedy is a project with the plugin greedy, canaries, and a user of its own.
type greedy struct {
	*testing.T
	host      *host.Host
	workspace string
	secret    string // file that no plugin may touch
	canary    string // file that no plugin may create
	listener  *httptest.Server
	reached   atomic.Int64 // requests that the listener got
}

func newGreedy(t *testing.T) *greedy {
	t.Helper()
	if testing.Short() {
		t.Skip("builds a guest, which takes a while; run without -short")
	}
	g := &greedy{T: t, workspace: t.TempDir()}
	folder := filepath.Join(g.workspace, ".sentinel", "plugins")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "build", "-buildmode=c-shared", "-ldflags=-s -w", "-o", filepath.Join(folder, "greedy.wasm"), "./testdata/guests/greedy")
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOFLAGS=", "CGO_ENABLED=0")
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	g.secret, g.canary = filepath.Join(g.workspace, "secret.txt"), filepath.Join(t.TempDir(), "made")
	write(t, g.workspace, map[string]string{"secret.txt": "canary of the workspace"})
	g.listener = httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { g.reached.Add(1) }))
	t.Cleanup(g.listener.Close)
	home := t.TempDir()
	g.host = open(t, host.Options{Workspace: g.workspace, Getenv: func(name string) string {
		return map[string]string{"XDG_CONFIG_HOME": home, "HOME": home, "PATH": os.Getenv("PATH"), "SENTINEL_SECRET_TOKEN": "token-of-the-canary"}[name]
	}})
	return g
}

// allow decides as a person does.
func (g *greedy) allow(params string) {
	g.Helper()
	if _, err := g.host.Call(g.Context(), "plugin/allow", json.RawMessage(params)); err != nil {
		g.Fatal(err)
	}
}

// A told is one answer that the plugin got.
type told struct{ What, Code, Message string }

// try runs the plugin and returns its results.
func (g *greedy) try() (all []told) {
	g.Helper()
	res := run(g.T, g.host, `{"name":"greedy","steps":[{"type":"greedy","file":"`+g.canary+`","url":"`+g.listener.URL+`","ref":{"$ref":"victim"},
		"own":{"name":"own","steps":[{"type":"shell","argv":["touch","`+g.canary+`"]}]},"outputTo":"said"}]}`, g.workspace)
	if res.Status != sentinels.StatusCompleted {
		g.Fatalf("the run ended %s: %v", res.Status, res.Error)
	}
	if err := json.Unmarshal(res.Variables["said"], &all); err != nil || len(all) < 50 {
		g.Fatalf("it told %s, %v", res.Variables["said"], err)
	}
	return all
}

// untouched reports what was reached although it is forbidden.
func (g *greedy) untouched() {
	g.Helper()
	if text, err := os.ReadFile(g.secret); err != nil || string(text) != "canary of the workspace" {
		g.Errorf("the file in the workspace holds %q, %v", text, err)
	}
	for _, path := range []string{g.canary, filepath.Join(g.workspace, "canary.txt")} {
		if _, err := os.Lstat(path); !os.IsNotExist(err) {
			g.Errorf("%s was made: %v", path, err)
		}
	}
	if n := g.reached.Load(); n > 0 {
		g.Errorf("the listener got %d requests", n)
	}
	if _, err := g.host.Runtime().Definition("victim"); err != nil {
		g.Error(err)
	}
	runs, err := g.host.Runtime().Runs(runtime.RunFilter{})
	if err != nil {
		g.Fatal(err)
	}
	for _, r := range runs {
		if r.Sentinel != "greedy" {
			g.Errorf("a run of %s was started", r.Sentinel)
		}
	}
}

// TestGreedyPlugin runs a plugin of others that asks for everything and tries
// everything, with next to nothing allowed, and then with parts of it.
func TestGreedyPlugin(t *testing.T) {
	g := newGreedy(t)
	victim, problems := g.host.Runtime().Decode([]byte(`{"id":"victim","name":"victim","steps":[{"type":"shell","argv":["touch","`+g.canary+`"]}]}`), "")
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	if _, err := g.host.Runtime().Save(t.Context(), victim, 0); err != nil {
		t.Fatal(err)
	}
	_, problems = g.host.Runtime().Inspect(t.Context(), []byte(`{"name":"x","steps":[{"type":"greedy"}]}`), "")
	if len(problems) != 1 || problems[0].Hint != "sentinel plugin allow greedy" {
		t.Fatalf("before anybody allowed it: %v", problems)
	}

	g.allow(`{"name":"greedy","only":[{"use":"emit","names":["fine:*"]}],"deny":["command","llm","watch","spawn","http","folder","secret"]}`)
	for _, said := range g.try() {
		if said.Code != string(abi.Denied) {
			t.Errorf("%s: result %s %q, want denied", said.What, said.Code, said.Message)
		}
	}
	g.untouched()
	if events, err := g.host.Call(t.Context(), "events/tail", json.RawMessage(`{"pattern":"greedy:*"}`)); err == nil && strings.Contains(string(events), "greedy:event") {
		t.Errorf("an event is in the log: %s", events)
	}

	// All public commands, the network and a folder: private commands, decisions
	// about plugins, addresses of this machine and other folders stay shut.
	if err := os.MkdirAll(filepath.Join(g.workspace, "shared"), 0o755); err != nil {
		t.Fatal(err)
	}
	g.allow(`{"name":"greedy","only":[{"use":"command","names":["*"]}],"deny":["llm","watch","spawn","secret"],"folders":{"data":{"path":"shared","write":true}}}`)
	shut := 0
	for _, said := range g.try() {
		kind, rest, _ := strings.Cut(said.What, " ")
		private := rest == "code/shell/execute" || strings.HasPrefix(rest, "plugin/") || strings.HasPrefix(rest, "sentinel/") || rest == "events/emit" || rest == "code/git"
		switch {
		case (kind == "command" || kind == "tool") && !private:
		case kind == "emit" || strings.HasSuffix(said.What, " data"):
		case said.Code == "ok":
			t.Errorf("%s: it was allowed", said.What)
		default:
			shut++
		}
	}
	if shut < 30 {
		t.Errorf("only %d calls were refused", shut)
	}
	if _, err := os.Stat(filepath.Join(g.workspace, "shared", "canary.txt")); err != nil {
		t.Errorf("its own folder: %v", err) // so the grant was a grant
	}
	if err := os.Remove(filepath.Join(g.workspace, "canary.txt")); err != nil {
		t.Errorf("code/write, which * has: %v", err)
	}
	g.untouched()

	// Even with the commands that decide named and allowed, only people decide.
	g.allow(`{"name":"greedy","only":[{"use":"command","names":["plugin/allow","plugin/deny"]}],"deny":["llm","watch","spawn","secret","http","folder","emit"]}`)
	for _, said := range g.try() {
		if strings.Contains(said.What, "plugin/allow") || strings.Contains(said.What, "plugin/deny") {
			if said.Code != string(abi.Denied) || !strings.Contains(said.Message, "only a person") && !strings.Contains(said.Message, "not among the tools") {
				t.Errorf("%s: result %s %q", said.What, said.Code, said.Message)
			}
		}
	}
	g.untouched()
}

// TestCommandsThatWait: a call that waits for a run, a program or another host holds no place of the API; any other does, also
// one that starts programs of its own for a moment.
func TestCommandsThatWait(t *testing.T) {
	h := open(t, host.Options{Workspace: t.TempDir()})
	for call, want := range map[string]bool{
		"sentinel/await {}": true, "sentinel/run {}": true, "code/shell/execute {}": true, "code/shell/watch {}": true, "code/shell/kill {}": true, "verify/run {}": true, "code/verify {}": true,
		"ai/generate {}": true, "ai/should-respond {}": true, "http/request {}": true, "notify/send {}": true, "forge/open-pr {}": true, "forge/pr {}": true, "forge/comment {}": true,
		"worktree/add {}": true, "worktree/push {}": true, "checkpoint/create {}": true, "ticket/complete {}": true,
		`code/git {"operation":"push"}`: true, `code/git {"operation":"fetch"}`: true, `code/git {"operation":"status"}`: false, "code/git []": false,
		"code/diff {}": false, "code/search {}": false, "code/read {}": false, "sentinel/list {}": false, "sentinel/status {}": false, "data/list {}": false, "ticket/list {}": false, "ai/model {}": false,
	} {
		name, params, _ := strings.Cut(call, " ")
		c, ok := h.Commands().Lookup(name)
		if got := c.MayWait(json.RawMessage(params)); !ok || got != want {
			t.Errorf("%s: %v, want %v", call, got, want)
		}
	}
}

// TestSchemaIsMadeOnce: the schema of definitions is made again when there are other commands.
func TestSchemaIsMadeOnce(t *testing.T) {
	h := open(t, host.Options{Workspace: t.TempDir()})
	first := h.Schema()
	if again := h.Schema(); &first[0] != &again[0] {
		t.Error("it is made for each caller")
	}
	shape := json.RawMessage(`{"type":"object","properties":{"strange":{"type":"string"}}}`)
	more := command.NewDynamic("mine/more", "More.", nil, shape, command.Options{Effect: command.Reads}, func(context.Context, *command.Call) (json.RawMessage, error) { return nil, nil })
	if err := h.Commands().Add(more); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(h.Schema()), "mine/more") {
		t.Error("it does not have the new command")
	}
	h.Commands().Remove("mine/more")
	if string(h.Schema()) != string(first) {
		t.Error("it has a command that was removed")
	}
}
