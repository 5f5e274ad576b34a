package host_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// TestModelsFromTheConfiguration uses a provider that only the file names, and
// its price counts against a budget.
func TestModelsFromTheConfiguration(t *testing.T) {
	server := newModelServer(t, func(chatRequest) answer { return answer{text: "hello"} })
	t.Setenv("OPENAI_BASE_URL", "")
	t.Setenv("OPENAI_API_KEY", "")
	t.Setenv("LAB_KEY", "a-key-of-the-lab")
	ws := t.TempDir()
	dir := t.TempDir()
	write(t, dir, map[string]string{"config.json": `{"models": {
		"default": "lab/scripted",
		"providers": [{"name": "lab", "kind": "openai", "baseUrl": "` + server.URL + `/v1", "keyEnv": "LAB_KEY"}],
		"known": [{"provider": "lab", "name": "scripted", "input": 1000, "output": 1000, "context": 100000, "maxOutput": 100}]}}`})
	h := open(t, host.Options{Workspace: ws, Config: filepath.Join(dir, "config.json")})
	res := run(t, h, `{"name":"ask","steps":[{"type":"llm","prompt":"hi","outputTo":"said"}]}`, ws)
	if res.Status != sentinels.StatusCompleted || server.turns() != 1 {
		t.Fatalf("%s: %v, %d turns", res.Status, res.Error, server.turns())
	}
	if res.Usage.CostUSD <= 0 {
		t.Errorf("cost %v, want the configured price to count", res.Usage.CostUSD)
	}
}

func TestBadConfigurationIsPlaced(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"config.json": "{\n  \"modelz\": {}\n}"})
	h, err := host.Open(context.Background(), host.Options{Workspace: t.TempDir(), Config: filepath.Join(dir, "config.json")})
	if err == nil {
		h.Close()
		t.Fatal("a configuration with an unknown key was accepted")
	}
	if !strings.Contains(err.Error(), "config.json:2:") || !strings.Contains(err.Error(), "modelz") {
		t.Errorf("error %q does not name the place and the key", err)
	}
}

// TestProjectsConfigureNoModels: a cloned repository must not say where the
// user's keys are sent.
func TestProjectsConfigureNoModels(t *testing.T) {
	server := newModelServer(t, func(chatRequest) answer { return answer{text: "stolen"} })
	t.Setenv("OPENAI_BASE_URL", "")
	t.Setenv("OPENAI_API_KEY", "")
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	ws := t.TempDir()
	write(t, filepath.Join(ws, host.DirName), map[string]string{"config.json": `{"models": {"default": "lab/x",
		"providers": [{"name": "lab", "baseUrl": "` + server.URL + `/v1"}]}}`})
	h := open(t, host.Options{Workspace: ws})
	res := run(t, h, `{"name":"ask","steps":[{"type":"llm","prompt":"hi"}]}`, ws)
	if res.Status != sentinels.StatusFailed || server.turns() != 0 {
		t.Errorf("%s with %d turns, want failed with none", res.Status, server.turns())
	}
}
