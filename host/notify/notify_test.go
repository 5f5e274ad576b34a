package notify_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/sentinel-runtime/sentinel/host/notify"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

var key = "whsec_" + base64.StdEncoding.EncodeToString([]byte("0123456789abcdef01234567"))

// A receiver is a webhook that keeps what it was sent.
type receiver struct {
	url    string
	mu     sync.Mutex
	got    []request
	answer func(w http.ResponseWriter, r *http.Request)
}

type request struct {
	header http.Header
	body   []byte
}

func newReceiver(t *testing.T) *receiver {
	v := &receiver{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		v.mu.Lock()
		v.got = append(v.got, request{r.Header, body})
		answer := v.answer
		v.mu.Unlock()
		if answer != nil {
			answer(w, r)
		}
	}))
	t.Cleanup(server.Close)
	v.url = server.URL + "/T0/secret-path"
	return v
}

func service(t *testing.T, opt notify.Options) *notify.Service {
	t.Helper()
	s, err := notify.New(opt)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A delivery is signed so that the library of Standard Webhooks verifies it, and a
// repetition has the same id.
func TestSigned(t *testing.T) {
	v := newReceiver(t)
	opt := notify.Options{Webhook: v.url, Secret: func() (string, error) { return key, nil }}
	m := notify.Message{Title: "Ticket T-1 waits", Text: "blocked", Severity: notify.Warning, Event: "ticket:update", Ticket: "T-1"}
	for range 2 { // of two processes: the second one does not know the first
		sent, err := service(t, opt).Send(t.Context(), m, "run/1#2:3")
		if err != nil || len(sent) != 1 || !sent[0].OK || sent[0].To != "webhook" || sent[0].Status != 200 {
			t.Fatalf("%+v, %v", sent, err)
		}
	}
	wh, err := standardwebhooks.NewWebhook(key)
	if err != nil {
		t.Fatal(err)
	}
	if len(v.got) != 2 || v.got[0].header.Get("webhook-id") != v.got[1].header.Get("webhook-id") {
		t.Fatalf("%d requests, %v", len(v.got), v.got)
	}
	var body struct {
		Type      string
		Timestamp time.Time
		Data      notify.Message
	}
	if err := errors.Join(wh.Verify(v.got[0].body, v.got[0].header), json.Unmarshal(v.got[0].body, &body)); err != nil || body.Type != "ticket:update" || body.Data != m || body.Timestamp.IsZero() {
		t.Errorf("%v: %s", err, v.got[0].body)
	}
	if _, err := service(t, opt).Send(t.Context(), m, "other"); err != nil || v.got[2].header.Get("webhook-id") == v.got[0].header.Get("webhook-id") {
		t.Errorf("another key: %v, %v", err, v.got[2].header)
	}
}

// Each status becomes a code by which the caller decides about a repetition.
func TestStatus(t *testing.T) {
	for status, want := range map[int]abi.Code{
		200: "", 202: "", 204: "", 301: abi.Denied, 307: abi.Denied, 400: abi.BadFields, 401: abi.Denied, 403: abi.Denied, 404: abi.NotFound, 410: abi.NotFound, 422: abi.BadFields,
		408: abi.Unavailable, 429: abi.Unavailable, 500: abi.Unavailable, 503: abi.Unavailable,
	} {
		elsewhere := newReceiver(t)
		v := newReceiver(t)
		v.answer = func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", elsewhere.url)
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(status)
			if status >= 400 {
				_, _ = io.WriteString(w, "no: "+strings.Repeat("long ", 1000)+"\x1b[2J")
			}
		}
		sent, err := service(t, notify.Options{Webhook: v.url}).Send(t.Context(), notify.Message{Title: "t"}, "k")
		e := abi.As(err)
		if abi.CodeOf(err) != want || len(sent) != 1 || sent[0].OK != (want == "") || sent[0].Status != status || len(elsewhere.got) > 0 {
			t.Errorf("%d: %+v, %v", status, sent, err)
			continue
		}
		if e == nil {
			continue
		}
		retried := want == abi.Unavailable
		if e.Permanent == retried || (e.RetryAfterMs == 7000) != retried || len(e.Message) > 500 || strings.ContainsAny(e.Message, "\x1b") || strings.Contains(e.Message, "secret-path") {
			t.Errorf("%d: %+v", status, e)
		}
	}
}

