package wasm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	stdruntime "runtime"

	extism "github.com/extism/go-sdk"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm/binary"
	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm/compilecache"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Only this file, guest_error.go, instance*.go, listener.go and wasi.go use the types
// of wazero and of the Extism SDK.

// callMemorySpare is how many bytes the call memory may hold beyond a guest's memory
// limit: the input twice, because guests copy it.
const callMemorySpare = 2 * maxInput

// compiled is the machine code of one module. It has a compilation cache of its own,
// because closing a shared one is the only way to free the code of old versions.
type compiled struct {
	plugin *extism.CompiledPlugin
	cache  wazero.CompilationCache
}

func (c *compiled) close() {
	ctx := context.Background()
	_ = c.plugin.Close(ctx) // only frees memory
	_ = c.cache.Close(ctx)
}

// compileConfig configures the compile of one module.
type compileConfig struct {
	dir           string   // folder of the module's compiled code; "" for none
	interruptible bool     // makes loops of a guest five to eight times as slow
	maxMemory     int64    // bytes, the highest limit of any call
	functions     []string // host functions that the module imports
	// callMemory has the imports that the call memory serves.
	callMemory map[string]binary.FuncType
}

// compile compiles a rewritten module, or loads its code from dir. wazero checks the
// code with a CRC, and a file that it cannot read would fail every later load. After
// a failure with an existing dir compile therefore deletes dir and compiles once
// more. damage is the first error in that case.
func compile(ctx context.Context, wasm []byte, cfg compileConfig) (c *compiled, damage error, err error) {
	_, statErr := os.Stat(cfg.dir)
	old := cfg.dir != "" && statErr == nil
	if c, err = compileOnce(ctx, wasm, cfg); err == nil || !old {
		return c, nil, err
	}
	damage = err
	if err := os.RemoveAll(cfg.dir); err != nil {
		return nil, nil, abi.New(abi.Internal, "clear compile cache: "+err.Error())
	}
	if c, err = compileOnce(ctx, wasm, cfg); err != nil {
		return nil, nil, err
	}
	return c, damage, nil
}

// compileOnce compiles a rewritten module, or loads its code from the folder of cfg.
func compileOnce(ctx context.Context, wasm []byte, cfg compileConfig) (c *compiled, err error) {
	cache := wazero.NewCompilationCache()
	if cfg.dir != "" {
		if cache, err = wazero.NewCompilationCacheWithDir(cfg.dir); err != nil {
			return nil, abi.New(abi.Internal, "open compile cache: "+err.Error())
		}
	}
	defer func() {
		if fault := recover(); fault != nil {
			err = abi.New(abi.BadFields, fmt.Sprintf("compile module: the compiler panicked: %v", fault))
		}
		if err != nil {
			_ = cache.Close(context.Background())
		}
	}()
	// Debug information would be parsed from untrusted custom sections.
	rc := wazero.NewRuntimeConfig().WithCompilationCache(cache).WithDebugInfoEnabled(false).
		WithCloseOnContextDone(cfg.interruptible)
	manifest := extism.Manifest{
		Wasm: []extism.Wasm{extism.WasmData{Data: wasm}},
		// Zero bytes for variables and HTTP responses disable both.
		Memory: &extism.ManifestMemory{MaxPages: uint32((cfg.maxMemory + callMemorySpare) / binary.PageSize)},
	}
	// Compiles are serialised, so each may use several processors.
	ctx = experimental.WithCompilationWorkers(ctx, min(4, stdruntime.GOMAXPROCS(0)))
	ctx = experimental.WithFunctionListenerFactory(ctx, listeners{})
	plugin, err := extism.NewCompiledPlugin(ctx, manifest, extism.PluginConfig{RuntimeConfig: rc, EnableWasi: true}, hostFunctions(cfg))
	var diskErr *fs.PathError
	if errors.As(err, &diskErr) {
		return nil, &cacheWriteError{diskErr}
	}
	if err != nil {
		return nil, abi.New(abi.BadFields, "compile module: "+firstLine(err.Error()))
	}
	return &compiled{plugin: plugin, cache: cache}, nil
}

// cacheWriteError is returned for a module that was compiled, but whose code could
// not be written to the cache.
type cacheWriteError struct{ cause *fs.PathError }

func (e *cacheWriteError) Error() string { return e.Unwrap().Error() }

func (e *cacheWriteError) Unwrap() error {
	return abi.New(abi.Unavailable, "compile module: write compiled code: "+e.cause.Error())
}

// hostFunctions returns the host functions that a module imports, and those of the
// call memory. Each finds its call in the ctx.
func hostFunctions(cfg compileConfig) []extism.HostFunction {
	functions := make([]extism.HostFunction, 0, len(cfg.functions)+len(cfg.callMemory))
	handle := []extism.ValueType{extism.ValueTypePTR}
	add := func(module, name string, typ binary.FuncType, answer func(c *call, stack []uint64)) {
		f := extism.NewHostFunctionWithStack(name, func(ctx context.Context, _ *extism.CurrentPlugin, stack []uint64) {
			answer(callFrom(ctx), stack) // instance.call makes every call into a guest
		}, typ.Params, typ.Results)
		f.SetNamespace(module)
		functions = append(functions, f)
	}
	for _, name := range cfg.functions {
		add(abi.Namespace, name, binary.FuncType{Params: handle, Results: handle}, func(c *call, stack []uint64) {
			stack[0] = c.hostCall(name, stack[0])
		})
	}
	for name, typ := range cfg.callMemory {
		serve := callMemoryFuncs[name]
		add(callMemoryModule, name, typ, func(c *call, stack []uint64) {
			c.checkEnded()
			serve(c.inst.callMemory, c, stack)
		})
	}
	return functions
}

// wasiSignatures returns the signatures of the WASI functions of wazero, by name.
func wasiSignatures(ctx context.Context) (map[string]string, error) {
	rt := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter())
	defer rt.Close(ctx)
	module, err := wasi_snapshot_preview1.NewBuilder(rt).Compile(ctx)
	if err != nil {
		return nil, abi.New(abi.Internal, "open host: "+err.Error())
	}
	signatures := map[string]string{}
	for name, f := range module.ExportedFunctions() {
		signatures[name] = binary.FuncType{Params: valueBytes(f.ParamTypes()), Results: valueBytes(f.ResultTypes())}.String()
	}
	return signatures, nil
}

// valueBytes converts value types, whose values are the bytes of the binary format.
func valueBytes(types []api.ValueType) []byte { return bytes.Clone(types) }

// CheckCache creates a folder for compiled code and returns an error if it cannot be
// used as one: this user must own it, this process must be able to write to it, and
// no other user may.
func CheckCache(dir string) error { return compilecache.Check(dir) }

// emptyModule is a module without sections.
var emptyModule = []byte("\x00asm\x01\x00\x00\x00")

// compileEmpty compiles emptyModule into dir.
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
