package wasm

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm/link"
	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm/manifest"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Deferred is a module that is part of the program, and what is known of it without
// executing it.
type Deferred struct {
	Digest   string                                 // SHA-256 of the module in hex
	Manifest []byte                                 // what its describe returns
	Wasm     func() ([]byte, error)                 // returns the module
	Loaded   func(digest string, wasm []byte) error // called before the first call of the module; may be nil
}

// deferred is the part of a Module that is loaded when it is first used.
type deferred struct {
	Deferred
	loading chan struct{} // semaphore of the load
	done    atomic.Bool   // set when code, pool and the other fields of the module are there
}

// Defer returns a Trusted module that is loaded when it is first used: most starts of a program
// need no more of its own step types than their manifest. The result has one reference, which
// the caller releases with [Module.Release]. A load that fails is tried again by the next use.
// A module whose digest or manifest is not the expected one cannot be used.
func (h *Host) Defer(d Deferred) (*Module, error) {
	if !h.beginUse() {
		return nil, abi.New(abi.Cancelled, "load plugin: the host is closed")
	}
	defer h.uses.Done()
	m := &Module{host: h, digest: d.Digest, trusted: true, refs: 1, deferred: &deferred{Deferred: d, loading: make(chan struct{}, 1)}}
	var err error
	if m.manifest, err = manifest.Parse(d.Manifest); err != nil {
		return nil, err
	}
	if err := m.manifest.CheckRoles(); err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.modules[m] = struct{}{}
	return m, nil
}

// Deferred reports whether the module is one of [Host.Defer], which is part of the program.
func (m *Module) Deferred() bool { return m.deferred != nil }

// isReady reports whether the module is loaded.
func (m *Module) isReady() bool { return m.deferred == nil || m.deferred.done.Load() }

// Ready loads a module of [Host.Defer], unless that is done. Every call does the same; a caller
// whose time limit must not include the load calls Ready before. It does nothing for other
// modules.
func (m *Module) Ready(ctx context.Context) error {
	if m.isReady() {
		return nil
	}
	end, err := m.beginCall()
	if err != nil {
		return err
	}
	defer end()
	return m.ready(ctx)
}

// ready is Ready within a call.
func (m *Module) ready(ctx context.Context) error {
	if m.isReady() {
		return nil
	}
	d := m.deferred
	unlock, err := acquire(ctx, d.loading)
	if err != nil {
		return err
	}
	defer unlock()
	if m.isReady() {
		return nil
	}
	from, err := m.host.shareCode(ctx, d.Deferred)
	if err != nil {
		return err
	}
	if d.Loaded != nil {
		if err := d.Loaded(d.Digest, from.wasm); err != nil {
			return err
		}
	}
	m.wasm, m.functions, m.validates, m.minMemory, m.code = from.wasm, from.functions, from.validates, from.minMemory, from.code
	if err := m.describeDeferred(ctx); err != nil {
		return err
	}
	d.done.Store(true)
	return nil
}

// describeDeferred creates the first instance and compares what it describes with the
// expected manifest.
func (m *Module) describeDeferred(ctx context.Context) error {
	done, err := acquire(ctx, m.host.describing)
	if err != nil {
		return err
	}
	defer done()
	inst, text, err := m.describeWithRetry(ctx, 0)
	if err != nil {
		return err
	}
	if !bytes.Equal(text, m.deferred.Manifest) {
		inst.Close()
		return otherModule(m.manifest.Name, "describes itself in another way than its manifest in the program says")
	}
	if err := link.Permissions(m.functions, m.manifest); err != nil {
		inst.Close()
		return err
	}
	m.keepFirst(inst, true)
	return nil
}

// otherModule is the error of a module that is not the one which the program expects.
func otherModule(name, how string) error {
	return &abi.Error{Code: abi.Internal, Permanent: true, Message: fmt.Sprintf("load plugin %q: the module %s", name, how),
		Hint: "the program was built from files that do not belong together: build it again, after `make plugins`"}
}

// sharedKey identifies code that several hosts can execute: what the compile depends on.
type sharedKey struct {
	digest    string
	maxMemory int64
}

// sharedCode is the compiled code of a module of [Host.Defer].
type sharedCode struct {
	compiling chan struct{} // semaphore of the compile
	module    *Module       // what its bytes say and its code, nil before; it belongs to no host
}

// shared has the code of the modules of [Host.Defer]. They are part of the program, so their
// number is a constant, and their code lives as long as the process: a program that opens many
// hosts, at once or one after the other, decompresses, checks and compiles them once.
var shared struct {
	sync.Mutex
	code map[sharedKey]*sharedCode
}

// shareCode returns the code of a module for every host of this process.
func (h *Host) shareCode(ctx context.Context, d Deferred) (*Module, error) {
	key := sharedKey{d.Digest, h.maxMemory}
	shared.Lock()
	if shared.code == nil {
		shared.code = map[sharedKey]*sharedCode{}
	}
	s := shared.code[key]
	if s == nil {
		s = &sharedCode{compiling: make(chan struct{}, 1)}
		shared.code[key] = s
	}
	shared.Unlock()
	unlock, err := acquire(ctx, s.compiling)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if s.module != nil {
		if h.cache != nil {
			h.cache.Touch(d.Digest) // another process may use the same cache
		}
		return s.module, nil
	}
	wasm, err := d.Wasm()
	if err != nil {
		return nil, err
	}
	m, scanned, err := h.check(wasm, true)
	if err != nil {
		return nil, err
	}
	if m.digest != d.Digest {
		return nil, otherModule(d.Digest[:min(12, len(d.Digest))], "has the digest "+m.digest)
	}
	if m.code, err = h.compile(ctx, m, scanned); err != nil {
		return nil, err
	}
	m.host = nil
	s.module = m
	return s.module, nil
}
