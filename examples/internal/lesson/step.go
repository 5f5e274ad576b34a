package lesson

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/plugin/plugintest"
	"github.com/sentinel-runtime/sentinel/runtime/guest"
	"github.com/sentinel-runtime/sentinel/sdk/sdktest"
	"github.com/sentinel-runtime/sentinel/sdk/toolchain"
	"github.com/sentinel-runtime/sentinel/sdk/toolchain/toolchaintest"
)

// Module builds the step plugin whose project is the folder dir and returns its
// module. It is skipped, aloud, with -short and where the language's tools are
// missing, unless SENTINEL_TOOLCHAINS=required says that they must be there.
func Module(t *testing.T, dir string) []byte {
	t.Helper()
	if testing.Short() {
		t.Skip("-short: no plugin is built")
	}
	p, err := toolchain.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	toolchaintest.Need(t, p.Language)
	out := filepath.Join(t.TempDir(), p.Name+".wasm")
	var said bytes.Buffer
	if err := p.Build(t.Context(), out, &said); err != nil {
		t.Fatalf("%v\n%s", err, &said)
	}
	module, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return module
}

// Cases executes the cases of the plugin in dir, as `sentinel plugin test`
// does, one subtest each.
func Cases(t *testing.T, dir string, module []byte) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(sdktest.CasesFile)))
	if err != nil {
		t.Fatal(err)
	}
	cases, err := sdktest.ReadCases(text)
	if err != nil {
		t.Fatal(err)
	}
	p := Plugin(t, module)
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			for _, problem := range sdktest.Try(t.Context(), p, c).Problems {
				t.Error(problem)
			}
		})
	}
}

// Plugin loads a module for single steps, until the test's end.
func Plugin(t *testing.T, module []byte) *plugintest.Plugin {
	t.Helper()
	h, err := guest.Open(guest.Options{CacheDir: compiled})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	p, err := plugintest.Load(t.Context(), h, module, guest.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// Drop makes the file of a plugin in the project whose folder is dir, where a
// host takes it up, as a user would: in one step.
func Drop(t *testing.T, dir, name string, module []byte) {
	t.Helper()
	plugins := filepath.Join(dir, ".sentinel", "plugins")
	if err := os.MkdirAll(plugins, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := toolchain.Install(module, filepath.Join(plugins, name+".wasm")); err != nil {
		t.Fatal(err)
	}
}

// Command is the sentinel program with its arguments, in a folder, without a
// model.
func Command(t *testing.T, dir string, args ...string) *exec.Cmd {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), asCLI+"=1", "HOME="+dir, "XDG_CONFIG_HOME="+filepath.Join(dir, "config"), "SENTINEL_TRUST_ROOTS="+dir, "SENTINEL_URL=", "OPENAI_API_KEY=", "ANTHROPIC_API_KEY=", "OLLAMA_HOST=")
	return cmd
}
