package host_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host"
)

// TestGuestsOfOthersHaveNoNetwork has two plugins that import sentinel_http, one
// asking for it without naming hosts and one not asking. Neither is live: their
// step types are unknown.
func TestGuestsOfOthersHaveNoNetwork(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"httpasked.wasm", "httpunasked.wasm"} {
		b, err := os.ReadFile(filepath.Join("testdata", "guests", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	h := open(t, host.Options{Plugins: dir})
	problems := map[string]string{}
	for _, p := range h.Runtime().Plugins() {
		problems[p.Source] = p.Problem
		if p.Problem != "" && len(p.Types) > 0 {
			t.Errorf("plugin %q is refused and has the step types %v", p.Source, p.Types)
		}
	}
	for source, want := range map[string]string{
		"builtin":          "",
		"httpasked.wasm":   `describe: permissions[0].names is empty, and http needs names`,
		"httpunasked.wasm": `link "sentinel_http": plugin "httpunasked" imports it without asking for "http"`,
	} {
		if got, ok := problems[source]; !ok || !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("plugin %q: problem %q, want %q", source, got, want)
		}
	}
	for _, step := range []string{"httpasked", "httpunasked"} {
		_, found := h.Runtime().Decode([]byte(`{"name":"x","steps":[{"type":"`+step+`"}]}`), "test.json")
		if len(found) == 0 || !strings.Contains(found[0].Message, step) {
			t.Errorf("a step of type %q: %v, want it unknown", step, found)
		}
	}
}
