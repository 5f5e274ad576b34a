package wasm

import (
	"fmt"
	"slices"
	"sync"

	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm/manifest"
	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm/pool"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// What a manifest consists of. Embedders read it through this package.
type (
	Manifest   = manifest.Manifest
	StepType   = manifest.StepType
	Permission = manifest.Permission
	Provides   = manifest.Provides
)

// Module is one loaded version of a plugin. It counts its references, and frees its
// compiled code and idle instances when the last one is released.
type Module struct {
	host      *Host
	digest    string
	wasm      []byte
	functions []string          // imported host functions, sorted
	manifest  manifest.Manifest // set by describe, before the module is handed out
	trusted   bool
	validates bool                  // exports validate, which is optional
	minMemory int64                 // bytes of linear memory at the start
	code      *compiled             // safe for concurrent instantiation
	pool      *pool.Pool[*instance] // nil if each call gets an instance of its own
	prewarmer *prewarmer            // if pool is nil: instances for coming calls
	deferred  *deferred             // of a module of Host.Defer: the fields above but host, digest, manifest and trusted are set by ready

	mu     sync.Mutex
	refs   int // calls begin only while it is positive
	calls  int // in flight
	closed bool
	closes sync.Once
}

// Digest returns the SHA-256 of the module's original bytes, in hex.
func (m *Module) Digest() string { return m.digest }

// Manifest returns the manifest that describe returned during the load. Its slices
// and maps must not be changed.
func (m *Module) Manifest() Manifest { return m.manifest }

// Functions returns the names of the host functions that the module imports, sorted. Of a module
// of [Host.Defer] that is not loaded yet it returns none.
func (m *Module) Functions() []string {
	if !m.isReady() {
		return nil
	}
	return slices.Clone(m.functions)
}

// Bytes returns the module's original bytes, which must not be changed. Of a module of
// [Host.Defer] that is not loaded yet it returns nil.
func (m *Module) Bytes() []byte {
	if !m.isReady() {
		return nil
	}
	return m.wasm
}

// Reuse reuses the instances of a stateless module from now on, like
// LoadOptions.Reuse. It must be called before the first call.
func (m *Module) Reuse() {
	m.host.mu.Lock() // for reclaimMemory
	before := m.prewarmer
	m.pool, m.prewarmer = pool.New(m.host.idle), nil
	m.host.mu.Unlock()
	if before != nil {
		before.close()
	}
}

// Retain adds a reference. It reports false if the module is already closed.
func (m *Module) Retain() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.refs == 0 || m.closed {
		return false
	}
	m.refs++
	return true
}

// Release releases a reference. After the last one no call begins, and the module
// closes when the calls in flight have ended. It panics without a reference,
// which is a programming error.
func (m *Module) Release() {
	m.mu.Lock()
	if m.refs == 0 {
		m.mu.Unlock()
		panic("wasm: Release of a module without references")
	}
	m.refs--
	last := m.refs == 0 && m.calls == 0
	m.mu.Unlock()
	if last {
		m.close()
	}
}

// beginCall begins a call, which ends with end. A call keeps the host and the module
// open without being a reference, because otherwise overlapping calls would keep a
// released module loaded.
func (m *Module) beginCall() (end func(), err error) {
	if !m.host.beginUse() {
		return nil, abi.New(abi.Cancelled, fmt.Sprintf("call plugin %q: the host is closed", m.manifest.Name))
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.refs == 0 {
		m.host.uses.Done()
		return nil, abi.New(abi.Unavailable, fmt.Sprintf("call plugin %q: version %s is unloaded", m.manifest.Name, m.digest))
	}
	m.calls++
	return m.endCall, nil
}

func (m *Module) endCall() {
	m.mu.Lock()
	m.calls--
	last := m.refs == 0 && m.calls == 0
	m.mu.Unlock()
	if last {
		m.close()
	}
	m.host.uses.Done()
}

// close frees the module. A second caller waits for the first. No call is in flight:
// the end of the last call closes the module, and Host.Close waits for calls.
func (m *Module) close() {
	m.closes.Do(func() {
		m.mu.Lock()
		m.closed = true
		m.mu.Unlock()
		m.host.mu.Lock()
		delete(m.host.modules, m)
		m.host.mu.Unlock()
		if m.pool != nil {
			m.pool.Close()
		}
		if m.prewarmer != nil {
			m.prewarmer.close()
		}
		if m.deferred == nil { // otherwise other hosts may execute the code
			m.code.close()
		}
	})
}
