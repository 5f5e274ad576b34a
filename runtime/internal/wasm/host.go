package wasm

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	stdruntime "runtime"
	"sync"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/subprocess"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Options configures a [Host]. The zero value works.
type Options struct {
	// CacheDir holds compiled code, one folder a module, named by digest. It is
	// machine code that is trusted when read back: the folder is made 0700, and
	// one that is another user's, or that others may write to, is refused.
	// Processes of one user may share it. Default: none, compiled code lives in
	// memory and in a folder for temporary files that Close deletes.
	CacheDir string
	// Child starts the processes in which modules that are not Trusted are
	// compiled, a program whose main begins with [ServeChild]. Default none: only
	// those whose compiled code is in CacheDir can be loaded.
	Child subprocess.Command
	// CompileTime bounds the processor time of such a compile; on a busy machine
	// it may take four times as long. Default: 30 s.
	CompileTime time.Duration
	// CompileMemory bounds its memory, in bytes. Default: 1 GiB.
	CompileMemory int64
	// Logger receives what an operator should know, such as a damaged cache.
	// Default: discard.
	Logger *slog.Logger
	// MaxMemoryBytes bounds Limits.MemoryBytes of any call. Default: 1 GiB.
	MaxMemoryBytes int64
	// MaxResidentBytes bounds the linear memory of all instances together; a
	// guest that would pass it fails with code unavailable. Default: 4 GiB.
	MaxResidentBytes int64
	// MaxIdle is how many idle instances of one pooled module are kept.
	// Default: 4.
	MaxIdle int
}

// Host loads modules and owns what they share: the memory arena, the compile
// cache and the compile lock.
type Host struct {
	logger    *slog.Logger
	cache     *cache // nil: none is kept
	maxMemory int64
	maxIdle   int
	wasi      map[string]string // signatures by name
	arena     *arena
	compiling chan struct{} // holds one token: who has it compiles, or loads compiled code

	child         subprocess.Command
	children      chan struct{} // holds a token for each child at work
	compileTime   time.Duration // of processor
	compileMemory int64
	schemaTime    time.Duration // of processor
	schemaMemory  int64
	describing    chan struct{} // holds a token for each load that executes describe
	describeTime  time.Duration // see describe.go
	threadTime    func() (time.Duration, bool)

	ctx    context.Context // ends when the host closes
	cancel context.CancelFunc

	mu      sync.Mutex
	closed  bool
	using   sync.WaitGroup // loads, calls and prunes in flight
	modules map[*Module]struct{}
	flights flights
	scratch *cache // of modules compiled apart, where no cache is kept
}

// maxChildren is how many compile at once. Each takes up to two processors.
const maxChildren = 2

// Open makes a host. It creates CacheDir if it is not there and takes the
// rights of others on it away. Where it cannot be made, as on a full disk, the
// host works without a cache.
func Open(opt Options) (*Host, error) {
	h := &Host{
		logger: opt.Logger, maxMemory: opt.MaxMemoryBytes, maxIdle: opt.MaxIdle,
		compiling: make(chan struct{}, 1), modules: map[*Module]struct{}{},
		child: opt.Child, children: make(chan struct{}, maxChildren), flights: flights{},
		compileTime: opt.CompileTime, compileMemory: opt.CompileMemory, schemaTime: schemaTime, schemaMemory: schemaMemory,
		describing: make(chan struct{}, max(2, stdruntime.GOMAXPROCS(0))), describeTime: describeTime, threadTime: threadTime,
	}
	if h.logger == nil {
		h.logger = slog.New(slog.DiscardHandler)
	}
	if h.maxMemory <= 0 {
		h.maxMemory = 1 << 30
	}
	if most := int64(maxPages)*pageSize - kernelSpare; h.maxMemory > most {
		return nil, abi.New(abi.BadFields, fmt.Sprintf("open host: MaxMemoryBytes is %d, at most %d can be addressed", h.maxMemory, most))
	}
	if h.maxIdle <= 0 {
		h.maxIdle = 4
	}
	resident := opt.MaxResidentBytes
	if resident <= 0 {
		resident = 4 << 30
	}
	h.arena = newArena(resident)
	h.arena.relieve = h.relieve
	if h.compileTime <= 0 {
		h.compileTime = 30 * time.Second
	}
	if h.compileMemory <= 0 {
		h.compileMemory = 1 << 30
	}
	var err error
	if opt.CacheDir != "" {
		if h.cache, err = openCache(opt.CacheDir); err != nil && abi.CodeOf(err) == abi.Denied {
			return nil, err
		} else if err != nil { // a full disk must not keep a program from starting
			h.logger.Warn("there is no cache of compiled plugins: each start compiles them", "folder", opt.CacheDir, "error", err)
		}
	}
	if h.wasi, err = wasiSignatures(context.Background()); err != nil {
		return nil, err
	}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	return h, nil
}

