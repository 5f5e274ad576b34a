package host_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/host/api"
	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// registryOf is a host's registry as the API calls it.
type registryOf struct{ h *host.Host }

func (r registryOf) List() []command.Command                    { return r.h.Commands().List() }
func (r registryOf) Lookup(name string) (command.Command, bool) { return r.h.Commands().Lookup(name) }

// Call calls as a person.
func (r registryOf) Call(ctx context.Context, call *command.Call) (json.RawMessage, error) {
	return r.h.Call(ctx, call.Command, call.Params)
}

type anyToken struct{}

// Valid lets everybody in who says something.
func (anyToken) Valid(token string) bool { return token != "" }

// TestAPIOverTheEngine drives real runs over HTTP: define, start, page through
// runs, look into steps, read logs, and the document of the real registry.
func TestAPIOverTheEngine(t *testing.T) {
	h := open(t, host.Options{})
	a, err := api.New(api.Options{Commands: registryOf{h}, Tokens: anyToken{}, Logs: func(run sentinels.RunID) (io.ReadCloser, error) {
		return os.Open(h.RunLog(run))
	}})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(a.Handler())
	defer srv.Close()
	do := func(method, path, body string, into any) *http.Response {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, srv.URL+path, strings.NewReader(body))
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
		text, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		if res.StatusCode/100 != 2 {
			t.Fatalf("%s %s: %d %s", method, path, res.StatusCode, text)
		}
		if into != nil {
			if err := json.Unmarshal(text, into); err != nil {
				t.Fatalf("%s %s: %s: %v", method, path, text, err)
			}
		}
		return res
	}
	do("POST", "/v1/sentinels", `{"name":"Five","steps":[{"type":"shell","command":"echo $inputs.n","outputTo":"said"}],"inputs":{"n":{"type":"number"}}}`, nil)
	var ids []string
	for n := range 5 {
		var started struct{ Run string }
		res := do("POST", "/v1/sentinels/five/runs", fmt.Sprintf(`{"inputs":{"n":%d}}`, n), &started)
		if res.Header.Get("Location") != "/v1/runs/"+started.Run {
			t.Errorf("Location %q", res.Header.Get("Location"))
		}
		if _, err := h.Runtime().Wait(t.Context(), sentinels.RunID(started.Run)); err != nil {
			t.Fatal(err)
		}
		ids = append([]string{started.Run}, ids...)
	}
	var paged []string
	for before := ""; ; {
		var page struct {
			Runs []struct{ ID string }
			Next string
		}
		do("GET", "/v1/runs?limit=2&sentinel=five&status=completed&before="+before, "", &page)
		for _, r := range page.Runs {
			paged = append(paged, r.ID)
		}
		if before = page.Next; before == "" {
			break
		}
	}
	if strings.Join(paged, " ") != strings.Join(ids, " ") {
		t.Errorf("pages have %v, want %v", paged, ids)
	}
	var list struct {
		Sentinels []struct{ RunCount int }
		Runs      []json.RawMessage
	}
	if do("GET", "/v1/sentinels", "", &list); len(list.Sentinels) != 1 || list.Sentinels[0].RunCount != 5 || list.Runs != nil {
		t.Errorf("sentinels: %+v", list)
	}
	var step struct {
		State     string
		In        struct{ Command string }
		Variables map[string]json.RawMessage
	}
	if do("GET", "/v1/runs/"+ids[0]+"/steps/0", "", &step); step.State != "ok" || !strings.Contains(string(step.Variables["said"]), `4\n`) {
		t.Errorf("step: %+v: %s", step, step.Variables["said"])
	}
	if res := do("GET", "/v1/runs/"+ids[0]+"/logs?tail=1", "", nil); res.Header.Get("Sentinel-Next-Offset") == "0" {
		t.Error("no log")
	}
	var doc struct{ Paths map[string]json.RawMessage }
	if do("GET", "/openapi.json", "", &doc); doc.Paths["/v1/commands/sentinel/start"] == nil {
		t.Error("the document lacks a command")
	}
}
