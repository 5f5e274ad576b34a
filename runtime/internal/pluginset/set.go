package pluginset

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/sentinel-runtime/sentinel/runtime/internal/failure"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm"
	"github.com/sentinel-runtime/sentinel/runtime/plugin"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Options are what a set needs. All but Grants, CheckPermission, CheckRole and Changed are required.
type Options struct {
	Host  *wasm.Host
	Blobs Blobs
	// WasTrusted reports whether a digest was loaded as trusted by any release.
	WasTrusted func(digest string) bool
	// Grants returns what plugins that are not trusted may do. Default nil: those
	// that ask for nothing are live, all others are refused.
	Grants plugin.Grants
	// CheckPermission returns why a name that a plugin asks for could never be compared
	// with what it uses. Default nil: all names are taken.
	CheckPermission func(use abi.Use, name string) error
	// CheckRole returns why a role of a plugin that is not trusted cannot be used, such as
	// the name of a command that is part of the program. Default nil: all roles are taken.
	CheckRole func(p plugin.Provided) error
	// Changed is called when a plugin becomes live, begins to wait or is refused;
	// calls come one after the other. Default nil: nothing is called.
	Changed func(plugin.Info)
	// Alive returns why nothing may be changed any more, nil before.
	Alive       func() error
	Plugins     int   // that are not trusted and live, at most
	PluginBytes int64 // of their files together, at most
	Log         *slog.Logger
}

// Blobs keep the code of plugins by digest.
type Blobs interface {
	PutBlob(data []byte) (digest string, err error)
	Blob(digest string) ([]byte, error)
}

// A Set is the step types of one engine and the modules behind them.
//
// # Concurrency
//
// Safe for concurrent use. No guest is compiled or executed while a mutex is held
// that an execution needs.
type Set struct {
	opt     Options
	loading sync.Mutex  // held while the live plugins change, but not while a plugin that is not trusted is executed
	opened  atomic.Bool // the plugins of LoadAll are loaded

	mu       sync.Mutex
	live     *Table
	swapped  chan struct{}      // closed when another table becomes live
	byDigest map[string]*Module // every module in memory
	idle     []*Module          // those that are not held, the oldest first
	infos    []plugin.Info
	waits    map[string]plugin.Info // by source, versions that the operator has to decide about; their code is a blob
	asked    int                    // how often all grants were asked for again
	faults   faults                 // of classifiers; it has a lock of its own
	unkept   map[string][]byte      // code by digest that is not in the store yet: the disk was full
}

// New returns a set without plugins.
func New(opt Options) *Set {
	return &Set{opt: opt, live: emptyTable(), swapped: make(chan struct{}), byDigest: map[string]*Module{}, waits: map[string]plugin.Info{}, unkept: map[string][]byte{}}
}

// keep puts a module's code into the store, where a later release finds it for a
// step that this one parked. On a full disk that is done later, see [Set.KeepRest]: a
// program must not fail to start without it.
func (s *Set) keep(digest string, code []byte) error {
	_, err := s.opt.Blobs.PutBlob(code)
	if !store.IsFull(err) {
		return err
	}
	s.opt.Log.Warn("code of a plugin is not kept yet: the disk is full", "digest", digest, "error", err)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unkept[digest] = code
	return nil
}

// KeepRest puts the code into the store for which there was no space.
func (s *Set) KeepRest() {
	s.mu.Lock()
	rest := maps.Clone(s.unkept)
	s.mu.Unlock()
	for digest, code := range rest {
		if _, err := s.opt.Blobs.PutBlob(code); err != nil {
			return // the next look tries again
		}
		s.mu.Lock()
		delete(s.unkept, digest)
		s.mu.Unlock()
	}
}

// Types returns the step types that are live now.
func (s *Set) Types() *sentinels.TypeSet {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.live.types
}

// Digests returns those of the modules in memory, and of those that wait.
func (s *Set) Digests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]string, 0, len(s.byDigest))
	for d := range s.byDigest {
		all = append(all, d)
	}
	for _, w := range s.waits {
		all = append(all, w.Digest)
	}
	return all
}

// List returns the plugins that were loaded or tried, in that order.
func (s *Set) List() []plugin.Info {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := slices.Clone(s.infos)
	s.markActive(list)
	return list
}

// Modules returns how many modules are in memory, and how many of them are held: by
// the live table or by a view.
func (s *Set) Modules() (all, held int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.byDigest), len(s.byDigest) - len(s.idle)
}

// Absent returns why no plugin provides a step type, nil if no plugin
// that waits has it.
func (s *Set) Absent(t sentinels.StepType) *abi.Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, i := range s.infos {
		if i.State == plugin.Waiting && slices.Contains(i.Types, t) {
			e := failure.New(abi.Denied, "step type %q is provided by plugin %q, which waits for approval", t, i.Name)
			e.Hint = "sentinel plugin allow " + i.Name
			return e
		}
	}
	return nil
}

// Put makes a module live that was not compiled from a file: tests of the engine
// put Go functions here. One that is not trusted is asked about like any other.
func (s *Set) Put(ctx context.Context, l Loaded, trusted bool, info plugin.Info) error {
	s.loading.Lock()
	defer s.loading.Unlock()
	m, err := newModule(l, trusted)
	if err != nil {
		return err
	}
	if !trusted {
		describe(&info, l.Digest(), l.Manifest())
		grant, err := s.ask(ctx, info)
		if err != nil {
			return err
		}
		m.allow(&grant)
	}
	return s.replace("", m, &info)
}
