package llm_test

import (
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/llm"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// TestAWrongAddressIsAnErrorOfTurns: what asks no model works, and no other provider is asked in
// the place of the one that was meant.
func TestAWrongAddressIsAnErrorOfTurns(t *testing.T) {
	for _, name := range []string{"OPENAI_BASE_URL", "ANTHROPIC_BASE_URL"} {
		m := open(t, llm.Config{Env: env(name, "localhost:8000/v1", "OPENAI_API_KEY", key, "ANTHROPIC_API_KEY", key)})
		provider := strings.ToLower(strings.TrimSuffix(name, "_BASE_URL"))
		for _, model := range []string{"", provider + "/m"} {
			turn := ask("x")
			turn.Model = model
			_, err := m.Turn(t.Context(), turn, nil)
			if e := asError(t, err); e.Code != abi.BadFields || !e.Permanent || !strings.Contains(e.Message, "localhost:8000/v1") || !strings.Contains(e.Hint, name) {
				t.Errorf("%s, model %q: %+v", name, model, e)
			}
		}
		for _, info := range m.Providers() {
			if info.Name == provider && (info.Ready || !strings.Contains(info.Needs, name)) {
				t.Errorf("%+v", info)
			}
		}
	}
}

// TestProxies: ALL_PROXY counts for what the others leave out, and the hint of a dead proxy names
// it.
func TestProxies(t *testing.T) {
	var asked string
	proxy := newFake(t, func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.Host
		chat("ok")(w, r)
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dead := "http://" + listener.Addr().String()
	listener.Close()
	models := func(pairs ...string) *llm.Models {
		return open(t, llm.Config{Env: env(pairs...), Default: "p/m", Providers: []llm.Provider{{Name: "p", BaseURL: "http://models.example.invalid/v1"}}})
	}
	for _, pairs := range [][]string{{"ALL_PROXY", proxy.URL}, {"all_proxy", proxy.URL}, {"HTTP_PROXY", proxy.URL, "ALL_PROXY", dead}} {
		asked = ""
		if _, err := models(pairs...).Turn(t.Context(), ask("x"), nil); err != nil || asked != "models.example.invalid" {
			t.Errorf("%v: the proxy was asked for %q, %v", pairs, asked, err)
		}
	}
	_, err = models("ALL_PROXY", dead).Turn(t.Context(), ask("x"), nil)
	if e := asError(t, err); e.Code != abi.Unavailable || !strings.Contains(e.Hint, strings.TrimPrefix(dead, "http://")) || !strings.Contains(e.Hint, "ALL_PROXY") {
		t.Errorf("%+v", e)
	}
	_, err = models("ALL_PROXY", dead, "NO_PROXY", "models.example.invalid").Turn(t.Context(), ask("x"), nil)
	if e := asError(t, err); strings.Contains(e.Hint, "proxy") {
		t.Errorf("%+v", e)
	}
}
