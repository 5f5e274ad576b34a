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

// The host keeps the clauses that are its own to keep.
func TestHostKeepsTheABI(t *testing.T) {
	h := open(t, wasm.Options{})
	canaries(t, func() { abitest.TestHost(t, guest.Kit(h, guest.LoadOptions{})) })
}

// Every hostile guest ends as the kit says, and the process is as it was before.
func TestHostileGuests(t *testing.T) {
	if testing.Short() {
		t.Skip("200 hostile guests take half a minute: test without -short")
	}
	meet := func(t *testing.T) {
		h, err := wasm.Open(wasm.Options{MaxMemoryBytes: 64 << 20, Child: subprocess.Self()})
		if err != nil {
			t.Fatal(err)
		}
		abitest.TestHostile(t, guest.Kit(h, guest.LoadOptions{}))
		if n := h.MemoryBytes(); n != 0 {
			t.Errorf("%d bytes of guest memory are held before Close", n)
		}
		if err := h.Close(); err != nil {
			t.Error(err)
		}
		if n := h.MemoryBytes(); n != 0 {
			t.Errorf("%d bytes of guest memory are held after Close", n)
		}
	}
	canaries(t, func() { unchanged(t, func() { t.Run("guests", meet) }) })
}

// canaries sees to it that f neither touches a file of the name that the guests
// of the kit look for, nor comes to a server.
func canaries(t *testing.T, f func()) {
	t.Helper()
	t.Chdir(t.TempDir())
	if err := os.WriteFile("canary", []byte("sings"), 0o600); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	accepted := make(chan struct{})
	go func() {
		if _, err := listener.Accept(); err == nil {
			t.Error("a guest came to a server")
		}
		close(accepted)
	}()
	f()
	listener.Close()
	<-accepted
	entries, err := os.ReadDir(".")
	if err != nil || len(entries) != 1 {
		t.Errorf("the folder has %v, %v, want the canary alone", entries, err)
	}
	if text, err := os.ReadFile("canary"); string(text) != "sings" {
		t.Errorf("the canary is %q, %v", text, err)
	}
}

// unchanged compares goroutines and open files before f with those after it.
func unchanged(t *testing.T, f func()) {
	t.Helper()
	goroutines, files := stdruntime.NumGoroutine(), openFiles(t)
	f()
	// What ends a goroutine is done before the call returns; the goroutine itself
	// may need a moment.
	for end := time.Now().Add(5 * time.Second); stdruntime.NumGoroutine() > goroutines && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	if n := stdruntime.NumGoroutine(); n > goroutines {
		t.Errorf("%d goroutines, %d before", n, goroutines)
	}
	if n := openFiles(t); n > files {
		t.Errorf("%d open files, %d before", n, files)
	}
}

// openFiles counts the file descriptors of this process, 0 where /proc has none.
func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Log("open files are not counted here: ", err)
		return 0
	}
	return len(entries)
}

// No beginning of a module is one, and each is refused by name.
func TestTruncatedModules(t *testing.T) {
	h := open(t, wasm.Options{})
	n := 0
	abitest.Truncated(func(module []byte) {
		n++
		m, err := h.Load(context.Background(), module, wasm.LoadOptions{})
		if err == nil {
			m.Release()
			t.Errorf("the first %d bytes of a module load", len(module))
			return
		}
		wantError(t, err, abi.BadFields, "")
	})
	if n < 500 {
		t.Errorf("%d beginnings, want hundreds", n)
	}
}
