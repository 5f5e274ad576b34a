package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/host/config"
)

// TestAdd: the item is there, all else is as it was, and a wrong file stays.
func TestAdd(t *testing.T) {
	key := config.PluginKey{ID: "A", Key: "RWA", Comment: "team"}
	for name, src := range map[string]string{
		"empty object": "{}",
		"other":        "{\n  \"serve\": {\"listen\": \"x\"}\n}\n",
		"section":      `{"plugins": {}}`,
		"empty list":   "{\n  \"plugins\": {\n    \"keys\": []\n  },\n  \"logs\": {}\n}\n",
		"one":          `{"plugins":{"keys":[{"key":"RWB"}]},"serve":{"listen":"x"}}`,
		"two":          "{\n  \"plugins\": {\n    \"keys\": [\n      {\"key\": \"RWB\"},\n      {\"key\": \"RWC\"}\n    ]\n  }\n}",
	} {
		path := file(t, src)
		before, err := config.Load(config.Options{File: path, Getenv: env(nil)})
		if err != nil {
			t.Fatal(err)
		}
		if err := config.Add(path, "plugins.keys", key); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		text, _ := os.ReadFile(path)
		after, err := config.Load(config.Options{File: path, Getenv: env(nil)})
		if err != nil {
			t.Errorf("%s: %v\n%s", name, err, text)
			continue
		}
		before.Plugins.Keys = append(before.Plugins.Keys, key)
		if diff := cmp.Diff(before.Config, after.Config); diff != "" {
			t.Errorf("%s: %s\n%s", name, diff, text)
		}
		// Something was put in, and not a byte was changed or taken out.
		got, same := string(text), 0
		for same < len(src) && src[same] == got[same] {
			same++
		}
		if !strings.HasSuffix(got, src[same:]) {
			t.Errorf("%s: more was changed than added:\n%s", name, got)
		}
	}
	fresh := filepath.Join(t.TempDir(), "sentinel", "config.json")
	if err := config.Add(fresh, "plugins.keys", key); err != nil {
		t.Error(err)
	}
	for _, wrong := range []string{"{", `{"plugins": {"keys": {}}}`, `{"plugins": []}`, "[]", `{"plugin": {}}`} {
		path := file(t, wrong)
		if err := config.Add(path, "plugins.keys", key); err == nil {
			t.Errorf("%q is accepted", wrong)
		}
		if text, _ := os.ReadFile(path); string(text) != wrong {
			t.Errorf("%q was changed to %q", wrong, text)
		}
	}
}
