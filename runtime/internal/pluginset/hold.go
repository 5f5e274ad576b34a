package pluginset

import (
	"context"
	"slices"

	"github.com/sentinel-runtime/sentinel/runtime/internal/failure"
	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// keepIdle bounds the compiled code of old versions, some megabytes each for
// guests in Go: it is how many modules without a user stay compiled: runs that
// continue one after the other on the same old version load it once.
const keepIdle = 4

// Use holds the live table, and with it every module in it.
func (s *Set) Use() *Table {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.live.users++
	return s.live
}

// Done releases a table; the last one releases its modules.
func (s *Set) Done(t *Table) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.users--; t.users == 0 {
		for _, m := range t.modules {
			s.release(m)
		}
	}
}

// hold counts a holder of m more. The caller has the mutex.
func (s *Set) hold(m *Module) {
	if m.holders == 0 {
		s.idle = slices.DeleteFunc(s.idle, func(i *Module) bool { return i == m })
	}
	if m.holders++; m.holders == 1 || s.byDigest[m.Digest()] == nil {
		s.byDigest[m.Digest()] = m
	}
}

// release counts a holder less. The caller has the mutex.
func (s *Set) release(m *Module) {
	if m.holders--; m.holders > 0 {
		return
	}
	s.idle = append(s.idle, m)
	for len(s.idle) > keepIdle {
		old := s.idle[0]
		s.idle = s.idle[1:]
		if s.byDigest[old.Digest()] == old { // else another one has its place
			delete(s.byDigest, old.Digest())
		}
		if w, ok := old.Loaded.(*wasm.Module); ok {
			w.Release()
		}
	}
}

// module holds the module that an earlier attempt started with, from memory or
// from its blob.
func (s *Set) module(ctx context.Context, digest string) (*Module, error) {
	s.mu.Lock()
	if m, ok := s.byDigest[digest]; ok {
		s.hold(m)
		s.mu.Unlock()
		return m, nil
	}
	s.mu.Unlock()
	code, err := s.opt.Blobs.Blob(digest)
	if err != nil {
		return nil, failure.New(abi.NotFound, "the plugin with digest %.12s, which this step started with, is gone: %v", digest, err)
	}
	// Compiled without the mutex, since that may take a second. Two that ask for the
	// same one compile it twice, the second from the cache, and one is dropped.
	//
	// One that was trusted when it was live here is so again; any other one is
	// asked about, and continues without what it is not allowed any more.
	trusted := s.opt.WasTrusted(digest)
	loaded, err := s.opt.Host.Load(ctx, code, wasm.LoadOptions{Trusted: trusted})
	if err != nil {
		return nil, err
	}
	m, err := newModule(loaded, trusted)
	if err != nil {
		loaded.Release()
		return nil, err
	}
	for {
		s.mu.Lock()
		asked := s.asked
		s.mu.Unlock()
		s.renew(ctx, m)
		s.mu.Lock()
		if asked == s.asked {
			break
		}
		s.mu.Unlock() // the grants have changed meanwhile
	}
	defer s.mu.Unlock()
	if other, ok := s.byDigest[digest]; ok { // another goroutine was faster
		loaded.Release()
		m = other
	}
	s.hold(m)
	return m, nil
}
