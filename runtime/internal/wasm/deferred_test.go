package wasm_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sentinel-runtime/sentinel/plugins"
	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// liarManifest is what the guest liar describes itself with.
const liarManifest = `{"name":"liar","version":"1","abi":1,"steps":[{"type":"liar","summary":"liar","fields":{"type":"object"}}],"stateless":true}`

// digestOf returns the SHA-256 of a module in hex.
func digestOf(module []byte) string {
	sum := sha256.Sum256(module)
	return hex.EncodeToString(sum[:])
}

// TestDeferLoadsOnce: a deferred module is loaded by its first call, once for all hosts of the
// process and all their calls, and its instances are not shared between hosts.
func TestDeferLoadsOnce(t *testing.T) {
	module := watGuest(t, "liar") // it counts its calls
	var read, kept atomic.Int32
	d := wasm.Deferred{
		Digest: digestOf(module), Manifest: []byte(liarManifest),
		Wasm: func() ([]byte, error) { read.Add(1); return module, nil },
		Loaded: func(digest string, wasm []byte) error {
			kept.Add(1)
			if digest != digestOf(wasm) {
				t.Errorf("Loaded got the digest %s of another module", digest)
			}
			return nil
		},
	}
	for host := range int32(2) {
		m, err := open(t, wasm.Options{}).Defer(d)
		if err != nil {
			t.Fatal(err)
		}
		if m.Manifest().Name != "liar" || m.Digest() != d.Digest || m.Bytes() != nil || kept.Load() != host {
			t.Errorf("before the first call: manifest %+v, %d bytes, loaded %d times", m.Manifest(), len(m.Bytes()), kept.Load())
		}
		var calls sync.WaitGroup
		for range 8 {
			calls.Go(func() {
				if err := m.Ready(context.Background()); err != nil {
					t.Error(err)
				}
			})
		}
		calls.Wait()
		if got, err := m.Run(context.Background(), wasm.Invocation{}); err != nil || string(got.Output) != "11" {
			t.Errorf("host %d: %s %v, want the first call of an instance, 11", host, got.Output, err)
		}
		if len(m.Bytes()) != len(module) || read.Load() != 1 || kept.Load() != host+1 {
			t.Errorf("behind the calls: %d bytes, read %d times, loaded %d times, want %d, once, %d times", len(m.Bytes()), read.Load(), kept.Load(), len(module), host+1)
		}
		m.Release()
	}
}

// TestBuiltinSchemas: the schemas of the built-in step types are within the limits and compile, which
// the engine takes for granted.
func TestBuiltinSchemas(t *testing.T) {
	digest, text := plugins.Manifest()
	m, err := open(t, wasm.Options{}).Defer(wasm.Deferred{Digest: digest, Manifest: text})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Release()
	if _, err := sentinels.NewTypeSet(m.Manifest().Types()); err != nil {
		t.Error(err)
	}
}

// TestDeferRefusesOthers: a module that is not the one which the program expects serves no call,
// and one that could not be read is tried again.
func TestDeferRefusesOthers(t *testing.T) {
	module := append(watGuest(t, "liar"), 0, 2, 1, 'x') // a custom section: not the code of another test
	d := wasm.Deferred{Digest: digestOf(module), Manifest: []byte(liarManifest), Wasm: func() ([]byte, error) { return module, nil }}
	h := open(t, wasm.Options{})
	call := func(d wasm.Deferred) error {
		t.Helper()
		m, err := h.Defer(d)
		if err != nil {
			t.Fatal(err)
		}
		defer m.Release()
		_, err = m.Run(context.Background(), wasm.Invocation{})
		return err
	}
	other := d
	other.Digest = strings.Repeat("0", 64)
	wantError(t, call(other), abi.Internal, "has the digest "+d.Digest)
	other = d
	other.Manifest = []byte(strings.Replace(liarManifest, `"1"`, `"2"`, 1))
	wantError(t, call(other), abi.Internal, "describes itself in another way")

	broken := errors.New("broken")
	failing := d
	failing.Loaded = func(string, []byte) error { return broken }
	m, err := h.Defer(failing)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Release()
	for range 2 {
		if _, err := m.Run(context.Background(), wasm.Invocation{}); !errors.Is(err, broken) {
			t.Errorf("a module that cannot be kept: %v, want %v", err, broken)
		}
	}
	if err := call(d); err != nil {
		t.Errorf("the expected module: %v", err)
	}
	if _, err := h.Defer(wasm.Deferred{Manifest: []byte(`{"abi":1}`)}); err == nil {
		t.Error("Defer accepted a manifest without steps")
	}
}
