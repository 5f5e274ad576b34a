package wasm_test

import (
	"context"
	"net"
	"os"
	stdruntime "runtime"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/guest"
	"github.com/sentinel-runtime/sentinel/runtime/internal/subprocess"
	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sdk/abitest"
)

// TestABIConformance tests the clauses of ABI.md that are the host's.
func TestABIConformance(t *testing.T) {
	h := open(t, wasm.Options{})
	checkIsolation(t, func() { abitest.TestHost(t, guest.Kit(h, guest.LoadOptions{})) })
}

// TestHostileGuests: every hostile guest of the kit ends with the error that the
// kit names, and leaves no memory, goroutines or open files behind.
func TestHostileGuests(t *testing.T) {
	if testing.Short() {
		t.Skip("200 hostile guests take half a minute: test without -short")
	}
	run := func(t *testing.T) {
		h, err := wasm.Open(wasm.Options{MaxMemoryBytes: 64 << 20, Child: subprocess.Self()})
		if err != nil {
			t.Fatal(err)
		}
		abitest.TestHostile(t, guest.Kit(h, guest.LoadOptions{}))
		if n := h.MemoryBytes(); n != 0 {
			t.Errorf("%d bytes of guest memory before Close, want 0", n)
		}
		if err := h.Close(); err != nil {
			t.Error(err)
		}
		if n := h.MemoryBytes(); n != 0 {
			t.Errorf("%d bytes of guest memory after Close, want 0", n)
		}
	}
	checkIsolation(t, func() { checkLeaks(t, func() { t.Run("guests", run) }) })
}

// checkIsolation fails if f changes the file that the guests of the kit look for,
// or connects to a server.
func checkIsolation(t *testing.T, f func()) {
	t.Helper()
	t.Chdir(t.TempDir())
	if err := os.WriteFile("canary", []byte("canary"), 0o600); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	accepted := make(chan struct{})
	go func() {
		if _, err := listener.Accept(); err == nil {
			t.Error("a guest connected to a server")
		}
		close(accepted)
	}()
	f()
	listener.Close()
	<-accepted
	entries, err := os.ReadDir(".")
	if err != nil || len(entries) != 1 {
		t.Errorf("the folder contains %v, %v, want only the canary", entries, err)
	}
	if text, err := os.ReadFile("canary"); string(text) != "canary" {
		t.Errorf("the canary is %q, %v", text, err)
	}
}

// checkLeaks fails if there are more goroutines or open files after f than before.
func checkLeaks(t *testing.T, f func()) {
	t.Helper()
	goroutines, files := stdruntime.NumGoroutine(), openFiles(t)
	f()
	// A goroutine may still be ending when the call that stops it has returned.
	for end := time.Now().Add(2 * time.Minute); stdruntime.NumGoroutine() > goroutines && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	if n := stdruntime.NumGoroutine(); n > goroutines {
		t.Errorf("%d goroutines after, %d before", n, goroutines)
	}
	if n := openFiles(t); n > files {
		t.Errorf("%d open files after, %d before", n, files)
	}
}

// openFiles returns the number of file descriptors of this process, 0 where /proc
// does not list them.
func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Log("this system does not list open files: ", err)
		return 0
	}
	return len(entries)
}

// TestTruncatedModules: no prefix of a module loads.
func TestTruncatedModules(t *testing.T) {
	h := open(t, wasm.Options{})
	n := 0
	abitest.Truncated(func(module []byte) {
		n++
		m, err := h.Load(context.Background(), module, wasm.LoadOptions{})
		if err == nil {
			m.Release()
			t.Errorf("a prefix of %d bytes loaded", len(module))
			return
		}
		wantError(t, err, abi.BadFields, "")
	})
	if n < 500 {
		t.Errorf("%d prefixes, want hundreds", n)
	}
}
