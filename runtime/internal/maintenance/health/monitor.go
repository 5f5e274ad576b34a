package health

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/runtime/maintenance"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

const (
	interval       = time.Second            // between two looks at store and disk
	intervalHeld   = 200 * time.Millisecond // while read-only, because everything waits for the next look
	ballastDelay   = 5 * time.Second        // until there is a ballast: writing it takes longer than many processes live
	memoryInterval = time.Second            // between two looks at the memory of runs
	minFreeFiles   = 64                     // files that can still be created, below which a disk counts as full
)

// Options configure a [Monitor]. Store, Log, Hold and Well are required.
type Options struct {
	// Dir is the state folder. Default: there is none, and no disk is looked at.
	Dir string
	// MinFree is how many bytes of its disk stay free, see
	// [statefolder.LowWater].
	MinFree int64
	Store   Store
	Log     *slog.Logger
	// Changed is called when the health changes, in the order of the changes. It
	// must not call the monitor's Look. Default nil: nothing is called.
	Changed func(maintenance.Health)
	// Hold is called after each look with whether the clocks of runs stand still.
	// It must ignore repetitions.
	Hold func(hold bool)
	// Well is called after each look that finds everything well.
	Well func()
	// Runs returns the runs whose memory is watched. Default nil: none.
	Runs func() []MemoryUser
	// Disk returns the free space of a folder. Default [store.DiskOf].
	Disk func(dir string) (store.Disk, error)
}

// Store is what the monitor needs of the engine's store. Commits fail if it has a
// method Health that returns an error, and it is damaged if it has a method
// Damaged that returns one; [store.DB] has both.
type Store interface {
	Stats() store.Stats
	PutBlob(data []byte) (digest string, err error)
}

// Monitor knows whether the engine can write, and blocks what has to wait.
//
// # Concurrency
//
// Safe for concurrent use. Its goroutine looks at store and disk, and so does a
// PutBlob that meets a full disk.
type Monitor struct {
	opt  Options
	stop context.CancelFunc // nil before Start
	wg   sync.WaitGroup

	looking sync.Mutex // held by a look, so that changes are reported in their order

	mu       sync.Mutex
	now      maintenance.Health
	writable chan struct{} // nil while steps may begin; closed when they may again
	stalled  chan struct{} // closed while commits fail
	isClosed bool          // whether stalled is
	blob     error         // why a blob that is held cannot be written
	blobs    int           // how many are held
	settled  bool          // the process has lived long enough for a ballast
	unsound  *abi.Error    // the store was found damaged while it was open
	snapshot time.Time
}

// New returns a monitor that is well. Look must be called before the engine
// accepts anything.
func New(opt Options) *Monitor {
	if opt.Disk == nil {
		opt.Disk = store.DiskOf
	}
	return &Monitor{opt: opt, now: maintenance.Health{OK: true, Since: time.Now(), FreeBytes: -1}, stalled: make(chan struct{})}
}

// Start starts to watch. It must be called once.
func (m *Monitor) Start() {
	ctx, cancel := context.WithCancel(context.Background())
	m.stop = cancel
	m.wg.Go(func() { m.watch(ctx) })
	if m.opt.Runs != nil {
		m.wg.Go(func() { m.watchMemory(ctx) })
	}
}

// Stop ends watching and returns after the goroutines have ended. The other methods
// keep working with what is known. It may be called more than once, and before
// Start.
func (m *Monitor) Stop() {
	if m.stop != nil {
		m.stop()
	}
	m.wg.Wait()
}

// Health returns the health as of the newest look, with the store's figures of now:
// these cost next to nothing.
func (m *Monitor) Health() maintenance.Health {
	m.mu.Lock()
	now := m.now
	now.Snapshot = m.snapshot
	m.mu.Unlock()
	s := m.opt.Store.Stats()
	now.StoreBytes, now.StoreFree, now.Held, now.Commits = s.FileBytes, s.FreeBytes, s.Queued, s.Commits
	return now
}

// SetUnsound makes the engine unsound, because damage was found in its store.
func (m *Monitor) SetUnsound(why *abi.Error) {
	m.mu.Lock()
	m.unsound = why
	m.mu.Unlock()
	m.Look()
}

// SetSnapshot sets when the newest store snapshot was taken.
func (m *Monitor) SetSnapshot(taken time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.snapshot = taken
}

// Writable returns an error with the code unavailable if nothing new may start. A
// store whose commits have begun to fail counts at once.
func (m *Monitor) Writable() error {
	m.mu.Lock()
	now := m.now
	m.mu.Unlock()
	if !now.ReadOnly {
		err := m.failing()
		if err == nil {
			return nil
		}
		now.Reason, now.Hint = reasonOf(err), hintOf(err)
	}
	return readOnlyError(now.Reason, now.Hint)
}

// failing returns why commits fail, nil if they do not.
func (m *Monitor) failing() error {
	if s, ok := m.opt.Store.(interface{ Health() error }); ok {
		return s.Health()
	}
	return nil
}

// damaged returns the first damaged value that this process has read.
func (m *Monitor) damaged() *abi.Error {
	if s, ok := m.opt.Store.(interface{ Damaged() *store.ValueError }); ok {
		if bad := s.Damaged(); bad != nil {
			return abi.As(bad)
		}
	}
	return nil
}

// Blocked reports whether steps wait until the engine can write.
func (m *Monitor) Blocked() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.writable != nil
}

// WaitWritable returns nil when steps may begin, or the cause of ctx.
func (m *Monitor) WaitWritable(ctx context.Context) error {
	for {
		m.mu.Lock()
		writable := m.writable
		m.mu.Unlock()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if writable == nil {
			return nil
		}
		select {
		case <-writable:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// block makes steps wait, or releases them.
func (m *Monitor) block(on bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case on && m.writable == nil:
		m.writable = make(chan struct{})
	case !on && m.writable != nil:
		close(m.writable)
		m.writable = nil
	}
}
