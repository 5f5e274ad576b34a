package host_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/host/api"
	"github.com/sentinel-runtime/sentinel/host/principal"
	"github.com/sentinel-runtime/sentinel/host/secret"
)

// TestSecretsOfLater: outputs and logs that were stored before a value in them became a secret show it to
// people alone, and a host that is open learns of the new secret without a use of it.
func TestSecretsOfLater(t *testing.T) {
	const value = "correct-horse-battery"
	user := t.TempDir()
	h := open(t, host.Options{Workspace: t.TempDir(), Getenv: func(name string) string {
		if name == "XDG_CONFIG_HOME" {
			return user
		}
		return ""
	}})
	a, err := api.New(api.Options{Commands: registryOf{h}, Tokens: kindTokens{}, Logs: h.OpenRunLog, Output: func(ctx context.Context, id string, opt api.OutputOptions) (api.Output, error) {
		return h.Output(ctx, id, host.OutputOptions(opt))
	}})
	if err != nil {
		t.Fatal(err)
	}
	srv := serveAPI(t, a)
	get := func(kind principal.Kind, path, header, text string) string {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+string(kind))
		if header != "" {
			req.Header.Set(header, text)
		}
		res, err := srv.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode >= 300 {
			t.Errorf("%s as %s: %d %s, %v", path, kind, res.StatusCode, body, err)
		}
		return string(body)
	}
	ended := run(t, h, `{"name":"say","steps":[{"id":"say","type":"shell","command":"echo before; printf 'correct-%s\\n' horse-battery; echo after","outputTo":"x"}]}`, t.TempDir())
	base := "/v1/runs/" + string(ended.Run)
	if text := get(principal.Viewer, base+"/steps/say/output", "", ""); text != "before\n"+value+"\nafter\n" {
		t.Fatalf("the output before there is a secret: %q", text)
	}
	if err := secret.NewVault(filepath.Join(user, "sentinel", "config.json"), nil).Set(t.Context(), "LATER", value); err != nil {
		t.Fatal(err)
	}
	const clean = "before\n[redacted]\nafter\n"
	for _, kind := range []principal.Kind{principal.Viewer, principal.Agent} {
		for path, want := range map[string]string{
			"": clean, "?follow=true": clean, "?tail=2": "[redacted]\nafter\n", "?offset=12": clean[12:], "?offset=12&follow=true": clean[12:], "?stream=stdout": clean,
		} {
			if got := get(kind, base+"/steps/say/output"+path, "", ""); got != want {
				t.Errorf("output%s as %s: %q, want %q", path, kind, got, want)
			}
		}
		if got := get(kind, base+"/steps/say/output?times=true", "", ""); strings.Contains(got, "horse") || !strings.Contains(got, "[redacted]") {
			t.Errorf("output with times as %s: %q", kind, got)
		}
		for asked, want := range map[string]string{"bytes=7-12": clean[7:13], "bytes=12-": clean[12:], "bytes=-8": clean[len(clean)-8:]} {
			if got := get(kind, base+"/steps/say/output", "Range", asked); got != want {
				t.Errorf("range %s as %s: %q, want %q", asked, kind, got, want)
			}
		}
		logs := get(kind, base+"/logs", "", "")
		if strings.Contains(logs, "horse") || !strings.Contains(logs, "[redacted]") {
			t.Errorf("logs as %s: %s", kind, logs)
		}
		for line := range strings.Lines(logs) {
			if !json.Valid([]byte(line)) {
				t.Errorf("invalid JSON in a line of the logs: %s", line)
			}
		}
	}
	for _, path := range []string{"/steps/say/output", "/logs"} {
		if text := get(principal.Person, base+path, "", ""); !strings.Contains(text, value) {
			t.Errorf("%s as a person: %s", path, text)
		}
	}
	if text := h.WithoutSecrets(json.RawMessage(`{"a":"` + value + `"}`)); string(text) != `{"a":"[redacted]"}` {
		t.Errorf("a message: %s", text)
	}
}
