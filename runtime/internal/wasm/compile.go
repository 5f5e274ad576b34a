package wasm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	stdruntime "runtime"

	extism "github.com/extism/go-sdk"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// This file, instance.go, direct.go and wasi.go are the seam: no other file of the
// package, and nothing outside it, mentions the engine's types.

// kernelSpare is what the call memory may hold beyond a guest's limit: the input
// twice, as guests copy it.
const kernelSpare = 2 * maxInput

// compiled is the machine code of one module, with a cache object of its own:
// closing a shared one is the only way to free what it holds of old versions.
type compiled struct {
	plugin *extism.CompiledPlugin
	cache  wazero.CompilationCache
}

func (c *compiled) close() {
	ctx := context.Background()
	_ = c.plugin.Close(ctx) // closes what is in memory; there is nothing it can fail at
	_ = c.cache.Close(ctx)
}

// compileConfig says how one module is compiled.
type compileConfig struct {
	dir           string   // compiled code of this module; "" for none
	interruptible bool     // costs a guest's loops a factor of five to eight
	maxMemory     int64    // bytes, the most any call may be given
	functions     []string // host functions to offer: those it imports, no more
	// kernel is the kernel imports that the call memory answers.
	kernel map[string]funcType
}

// compile turns a rewritten module into machine code. Code read from dir is
// checked by the engine with a CRC, and a file it cannot read fails every later
// load, so a failure with an old dir deletes it and compiles once without.
// healed says that this happened.
func compile(ctx context.Context, wasm []byte, cfg compileConfig) (c *compiled, healed error, err error) {
	_, statErr := os.Stat(cfg.dir)
	old := cfg.dir != "" && statErr == nil
	if c, err = compileOnce(ctx, wasm, cfg); err == nil || !old {
		return c, nil, err
	}
	damage := err
	if err := os.RemoveAll(cfg.dir); err != nil {
		return nil, nil, abi.New(abi.Internal, "clear compile cache: "+err.Error())
	}
	if c, err = compileOnce(ctx, wasm, cfg); err != nil {
		return nil, nil, err
	}
	return c, damage, nil
}

func compileOnce(ctx context.Context, wasm []byte, cfg compileConfig) (c *compiled, err error) {
	cache := wazero.NewCompilationCache()
	if cfg.dir != "" {
		if cache, err = wazero.NewCompilationCacheWithDir(cfg.dir); err != nil {
			return nil, abi.New(abi.Internal, "open compile cache: "+err.Error())
		}
	}
	defer func() {
		if fault := recover(); fault != nil {
			err = abi.New(abi.BadFields, fmt.Sprintf("compile module: the compiler gave up: %v", fault))
		}
		if err != nil {
			_ = cache.Close(context.Background())
		}
	}()
	// Debug information would be parsed from a guest's own sections.
	rc := wazero.NewRuntimeConfig().WithCompilationCache(cache).WithDebugInfoEnabled(false).
		WithCloseOnContextDone(cfg.interruptible)
	manifest := extism.Manifest{
		Wasm: []extism.Wasm{extism.WasmData{Data: wasm}},
		// Zero bytes of variables and of HTTP answers disable both.
		Memory: &extism.ManifestMemory{MaxPages: uint32((cfg.maxMemory + kernelSpare) / pageSize)},
	}
	// Compiles are serialised, so one may use the machine.
	ctx = experimental.WithCompilationWorkers(ctx, min(4, stdruntime.GOMAXPROCS(0)))
	ctx = experimental.WithFunctionListenerFactory(ctx, listeners{})
	plugin, err := extism.NewCompiledPlugin(ctx, manifest, extism.PluginConfig{RuntimeConfig: rc, EnableWasi: true}, hostFunctions(cfg))
	var disk *fs.PathError
	if errors.As(err, &disk) {
		return nil, &keepError{disk}
	}
	if err != nil {
		return nil, abi.New(abi.BadFields, "compile module: "+firstLine(err.Error()))
	}
	return &compiled{plugin: plugin, cache: cache}, nil
}

// A keepError says that a module was compiled and its code could not be written
// to the cache.
type keepError struct{ disk *fs.PathError }

func (e *keepError) Error() string { return e.Unwrap().Error() }

func (e *keepError) Unwrap() error {
	return abi.New(abi.Unavailable, "compile module: keep its code: "+e.disk.Error())
}

// hostFunctions gives each imported host function, and each kernel import that
// the call memory answers, its way into the call at hand.
func hostFunctions(cfg compileConfig) []extism.HostFunction {
	functions := make([]extism.HostFunction, 0, len(cfg.functions)+len(cfg.kernel))
	handle := []extism.ValueType{extism.ValueTypePTR}
	add := func(module, name string, typ funcType, answer func(c *call, stack []uint64)) {
		f := extism.NewHostFunctionWithStack(name, func(ctx context.Context, _ *extism.CurrentPlugin, stack []uint64) {
			answer(callFrom(ctx), stack) // every call into a guest is made by instance.call
		}, typ.params, typ.results)
		f.SetNamespace(module)
		functions = append(functions, f)
	}
	for _, name := range cfg.functions {
		add(abi.Namespace, name, funcType{params: handle, results: handle}, func(c *call, stack []uint64) {
			stack[0] = c.host(name, stack[0])
		})
	}
	for name, typ := range cfg.kernel {
		answer := callMemoryFuncs[name]
		add(callMemoryModule, name, typ, func(c *call, stack []uint64) {
			c.check()
			answer(&c.inst.callMemory, c, stack)
		})
	}
	return functions
}

// wasiSignatures returns what the engine offers of WASI, by name. It asks the
// engine, so that the list cannot go stale.
func wasiSignatures(ctx context.Context) (map[string]string, error) {
	rt := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter())
	defer rt.Close(ctx)
	module, err := wasi_snapshot_preview1.NewBuilder(rt).Compile(ctx)
	if err != nil {
		return nil, abi.New(abi.Internal, "open host: "+err.Error())
	}
	signatures := map[string]string{}
	for name, f := range module.ExportedFunctions() {
		signatures[name] = funcType{params: valueBytes(f.ParamTypes()), results: valueBytes(f.ResultTypes())}.String()
	}
	return signatures, nil
}

// valueBytes: the engine's value types are the format's bytes.
func valueBytes(types []api.ValueType) []byte { return bytes.Clone(types) }

// emptyModule has the format's magic and version, and no section.
var emptyModule = []byte("\x00asm\x01\x00\x00\x00")

// compileEmpty compiles a module of nothing into dir.
func compileEmpty(ctx context.Context, dir string) error {
	cache, err := wazero.NewCompilationCacheWithDir(dir)
	if err != nil {
		return abi.New(abi.Unavailable, "open compile cache: "+err.Error())
	}
	defer cache.Close(ctx)
	rt := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfig().WithCompilationCache(cache))
	defer rt.Close(ctx)
	if _, err := rt.CompileModule(ctx, emptyModule); err != nil {
		return abi.New(abi.Unavailable, "open compile cache: "+firstLine(err.Error()))
	}
	return nil
}

var _ io.Reader = (*clock)(nil)
