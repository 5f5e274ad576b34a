package host_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/host/api"
)

// TestLongNames: whatever text a caller names something by, no command answers
// with a fault of the host. With -short each field gets one of the texts, in turn.
func TestLongNames(t *testing.T) {
	h := open(t, host.Options{})
	a, err := api.New(api.Options{Commands: registryOf{h}, Tokens: anyToken{}})
	if err != nil {
		t.Fatal(err)
	}
	srv := serveAPI(t, a)
	ask := func(method, path string, body []byte) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, srv.URL+path, strings.NewReader(string(body)))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer x")
		req.Header.Set("Content-Type", "application/json")
		res, err := srv.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if _, err := io.Copy(io.Discard, res.Body); err != nil { // the connection is used again
			t.Error(err)
		}
		if res.StatusCode >= http.StatusInternalServerError && res.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("%s %.60s %.200s: %d", method, path, body, res.StatusCode)
		}
	}
	fields := 0
	texts := []string{strings.Repeat("a", 5000), strings.Repeat("a/", 2500), "a\x00b", strings.Repeat("é", 300)}
	for _, c := range h.Commands().List() {
		var schema struct {
			Properties map[string]struct {
				Type any   `json:"type"`
				Enum []any `json:"enum"`
			} `json:"properties"`
			Required []string `json:"required"`
		}
		if err := json.Unmarshal(c.Input(), &schema); err != nil {
			t.Fatalf("%s: %v", c.Name, err)
		}
		for name, p := range schema.Properties {
			if p.Type != "string" || len(p.Enum) > 0 {
				continue
			}
			for i, text := range texts {
				if testing.Short() && i != fields%len(texts) {
					continue
				}
				params := map[string]any{name: text}
				for _, other := range schema.Required {
					if q := schema.Properties[other]; other != name {
						params[other] = map[any]any{"string": "x", "integer": 1, "number": 1, "boolean": false, "array": []any{}, "object": map[string]any{}}[q.Type]
						if len(q.Enum) > 0 {
							params[other] = q.Enum[0]
						}
					}
				}
				body, err := json.Marshal(params)
				if err != nil {
					t.Fatal(err)
				}
				ask("POST", "/v1/commands/"+c.Name, body)
			}
			fields++
		}
	}
	for _, text := range texts[:1] {
		for _, path := range []string{"/v1/runs?sentinel=", "/v1/runs?before=", "/v1/runs?status=", "/v1/events?pattern=", "/v1/sentinels?tag=", "/v1/sentinels/", "/v1/runs/"} {
			ask("GET", path+text, nil)
		}
		definition, err := json.Marshal(map[string]any{"name": text, "steps": []any{map[string]any{"type": "shell", "command": "true"}}})
		if err != nil {
			t.Fatal(err)
		}
		ask("POST", "/v1/sentinels", definition)
	}
}
