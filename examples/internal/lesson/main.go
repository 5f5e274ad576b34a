package lesson

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/cli"
	"github.com/sentinel-runtime/sentinel/runtime"
)

// asCLI in the environment makes a lesson's test binary the sentinel program.
const asCLI = "SENTINEL_LESSON_CLI"

// Main is the TestMain of a lesson: the test binary may be started again as the
// child of a runtime, or as the program that [Script] gives to a script.
func Main(m *testing.M) {
	runtime.ServeChild()
	if os.Getenv(asCLI) != "" {
		os.Exit(cli.Main(context.Background(), os.Args...))
	}
	dir, err := os.MkdirTemp("", "lesson")
	if err != nil {
		panic(err)
	}
	compiled = filepath.Join(dir, "sentinel", "plugins")
	// Go has its build cache below XDG_CACHE_HOME too: in an empty one each build compiles the
	// standard library again, which takes a minute.
	if cache, err := exec.Command("go", "env", "GOCACHE").Output(); err == nil {
		if err := os.Setenv("GOCACHE", strings.TrimSpace(string(cache))); err != nil {
			panic(err)
		}
	}
	if err := os.Setenv("XDG_CACHE_HOME", dir); err != nil {
		panic(err)
	}
	code := m.Run()
	if err := os.RemoveAll(dir); err != nil {
		panic(err)
	}
	os.Exit(code)
}

// Script runs a script of the current folder as its reader would, with the
// sentinel program as its first argument, and returns what is printed. Its
// temporary folders go with the test, and no model is configured. It is skipped
// with -short: the definition alone is tested then.
func Script(t *testing.T, name string) (string, error) {
	t.Helper()
	return script(t, name, "SENTINEL_DEMO=replay",
		"OPENAI_API_KEY=", "OPENAI_BASE_URL=", "ANTHROPIC_API_KEY=", "ANTHROPIC_BASE_URL=", "OLLAMA_HOST=")
}

// LiveScript is Script for a reader who has a model.
func LiveScript(t *testing.T, name string, model Model) (string, error) {
	t.Helper()
	Serve(t, model)
	return script(t, name, "SENTINEL_DEMO=")
}

func script(t *testing.T, name string, env ...string) (string, error) {
	t.Helper()
	if testing.Short() {
		t.Skip("-short: the script is not run")
	}
	need(t, "sh", "git", "go")
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("./"+name, binary)
	cmd.Env = append(os.Environ(), asCLI+"=1", "TMPDIR="+t.TempDir())
	cmd.Env = append(cmd.Env, env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}
