package wasm

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	stdruntime "runtime"
	"sync"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/subprocess"
	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm/binary"
	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm/compilecache"
	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm/memory"
	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm/pool"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Options configures a [Host]. The zero value works.
type Options struct {
	// CacheDir holds compiled code, in one folder for each module, named by digest.
	// The code is executed when it is loaded again: the folder gets mode 0700, and
	// one that another user owns or can write to is rejected. Processes of one user
	// may share it. Default: none, compiled code is in memory and in a temporary
	// folder that Close deletes.
	CacheDir string
	// Child is the program whose processes compile modules that are not Trusted.
	// Its main begins with [ServeChild]. Default: none, only modules whose compiled
	// code is in CacheDir can be loaded.
	Child subprocess.Command
	// CompileTime limits the processor time of a compile in a child, and its real
	// time to four times as much. Default: 30 s.
	CompileTime time.Duration
	// CompileMemory limits the memory of such a child, in bytes. Default: 1 GiB.
	CompileMemory int64
	// Logger receives warnings for the operator, such as a damaged cache.
	// Default: discard.
	Logger *slog.Logger
	// MaxMemoryBytes limits Limits.MemoryBytes of any call. Default: 1 GiB.
	MaxMemoryBytes int64
	// MaxResidentBytes limits the linear memory of all instances together. A guest
	// that would exceed it fails with code unavailable. Default: 4 GiB.
	MaxResidentBytes int64
	// MaxIdleBytes limits the linear memory of all idle instances that are kept for
	// reuse. The oldest are closed first, and those that are idle for a minute.
	// Default: 256 MiB.
	MaxIdleBytes int64
}

// Host loads modules and owns what they share: the memory arena, the compile cache
// and the semaphores of compiles.
type Host struct {
	logger    *slog.Logger
	cache     *compilecache.Cache // nil without CacheDir
	maxMemory int64
	idle      *pool.Idle[*instance]
	wasi      map[string]string // signatures by name
	arena     *memory.Arena
	compiling chan struct{} // semaphore of compiles, and loads of compiled code, in this process

	child         subprocess.Command
	children      chan struct{} // semaphore of child processes
	compileTime   time.Duration // processor time
	compileMemory int64
	schemaTime    time.Duration // processor time
	schemaMemory  int64
	describing    chan struct{} // semaphore of loads that execute describe
	describeTime  time.Duration
	threadTime    func() (time.Duration, bool)

	ctx    context.Context // ends when the host closes
	cancel context.CancelFunc

	mu        sync.Mutex
	closed    bool
	uses      sync.WaitGroup // loads, calls and prunes in flight
	modules   map[*Module]struct{}
	inFlight  inFlight
	tempCache *compilecache.Cache // of child compiles, without CacheDir
}

// maxChildren is how many children work at once. Each uses at most two processors.
const maxChildren = 2

// Open opens a host. It creates CacheDir if it does not exist, and removes the
// permissions of other users on it. If it cannot be created, as on a full disk, the
// host works without a cache.
func Open(opt Options) (*Host, error) {
	h := &Host{
		logger: opt.Logger, maxMemory: opt.MaxMemoryBytes,
		compiling: make(chan struct{}, 1), modules: map[*Module]struct{}{},
		child: opt.Child, children: make(chan struct{}, maxChildren), inFlight: inFlight{},
		compileTime: opt.CompileTime, compileMemory: opt.CompileMemory, schemaTime: schemaTime, schemaMemory: schemaMemory,
		describing: make(chan struct{}, max(2, stdruntime.GOMAXPROCS(0))), describeTime: describeTime, threadTime: threadTime,
	}
	if h.logger == nil {
		h.logger = slog.New(slog.DiscardHandler)
	}
	if h.maxMemory <= 0 {
		h.maxMemory = 1 << 30
	}
	if most := int64(binary.MaxPages)*binary.PageSize - callMemorySpare; h.maxMemory > most {
		return nil, abi.New(abi.BadFields, fmt.Sprintf("open host: MaxMemoryBytes is %d, at most %d can be addressed", h.maxMemory, most))
	}
	idle := opt.MaxIdleBytes
	if idle <= 0 {
		idle = 256 << 20
	}
	h.idle = pool.NewIdle[*instance](idle)
	resident := opt.MaxResidentBytes
	if resident <= 0 {
		resident = 4 << 30
	}
	h.arena = memory.NewArena(resident, h.reclaimMemory)
	if h.compileTime <= 0 {
		h.compileTime = 30 * time.Second
	}
	if h.compileMemory <= 0 {
		h.compileMemory = 1 << 30
	}
	var err error
	if opt.CacheDir != "" {
		if h.cache, err = compilecache.Open(opt.CacheDir, compileEmpty); err != nil && abi.CodeOf(err) == abi.Denied {
			return nil, err
		} else if err != nil { // a full disk must not prevent the start of a program
			h.logger.Warn("cannot use the cache of compiled plugins: each start compiles them", "folder", opt.CacheDir, "error", err)
		}
	}
	if h.wasi, err = wasiSignatures(context.Background()); err != nil {
		return nil, err
	}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	return h, nil
}

// beginUse begins a use of the host, which ends with uses.Done. It reports false
// once Close has begun.
func (h *Host) beginUse() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return false
	}
	h.uses.Add(1)
	return true
}

// MemoryBytes returns the memory of all instances, in bytes: their linear memories
// and call memories.
func (h *Host) MemoryBytes() int64 { return h.arena.Resident() }

// Modules returns how many modules are loaded, including those without references
// whose last call has not ended.
func (h *Host) Modules() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.modules)
}

// Prune deletes the compiled code of modules that no process has loaded for the time
// unused, except modules that this host has loaded and digests in keep. Deleted code
// is compiled again when it is needed.
func (h *Host) Prune(unused time.Duration, keep ...string) error {
	if h.cache == nil || !h.beginUse() {
		return nil
	}
	defer h.uses.Done()
	h.mu.Lock()
	for m := range h.modules {
		keep = append(keep, m.digest)
	}
	for digest := range h.inFlight {
		keep = append(keep, digest)
	}
	h.mu.Unlock()
	return h.cache.Prune(unused, keep)
}

// Close cancels the calls in flight, waits for them, and frees every module,
// including those that have references. It waits for the end of a compile, and for
// the next host call or the return of a Trusted guest. Further calls do nothing.
func (h *Host) Close() error {
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return nil
	}
	h.closed = true
	h.mu.Unlock()
	h.cancel()
	h.uses.Wait()
	h.mu.Lock()
	modules := make([]*Module, 0, len(h.modules))
	for m := range h.modules {
		modules = append(modules, m)
	}
	h.mu.Unlock()
	for _, m := range modules {
		m.close()
	}
	h.arena.Close()
	if h.tempCache == nil {
		return nil
	}
	return os.RemoveAll(h.tempCache.Root()) // no use is left that could create another
}
