package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/examples/internal/lesson"
	"github.com/sentinel-runtime/sentinel/plugins"
	"github.com/sentinel-runtime/sentinel/runtime"
	stepplugin "github.com/sentinel-runtime/sentinel/runtime/plugin"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sdk/sdktest"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

func TestMain(m *testing.M) { lesson.Main(m) }

func TestManifest(t *testing.T) { sdktest.Manifest(t, plugin) }

func TestCases(t *testing.T) { lesson.Cases(t, ".", lesson.Module(t, ".")) }

func TestCasesNative(t *testing.T) { sdktest.Cases(t, plugin, sdktest.CasesFile) }

const token = "xoxb-0123456789-abcdefgh"

// slack is a server that answers as Slack does. It wants JSON and the token, and
// asks to wait before it takes the first message.
type slack struct {
	mu       sync.Mutex
	asked    int
	messages []map[string]any
}

func (s *slack) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	w.Header().Set("Content-Type", "application/json")
	var m map[string]any
	switch {
	case s.asked == 1:
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusTooManyRequests)
	case r.Header.Get("Authorization") != "Bearer "+token:
		fmt.Fprint(w, `{"ok":false,"error":"invalid_auth"}`)
	case r.Header.Get("Content-Type") != "application/json; charset=utf-8" || json.NewDecoder(r.Body).Decode(&m) != nil:
		fmt.Fprint(w, `{"ok":false,"error":"invalid_json"}`)
	case m["channel"] == "#nowhere":
		fmt.Fprint(w, `{"ok":false,"error":"channel_not_found"}`)
	default:
		s.messages = append(s.messages, m)
		fmt.Fprintf(w, `{"ok":true,"channel":"C0BUILDS","ts":"1700000000.%06d"}`, len(s.messages))
	}
}

// outside is the host's part: it puts the secret in and makes the request, at
// the test's server in place of Slack's.
type outside struct{ server string }

func (o outside) Do(ctx context.Context, call runtime.PluginCall) (json.RawMessage, error) {
	var in struct {
		Method, URL, Body string
		Headers           map[string]string
	}
	if err := json.Unmarshal(call.Request, &in); err != nil {
		return nil, err
	}
	to, err := url.Parse(in.URL)
	if err != nil {
		return nil, err
	}
	if !call.Grant.Allows(abi.UseHTTP, to.Hostname()) || !slices.Contains(call.Grant.Secrets["SLACK_TOKEN"], to.Hostname()) {
		return nil, abi.New(abi.Denied, "not granted")
	}
	req, err := http.NewRequestWithContext(ctx, in.Method, o.server+to.Path, strings.NewReader(in.Body))
	if err != nil {
		return nil, err
	}
	for name, value := range in.Headers {
		req.Header.Set(name, strings.ReplaceAll(value, "{{secret.SLACK_TOKEN}}", token))
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, err
	}
	headers := map[string]string{}
	for name := range res.Header {
		headers[strings.ToLower(name)] = res.Header.Get(name)
	}
	return json.Marshal(map[string]any{"status": res.StatusCode, "headers": headers, "body": string(body), "truncated": false})
}

// allow grants what is asked for.
type allow struct{}

func (allow) Grant(_ context.Context, p stepplugin.Info) (stepplugin.Grant, error) {
	return stepplugin.Grant{Allow: p.Permissions, Secrets: map[string][]string{"SLACK_TOKEN": {"slack.com"}}}, nil
}

// nothing is commands for sentinels that call none.
type nothing struct{}

func (nothing) Lookup(string) (runtime.CommandInfo, bool) { return runtime.CommandInfo{}, false }
func (nothing) Tools([]string) []runtime.CommandInfo      { return nil }
func (nothing) Call(context.Context, runtime.CommandCall) (json.RawMessage, error) {
	return nil, abi.New(abi.NotFound, "no command")
}

// TestPost has a server that asks to wait first: the step's error says how long,
// the engine waits, and the message arrives once. Its thread's answer follows.
func TestPost(t *testing.T) {
	module := lesson.Module(t, ".")
	s := &slack{}
	server := httptest.NewServer(s)
	defer server.Close()
	rt, err := runtime.Open(t.Context(), runtime.Options{
		Plugins: []stepplugin.Source{
			{Name: "builtin", Wasm: plugins.Builtin, Manifest: plugins.Manifest, Trusted: true},
			{Name: "slack_message.wasm", Wasm: func() ([]byte, error) { return module, nil }},
		},
		Grants: allow{}, HTTP: outside{server.URL}, Commands: nothing{},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := rt.Close(); err != nil {
			t.Error(err)
		}
	}()
	run := func(text string) runtime.Result {
		def, problems := rt.Decode([]byte(text), "test.json")
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		id, err := rt.Start(t.Context(), def, runtime.StartOptions{})
		if err != nil {
			t.Fatal(err)
		}
		res, err := rt.Wait(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	res := run(`{"name":"post","steps":[
		{"type":"slack_message","channel":"#builds","text":"tests are <red> & \"loud\" ✓","onError":{"retry":{"maxRetries":2}},"outputTo":"m"},
		{"type":"slack_message","channel":"$m.channel","thread":"$m.ts","blocks":[{"type":"divider"}]}
	]}`)
	if res.Status != sentinels.StatusCompleted {
		t.Fatalf("%s: %v", res.Status, res.Error)
	}
	want := []map[string]any{
		{"channel": "#builds", "text": "tests are <red> & \"loud\" ✓", "unfurl_links": false, "unfurl_media": false},
		{"channel": "C0BUILDS", "thread_ts": "1700000000.000001", "blocks": []any{map[string]any{"type": "divider"}}, "unfurl_links": false, "unfurl_media": false},
	}
	if diff := cmp.Diff(want, s.messages); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if s.asked != 3 {
		t.Errorf("%d requests, want 3: one was to wait", s.asked)
	}
	// The guest did not see the token, and nothing that is kept holds it.
	text, err := json.Marshal(res)
	if err != nil || bytes.Contains(text, []byte(token)) {
		t.Errorf("the result holds the token: %v", err)
	}
	// A permanent error ends the step at once.
	res = run(`{"name":"lost","steps":[{"type":"slack_message","channel":"#nowhere","text":"hey","onError":{"retry":{"maxRetries":2}}}]}`)
	if res.Error == nil || res.Error.Code != abi.NotFound || s.asked != 4 {
		t.Errorf("%v after %d requests", res.Error, s.asked)
	}
}
