package host_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/runtime/plugin"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// TestPluginsFromAFolder loads the folder of further plugins:
// one that asks for nothing is live, a broken one is refused by name with the
// reason and keeps nothing else out.
func TestPluginsFromAFolder(t *testing.T) {
	dir := t.TempDir()
	echo, err := os.ReadFile("../runtime/internal/wasm/testdata/wat/echo.wasm")
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, map[string]string{"broken.wasm": "not wasm", "notes.txt": "no plugin", "trap.wasm": string(echo[:len(echo)/2])})
	if err := os.WriteFile(filepath.Join(dir, "echo.wasm"), echo, 0o644); err != nil {
		t.Fatal(err)
	}
	ws := t.TempDir()
	h := open(t, host.Options{Workspace: ws, Plugins: dir})
	problems := map[string]string{}
	var live plugin.Info
	for _, p := range h.Runtime().Plugins() {
		if p.Problem != "" {
			problems[p.Source] = p.Problem
		} else if p.Source == "echo.wasm" {
			live = p
		}
	}
	if len(problems) != 2 || !strings.Contains(problems["broken.wasm"], "not a WebAssembly module") || problems["trap.wasm"] == "" {
		t.Errorf("problems %v", problems)
	}
	if len(live.Types) == 0 || live.Trusted {
		t.Fatalf("echo.wasm is %+v", live)
	}
	res := run(t, h, `{"name":"others","steps":[{"type":"`+string(live.Types[0])+`","outputTo":"said"}]}`, ws)
	if res.Status != sentinels.StatusCompleted || !strings.Contains(string(res.Variables["said"]), `"abi":1`) {
		t.Errorf("%s: %v, %s", res.Status, res.Error, res.Variables["said"])
	}
}
