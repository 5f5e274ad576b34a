package host_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/host/api"
	"github.com/sentinel-runtime/sentinel/host/principal"
	"github.com/sentinel-runtime/sentinel/host/secret"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
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

// TestNoGuessIsConfirmed: what an agent gets of a definition and of a file with a secret is the same whatever the secret
// is: the hashes are of the host, a patch names no contents, and a wrong definition is refused as the right one.
func TestNoGuessIsConfirmed(t *testing.T) {
	const value = "pw-48151-x"
	ws := t.TempDir()
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(ws, "conf.txt"), []byte("password="+text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	git(t, ws, "init", "-q")
	write(value + "\n")
	git(t, ws, "add", ".")
	git(t, ws, "-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-qm", "first")
	write(value + "\nmore\n")
	h := open(t, host.Options{Workspace: ws})
	if err := h.Redact(value); err != nil {
		t.Fatal(err)
	}
	definition := func(guess string) map[string]any {
		return map[string]any{"id": "hs", "name": "hs", "createdBy": "agent:bot", "variables": map[string]any{"p": guess}, "steps": []any{map[string]any{"id": "ask", "type": "approve", "prompt": "?"}}}
	}
	var made, started, head struct {
		Hash string
		Run  string
	}
	must(t, h, "sentinel/create", map[string]any{"definition": definition(value)}, &made)
	must(t, h, "sentinel/start", `{"sentinelId": "hs"}`, &started)
	for command, params := range map[string]map[string]any{
		"sentinel/export": {"sentinelId": "hs"}, "sentinel/status": {"sentinelId": "hs"}, "sentinel/revisions": {"sentinelId": "hs"}, "sentinel/list": {},
		"sentinel/trace": {"run": started.Run}, "sentinel/step/list": {"sentinelId": "hs"},
	} {
		var out json.RawMessage
		if must(t, h, command, params, &out); !strings.Contains(string(out), made.Hash) {
			t.Errorf("%s of a person has no hash: the case is empty", command)
		}
		if err := asAgent(t, h, command, params, &out); err != nil || strings.Contains(string(out), made.Hash[:12]) {
			t.Errorf("%s of an agent: %v, %s", command, err, out)
		}
	}

	// An edit names the hash that the agent was shown, and no other one counts.
	for _, id := range []string{"hs", started.Run} {
		step := map[string]any{"type": "wait", "durationMs": 1}
		if err := asAgent(t, h, "sentinel/export", map[string]any{"sentinelId": id}, &head); err != nil {
			t.Fatal(err)
		}
		err := asAgent(t, h, "sentinel/step/add", map[string]any{"sentinelId": id, "step": step, "hash": made.Hash}, nil)
		if abi.CodeOf(err) != abi.Conflict || strings.Contains(err.Error(), "current is "+made.Hash[:12]) {
			t.Errorf("edit of %s with the hash of a guess: %v", id, err)
		}
		if err := asAgent(t, h, "sentinel/step/add", map[string]any{"sentinelId": id, "step": step, "hash": head.Hash}, nil); err != nil {
			t.Errorf("edit of %s with the hash of its answer: %v", id, err)
		}
		if err := asAgent(t, h, "sentinel/step/add", map[string]any{"sentinelId": id, "step": step, "hash": head.Hash}, nil); abi.CodeOf(err) != abi.Conflict {
			t.Errorf("a second edit of %s with it: %v", id, err)
		}
	}
	must(t, h, "sentinel/rollback", `{"sentinelId": "hs", "to": 1}`, nil)
	var answers []string
	for _, guess := range []string{value, "pw-48152-x"} {
		answers = append(answers, fmt.Sprint(asAgent(t, h, "sentinel/create", map[string]any{"definition": definition(guess)}, nil)))
	}
	if answers[0] != answers[1] || !strings.Contains(answers[0], "another definition is stored") {
		t.Errorf("create answers %q", answers)
	}

	for command, params := range map[string]map[string]any{"code/diff": {}, "code/git": {"operation": "show"}} {
		var out struct{ Diff string }
		if must(t, h, command, params, &out); !strings.Contains(out.Diff, "\nindex ") {
			t.Errorf("%s of a person has no line of contents: the case is empty: %s", command, out.Diff)
		}
		if err := asAgent(t, h, command, params, &out); err != nil || strings.Contains(out.Diff, "\nindex ") || !strings.Contains(out.Diff, "\n--- ") {
			t.Errorf("%s of an agent: %v, %s", command, err, out.Diff)
		}
	}
}
