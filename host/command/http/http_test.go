package http_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	nethttp "net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/command/http"
	"github.com/sentinel-runtime/sentinel/host/plugin/egress"
	httpstep "github.com/sentinel-runtime/sentinel/plugins/http"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// answer is what a caller gets.
type answer struct {
	Status       int
	Success      bool
	Headers      map[string]string
	Text         *string
	JSON         json.RawMessage
	Base64       string
	Method, URL  string
	Problem      string
	RetryAfterMs int64
	Truncated    bool
}

// server is a registry with the command, and a server that it may ask.
type server struct {
	url    string
	r      *command.Registry
	hidden []string
}

func newServer(t *testing.T, handler nethttp.HandlerFunc) *server {
	t.Helper()
	srv := httptest.NewServer(handler)
	t.Cleanup(srv.Close)
	s := &server{url: srv.URL}
	r, err := command.NewRegistry(http.Commands(http.Options{
		Client: egress.New(egress.Options{}), Private: []string{"127.0.0.1:*"},
		Secret: func(_ *command.Call, name string) (string, error) {
			if name == "NONE" {
				return "", errors.New("no such secret")
			}
			return "value-of-" + name, nil
		},
		Hide: func(values ...string) error { s.hidden = append(s.hidden, values...); return nil },
	})...)
	if err != nil {
		t.Fatal(err)
	}
	s.r = r
	return s
}

// ask calls the command as a step whose URL is written out. URL in params is that of the server.
func (s *server) ask(t *testing.T, params string, change func(*command.Call)) (answer, error) {
	t.Helper()
	call := &command.Call{
		Command: "http/request", Params: json.RawMessage(strings.ReplaceAll(params, "URL", s.url)), By: command.ByStep, Key: "key-of-call",
		Environment: sentinels.Environment{Origin: s.url},
	}
	if change != nil {
		change(call)
	}
	out, err := s.r.Call(t.Context(), call)
	var a answer
	if err == nil {
		if err := json.Unmarshal(out, &a); err != nil {
			t.Fatal(err)
		}
	}
	return a, err
}

// echo answers with what it was sent.
func echo(w nethttp.ResponseWriter, r *nethttp.Request) {
	body, _ := io.ReadAll(r.Body)
	fmt.Fprintf(w, "%s %s [%s] [%s] [%s] %s", r.Method, r.RequestURI, r.Header.Get("Content-Type"), r.Header.Get("Authorization"), r.Header.Get("Idempotency-Key")+r.Header.Get("X-Key"), body)
}

func TestRequests(t *testing.T) {
	s := newServer(t, echo)
	for params, want := range map[string]string{
		`{"url":"URL"}`: "GET / [] [] [] ",
		`{"url":"URL/a?x=1#y","query":{"q":"a b&c","n":[1,true],"z":null}}`:                 "GET /a?x=1&n=1&n=true&q=a+b%26c [] [] [] ",
		`{"url":"URL/a#y","query":{"q":"$"}}`:                                               "GET /a?q=%24 [] [] [] ",
		`{"url":"URL","method":"POST","json":{"a":9007199254740993}}`:                       `POST / [application/json] [] [] {"a":9007199254740993}`,
		`{"url":"URL","method":"POST","json":null}`:                                         `POST / [application/json] [] [] null`,
		`{"url":"URL","method":"PUT","form":{"a":"x y","b":[1,"2"]}}`:                       `PUT / [application/x-www-form-urlencoded] [] [] a=x+y&b=1&b=2`,
		`{"url":"URL","method":"PATCH","body":"text"}`:                                      `PATCH / [text/plain; charset=utf-8] [] [] text`,
		`{"url":"URL","method":"POST","body":"<a/>","headers":{"content-type":"text/xml"}}`: `POST / [text/xml] [] [] <a/>`,
		`{"url":"URL","auth":{"bearer":"abc"}}`:                                             "GET / [] [Bearer abc] [] ",
		`{"url":"URL","auth":{"bearer":{"secret":"T"}}}`:                                    "GET / [] [Bearer value-of-T] [] ",
		`{"url":"URL","auth":{"basic":{"username":"u","password":"p"}}}`:                    "GET / [] [Basic dTpw] [] ",
		`{"url":"URL","headers":{"X-Key":{"secret":"K"}}}`:                                  "GET / [] [] [value-of-K] ",
		`{"url":"URL","method":"POST","idempotencyKey":true}`:                               "POST / [] [] [key-of-call] ",
		`{"url":"URL","method":"POST","idempotencyKey":"X-Key"}`:                            "POST / [] [] [key-of-call] ",
		`{"url":"URL","method":"POST","idempotencyKey":false}`:                              "POST / [] [] [] ",
		`{"url":"URL","method":"DELETE"}`:                                                   "DELETE / [] [] [] ",
	} {
		got, err := s.ask(t, params, nil)
		if err != nil || got.Text == nil || *got.Text != want || !got.Success || got.Status != 200 {
			t.Errorf("%s: %+v, %v, want %s", params, got, err, want)
		}
	}
	if _, err := s.ask(t, `{"url":"URL","auth":{"basic":{"username":"u","password":{"secret":"P"}}}}`, nil); err != nil || !slices.Contains(s.hidden, "dTp2YWx1ZS1vZi1Q") {
		t.Errorf("the header of a secret password is not hidden: %v, %v", s.hidden, err)
	}
}

