package wasm_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/subprocess"
	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// watGuest returns the module NAME.wasm of testdata/wat.
func watGuest(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "wat", name+".wasm"))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

var goGuest = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "guest")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	out := filepath.Join(dir, "replay.wasm")
	cmd := exec.Command("go", "build", "-buildmode=c-shared", "-ldflags=-s -w", "-o", out, "./testdata/guests/replay")
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOFLAGS=")
	if text, err := cmd.CombinedOutput(); err != nil {
		return nil, &buildError{string(text)}
	}
	return os.ReadFile(out)
})

type buildError struct{ text string }

func (e *buildError) Error() string { return "build the Go guest: " + e.text }

// replayGuest builds testdata/guests/replay once and returns its module.
func replayGuest(t testing.TB) []byte {
	t.Helper()
	b, err := goGuest()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// sharedCache is the compile cache of all tests of a test run.
var sharedCache string

// TestMain lets this test program start itself as the child process that
// compiles guests.
func TestMain(m *testing.M) {
	subprocess.EnableSelf()
	if wasm.ServeChild() {
		os.Exit(0)
	}
	dir, err := os.MkdirTemp("", "cache")
	if err != nil {
		panic(err)
	}
	sharedCache = dir
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// open opens a host and closes it at the end of the test, which must leave no guest
// memory.
func open(t testing.TB, opt wasm.Options) *wasm.Host {
	t.Helper()
	if opt.CacheDir == "" {
		opt.CacheDir = sharedCache
	}
	if opt.Child.Path == "" {
		opt.Child = subprocess.Self()
	}
	if raceEnabled && opt.CompileTime == 0 {
		// The child has the race detector too: the guest of the Go toolchain takes more
		// than the default of 30 s on a busy machine, without it less than 1 s.
		opt.CompileTime = 10 * time.Minute
	}
	h, err := wasm.Open(opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
		if n := h.MemoryBytes(); n != 0 {
			t.Errorf("%d bytes of guest memory after Close, want 0", n)
		}
	})
	return h
}

// load loads a module, which the caller releases.
func load(t testing.TB, h *wasm.Host, module []byte, opt wasm.LoadOptions) *wasm.Module {
	t.Helper()
	m, err := h.Load(context.Background(), module, opt)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// wantError fails unless err has the code and its message contains words. No
// message may show internals of the host.
func wantError(t *testing.T, err error, code abi.Code, words string) {
	t.Helper()
	if err == nil || abi.CodeOf(err) != code || !strings.Contains(err.Error(), words) {
		t.Errorf("error %q of code %q, want code %q and %q", err, abi.CodeOf(err), code, words)
		return
	}
	for _, leak := range []string{"goroutine", ".go:", "recovered by wazero", "wasm stack trace", "\n"} {
		if strings.Contains(err.Error(), leak) {
			t.Errorf("error shows %q: %s", leak, err)
		}
	}
}

// start is the start time of attempts in tests.
var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// echoRequest answers every host call with its own request.
func echoRequest(_ context.Context, _ string, request []byte) (wasm.Reply, error) {
	return wasm.Reply{Body: []byte(`{"ok":` + string(request) + `}`)}, nil
}
