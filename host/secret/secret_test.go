package secret_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/redact"
	"github.com/sentinel-runtime/sentinel/host/secret"
)

func write(t *testing.T, value string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "value")
	if err := os.WriteFile(path, []byte(value), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
	return path
}

func source(places secret.Places, env map[string]string) (*secret.Source, *redact.Redactor) {
	r := new(redact.Redactor)
	return secret.New(secret.Options{Places: places, Getenv: func(name string) string { return env[name] }, Redactor: r}), r
}

// TestValue: the configuration counts above the environment, values are read
// when they are used, and the redactor knows each that was handed out.
func TestValue(t *testing.T) {
	path := write(t, "from-the-file\r\n", 0o600)
	env := map[string]string{"OWN": "from-own-variable", "SENTINEL_SECRET_C": "from-the-environment", "SENTINEL_SECRET_A": "not-this-one", "C": "nor-this-one"}
	s, r := source(secret.Places{"A": {Env: "OWN"}, "B": {File: path}}, env)
	for name, want := range map[string]string{"A": "from-own-variable", "B": "from-the-file", "C": "from-the-environment"} {
		got, err := s.Value(name)
		if err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", name, got, err, want)
		}
		if r.String("x "+want) != "x [redacted]" {
			t.Errorf("%s: handed out, and the redactor does not know it", name)
		}
	}
	env["OWN"] = "a-new-value"
	if got, err := s.Value("A"); err != nil || got != "a-new-value" {
		t.Errorf("after a change: %q, %v", got, err)
	}
	if got := string(s.Hide([]byte("from-own-variable a-new-value"), false)); got != "*** ***" {
		t.Errorf("hidden: %q", got)
	}
	if got := s.Configured(); len(got) != 2 || got[0] != "A" || got[1] != "B" {
		t.Errorf("configured: %q", got)
	}
}

func TestPlaces(t *testing.T) {
	var p secret.Places
	if err := json.Unmarshal([]byte(`{"A":{"env":"X"},"B_2":{"file":"/x"}}`), &p); err != nil || len(p) != 2 || p["A"].Env != "X" || p["B_2"].File != "/x" {
		t.Fatalf("%v, %v", p, err)
	}
	for text, want := range map[string]string{
		`[]`: "an object", `{"a":{"env":"X"}}`: "invalid name", `{"A":{"env":"X"},"A":{"env":"Y"}}`: "duplicate key", `{"A":"hunter2-hunter2"}`: "want the place of the value",
		`{"A":{}}`: "want the place of the value", `{"A":{"env":"X","file":"/y"}}`: "want the place of the value", `{"A":{"value":"hunter2-hunter2"}}`: "want the place of the value",
		`{"A":{"file":"x"}}`: "absolute",
	} {
		err := json.Unmarshal([]byte(text), &p)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func FuzzPlaces(f *testing.F) {
	f.Add(`{"A":{"env":"X"},"B_2":{"file":"/x"}}`)
	f.Add(`{"A":null}`)
	f.Fuzz(func(t *testing.T, text string) {
		var p secret.Places
		if json.Unmarshal([]byte(text), &p) != nil {
			return
		}
		for name, place := range p {
			if !secret.Named(name) || (place.Env == "") == (place.File == "") {
				t.Fatalf("%q gave %q: %+v", text, name, place)
			}
		}
	})
}
