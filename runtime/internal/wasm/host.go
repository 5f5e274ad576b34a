package wasm

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Options configures a [Host]. The zero value works.
type Options struct {
	// CacheDir holds compiled code, one folder a module, named by digest. It is
	// machine code that is trusted when read back: the folder is made 0700 and
	// must not be shared. Default: none, compiled code lives in memory only.
	CacheDir string
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
	cacheDir  string
	maxMemory int64
	maxIdle   int
	wasi      map[string]string // signatures by name
	arena     *arena
	compiling chan struct{} // holds one token: who has it compiles

	ctx    context.Context // ends when the host closes
	cancel context.CancelFunc

	mu      sync.Mutex
	closed  bool
	using   sync.WaitGroup // loads and calls in flight
	modules map[*Module]struct{}
}

// Open makes a host. It creates CacheDir if it is not there and takes the
// rights of others on it away.
func Open(opt Options) (*Host, error) {
	h := &Host{
		logger: opt.Logger, cacheDir: opt.CacheDir, maxMemory: opt.MaxMemoryBytes, maxIdle: opt.MaxIdle,
		compiling: make(chan struct{}, 1), modules: map[*Module]struct{}{},
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
	if h.cacheDir != "" {
		if err := ownDir(h.cacheDir); err != nil {
			return nil, err
		}
	}
	var err error
	if h.wasi, err = wasiSignatures(context.Background()); err != nil {
		return nil, err
	}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	return h, nil
}

// ownDir makes a folder that nobody else can read or write.
func ownDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return abi.New(abi.Internal, "open compile cache: "+err.Error())
	}
	info, err := os.Stat(dir)
	if err == nil && info.Mode().Perm()&0o077 != 0 {
		err = os.Chmod(dir, 0o700) // fails for a folder of somebody else, as it should
	}
	if err != nil {
		return abi.New(abi.Internal, "open compile cache: "+err.Error())
	}
	return nil
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

// describeTime bounds the guest's own time in describe and validate.
const describeTime = 10 * time.Second

// Load checks, compiles and describes a module. The caller holds the one
// reference of the result and gives it back with [Module.Release]. It keeps the
// bytes, which must not be changed afterwards.
//
// ctx ends the wait for the compile lock and the guest's describe, but not a
// compile that has begun: the compiler takes no deadline.
func (h *Host) Load(ctx context.Context, wasm []byte, opt LoadOptions) (*Module, error) {
	if !h.enter() {
		return nil, abi.New(abi.Cancelled, "load plugin: the host is closed")
	}
	defer h.using.Done()
	// The order is that of what a check costs and of what it may trust: names
	// the plugin's author should see come before the compiler's own words.
	l, err := scan(wasm, opt.Trusted)
	if err != nil {
		return nil, err
	}
	if need := int64(l.memMin) * pageSize; need > h.maxMemory {
		return nil, abi.New(abi.Limit, fmt.Sprintf("load plugin: it starts with %d bytes of memory, at most %d are allowed", need, h.maxMemory))
	}
	validates, err := l.checkExports()
	if err != nil {
		return nil, err
	}
	functions, err := l.checkImports(h.wasi)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(wasm)
	m := &Module{
		host: h, digest: hex.EncodeToString(sum[:]), wasm: wasm, functions: functions, trusted: opt.Trusted,
		validates: validates, needs: int64(l.memMin) * pageSize, refs: 1,
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

// compile compiles one module at a time.
func (h *Host) compile(ctx context.Context, m *Module, l *layout) (*compiled, error) {
	select {
	case h.compiling <- struct{}{}:
		defer func() { <-h.compiling }()
	case <-ctx.Done():
		return nil, abi.New(abi.Cancelled, "load plugin: "+context.Cause(ctx).Error())
	case <-h.ctx.Done():
		return nil, abi.New(abi.Cancelled, "load plugin: the host is closing")
	}
	code, healed, err := compile(ctx, rewrite(l), compileConfig{
		dir: cacheDir(h.cacheDir, m.digest), interruptible: !m.trusted, maxMemory: h.maxMemory, functions: m.functions, kernel: l.kernelImports(),
	})
	if healed != nil {
		h.logger.Warn("compiled plugin code was damaged and is made anew", "digest", m.digest, "error", healed)
	}
	return code, err
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

// Prune deletes the compiled code of every module that is neither loaded nor
// named in keep, by digest. Deleted code is compiled again when it is needed.
func (h *Host) Prune(keep ...string) error {
	if h.cacheDir == "" {
		return nil
	}
	// A load that begins meanwhile could lose its folder; it waits instead.
	h.compiling <- struct{}{}
	defer func() { <-h.compiling }()
	h.mu.Lock()
	for m := range h.modules {
		keep = append(keep, m.digest)
	}
	h.mu.Unlock()
	entries, err := os.ReadDir(h.cacheDir)
	if err != nil {
		return abi.New(abi.Internal, "prune compile cache: "+err.Error())
	}
	for _, e := range entries {
		if digest, err := hex.DecodeString(e.Name()); err != nil || len(digest) != sha256.Size || slices.Contains(keep, e.Name()) {
			continue
		}
		if err := os.RemoveAll(filepath.Join(h.cacheDir, e.Name())); err != nil {
			return abi.New(abi.Internal, "prune compile cache: "+err.Error())
		}
	}
	return nil
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
	return nil
}
