package host

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/config"
	"github.com/sentinel-runtime/sentinel/host/redact"
	"github.com/sentinel-runtime/sentinel/host/secret"
)

// TestSecretsOfTriggers: webhooks and plugins have the same secrets; beside
// them, a webhook may name any variable.
func TestSecretsOfTriggers(t *testing.T) {
	env := map[string]string{
		"HOOK": "variable-of-hook", "SENTINEL_SECRET_BOTH": "secret-both", "BOTH": "variable-both", "ELSEWHERE": "value-elsewhere", "CONFIGURED": "variable-configured",
		"hook": "variable-of-lower", "LOST": "variable-lost", "SHORT": "1234", "SENTINEL_SECRET_BROKEN": "1234", "BROKEN": "variable-broken",
	}
	getenv := func(name string) string { return env[name] }
	var said bytes.Buffer
	h := &Host{redactor: new(redact.Redactor), opt: Options{Getenv: getenv, Logger: slog.New(slog.NewTextHandler(&said, nil))}}
	h.settings = &config.Loaded{Config: config.Config{Secrets: secret.Places{"CONFIGURED": {Env: "ELSEWHERE"}, "LOST": {File: "/nowhere/at/all"}}}}
	h.secrets = secret.New(secret.Options{Places: h.settings.Secrets, Getenv: getenv, Redactor: h.redactor})
	for name, want := range map[string]string{
		"HOOK": "variable-of-hook", "BOTH": "secret-both", "CONFIGURED": "value-elsewhere", "hook": "variable-of-lower", "SHORT": "1234",
		// What is configured and cannot be had is not replaced by something else.
		"LOST": "", "BROKEN": "", "NONE": "",
	} {
		value, ok := h.secret(name)
		if value != want || ok != (want != "") {
			t.Errorf("%s: %q, %v, want %q", name, value, ok, want)
		}
		if len(want) >= redact.MinLength && strings.Contains(h.redactor.String("x "+want), want) {
			t.Errorf("%s is not kept out of what is written", name)
		}
	}
	for _, name := range []string{"SHORT", "LOST", "BROKEN"} { // asked for at each request, and logged once
		before := strings.Count(said.String(), "secret="+name+" ")
		h.secret(name)
		if n := strings.Count(said.String(), "secret="+name+" "); before != 1 || n != 1 {
			t.Errorf("%s was logged %d times, then %d: %s", name, before, n, said.String())
		}
	}
	for _, value := range env {
		if strings.Contains(said.String(), value) {
			t.Errorf("the log has %q: %s", value, said.String())
		}
	}
}
