package wasm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	extism "github.com/extism/go-sdk"

	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm/binary"
	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm/link"
	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm/rewrite"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// extismGuests returns guests of other authors: the test modules of the Extism SDK,
// made with PDKs of Rust, Go, TinyGo, C and Haskell.
func extismGuests(t *testing.T) map[string][]byte {
	t.Helper()
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/extism/go-sdk").Output()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), "wasm", "*.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Skip("the module of the SDK has no test guests: run with a module cache, not with a vendor folder")
	}
	modules := map[string][]byte{}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		modules[strings.TrimSuffix(filepath.Base(file), ".wasm")] = b
	}
	return modules
}

// TestExtismGuestsAreRejected: none of them is a plugin, and each error names what
// the module lacks.
func TestExtismGuestsAreRejected(t *testing.T) {
	h := openInternal(t)
	for name, module := range extismGuests(t) {
		if _, err := Inspect(module); err != nil {
			t.Errorf("inspect %s: %v", name, err)
		}
		m, err := h.Load(context.Background(), module, LoadOptions{})
		if err == nil {
			m.Release()
			t.Errorf("%s was loaded", name)
			continue
		}
		if abi.CodeOf(err) != abi.BadFields || !strings.Contains(err.Error(), `link "`) {
			t.Errorf("%s is rejected with %q of code %q, want what it lacks", name, err, abi.CodeOf(err))
		}
	}
}

// openInternal opens a host for tests inside of the package.
func openInternal(t *testing.T) *Host {
	t.Helper()
	h, err := Open(Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
		if n := h.MemoryBytes(); n != 0 {
			t.Errorf("%d bytes of guest memory, want 0", n)
		}
	})
	return h
}

// TestExtismGuestsRunAlike: their exports have the same outcome in this package, with
// its call memory, and on the SDK alone.
func TestExtismGuestsRunAlike(t *testing.T) {
	if testing.Short() {
		t.Skip("20 large modules are compiled twice: test without -short")
	}
	h := openInternal(t)
	compared := 0
	modules := extismGuests(t)
	names := make([]string, 0, len(modules))
	for name := range modules {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		module := modules[name]
		l, err := binary.Scan(module, true)
		if err != nil {
			t.Errorf("scan %s: %v", name, err)
			continue
		}
		if _, err := link.Imports(l, h.wasi); err != nil {
			t.Logf("%s is not run: %v", name, err) // a guest of another host
			continue
		}
		host, sdk := compileBoth(t, h, l)
		for _, export := range l.Exports {
			if export.Kind != binary.KindFunction || l.ExportType(export) != link.ExportSignature || strings.HasPrefix(export.Name, "asyncify") {
				continue
			}
			for _, input := range []string{"", "hello world", strings.Repeat("héllo ✓ 😀 ", 500)} {
				compared++
				ours, theirs := runHost(h, host, export.Name, input), runExtism(sdk, export.Name, input)
				if ours != theirs {
					t.Errorf("%s.%s with %d bytes:\nhost   %.300s\nExtism %.300s", name, export.Name, len(input), ours, theirs)
				}
			}
		}
	}
	if compared < 20 {
		t.Errorf("%d calls were compared, want dozens", compared)
	}
}

// compileBoth compiles a module for a host of this package and for the SDK alone.
func compileBoth(t *testing.T, h *Host, l *binary.Module) (*compiled, *extism.CompiledPlugin) {
	t.Helper()
	ctx := context.Background()
	here, _, err := compile(ctx, rewrite.Rewrite(l, importModule), compileConfig{interruptible: true, maxMemory: h.maxMemory, callMemory: servedImports(l)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(here.close)
	there, err := extism.NewCompiledPlugin(ctx, extism.Manifest{Wasm: []extism.Wasm{extism.WasmData{Data: l.Raw}}, Memory: &extism.ManifestMemory{}}, extism.PluginConfig{EnableWasi: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = there.Close(ctx) })
	return here, there
}

// runHost calls an export like run is called and returns the outcome.
func runHost(h *Host, code *compiled, export, input string) string {
	inv := Invocation{Compute: 10 * time.Second}
	c, done := h.newCall(context.Background(), inv.withDefaults())
	defer done()
	inst, err := newInstance(c, code, h.arena)
	if err != nil {
		return outcome(err)
	}
	defer inst.Close()
	output, err := inst.call(c, export, []byte(input), nil)
	if err != nil {
		return outcome(err)
	}
	return string(output.Text)
}

// runExtism calls an export on the SDK alone and returns the outcome.
func runExtism(plugin *extism.CompiledPlugin, export, input string) string {
	ctx := context.Background()
	p, err := plugin.Instance(ctx, extism.PluginInstanceConfig{})
	if err != nil {
		return outcome(err)
	}
	defer func() { _ = p.CloseWithContext(ctx) }()
	status, output, err := p.CallWithContext(ctx, export, []byte(input))
	switch {
	case err != nil && p.GetError() != "":
		return outcome(abi.New(abi.Plugin, err.Error()))
	case err != nil:
		return outcome(err)
	case status != 0:
		return outcome(abi.New(abi.Plugin, fmt.Sprintf("%s returned %d and set no error", export, status)))
	}
	return string(output)
}

// outcome describes a failed call: the text of the guest's own error, or "trap".
func outcome(err error) string {
	var e *abi.Error
	if errors.As(err, &e) && e.Code == abi.Plugin {
		return "error: " + e.Message
	}
	return "trap"
}
