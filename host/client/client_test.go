package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/host/api"
	"github.com/sentinel-runtime/sentinel/host/client"
	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/control"
	"github.com/sentinel-runtime/sentinel/host/livefeed"
	"github.com/sentinel-runtime/sentinel/host/principal"
	"github.com/sentinel-runtime/sentinel/runtime/run"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

const token = "sentinel_0123456789abcdefghijklmnopqrstuvwxyz"

type oneToken struct{}

// Valid knows one token.
func (oneToken) Who(t string) (principal.Principal, bool) {
	return principal.Principal{Kind: principal.Person}, t == token
}

// world is a server whose commands are functions of the test.
type world struct {
	t    *testing.T
	api  *api.API
	feed *livefeed.Feed
	srv  *httptest.Server

	mu       sync.Mutex
	commands map[string]func(call *command.Call) (any, error)
	seen     []string // name and parameters of the calls
	keys     []string
}

// List is not asked for here.
func (w *world) List() []command.Command { return nil }

// Version is that of no commands.
func (w *world) Version() string { return "" }

// Lookup knows every command, and that it acts once for a key.
func (w *world) Lookup(name string) (command.Command, bool) {
	return command.Command{Name: name, Idempotent: true}, true
}

// Call calls the function of a command.
func (w *world) Call(_ context.Context, call *command.Call) (json.RawMessage, error) {
	w.mu.Lock()
	w.seen, w.keys = append(w.seen, call.Command+" "+string(call.Params)), append(w.keys, call.Key)
	fn := w.commands[call.Command]
	w.mu.Unlock()
	if fn == nil {
		return nil, &abi.Error{Code: abi.NotFound, Message: "no command " + call.Command, Hint: "look"}
	}
	out, err := fn(call)
	if err != nil {
		return nil, err
	}
	return json.Marshal(out)
}

func (w *world) on(name string, answer any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.commands[name] = func(*command.Call) (any, error) { return answer, nil }
}

