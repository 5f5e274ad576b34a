package config_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/host/config"
)

func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func env(vars map[string]string) func(string) string {
	return func(name string) string { return vars[name] }
}

// TestWhoWins: flags above the environment above the file above defaults, and
// each value says where it came from.
func TestWhoWins(t *testing.T) {
	path := file(t, `{
  "serve": {"listen": "127.0.0.1:9000", "drain": "5s", "hosts": ["box"]},
  "retention": {"age": "7d"}
}`)
	l, err := config.Load(config.Options{
		File:   path,
		Getenv: env(map[string]string{"SENTINEL_SERVE_DRAIN": "6s", "SENTINEL_LOGS_LEVEL": "debug", "SENTINEL_SERVE_TLS_CERT": "c", "SENTINEL_SERVE_TLS_KEY": "k"}),
		Flags:  map[string]string{"logs.level": "warn", "serve.hosts": "a, b:9"},

		FlagNames: map[string]string{"logs.level": "log-level", "serve.listen": "listen"},
	})
	if err != nil {
		t.Fatal(err)
	}
	origins := map[string]string{}
	for _, s := range l.Settings {
		origins[s.Key] = s.Origin
	}
	want := map[string]string{
		"serve.listen": path + ":2", "serve.drain": "SENTINEL_SERVE_DRAIN", "logs.level": "--log-level", "serve.hosts": "--serve.hosts",
		"retention.age": path + ":3", "retention.runs": "default", "serve.tlsCert": "SENTINEL_SERVE_TLS_CERT",
	}
	for key, origin := range want {
		if origins[key] != origin {
			t.Errorf("%s comes from %q, want %q", key, origins[key], origin)
		}
	}
	if l.Serve.Listen != "127.0.0.1:9000" || l.Serve.Drain.Std() != 6*time.Second || l.Logs.Level != "warn" || l.Retention.Age.Std() != 7*24*time.Hour {
		t.Errorf("values %+v", l.Config)
	}
	if diff := cmp.Diff([]string{"a", "b:9"}, l.Serve.Hosts); diff != "" {
		t.Error(diff)
	}
}

// TestNoFile: settings without a value have their default.
func TestNoFile(t *testing.T) {
	l, err := config.Load(config.Options{File: filepath.Join(t.TempDir(), "none.json"), Getenv: env(nil)})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(config.Default(), l.Config); diff != "" {
		t.Error(diff)
	}
}

// TestEveryProblemIsPlaced: all at once, each where it stands.
func TestEveryProblemIsPlaced(t *testing.T) {
	path := file(t, `{
  "servee": 1,
  "serve": {"lisen": "x", "drain": "soon", "noAuth": "yes"},
  "logs": {"level": "loud", "keep": -1},
  "retention": {"keepFailed": 0}, "snapshots": {"keep": 0},
  "worktrees": {"most": 0, "size": "1KB"}, "forge": {"url": "https://u:hunter2@x", "kind": "svn", "token": "ghp_hunter2"},
  "verify": {"url": "localhost:3000"}
}`)
	_, err := config.Load(config.Options{File: path, Getenv: env(map[string]string{"SENTINEL_RETENTION_SIZE": "much", "SENTINEL_MODELS_SECRET_FILES": ".env.test,[a"})})
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{
		`:2:3: unknown setting "servee"`, `:3:13: unknown setting "serve.lisen", did you mean "serve.listen"?`,
		`:3:27: serve.drain: invalid duration "soon"`, `:3:44: serve.noAuth: want a boolean, got a string`,
		`:4:29: logs.keep: -1 is negative`, `SENTINEL_RETENTION_SIZE: invalid size "much"`, `logs.level: "loud" is none of`,
		`:5: retention.keepFailed: invalid number 0: want at least 1`, `:5: snapshots.keep: invalid number 0: want at least 1`,
		`:6: worktrees.most: invalid number 0: want at least 1`, `:6: worktrees.size: invalid size`,
		`:6: forge.url: invalid URL: want https://HOST without credentials`, `:6: forge.kind: "svn" is none of`, `:6: forge.token: invalid name of a secret`,
		`:7: verify.url: invalid URL: want http://HOST:PORT`,
		`SENTINEL_MODELS_SECRET_FILES: models.secretFiles: invalid pattern "[a"`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no problem %q in\n%v", want, err)
		}
	}
	if strings.Contains(err.Error(), "hunter2") {
		t.Errorf("a credential is in %v", err)
	}
}

