package serve_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/triggers"
)

const hookSecret = "correct horse battery staple"

// hook sends a request to a webhook, signed with a secret unless that is empty.
func (l *life) hook(method, path, body, secret string, headers ...string) (int, string) {
	l.Helper()
	req, err := http.NewRequestWithContext(l.Context(), method, l.http.URL+path, strings.NewReader(body))
	if err != nil {
		l.Fatal(err)
	}
	if secret != "" {
		h := hmac.New(sha256.New, []byte(secret))
		h.Write([]byte(body))
		req.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(h.Sum(nil)))
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	res, err := l.http.Client().Do(req)
	if err != nil {
		l.Fatal(err)
	}
	defer res.Body.Close()
	var text bytes.Buffer
	if _, err := io.Copy(&text, res.Body); err != nil {
		l.Fatal(err)
	}
	return res.StatusCode, strings.TrimSpace(text.String())
}

// define stores a definition whose trigger is the given JSON.
func (l *life) define(name, trigger string) {
	l.Helper()
	definition := map[string]any{"name": name, "concurrency": "parallel", "steps": []any{map[string]any{"type": "wait", "durationMs": 1}}}
	if trigger != "" {
		definition["trigger"] = raw(trigger)
	}
	if status := l.ask("POST", "/v1/sentinels", definition, nil); status != http.StatusCreated {
		l.Fatalf("define %s: %d", name, status)
	}
}

type raw string

func (r raw) MarshalJSON() ([]byte, error) { return []byte(r), nil }

// T8.9, H1: the same signed request starts one run, whatever unsigned key it
// brings, also over a restart, and is answered 200 with that run.
func TestWebhookReplay(t *testing.T) {
	t.Setenv("HOOK_SECRET", hookSecret)
	project := t.TempDir()
	l := begin(t, project)
	l.define("deploy", `{"type":"webhook","secretEnv":"HOOK_SECRET"}`)
	status, first := l.hook("POST", "/v1/hooks/deploy", `{"ref":"main"}`, hookSecret)
	if status != http.StatusAccepted || !strings.Contains(first, `"outcome":"`+string(triggers.Started)+`"`) {
		t.Fatalf("%d %s", status, first)
	}
	run := first[strings.Index(first, `"run":"`) : len(first)-len(`"}]}`)]
	again := func() {
		t.Helper()
		for _, headers := range [][]string{nil, {"Idempotency-Key: one"}, {"X-GitHub-Delivery: two"}, {"Ce-Specversion: 1.0", "Ce-Id: 3", "Ce-Source: /s", "Ce-Type: t"}} {
			status, text := l.hook("POST", "/v1/hooks/deploy", `{"ref":"main"}`, hookSecret, headers...)
			if status != http.StatusOK || !strings.Contains(text, run) || !strings.Contains(text, "the same signed request") {
				t.Errorf("with %v: %d %s, want 200 with %s", headers, status, text, run)
			}
		}
	}
	again()
	l.end()
	l = begin(t, project)
	again()
	if status, text := l.hook("POST", "/v1/hooks/deploy", `{"ref":"next"}`, hookSecret); status != http.StatusAccepted {
		t.Errorf("another body: %d %s", status, text)
	}
	var list struct{ Runs []struct{ ID string } }
	if l.ask("GET", "/v1/runs?sentinel=deploy", nil, &list); len(list.Runs) != 2 {
		t.Errorf("%d runs, want 2", len(list.Runs))
	}
}

// H2: to a request that proves nothing every name has the same answer.
func TestWebhookNamesAreNotTold(t *testing.T) {
	t.Setenv("HOOK_SECRET", hookSecret)
	l := begin(t, t.TempDir())
	const hook = `{"type":"webhook","secretEnv":"HOOK_SECRET"}`
	l.define("one", hook)
	l.define("two", `[`+hook+`,{"type":"webhook","secretEnv":"HOOK_SECRET","event":"x:y"}]`)
	l.define("token", `{"type":"webhook","secretEnv":"HOOK_SECRET","auth":"token"}`)
	l.define("unset", `{"type":"webhook","secretEnv":"NOT_SET_ANYWHERE"}`)
	l.define("none", "")
	l.define("paused", hook)
	if status := l.ask("POST", "/v1/commands/sentinel/pause", map[string]any{"sentinelId": "paused"}, nil); status != http.StatusOK {
		t.Fatalf("pause: %d", status)
	}
	wantStatus, want := l.hook("POST", "/v1/hooks/no-such-name", "{}", "")
	if wantStatus != http.StatusUnauthorized {
		t.Errorf("an unknown name: %d %s", wantStatus, want)
	}
	for _, name := range []string{"one", "two", "token", "unset", "none", "paused", "one/0", "one/1", "two/0", "no-such-name/0"} {
		for _, method := range []string{"POST", "PUT", "GET"} {
			for _, secret := range []string{"", "wrong"} {
				status, text := l.hook(method, "/v1/hooks/"+name, `{"a":`, secret)
				if status != wantStatus || text != want {
					t.Errorf("%s %s: %d %s, want %d %s", method, name, status, text, wantStatus, want)
				}
			}
		}
	}
	// A client with the secret gets details.
	for path, want := range map[string]string{"/v1/hooks/two": "name one of webhook-", "/v1/hooks/paused": "are paused"} {
		if status, text := l.hook("POST", path, "{}", hookSecret); status == wantStatus || !strings.Contains(text, want) {
			t.Errorf("%s with the secret: %d %s", path, status, text)
		}
	}
	if status, text := l.hook("PUT", "/v1/hooks/one", "{}", hookSecret); status != http.StatusBadRequest || !strings.Contains(text, "want POST") {
		t.Errorf("PUT with the secret: %d %s", status, text)
	}
}