// A server that does not answer, and one that is not there, are errors that a repetition
// may help with; neither names the path of the webhook, which may be a secret.
func TestUnreachable(t *testing.T) {
	v := newReceiver(t)
	stop := make(chan struct{})
	v.answer = func(http.ResponseWriter, *http.Request) { <-stop }
	t.Cleanup(func() { close(stop) })
	_, err := service(t, notify.Options{Webhook: v.url, Timeout: 20 * time.Millisecond}).Send(t.Context(), notify.Message{Title: "t"}, "k")
	if abi.CodeOf(err) != abi.Timeout || abi.As(err).Permanent {
		t.Errorf("a server that hangs: %v", err)
	}
	_, err = service(t, notify.Options{Webhook: "http://127.0.0.1:1/secret-path"}).Send(t.Context(), notify.Message{Title: "t"}, "k")
	if abi.CodeOf(err) != abi.Unavailable || abi.As(err).Permanent || strings.Contains(err.Error(), "secret-path") {
		t.Errorf("a server that is not there: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := service(t, notify.Options{Webhook: v.url}).Send(ctx, notify.Message{Title: "t"}, "k"); !errors.Is(err, context.Canceled) {
		t.Errorf("a caller who has ended: %v", err)
	}
}

// fake is a notifier whose places fail as the test sets them.
type fake struct {
	mu    sync.Mutex
	fails map[string]error
	got   []string
}

func (f *fake) Names() []string { return []string{"chat", "mail"} }

func (f *fake) Notify(_ context.Context, name string, m notify.Message, key string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.got = append(f.got, fmt.Sprintf("%s %s %s", name, m.Title, key[:4]))
	return f.fails[name]
}

// All targets get a message. A repetition leaves out those that took it, and one that
// never takes it is a result as long as another did.
func TestNotifiers(t *testing.T) {
	v, f := newReceiver(t), &fake{fails: map[string]error{"chat": errors.New("connection refused")}}
	s := service(t, notify.Options{Webhook: v.url, Notifier: f})
	sent, err := s.Send(t.Context(), notify.Message{Title: "hello"}, "k")
	if abi.CodeOf(err) != abi.Unavailable || !strings.Contains(err.Error(), "chat: connection refused") || len(sent) != 3 || !sent[0].OK || sent[1].OK || !sent[2].OK {
		t.Errorf("%+v, %v", sent, err)
	}
	f.fails["chat"] = &abi.Error{Code: abi.Denied, Permanent: true, Message: "no such room"}
	sent, err = s.Send(t.Context(), notify.Message{Title: "hello"}, "k")
	if err != nil || sent[1].OK || sent[1].Error != "chat: no such room" || !sent[0].OK || !sent[2].OK {
		t.Errorf("%+v, %v", sent, err)
	}
	if len(v.got) != 1 || len(f.got) != 3 {
		t.Errorf("%d requests, notified %q: want 1 of each but of chat", len(v.got), f.got)
	}
	f.fails["mail"] = &abi.Error{Code: abi.Plugin, Message: "no such address"}
	if _, err = service(t, notify.Options{Notifier: f}).Send(t.Context(), notify.Message{Title: "hello"}, "k"); abi.CodeOf(err) != abi.Denied {
		t.Errorf("nothing took it: %v", err)
	}
	if sent, err := service(t, notify.Options{}).Send(t.Context(), notify.Message{Title: "hello"}, "k"); err != nil || len(sent) != 0 {
		t.Errorf("without a target: %v, %v", sent, err)
	}
}

// Nothing that is sent has a secret, a character that a terminal obeys, or more bytes than
// the bounds allow.
func TestPrepared(t *testing.T) {
	v := newReceiver(t)
	s := service(t, notify.Options{Webhook: v.url, Hide: func(text string) string { return strings.ReplaceAll(text, "hunter2hunter2", "***") }})
	m := notify.Message{Title: "a\nb\x1b[2J hunter2hunter2 " + strings.Repeat("é", 300), Text: "one\ntwo \x1b[31m hunter2hunter2" + strings.Repeat("é", 9000), Run: "hunter2hunter2", URL: "https://example.org/?q=hunter2hunter2"}
	if _, err := s.Send(t.Context(), m, ""); err != nil {
		t.Fatal(err)
	}
	var body struct{ Data notify.Message }
	if err := json.Unmarshal(v.got[0].body, &body); err != nil {
		t.Fatal(err)
	}
	got := body.Data
	if all := got.Title + got.Text + got.Run + got.URL; strings.Contains(all, "hunter2") || strings.ContainsAny(all, "\x1b") || strings.Contains(got.Title, "\n") || !strings.Contains(got.Text, "one\ntwo") ||
		len(got.Title) > notify.MaxTitle || len(got.Text) > notify.MaxText || !strings.HasSuffix(got.Title, "...") {
		t.Errorf("%.400q", all)
	}
	for _, m := range []notify.Message{{}, {Title: " "}, {Title: "t", Severity: "fatal"}, {Title: "t", URL: "javascript:alert(1)"}, {Title: "t", URL: "https://me:pw@example.org"}, {Title: "t", Ticket: strings.Repeat("T", 3000)}} {
		if _, err := s.Send(t.Context(), m, ""); abi.CodeOf(err) != abi.BadFields || !abi.As(err).Permanent {
			t.Errorf("%.100v: %v", m, err)
		}
	}
}

// A webhook elsewhere needs TLS, and a secret that has no value sends nothing.
func TestRefused(t *testing.T) {
	for _, url := range []string{"http://example.org/x", "ftp://example.org", "https://me:pw@example.org/", "example.org", "::"} {
		if _, err := notify.New(notify.Options{Webhook: url}); abi.CodeOf(err) != abi.BadFields || strings.Contains(err.Error(), "example") {
			t.Errorf("%s: %v", url, err)
		}
	}
	v := newReceiver(t)
	for secret, err := range map[string]error{"no base64!": nil, "": &abi.Error{Code: abi.NotFound, Permanent: true, Message: "secret has no value"}} {
		_, got := service(t, notify.Options{Webhook: v.url, Secret: func() (string, error) { return secret, err }}).Send(t.Context(), notify.Message{Title: "t"}, "k")
		if e := abi.As(got); e == nil || !e.Permanent || strings.Contains(got.Error(), "no base64!") {
			t.Errorf("secret %q: %v", secret, got)
		}
	}
	if len(v.got) > 0 {
		t.Errorf("%d requests", len(v.got))
	}
}