// TestStrictFile: a file that readers could understand differently sets nothing.
func TestStrictFile(t *testing.T) {
	for text, want := range map[string]string{
		"{\n \"serve\": {\"drain\": \"1s\",\n  \"drain\": \"2s\"}}":       `:3:3: serve.drain: duplicate key "drain", first at line 2, column 12`,
		"{\"serve\": {},\n \"\\u0073erve\": {}}":                          `:2:2: serve: duplicate key "serve", first at line 1, column 2`,
		"{\"logs\": {\"level\": \"\xff\"}}":                               ":1:21: logs.level: text that is not UTF-8",
		`{"Serve": {}}`:                                                   `:1:2: unknown setting "Serve"`,
		`{"models": {"providers": [{"name": "a", "Key": "x"}]}}`:          `:1:48: models.providers[0].Key: unknown key "Key"`,
		`{"secrets": {"A": {"env": "hunter2"}, "A": {"env": "hunter2"}}}`: `:1:39: secrets.A: duplicate key "A"`,
	} {
		_, err := config.Load(config.Options{File: file(t, text), Getenv: env(nil)})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func TestTorn(t *testing.T) {
	for _, text := range []string{"", "{", `{"serve":`, `{"serve": {}} x`, "[]", `{"serve": []}`} {
		if _, err := config.Load(config.Options{File: file(t, text), Getenv: env(nil)}); err == nil || !strings.Contains(err.Error(), "config.json:1:") {
			t.Errorf("%q: error %v, want one with a place", text, err)
		}
	}
}

func TestValues(t *testing.T) {
	for text, want := range map[string]string{"90s": "1m30s", "1h": "1h", "30d": "30d", "48h": "2d", "0s": "0s", "10m": "10m"} {
		var d config.Duration
		if err := d.UnmarshalText([]byte(text)); err != nil || d.String() != want {
			t.Errorf("duration %q = %q, %v, want %q", text, d, err, want)
		}
	}
	for text, want := range map[string]string{"64MB": "64MB", "2048 kb": "2MB", "1500": "1500B", "0": "0B", "3GB": "3GB"} {
		var s config.Size
		if err := s.UnmarshalText([]byte(text)); err != nil || s.String() != want {
			t.Errorf("size %q = %q, %v, want %q", text, s, err, want)
		}
	}
	for _, text := range []string{"-1s", "d", "1x", "", "99999999d"} {
		if new(config.Duration).UnmarshalText([]byte(text)) == nil {
			t.Errorf("duration %q accepted", text)
		}
	}
	for _, text := range []string{"-1", "MB", "9999999999GB", ""} {
		if new(config.Size).UnmarshalText([]byte(text)) == nil {
			t.Errorf("size %q accepted", text)
		}
	}
}

// TestSchemaHasEverySetting keeps editors complete.
func TestSchemaHasEverySetting(t *testing.T) {
	var schema map[string]any
	if err := json.Unmarshal(config.Schema(), &schema); err != nil {
		t.Fatal(err)
	}
	l, err := config.Load(config.Options{File: filepath.Join(t.TempDir(), "none"), Getenv: env(nil)})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range l.Settings {
		at := schema
		for part := range strings.SplitSeq(s.Key, ".") {
			at, _ = at["properties"].(map[string]any)[part].(map[string]any)
			if at == nil {
				t.Fatalf("setting %s is not in the schema", s.Key)
			}
		}
		if at["description"] == nil {
			t.Errorf("setting %s is not described", s.Key)
		}
	}
}

func FuzzLoad(f *testing.F) {
	f.Add(`{"serve": {"listen": "x", "hosts": ["a"]}, "logs": {"size": "1MB"}}`)
	f.Add(`{"models": {"known": [{"name": "m"}]}}`)
	f.Add("{")
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text string) {
		path := filepath.Join(dir, "config.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		l, err := config.Load(config.Options{File: path, Getenv: env(nil)})
		if (err == nil) == (l == nil) {
			t.Fatalf("settings %v and error %v", l, err)
		}
	})
}

// TestFormat: a file of a newer format is refused with the version that wrote it, and
// unknown settings only where they could matter.
func TestFormat(t *testing.T) {
	load := func(text string, ignore bool) (*config.Loaded, error) {
		return config.Load(config.Options{File: file(t, text), Getenv: env(nil), IgnoreUnknown: ignore})
	}
	for _, text := range []string{`{"format": 1, "version": "0.1.0"}`, `{}`} {
		if _, err := load(text, false); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	for text, want := range map[string]string{
		`{"format": 2, "version": "9.8.7", "more": {"a": 1}}`: `:1:2: format 2, written by 9.8.7; this program reads formats up to 1`,
		`{"more": 1, "format": 3}`:                            `:1:13: format 3, written by a newer version of sentinel; this program reads formats up to 1`,
		`{"format": 0}`:                                       `:1:2: format: want a number from 1`,
	} {
		for _, ignore := range []bool{false, true} {
			if _, err := load(text, ignore); err == nil || !strings.HasSuffix(err.Error(), want) {
				t.Errorf("%s: %v, want %q", text, err, want)
			}
		}
	}
	l, err := load(`{"notices": {"webhook": "x"}, "logs": {"level": "debug"}}`, true)
	if err != nil || l.Logs.Level != "debug" || len(l.Unknown) != 1 || !strings.Contains(l.Unknown[0], `:1:2: unknown setting "notices"`) {
		t.Errorf("%+v, %v", l, err)
	}
	if _, err := load(`{"notices": {"webhook": "x"}, "logs": {"level": "loud"}}`, true); err == nil || strings.Contains(err.Error(), "notices") {
		t.Errorf("a wrong value: %v", err)
	}
}