// LoadOptions says how a module may be used.
type LoadOptions struct {
	// Trusted marks a module of our own: it runs without interruption points,
	// its functions may be of any size, and a stateless one is pooled.
	// Default: false.
	Trusted bool
	// Reuse pools instances of a module that declares itself stateless, as the
	// operator allowed. Default: false, an instance serves one call.
	Reuse bool
	// Allow is asked once the manifest is known; its error refuses the load and
	// is returned as it is. Default: nothing is refused.
	Allow func(Manifest) error
}

// Load checks, compiles and describes a module. The caller holds the one
// reference of the result and gives it back with [Module.Release]. It keeps the
// bytes, which must not be changed afterwards.
//
// A module that is not Trusted is compiled in a child process, unless it was
// before; other loads go on meanwhile. ctx ends that and the guest's describe,
// but not the compile of a Trusted one: the compiler takes no deadline.
func (h *Host) Load(ctx context.Context, wasm []byte, opt LoadOptions) (*Module, error) {
	if !h.enter() {
		return nil, abi.New(abi.Cancelled, "load plugin: the host is closed")
	}
	defer h.using.Done()
	m, l, err := h.check(wasm, opt.Trusted)
	if err != nil {
		return nil, err
	}
	if m.code, err = h.compile(ctx, m, l); err != nil {
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

// check looks at a module's bytes. The order is that of what a check costs and of
// what it may trust: names the plugin's author should see come before the
// compiler's own words.
func (h *Host) check(wasm []byte, trusted bool) (*Module, *layout, error) {
	l, err := scan(wasm, trusted)
	if err != nil {
		return nil, nil, err
	}
	if need := int64(l.memMin) * pageSize; need > h.maxMemory {
		return nil, nil, abi.New(abi.Limit, fmt.Sprintf("load plugin: it starts with %d bytes of memory, at most %d are allowed", need, h.maxMemory))
	}
	validates, err := l.checkExports()
	if err != nil {
		return nil, nil, err
	}
	functions, err := l.checkImports(h.wasi)
	if err != nil {
		return nil, nil, err
	}
	sum := sha256.Sum256(wasm)
	return &Module{
		host: h, digest: hex.EncodeToString(sum[:]), wasm: wasm, functions: functions, trusted: trusted,
		validates: validates, needs: int64(l.memMin) * pageSize, refs: 1,
	}, l, nil
}

// apartCache returns the cache that a child compiles into. Where none is kept it
// is a folder that lives as long as the host.
func (h *Host) apartCache() (*cache, error) {
	if h.cache != nil {
		return h.cache, nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.scratch == nil {
		dir, err := os.MkdirTemp("", "sentinel-plugins-")
		if err != nil {
			return nil, abi.New(abi.Unavailable, "open compile cache: "+err.Error())
		}
		h.scratch = newCache(dir)
	}
	return h.scratch, nil
}

// compile makes a module's machine code, or loads it.
func (h *Host) compile(ctx context.Context, m *Module, l *layout) (*compiled, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(h.ctx, func() { cancel(errClosed) })()
	cfg := compileConfig{interruptible: !m.trusted, maxMemory: h.maxMemory, functions: m.functions, kernel: l.callMemoryImports()}
	code := rewrite(l)
	if !m.trusted {
		return h.compileOthers(ctx, m, code, cfg)
	}
	if h.cache != nil {
		cfg.dir = h.cache.dir(m.digest)
		h.cache.touch(m.digest)
	}
	free, err := h.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer free()
	c, healed, err := compile(ctx, code, cfg)
	if full := (*keepError)(nil); errors.As(err, &full) {
		h.logger.Warn("compiled plugin code is not kept: the next start compiles it again", "digest", m.digest, "error", full.disk)
		cfg.dir = ""
		c, _, err = compile(ctx, code, cfg)
	}
	if healed != nil {
		h.logger.Warn("compiled plugin code was damaged and is made anew", "digest", m.digest, "error", healed)
	}
	return c, err
}

// compileOthers loads what a child has compiled, now or before.
func (h *Host) compileOthers(ctx context.Context, m *Module, code []byte, cfg compileConfig) (*compiled, error) {
	dir, err := h.ensure(ctx, m, code)
	if err != nil {
		return nil, err
	}
	cfg.dir = dir
	free, err := h.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer free()
	return compileOnce(ctx, code, cfg)
}

// ensure sees to it that the code of a module which is not trusted is in the
// cache, and returns the folder it is in.
func (h *Host) ensure(ctx context.Context, m *Module, code []byte) (dir string, err error) {
	if len(code) > maxRewritten {
		return "", abi.New(abi.Limit, fmt.Sprintf("compile module: %d bytes with its interruption points, at most %d are allowed", len(code), maxRewritten))
	}
	cache, err := h.apartCache()
	if err != nil {
		return "", err
	}
	made, err := cache.made()
	if err != nil {
		return "", err
	}
	// Where the engine interprets there is nothing that takes long or is kept.
	if made != "" {
		seal, err := cache.sealName(code)
		if err != nil {
			return "", err
		}
		if err := h.apart(ctx, cache, m.digest, seal, code); err != nil {
			return "", err
		}
	}
	return cache.dir(m.digest), nil
}

// lock waits for the one token of those who work with the compiler.
func (h *Host) lock(ctx context.Context) (free func(), err error) {
	select {
	case h.compiling <- struct{}{}:
		return func() { <-h.compiling }, nil
	case <-ctx.Done():
		return nil, abi.New(abi.Cancelled, "load plugin: "+context.Cause(ctx).Error())
	}
}

// enter counts a user of the host in; it reports false once Close has begun.
func (h *Host) enter() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return false
	}
	h.using.Add(1)
	return true
}

// MemoryBytes returns the linear memory that all instances hold at this
// moment, call kernels included.
func (h *Host) MemoryBytes() int64 { return h.arena.resident.Load() }

// Modules returns how many modules are loaded, those that no one holds any more and
// whose last call has not ended included.
func (h *Host) Modules() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.modules)
}