func newWorld(t *testing.T) (*world, *client.Client) {
	w := &world{t: t, commands: map[string]func(*command.Call) (any, error){}, feed: livefeed.New(livefeed.Options{})}
	sockets := livefeed.Handler(livefeed.HandlerOptions{Feed: w.feed, Version: "1"})
	var err error
	w.api, err = api.New(api.Options{Commands: w, Tokens: oneToken{}, Feed: sockets, Logs: func(context.Context, sentinels.RunID) (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(strings.Repeat("{\"n\":1}\n", 2500))), nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	w.srv = httptest.NewServer(w.api.Handler())
	t.Cleanup(func() {
		sockets.Close()
		w.srv.Close()
	})
	c, err := client.New(client.Options{URL: w.srv.URL + "/", Token: token})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return w, c
}

// What each method asks the server for, and what it makes of the answer.
func TestMethods(t *testing.T) {
	w, c := newWorld(t)
	ctx := t.Context()
	revision := map[string]any{"sentinelId": "a", "name": "A", "revision": 4, "definition": map[string]any{"name": "A"}}
	stands := map[string]any{"id": "r1", "sentinel": "a", "status": "paused", "elapsedMs": 7}
	for _, name := range []string{"sentinel/create", "sentinel/export", "sentinel/update", "sentinel/delete", "sentinel/step/update"} {
		w.on(name, revision)
	}
	for _, name := range []string{"sentinel/status", "sentinel/stop", "sentinel/pause", "sentinel/resume", "sentinel/decide"} {
		w.on(name, stands)
	}
	w.on("sentinel/status", map[string]any{"id": "r1", "state": stands})
	for _, name := range []string{"sentinel/result", "sentinel/await"} {
		w.on(name, map[string]any{"run": "r1", "status": "completed", "durationMs": 7})
	}
	ended := run.Result{Run: "r1", Status: sentinels.StatusCompleted, Millis: 7, Duration: 7 * time.Millisecond}
	w.on("sentinel/start", map[string]any{"run": "r1"})
	w.on("sentinel/retry", map[string]any{"run": "r2"})
	w.on("sentinel/trace", map[string]any{"iterations": []int{}})
	w.on("sentinel/list", map[string]any{"sentinels": []any{map[string]any{"sentinelId": "a", "runCount": 3}}})
	w.on("events/emit", map[string]any{"id": "e1"})
	w.on("events/tail", map[string]any{"events": []any{map[string]any{"id": "e1", "type": "git:push"}}})
	w.on("code/read", map[string]any{"text": "hi"})
	wantRevision := client.Revision{SentinelID: "a", Name: "A", Revision: 4, Definition: json.RawMessage(`{"name":"A"}`)}
	wantRun := client.Run{ID: "r1", Sentinel: "a", Status: sentinels.StatusPaused, ElapsedMs: 7}
	def := json.RawMessage(`{"name":"A"}`)
	for _, tt := range []struct {
		call string
		do   func() (any, error)
		want any
	}{
		{`code/read {"path":"x"}`, func() (any, error) {
			var out struct{ Text string }
			err := c.Call(ctx, "code/read", map[string]string{"path": "x"}, &out)
			return out.Text, err
		}, "hi"},
		{`sentinel/create {"definition":{"name":"A"}}`, func() (any, error) { return c.Create(ctx, def) }, wantRevision},
		{`sentinel/export {"sentinelId":"a"}`, func() (any, error) { return c.Sentinel(ctx, "a") }, wantRevision},
		{`sentinel/update {"definition":{"name":"A"},"revision":3,"sentinelId":"a"}`, func() (any, error) { return c.Update(ctx, "a", 3, def) }, wantRevision},
		{`sentinel/update {"definition":{"name":"A"},"sentinelId":"a"}`, func() (any, error) { return c.Update(ctx, "a", 0, def) }, wantRevision},
		{`sentinel/step/update {"address":"1.then.0","params":{"name":"A"},"revision":2,"sentinelId":"a"}`, func() (any, error) { return c.UpdateStep(ctx, "a", "1.then.0", 2, def) }, wantRevision},
		{`sentinel/delete {"revision":4,"sentinelId":"a"}`, func() (any, error) { return nil, c.Delete(ctx, "a", 4) }, nil},
		{`sentinel/list {"only":"sentinels"}`, func() (any, error) { return c.Sentinels(ctx) }, []client.Sentinel{{ID: "a", RunCount: 3}}},
		{`sentinel/start {"inputs":{"q":1},"sentinelId":"a"}`, func() (any, error) {
			return c.Start(ctx, "a", client.StartOptions{Inputs: map[string]any{"q": 1}, Key: "k"})
		}, sentinels.RunID("r1")},
		{`sentinel/status {"brief":true,"run":"r1"}`, func() (any, error) { return c.Run(ctx, "r1") }, wantRun},
		{`sentinel/result {"run":"r1"}`, func() (any, error) { return c.Result(ctx, "r1") }, ended},
		{`sentinel/await {"run":"r1","timeoutMs":50000}`, func() (any, error) { return c.Wait(ctx, "r1") }, ended},
		{`sentinel/stop {"run":"r1"}`, func() (any, error) { return c.Stop(ctx, "r1") }, wantRun},
		{`sentinel/pause {"run":"r1"}`, func() (any, error) { return c.Pause(ctx, "r1") }, wantRun},
		{`sentinel/resume {"maxIterations":5,"run":"r1"}`, func() (any, error) { return c.Resume(ctx, "r1", client.Room{MaxIterations: 5}) }, wantRun},
		{`sentinel/decide {"question":"3f","run":"r1","verdict":"approve"}`, func() (any, error) { return c.Decide(ctx, "r1", client.Decision{Question: "3f", Verdict: "approve"}) }, wantRun},
		{`sentinel/retry {"from":"2","run":"r1"}`, func() (any, error) { return c.Retry(ctx, "r1", client.RetryOptions{From: "2"}) }, sentinels.RunID("r2")},
		{`sentinel/trace {"run":"r1"}`, func() (any, error) { return c.Trace(ctx, "r1", "") }, json.RawMessage(`{"iterations":[]}`)},
		{`events/emit {"data":[1],"event":"git:push"}`, func() (any, error) { return c.Emit(ctx, "k", "git:push", []int{1}) }, "e1"},
		{`events/tail {"limit":5,"pattern":"git:*"}`, func() (any, error) { return c.Events(ctx, "git:*", 5) }, []sentinels.Event{{ID: "e1", Name: "git:push"}}},
	} {
		w.seen, w.keys = nil, nil
		got, err := tt.do()
		if err != nil {
			t.Errorf("%s: %v", tt.call, err)
			continue
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: %s", tt.call, diff)
		}
		if len(w.seen) != 1 || w.seen[0] != tt.call {
			t.Errorf("asked for %q, want %q", w.seen, tt.call)
		}
		if strings.HasPrefix(tt.call, "sentinel/start") && w.keys[0] != "k" {
			t.Errorf("key %q", w.keys[0])
		}
	}
}

func TestRunsPageByPage(t *testing.T) {
	w, c := newWorld(t)
	w.commands["sentinel/list"] = func(call *command.Call) (any, error) {
		var in struct{ Before string }
		if err := json.Unmarshal(call.Params, &in); err != nil {
			return nil, err
		}
		switch in.Before {
		case "":
			return map[string]any{"runs": []any{map[string]any{"id": "r3"}, map[string]any{"id": "r2"}}, "next": "r2"}, nil
		case "r2":
			return map[string]any{"runs": []any{map[string]any{"id": "r1"}}}, nil
		}
		return nil, fmt.Errorf("before %q", in.Before)
	}
	var ids []string
	for r, err := range c.Runs(t.Context(), client.RunFilter{Sentinel: "a", Status: sentinels.StatusFailed}) {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, string(r.ID))
	}
	if diff := cmp.Diff([]string{"r3", "r2", "r1"}, ids); diff != "" {
		t.Error(diff)
	}
	if want := `sentinel/list {"before":"r2","limit":100,"only":"runs","sentinelId":"a","status":"failed"}`; w.seen[1] != want {
		t.Errorf("asked for %s", w.seen[1])
	}
}

func TestLogs(t *testing.T) {
	w, c := newWorld(t)
	w.on("sentinel/status", map[string]any{})
	n := 0
	for line, err := range c.Logs(t.Context(), "r1", 100) {
		if err != nil || string(line) != "{\"n\":1}\n" {
			t.Fatal(string(line), err)
		}
		n++
	}
	if n != 2400 {
		t.Errorf("%d lines", n)
	}
	for range c.Logs(t.Context(), "r1", 0) {
		break
	}
}

func TestErrors(t *testing.T) {
	w, c := newWorld(t)
	w.commands["code/read"] = func(*command.Call) (any, error) {
		return nil, &abi.Error{Code: abi.Conflict, Message: "taken", Field: "path", Hint: "another", RetryAfterMs: 9, Permanent: true}
	}
	err := c.Call(t.Context(), "code/read", nil, nil)
	if diff := cmp.Diff(&abi.Error{Code: abi.Conflict, Message: "taken", Field: "path", Hint: "another", RetryAfterMs: 9, Permanent: true}, abi.As(err)); diff != "" {
		t.Error(diff)
	}
	// An id that is none leads nowhere.
	for _, id := range []sentinels.RunID{"../../health", "r1/trace", "..", "r1?x=1", "r1#x", "%2e"} {
		if _, err := c.Run(t.Context(), id); abi.CodeOf(err) != abi.BadFields && abi.CodeOf(err) != abi.NotFound {
			t.Errorf("%q: %v", id, err)
		}
	}
	if len(w.seen) != 1 {
		t.Errorf("called %q", w.seen)
	}
	bad, err := client.New(client.Options{URL: w.srv.URL, Token: "wrong"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bad.Sentinels(t.Context()); abi.CodeOf(err) != abi.Denied || !strings.Contains(abi.As(err).Hint, "sentinel token") {
		t.Errorf("wrong token: %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("enough")
	cancel(cause)
	if _, err := c.Sentinels(ctx); !errors.Is(err, cause) {
		t.Errorf("ended context: %v", err)
	}
	w.srv.Close()
	if _, err := c.Sentinels(t.Context()); abi.CodeOf(err) != abi.Unavailable || abi.As(err).Hint == "" {
		t.Errorf("no server: %v", err)
	}
}

// A redirect would send the token to another server.
func TestNoRedirects(t *testing.T) {
	thief := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the redirect was followed") }))
	defer thief.Close()
	srv := httptest.NewServer(http.RedirectHandler(thief.URL, http.StatusTemporaryRedirect))
	defer srv.Close()
	c, err := client.New(client.Options{URL: srv.URL, Token: token})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Sentinels(t.Context()); err == nil || !strings.Contains(err.Error(), "307") {
		t.Error(err)
	}
}

func TestOptions(t *testing.T) {
	for _, u := range []string{"localhost:8080", "ftp://h", "http://", "http://u:p@h", "http://h?x", "http://h#x", "http://h:x"} {
		if _, err := client.New(client.Options{URL: u}); abi.CodeOf(err) != abi.BadFields {
			t.Errorf("%q: %v", u, err)
		}
	}
	if _, err := client.New(client.Options{Token: "a\nb"}); abi.CodeOf(err) != abi.BadFields {
		t.Errorf("token of two lines: %v", err)
	}
	env := map[string]string{}
	getenv := func(name string) string { return env[name] }
	if c, ok, err := client.FromEnv(getenv); c != nil || ok || err != nil {
		t.Errorf("empty environment: %v %v %v", c, ok, err)
	}
	env[client.EnvURL] = "https://h/below/"
	if c, ok, err := client.FromEnv(getenv); !ok || err != nil || c.URL() != "https://h/below" {
		t.Errorf("%v %v %v", c, ok, err)
	}
	env[client.EnvURL] = "nonsense"
	if _, ok, err := client.FromEnv(getenv); ok || err == nil {
		t.Error("nonsense was taken")
	}
}

// A proxy may put the server below a path.
func TestBelowAPath(t *testing.T) {
	w, _ := newWorld(t)
	w.on("sentinel/list", map[string]any{})
	srv := httptest.NewServer(http.StripPrefix("/below", w.api.Handler()))
	defer srv.Close()
	c, err := client.New(client.Options{URL: srv.URL + "/below/", Token: token})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Sentinels(t.Context()); err != nil {
		t.Error(err)
	}
}

// Over the owner's socket the client finds the token in the state folder.
func TestLocal(t *testing.T) {
	w, _ := newWorld(t)
	w.on("sentinel/status", map[string]any{"id": "r1", "state": map[string]any{"id": "r1", "status": "running"}})
	state := t.TempDir()
	if err := os.WriteFile(filepath.Join(state, api.TokenName), []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := control.Listen(control.ServerOptions{State: state, Handler: w.api.Local()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	c := client.Local(state)
	defer c.Close()
	if r, err := c.Run(t.Context(), "r1"); err != nil || r.Status != sentinels.StatusRunning {
		t.Errorf("%+v, %v", r, err)
	}
	// Errors arrive as they are: exit codes do not depend on the process that answers.
	for _, code := range abi.Codes() {
		want := &abi.Error{Code: code, Message: "m " + string(code), Field: "f", Hint: "do this", RetryAfterMs: 7, Permanent: true}
		w.commands["code/read"] = func(*command.Call) (any, error) { return nil, want }
		if diff := cmp.Diff(want, abi.As(c.Call(t.Context(), "code/read", nil, nil))); diff != "" {
			t.Errorf("%s: %s", code, diff)
		}
	}
	from := w.feed.Cursor().String()
	w.feed.Publish("health", "health", map[string]bool{"ok": true})
	seen := errors.New("seen")
	err = c.Watch(t.Context(), client.WatchOptions{Topics: []string{"health"}, Cursor: from}, func(m client.Message) error {
		if string(m.Event) != `{"ok":true}` || m.Topic != "health" || m.Kind != "health" {
			t.Errorf("%+v", m)
		}
		return seen
	})
	if !errors.Is(err, seen) {
		t.Error(err)
	}
}

// Closing the server ends its sockets and waits for them.
func TestServerClosesSockets(t *testing.T) {
	w, _ := newWorld(t)
	s, err := w.api.Listen(t.Context(), api.ListenOptions{Addr: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	ran := make(chan error, 1)
	go func() { ran <- s.Run(context.Background()) }()
	c, err := client.New(client.Options{URL: s.URL(), Token: token})
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan client.Message, 1)
	watched := make(chan error, 1)
	go func() {
		watched <- c.Watch(t.Context(), client.WatchOptions{Topics: []string{"health"}, Patience: time.Millisecond}, func(m client.Message) error {
			select {
			case got <- m:
			default:
			}
			return nil
		})
	}()
	for received := false; !received; {
		w.feed.Publish("health", "health", map[string]bool{"ok": true})
		select {
		case <-got:
			received = true
		case <-time.After(10 * time.Millisecond):
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ran; err != nil {
		t.Error(err)
	}
	if err := <-watched; abi.CodeOf(err) != abi.Unavailable {
		t.Errorf("watch: %v", err)
	}
	if _, err := net.Dial("tcp", s.Addr().String()); err == nil {
		t.Error("it still listens")
	}
}

// Wait asks again while the run has not ended.
func TestWaitAsksAgain(t *testing.T) {
	w, c := newWorld(t)
	asked := 0
	w.commands["sentinel/await"] = func(*command.Call) (any, error) {
		if asked++; asked < 3 {
			return nil, abi.New(abi.Timeout, "it has not ended")
		}
		return map[string]any{"run": "r1", "status": "failed", "error": map[string]any{"code": "plugin", "message": "no"}}, nil
	}
	w.commands["sentinel/result"] = func(*command.Call) (any, error) { return nil, abi.New(abi.Conflict, "it is running") }
	res, err := c.Wait(t.Context(), "r1")
	if err != nil || res.Status != sentinels.StatusFailed || res.Error == nil || asked != 3 {
		t.Errorf("%+v, %v, asked %d times", res, err, asked)
	}
	w.commands["sentinel/await"] = nil
	if _, err := c.Wait(t.Context(), "r1"); abi.CodeOf(err) != abi.NotFound {
		t.Errorf("no such run: %v", err)
	}
}

// TestAwaitIsRepeated: a wait goes on over requests that reach the server's
// limit, with what is left of its own time, and ends with its own error.
func TestAwaitIsRepeated(t *testing.T) {
	w, c := newWorld(t)
	active := &abi.Error{Code: abi.Timeout, Message: "still active", RetryAfterMs: 1}
	waits := func(errs ...error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.seen = nil
		w.commands["sentinel/await"] = func(*command.Call) (any, error) {
			if len(errs) == 0 {
				return map[string]any{"run": "r1", "status": "completed"}, nil
			}
			err := errs[0]
			errs = errs[1:]
			return nil, err
		}
	}
	var out struct{ Status string }
	waits(active, active)
	if err := c.Call(t.Context(), "sentinel/await", map[string]any{"run": "r1"}, &out); err != nil || out.Status != "completed" {
		t.Errorf("%+v, %v", out, err)
	}
	if want := strings.Repeat(`sentinel/await {"run":"r1"},`, 3); strings.Join(w.seen, ",")+"," != want {
		t.Errorf("calls: %q", w.seen)
	}
	waits(active, active, abi.New(abi.Timeout, "it has not ended after 1 ms"))
	err := c.Call(t.Context(), "sentinel/await", json.RawMessage(`{"run":"r1","timeoutMs":1}`), nil)
	if abi.CodeOf(err) != abi.Timeout || !strings.Contains(err.Error(), "has not ended after 1 ms") || len(w.seen) != 3 {
		t.Errorf("%v; calls: %q", err, w.seen)
	}
	waits(abi.New(abi.Timeout, "at once"))
	if err := c.Call(t.Context(), "sentinel/await", map[string]any{"timeoutMs": 1}, nil); err == nil || err.Error() != "at once" || len(w.seen) != 1 {
		t.Errorf("%v; calls: %q", err, w.seen)
	}
	waits(active, abi.New(abi.NotFound, "no run r1"))
	if err := c.Call(t.Context(), "sentinel/await", nil, nil); abi.CodeOf(err) != abi.NotFound {
		t.Errorf("%v", err)
	}
}