// TestRefused: what is wrong is said with the parameter, and nothing is sent.
func TestRefused(t *testing.T) {
	s := newServer(t, func(nethttp.ResponseWriter, *nethttp.Request) { t.Error("something was sent") })
	noOrigin := func(c *command.Call) { c.Environment.Origin = "" }
	other := func(c *command.Call) { c.Environment.Origin = "http://127.0.0.1" }
	for _, tt := range []struct {
		params string
		change func(*command.Call)
		code   abi.Code
		says   string
	}{
		{`{}`, nil, abi.BadFields, "url"},
		{`{"url":"URL","method":"TRACE"}`, nil, abi.BadFields, "method"},
		{`{"url":"URL","json":1}`, nil, abi.BadFields, `json: a GET has no body: write "method": "POST"`},
		{`{"url":"URL","method":"POST","json":1,"body":"x"}`, nil, abi.BadFields, "body: want one of json, form and body, and json is there too"},
		{`{"url":"URL","query":{"a":{}}}`, nil, abi.BadFields, "query.a: want a text"},
		{`{"url":"URL","query":{"a":[[1]]}}`, nil, abi.BadFields, "query.a: want a text"},
		{`{"url":"URL","expect":"209-200"}`, nil, abi.BadFields, "expect"},
		{`{"url":"URL","expect":"6xx"}`, nil, abi.BadFields, "expect"},
		{`{"url":"URL","headers":{"a b":"x"}}`, nil, abi.BadFields, "headers.a b: not the name of a header"},
		{`{"url":"URL","headers":{"Content-Length":"9"}}`, nil, abi.BadFields, "only the host sets this header"},
		{`{"url":"URL","headers":{"authorization":"x"},"auth":{"bearer":"y"}}`, nil, abi.BadFields, "headers.authorization: auth sets this header"},
		{`{"url":"URL","headers":{"idempotency-key":"x"},"idempotencyKey":true}`, nil, abi.BadFields, "idempotencyKey sets this header"},
		{`{"url":"URL","idempotencyKey":true}`, func(c *command.Call) { c.Key = "" }, abi.BadFields, "idempotencyKey: this call has no key"},
		{`{"url":"URL","auth":{"basic":{"username":"a:b","password":"c"}}}`, nil, abi.BadFields, "auth.basic.username: a colon"},
		{`{"url":"URL","auth":{"bearer":"a","basic":{"username":"b","password":"c"}}}`, nil, abi.BadFields, "auth"},
		{`{"url":"/relative"}`, nil, abi.BadFields, "url: wanted http"},
		{`{"url":"http://10.0.0.1/"}`, nil, abi.Denied, "no address is a public one"},
		{`{"url":"http://169.254.169.254/latest"}`, nil, abi.Denied, "no address is a public one"},
		{`{"url":"URL","auth":{"bearer":{"secret":"T"}}}`, noOrigin, abi.Denied, `auth.bearer: secret "T": the step does not write out where it is sent`},
		{`{"url":"URL","auth":{"bearer":{"secret":"T"}}}`, other, abi.Denied, "the step does not write out where it is sent"},
		{`{"url":"http://api.example.com/","headers":{"X":{"secret":"T"}}}`, func(c *command.Call) { c.Environment.Origin = "http://api.example.com" }, abi.Denied, "it would be sent without TLS"},
		{`{"url":"URL","headers":{"X":{"secret":"NONE"}}}`, nil, abi.Internal, "no such secret"},
	} {
		_, err := s.ask(t, tt.params, tt.change)
		if e := abi.As(err); e == nil || e.Code != tt.code || !strings.Contains(e.Message, tt.says) {
			t.Errorf("%s: %v (%s), want %s with %q", tt.params, err, abi.CodeOf(err), tt.code, tt.says)
		}
	}
}

