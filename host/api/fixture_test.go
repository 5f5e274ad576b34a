package api_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/api"
	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/internal/httpproblem"
	"github.com/sentinel-runtime/sentinel/host/principal"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

const goodToken = "sentinel_0123456789abcdefghijklmnopqrstuvwxyz"

type oneToken string

func (o oneToken) Who(token string) (principal.Principal, bool) {
	return principal.Principal{Kind: principal.Person}, token == string(o)
}

// registry is a command registry of fakes that notes its calls.
type registry struct {
	*command.Registry

	mu    sync.Mutex
	calls []command.Call
}

// Call notes a call and makes it.
func (r *registry) Call(ctx context.Context, call *command.Call) (json.RawMessage, error) {
	r.mu.Lock()
	r.calls = append(r.calls, *call)
	r.mu.Unlock()
	return r.Registry.Call(ctx, call)
}

func (r *registry) made() []command.Call {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]command.Call(nil), r.calls...)
}

type reply = func(ctx context.Context, call *command.Call) (json.RawMessage, error)

// commands makes a registry; a fake's answer is JSON, an error or a function.
func commands(t testing.TB, fakes map[string]any) *registry {
	t.Helper()
	r, err := command.NewRegistry()
	if err != nil {
		t.Fatal(err)
	}
	for name, answer := range fakes {
		opt := command.Options{Effect: command.Changes}
		plain := strings.TrimRight(name, "?!~")
		for _, flag := range name[len(plain):] {
			switch flag {
			case '?': // only reads
				opt.Effect, opt.Idempotent = command.Reads, true
			case '!': // acts once for a key
				opt.Idempotent = true
			case '~': // waits for something else
				opt.Waits = command.Always
			}
		}
		var fn reply
		switch a := answer.(type) {
		case string:
			fn = func(context.Context, *command.Call) (json.RawMessage, error) { return json.RawMessage(a), nil }
		case error:
			fn = func(context.Context, *command.Call) (json.RawMessage, error) { return nil, a }
		case reply:
			fn = a
		default:
			t.Fatalf("fake %q is a %T", name, answer)
		}
		c := command.NewDynamic(plain, "A fake.", nil, nil, opt, fn)
		if err := r.Add(c); err != nil {
			t.Fatal(err)
		}
	}
	return &registry{Registry: r}
}

// site is an API behind a real listener.
type site struct {
	*httptest.Server
	api  *api.API
	t    testing.TB
	auth string // value of Authorization; "" sends none
}

func open(t testing.TB, opt api.Options) *site {
	t.Helper()
	if opt.Commands == nil {
		opt.Commands = commands(t, nil)
	}
	if opt.Tokens == nil {
		opt.Tokens = oneToken(goodToken)
	}
	a, err := api.New(opt)
	if err != nil {
		t.Fatal(err)
	}
	s := &site{Server: httptest.NewUnstartedServer(a.Handler()), api: a, t: t, auth: "Bearer " + goodToken}
	// As programs have them: the process of a client is looked up once, and bodies are read in places.
	s.Config.ConnContext, s.Listener = api.ConnContext, api.LimitConnsTo(s.Listener, 1024)
	s.Start()
	t.Cleanup(s.Close)
	return s
}

// answer is what came back, with the problem if it was one.
type answer struct {
	status  int
	header  http.Header
	body    string
	problem httpproblem.Problem
}

// do sends a request. Headers are "Name: value"; "Host: x" sets the host. A
// body of a method that has one is JSON unless a header says otherwise.
func (s *site) do(method, path, body string, headers ...string) answer {
	s.t.Helper()
	var in io.Reader
	if body != "" {
		in = strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.URL+path, in)
	if err != nil {
		s.t.Fatal(err)
	}
	if s.auth != "" {
		req.Header.Set("Authorization", s.auth)
	}
	if method != http.MethodGet && method != http.MethodHead {
		req.Header.Set("Content-Type", "application/json")
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ":")
		value = strings.TrimSpace(value)
		switch {
		case name == "Host":
			req.Host = value
		case value == "":
			req.Header.Del(name)
		default:
			req.Header.Set(name, value)
		}
	}
	return s.send(req)
}

func (s *site) send(req *http.Request) answer {
	s.t.Helper()
	c := *s.Client()
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	res, err := c.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	a := answer{status: res.StatusCode, header: res.Header, body: strings.TrimSpace(string(text))}
	if res.Header.Get("Content-Type") == httpproblem.Type && req.Method != http.MethodHead {
		if err := json.Unmarshal(text, &a.problem); err != nil {
			s.t.Errorf("problem %s: %v", text, err)
		}
	}
	return a
}

func notFound(text string) error { return &abi.Error{Code: abi.NotFound, Message: text} }

// fill puts plain values into the placeholders of a pattern.
func fill(pattern string) string {
	return strings.NewReplacer("{id}", "nightly", "{run}", "0199-aa", "{name...}", "code/read", "{address}", "1.then.0", "{path}", "1.then.0",
		"{revision}", "3", "{sentinel}", "nightly", "{trigger}", "push").Replace(pattern)
}
