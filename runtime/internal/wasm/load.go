package wasm

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"

	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm/binary"
	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm/compilecache"
	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm/link"
	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm/rewrite"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// LoadOptions configures the load of a module.
type LoadOptions struct {
	// Trusted marks a module that is part of the program. It runs without
	// interruption points, its functions may have any size, and its instances are
	// reused if it is stateless. Default: false.
	Trusted bool
	// Reuse allows the reuse of instances if the module declares itself stateless.
	// The operator decides. Default: false, an instance serves one call.
	Reuse bool
	// Allow is called with the manifest. Its error rejects the load and is the
	// error of Load. Default: every manifest is accepted.
	Allow func(Manifest) error
}

// Load checks, compiles and describes a module. The result has one reference,
// which the caller releases with [Module.Release]. The module keeps the bytes, which
// must not be changed afterwards.
//
// A module that is not Trusted is compiled in a child process, unless the cache has
// its code. Other loads continue meanwhile. ctx ends the child and the guest's
// describe, but not the compile of a Trusted module, because the compiler takes no
// deadline.
func (h *Host) Load(ctx context.Context, wasm []byte, opt LoadOptions) (*Module, error) {
	if !h.beginUse() {
		return nil, abi.New(abi.Cancelled, "load plugin: the host is closed")
	}
	defer h.uses.Done()
	m, scanned, err := h.check(wasm, opt.Trusted)
	if err != nil {
		return nil, err
	}
	if m.code, err = h.compile(ctx, m, scanned); err != nil {
		return nil, err
	}
	if err := m.describe(ctx, opt); err != nil {
		m.code.close()
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.modules[m] = struct{}{}
	return m, nil
}

// check checks the bytes of a module without executing them. It finds faults of
// imports and exports before the compiler does, whose errors help an author less.
func (h *Host) check(wasm []byte, trusted bool) (*Module, *binary.Module, error) {
	scanned, err := binary.Scan(wasm, trusted)
	if err != nil {
		return nil, nil, err
	}
	if need := int64(scanned.MemoryMin) * binary.PageSize; need > h.maxMemory {
		return nil, nil, abi.New(abi.Limit, fmt.Sprintf("load plugin: the module starts with %d bytes of memory, at most %d are allowed", need, h.maxMemory))
	}
	validates, err := link.Exports(scanned)
	if err != nil {
		return nil, nil, err
	}
	functions, err := link.Imports(scanned, h.wasi)
	if err != nil {
		return nil, nil, err
	}
	sum := sha256.Sum256(wasm)
	return &Module{
		host: h, digest: hex.EncodeToString(sum[:]), wasm: wasm, functions: functions, trusted: trusted,
		validates: validates, minMemory: int64(scanned.MemoryMin) * binary.PageSize, refs: 1,
	}, scanned, nil
}

// childCache returns the cache that children compile into. Without
// Options.CacheDir it is a temporary folder, which Close deletes.
func (h *Host) childCache() (*compilecache.Cache, error) {
	if h.cache != nil {
		return h.cache, nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.tempCache == nil {
		dir, err := os.MkdirTemp("", "sentinel-plugins-")
		if err != nil {
			return nil, abi.New(abi.Unavailable, "open compile cache: "+err.Error())
		}
		h.tempCache = compilecache.New(dir, compileEmpty)
	}
	return h.tempCache, nil
}

// compile compiles a module, or loads its code from the cache.
func (h *Host) compile(ctx context.Context, m *Module, scanned *binary.Module) (*compiled, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(h.ctx, func() { cancel(errClosed) })()
	cfg := compileConfig{interruptible: !m.trusted, maxMemory: h.maxMemory, functions: m.functions, callMemory: servedImports(scanned)}
	code := rewrite.Rewrite(scanned, importModule)
	if !m.trusted {
		return h.compileUntrusted(ctx, m, code, cfg)
	}
	if h.cache != nil {
		cfg.dir = h.cache.Dir(m.digest)
		h.cache.Touch(m.digest)
	}
	unlock, err := acquire(ctx, h.compiling)
	if err != nil {
		return nil, err
	}
	defer unlock()
	c, damage, err := compile(ctx, code, cfg)
	if writeErr := (*cacheWriteError)(nil); errors.As(err, &writeErr) {
		h.logger.Warn("cannot write compiled plugin code: the next start compiles it again", "digest", m.digest, "error", writeErr.cause)
		cfg.dir = ""
		c, _, err = compile(ctx, code, cfg)
	}
	if damage != nil {
		h.logger.Warn("compiled plugin code was damaged and was compiled again", "digest", m.digest, "error", damage)
	}
	return c, err
}

// compileUntrusted loads the code of an untrusted module, which a child compiles if
// the cache does not have it.
func (h *Host) compileUntrusted(ctx context.Context, m *Module, code []byte, cfg compileConfig) (*compiled, error) {
	dir, err := h.compiledDir(ctx, m, code)
	if err != nil {
		return nil, err
	}
	cfg.dir = dir
	unlock, err := acquire(ctx, h.compiling)
	if err != nil {
		return nil, err
	}
	defer unlock()
	return compileOnce(ctx, code, cfg)
}

// compiledDir ensures that the code of an untrusted module is in the cache, and
// returns its folder.
func (h *Host) compiledDir(ctx context.Context, m *Module, code []byte) (dir string, err error) {
	if len(code) > rewrite.MaxSize {
		return "", abi.New(abi.Limit, fmt.Sprintf("compile module: %d bytes with its interruption points, at most %d are allowed", len(code), rewrite.MaxSize))
	}
	cache, err := h.childCache()
	if err != nil {
		return "", err
	}
	key, err := cache.EngineKey()
	if err != nil {
		return "", err
	}
	if key != "" { // otherwise wazero interprets, and there is no code to keep
		seal, err := cache.SealName(code)
		if err != nil {
			return "", err
		}
		if err := h.ensureCompiled(ctx, cache, m.digest, seal, code); err != nil {
			return "", err
		}
	}
	return cache.Dir(m.digest), nil
}

// acquire waits for a token of a semaphore. release returns it.
func acquire(ctx context.Context, semaphore chan struct{}) (release func(), err error) {
	select {
	case semaphore <- struct{}{}:
		return func() { <-semaphore }, nil
	case <-ctx.Done():
		return nil, abi.New(abi.Cancelled, "load plugin: "+context.Cause(ctx).Error())
	}
}