// TestAnswers: which statuses are a success, and what the result has of the body.
func TestAnswers(t *testing.T) {
	s := newServer(t, func(w nethttp.ResponseWriter, r *nethttp.Request) {
		switch r.URL.Path {
		case "/json":
			w.Header().Set("X-Two", "a")
			w.Header().Add("X-Two", "b")
			fmt.Fprint(w, ` {"a": [1]} `)
		case "/latin":
			fmt.Fprint(w, "gr\xfcn")
		case "/binary":
			_, _ = w.Write(slices.Repeat([]byte{0xff}, 2<<20))
		case "/large":
			fmt.Fprint(w, `"`+strings.Repeat("x", 3<<20)+`"`)
		case "/control":
			fmt.Fprint(w, strings.Repeat("\x01", 6<<20))
		case "/endless":
			for part := []byte(strings.Repeat("x", 64<<10)); ; {
				if _, err := w.Write(part); err != nil {
					return
				}
			}
		case "/away":
			nethttp.Redirect(w, r, "/json?token=t", nethttp.StatusFound)
		case "/circle":
			nethttp.Redirect(w, r, "/circle", nethttp.StatusFound)
		case "/busy":
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(nethttp.StatusServiceUnavailable)
			fmt.Fprint(w, "too busy\n")
		case "/empty":
			w.WriteHeader(nethttp.StatusNoContent)
		}
	})
	get := func(params string) answer {
		t.Helper()
		got, err := s.ask(t, params, nil)
		if err != nil {
			t.Errorf("%s: %v", params, err)
		}
		return got
	}
	text := func(a answer) string {
		if a.Text == nil {
			return "(none)"
		}
		return *a.Text
	}
	if got := get(`{"url":"URL/json"}`); text(got) != ` {"a": [1]} ` || string(got.JSON) != `{"a":[1]}` || got.Headers["x-two"] != "a, b" || got.Method != nethttp.MethodGet || got.URL != s.url+"/json" {
		t.Errorf("json: %+v", got)
	}
	if got := get(`{"url":"URL/latin"}`); text(got) != "gr\uFFFDn" || got.Base64 != "Z3L8bg==" || got.JSON != nil {
		t.Errorf("latin: %s %+v", text(got), got)
	}
	if got := get(`{"url":"URL/binary"}`); got.Text != nil || len(got.Base64) != (2<<20+2)/3*4 {
		t.Errorf("binary: %d bytes", len(got.Base64))
	}
	if got := get(`{"url":"URL/large"}`); len(text(got)) != 3<<20+2 || got.JSON != nil {
		t.Errorf("large: %d bytes, %d of JSON", len(text(got)), len(got.JSON))
	}
	if got := get(`{"url":"URL/empty"}`); text(got) != "" || got.JSON != nil || got.Status != 204 || !got.Success {
		t.Errorf("empty: %+v", got)
	}
	if got := get(`{"url":"URL/away"}`); got.URL != s.url+"/json" || !got.Success {
		t.Errorf("away: %+v", got)
	}
	if got := get(`{"url":"URL/away","redirects":0,"expect":[302]}`); got.Status != 302 || !got.Success || got.Headers["location"] != "/json?token=t" {
		t.Errorf("no redirects: %+v", got)
	}
	for params, want := range map[string]bool{
		`{"url":"URL/busy"}`: false, `{"url":"URL/busy","expect":503}`: true, `{"url":"URL/busy","expect":["2xx",503]}`: true, `{"url":"URL/busy","expect":"500-503"}`: true,
		`{"url":"URL/busy","expect":"5xx"}`: true, `{"url":"URL/busy","expect":[500,"504-599"]}`: false, `{"url":"URL/json","expect":"404"}`: false,
	} {
		if got := get(params); got.Success != want {
			t.Errorf("%s: success %v, want %v", params, got.Success, want)
		}
	}
	busy := get(`{"url":"URL/busy?key=k"}`)
	if want := "GET " + s.url + "/busy: status 503 Service Unavailable: too busy"; busy.Problem != want || busy.RetryAfterMs != 7000 {
		t.Errorf("problem %q, want %q; retry after %d", busy.Problem, want, busy.RetryAfterMs)
	}
	for path, says := range map[string]string{"/endless": "the answer has more than 8 MiB", "/control": "would be a value of", "/circle": "more than 5 redirects"} {
		_, err := s.ask(t, `{"url":"URL`+path+`"}`, nil)
		if e := abi.As(err); e == nil || e.Code != abi.Limit || !e.Permanent || !strings.Contains(e.Message, says) {
			t.Errorf("%s: %v, want %q", path, err, says)
		}
	}
}