// Prune deletes the compiled code of modules that no process has loaded for so
// long, except those that are loaded here or named in keep, by digest. Deleted
// code is compiled again when it is needed.
func (h *Host) Prune(unused time.Duration, keep ...string) error {
	if h.cache == nil || !h.enter() {
		return nil
	}
	defer h.using.Done()
	h.mu.Lock()
	for m := range h.modules {
		keep = append(keep, m.digest)
	}
	for digest := range h.flights {
		keep = append(keep, digest)
	}
	h.mu.Unlock()
	return h.cache.prune(unused, keep)
}

// Close stops the calls in flight, waits for them, and frees every module,
// whatever references are left. It waits for a compile to end, and for a
// Trusted guest to make its next host call or return. Further calls do nothing.
func (h *Host) Close() error {
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return nil
	}
	h.closed = true
	h.mu.Unlock()
	h.cancel()
	h.using.Wait()
	h.mu.Lock()
	modules := make([]*Module, 0, len(h.modules))
	for m := range h.modules {
		modules = append(modules, m)
	}
	h.mu.Unlock()
	for _, m := range modules {
		m.close()
	}
	h.arena.close()
	if h.scratch == nil {
		return nil
	}
	return os.RemoveAll(h.scratch.root) // nobody is left who could make another
}
