package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/examples/internal/lesson"
	"github.com/sentinel-runtime/sentinel/sdk/sdktest"
)

func TestMain(m *testing.M) { lesson.Main(m) }

func TestManifest(t *testing.T) { sdktest.Manifest(t, plugin) }

func TestCases(t *testing.T) { lesson.Cases(t, ".", lesson.Module(t, ".")) }

func TestCasesNative(t *testing.T) { sdktest.Cases(t, plugin, sdktest.CasesFile) }

// TestAsACheck: criteria use the step type as a type of check, on a clone of the branch.
func TestAsACheck(t *testing.T) {
	dir := t.TempDir()
	module := lesson.Module(t, ".")
	sentinel := func(args ...string) (string, error) {
		out, err := lesson.Command(t, dir, args...).CombinedOutput()
		return string(out), err
	}
	want := func(text string, fails bool, args ...string) {
		t.Helper()
		out, err := sentinel(args...)
		if !strings.Contains(out, text) || (err != nil) != fails {
			t.Errorf("%q: %v\n%s", args, err, out)
		}
	}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	lesson.Git(t, dir, "init", "-q", "-b", "main")
	write("a.go", "// SPDX-License-Identifier: MIT\npackage a\n")
	write("b.go", "package a\n")
	lesson.Git(t, dir, "add", "a.go", "b.go")
	lesson.Git(t, dir, "-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "-q", "-m", "start")
	criteria := `[{"id":"headers","type":"license_header","verify":{"text":"SPDX-License-Identifier"}}]`
	want(`"license_header": no such type of check`, true, "ticket", "create", "no plugin yet", "--criteria", criteria)
	lesson.Drop(t, dir, "license_header", module)
	want("", false, "plugin", "allow", "license_header", "--folder", "code=.", "--yes")
	want("headers  license_header  failed", true, "verify", "--criteria", criteria)
	want("b.go", true, "verify", "--criteria", criteria)
	write("b.go", "// SPDX-License-Identifier: MIT\npackage a\n")
	want("failing", true, "verify", "--criteria", criteria) // not committed
	lesson.Git(t, dir, "-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "-q", "-a", "-m", "headers")
	want("passing: 1 of 1 checks passed", false, "verify", "--criteria", criteria)
	want("no file with the suffix", true, "verify", "--criteria", strings.Replace(criteria, `"}}`, `","suffix":".rs"}}`, 1))
	// What criteria must not set, and what they get wrong.
	for fields, text := range map[string]string{
		`{"text":"x","type":"shell"}`:         `field "type" belongs to the host`,
		`{"text":"x","onError":"skip"}`:       `field "onError" belongs to the host`,
		`{"text":"x","texts":"y"}`:            "texts",
		`{}`:                                  `"text" is missing`,
		`{"text":"$WORKSPACE","suffix":".x"}`: "no file with the suffix",
	} {
		want(text, true, "verify", "--criteria", `[{"type":"license_header","verify":`+fields+`}]`)
	}
	// A plugin that is denied again is no check that passes.
	want("", false, "plugin", "deny", "license_header")
	out, err := sentinel("verify", "--criteria", criteria)
	if err == nil || strings.Contains(out, "passing") {
		t.Errorf("%v\n%s", err, out)
	}
}
