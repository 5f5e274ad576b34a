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

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// strangers are guests that nobody of this project wrote: the test modules of
// the engine's own module, made with PDKs of Rust, Go, TinyGo, C and Haskell.
func strangers(t *testing.T) map[string][]byte {
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
		t.Skip("the engine's module comes without its test guests: run with a module cache, not with a vendor folder")
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

// None of them is a plugin of ours; each is refused by name, with what it lacks.
func TestStrangersAreRefused(t *testing.T) {
	h := openInternal(t)
	for name, module := range strangers(t) {
		if _, err := Inspect(module); err != nil {
			t.Errorf("inspect %s: %v", name, err)
		}
		m, err := h.Load(context.Background(), module, LoadOptions{})
		if err == nil {
			m.Release()
			t.Errorf("%s loads", name)
			continue
		}
		if abi.CodeOf(err) != abi.BadFields || !strings.Contains(err.Error(), `link "`) {
			t.Errorf("%s is refused with %q of code %q, want what it lacks", name, err, abi.CodeOf(err))
		}
	}
}

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
			t.Errorf("%d bytes of guest memory are left", n)
		}
	})
	return h
}

// What they export does here, with the texts in our call memory, what it does
// with the engine as it comes.
func TestStrangersRunAsWithTheEngine(t *testing.T) {
	if testing.Short() {
		t.Skip("20 large modules are compiled twice: test without -short")
	}
	h := openInternal(t)
	compared := 0
	modules := strangers(t)
	names := make([]string, 0, len(modules))
	for name := range modules {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		module := modules[name]
		l, err := scan(module, true)
		if err != nil {
			t.Errorf("scan %s: %v", name, err)
			continue
		}
		if _, err := l.checkImports(h.wasi); err != nil {
			t.Logf("%s is not run: %v", name, err) // it is a guest of another host
			continue
		}
		here, there := compileBoth(t, h, l)
		for _, export := range l.exports {
			if export.kind != kindFunc || l.exportType(export) != exportSignature || strings.HasPrefix(export.name, "asyncify") {
				continue
			}
			for _, input := range []string{"", "hello world", strings.Repeat("héllo ✓ 😀 ", 500)} {
				compared++
				ours, theirs := runHere(h, here, export.name, input), runThere(there, export.name, input)
				if ours != theirs {
					t.Errorf("%s.%s with %d bytes:\n here %.300s\nthere %.300s", name, export.name, len(input), ours, theirs)
				}
			}
		}
	}
	if compared < 20 {
		t.Errorf("%d calls were compared, want dozens", compared)
	}
}

// compileBoth compiles a module as it is done here, and with the engine as it
// comes.
func compileBoth(t *testing.T, h *Host, l *layout) (*compiled, *extism.CompiledPlugin) {
	t.Helper()
	ctx := context.Background()
	here, _, err := compile(ctx, rewrite(l), compileConfig{interruptible: true, maxMemory: h.maxMemory, callMemory: l.callMemoryImports()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(here.close)
	there, err := extism.NewCompiledPlugin(ctx, extism.Manifest{Wasm: []extism.Wasm{extism.WasmData{Data: l.raw}}, Memory: &extism.ManifestMemory{}}, extism.PluginConfig{EnableWasi: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = there.Close(ctx) })
	return here, there
}

// runHere calls an export the way run is called, and says how it ended.
func runHere(h *Host, code *compiled, export, input string) string {
	inv := Invocation{Compute: 10 * time.Second}
	c, done := h.newCall(context.Background(), inv.withDefaults())
	defer done()
	inst, err := newInstance(c, code, h.arena)
	if err != nil {
		return ended(err)
	}
	defer inst.close()
	output, err := inst.call(c, export, []byte(input))
	if err != nil {
		return ended(err)
	}
	return string(output)
}

// runThere calls it with the engine as it comes.
func runThere(plugin *extism.CompiledPlugin, export, input string) string {
	ctx := context.Background()
	p, err := plugin.Instance(ctx, extism.PluginInstanceConfig{})
	if err != nil {
		return ended(err)
	}
	defer func() { _ = p.CloseWithContext(ctx) }()
	status, output, err := p.CallWithContext(ctx, export, []byte(input))
	switch {
	case err != nil && p.GetError() != "":
		return ended(abi.New(abi.Plugin, err.Error()))
	case err != nil:
		return ended(err)
	case status != 0:
		return ended(abi.New(abi.Plugin, fmt.Sprintf("%s returned %d and set no error", export, status)))
	}
	return string(output)
}

// ended tells how a call that failed did: the words of a guest's own error, or
// that it trapped.
func ended(err error) string {
	var e *abi.Error
	if errors.As(err, &e) && e.Code == abi.Plugin {
		return "error: " + e.Message
	}
	return "trap"
}