// TestModels: a model has the command only by its name, gets the text once, and no secret.
func TestModels(t *testing.T) {
	s := newServer(t, func(w nethttp.ResponseWriter, _ *nethttp.Request) {
		fmt.Fprint(w, `["`+strings.Repeat("x", 100<<10)+`"]`)
	})
	as := func(tools ...string) func(*command.Call) {
		return func(c *command.Call) { c.By, c.Tools = command.ByModel, tools }
	}
	for _, tools := range [][]string{{"*"}, {"http/*"}, {"code/read"}} {
		if _, err := s.ask(t, `{"url":"URL"}`, as(tools...)); abi.CodeOf(err) != abi.Denied {
			t.Errorf("tools %v: %v", tools, err)
		}
	}
	got, err := s.ask(t, `{"url":"URL"}`, as("http/request"))
	if err != nil || got.JSON != nil || !got.Truncated || len(*got.Text) > 64<<10 {
		t.Errorf("%v: %d bytes of text, %d of JSON", err, len(*got.Text), len(got.JSON))
	}
}

// TestRepetition: what may be made again after a crash.
func TestRepetition(t *testing.T) {
	c := http.Commands(http.Options{})[0]
	got := map[string]bool{}
	for _, params := range []string{
		`{"method":"POST"}`, `{"method":"PATCH"}`, `{"method":"PUT"}`, `{"method":"DELETE"}`, `{"method":"POST","idempotencyKey":true}`,
		`{"method":"POST","idempotencyKey":"X-Key"}`, `{"method":"POST","idempotencyKey":false}`, `{"method":"POST","idempotencyKey":null}`, `[`,
	} {
		got[params] = c.Repeatable(json.RawMessage(params))
	}
	want := map[string]bool{
		`{"method":"POST"}`: false, `{"method":"PATCH"}`: false, `{"method":"PUT"}`: true, `{"method":"DELETE"}`: true, `{"method":"POST","idempotencyKey":true}`: true,
		`{"method":"POST","idempotencyKey":"X-Key"}`: true, `{"method":"POST","idempotencyKey":false}`: false, `{"method":"POST","idempotencyKey":null}`: false, `[`: false,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string][]string{"method": {"", "GET", "HEAD", "OPTIONS"}}, c.Reads); diff != "" {
		t.Errorf("reads (-want +got):\n%s", diff)
	}
}

// TestParametersAreFieldsOfSteps: what a step of type http has in its definition is what it hands to the command.
func TestParametersAreFieldsOfSteps(t *testing.T) {
	properties := func(schema []byte) map[string]json.RawMessage {
		t.Helper()
		var s struct{ Properties map[string]json.RawMessage }
		if err := json.Unmarshal(schema, &s); err != nil || len(s.Properties) == 0 {
			t.Fatalf("%v, %d properties", err, len(s.Properties))
		}
		return s.Properties
	}
	step := properties([]byte(httpstep.Step().Fields))
	if step["allowFailure"] == nil {
		t.Error("a step has no allowFailure")
	}
	delete(step, "allowFailure") // of the step alone
	if diff := cmp.Diff(step, properties(http.Commands(http.Options{})[0].Input())); diff != "" {
		t.Errorf("fields of a step and parameters of the command (-step +command):\n%s", diff)
	}
}
