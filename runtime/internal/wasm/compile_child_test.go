package wasm_test

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	stdruntime "runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/subprocess"
	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// openWithout opens a host that has no child.
func openWithout(t testing.TB, dir string) *wasm.Host {
	t.Helper()
	h, err := wasm.Open(wasm.Options{CacheDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

func TestNoChild(t *testing.T) {
	dir := t.TempDir()
	h := openWithout(t, dir)
	_, err := h.Load(context.Background(), sin(t, "echo"), wasm.LoadOptions{})
	wantError(t, err, abi.Unavailable, "compiled in a child process, and none is configured")
	if e := abi.As(err); e == nil || !strings.Contains(e.Hint, "ServeChild") {
		t.Errorf("the hint does not say what to do: %+v", e)
	}
	// One of our own is compiled here, and is no way in for others.
	load(t, h, sin(t, "echo"), wasm.LoadOptions{Trusted: true}).Release()
	if _, err := h.Load(context.Background(), sin(t, "echo"), wasm.LoadOptions{}); abi.CodeOf(err) != abi.Unavailable {
		t.Errorf("after a trusted load: %v", err)
	}
	load(t, open(t, wasm.Options{CacheDir: dir}), sin(t, "echo"), wasm.LoadOptions{}).Release()
	load(t, h, sin(t, "echo"), wasm.LoadOptions{}).Release() // compiled before
}

// What is in the cache is loaded, and never compiled in this process.
func TestApartLeavesAlone(t *testing.T) {
	dir := t.TempDir()
	h := open(t, wasm.Options{CacheDir: dir})
	load(t, h, sin(t, "echo"), wasm.LoadOptions{}).Release()
	before := snapshot(t, dir)
	for range 3 {
		load(t, openWithout(t, dir), sin(t, "echo"), wasm.LoadOptions{}).Release()
	}
	for name, modified := range snapshot(t, dir) {
		if was, ok := before[name]; !ok || was != modified {
			t.Errorf("%s was written by a load", name)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "new-*")); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

// snapshot returns when each file below dir was written.
func snapshot(t *testing.T, dir string) map[string]time.Time {
	t.Helper()
	all := map[string]time.Time{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		all[path] = info.ModTime()
		return err
	})
	if err != nil || len(all) == 0 {
		t.Fatalf("%d files, %v", len(all), err)
	}
	return all
}

// slow passes the scan and takes many seconds to compile.
func slow() []byte {
	return plugin("\x03\x40" + strings.Repeat("\x41\x00\x0d\x00", 40_000) + "\x0b")
}

// plugin is a module with the exports of a plugin, of which run has code. Its
// describe says nothing.
func plugin(code string) []byte {
	none := "\x04\x00\x41\x00\x0b"
	body := "\x00" + code + "\x41\x00\x0b"
	content := "\x02" + none + leb(len(body)) + body
	return cat([]byte("\x00asm\x01\x00\x00\x00"),
		"\x01\x05\x01\x60\x00\x01\x7f", // () -> i32
		"\x03\x03\x02\x00\x00",
		"\x07\x12\x02\x08describe\x00\x00\x03run\x00\x01",
		"\x0a"+leb(len(content))+content)
}

func TestApartEnds(t *testing.T) {
	module := slow()
	for _, c := range []struct {
		name  string
		opt   wasm.Options
		limit time.Duration // of the load's ctx
		code  abi.Code
		words string
	}{
		{"time", wasm.Options{CompileTime: 20 * time.Millisecond}, 0, abi.Timeout, "timed out after 20ms of processor time"},
		{"memory", wasm.Options{CompileMemory: 24 << 20}, 0, abi.Memory, "more than 24 MB of memory"},
		{"cancelled", wasm.Options{}, 150 * time.Millisecond, abi.Cancelled, "deadline exceeded"},
		{"no program", wasm.Options{Child: subprocess.Command{Path: "/nonexistent/program"}}, 0, abi.Unavailable, "start child"},
		{"another program", wasm.Options{Child: subprocess.Command{Path: "/bin/echo", Args: []string{"hello"}}}, 0, abi.Unavailable, "did not start"},
		{"silent program", wasm.Options{Child: subprocess.Command{Path: "/bin/true"}}, 0, abi.Unavailable, "did not start"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.opt.CacheDir = t.TempDir()
			h := open(t, c.opt)
			ctx := context.Background()
			if c.limit > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, c.limit)
				defer cancel()
			}
			_, err := h.Load(ctx, module, wasm.LoadOptions{})
			wantError(t, err, c.code, c.words)
			left, err := filepath.Glob(filepath.Join(c.opt.CacheDir, "*", "*"))
			if c.code == abi.Memory && len(left) == 1 && strings.HasPrefix(filepath.Base(left[0]), "refused-") {
				left = nil // a note that spares the next load the same
			}
			if err != nil || len(left) != 0 {
				t.Errorf("left in the cache: %v, %v", left, err)
			}
			noChildren(t)
		})
	}
}

// noChildren fails if this process has a child, a zombie included.
func noChildren(t *testing.T) {
	t.Helper()
	if stdruntime.GOOS != "linux" {
		return
	}
	tasks, _ := filepath.Glob("/proc/self/task/*/children")
	for _, task := range tasks {
		if text, err := os.ReadFile(task); err == nil && len(bytes.TrimSpace(text)) > 0 {
			t.Errorf("children are left: %s", text)
		}
	}
}

// While a child compiles, everything else goes on, and two loads of the same
// module share a child.
func TestApartHoldsNothingUp(t *testing.T) {
	dir := t.TempDir()
	h := open(t, wasm.Options{CacheDir: dir})
	load(t, h, sin(t, "hostcall"), wasm.LoadOptions{}).Release()
	module := slow()
	ctx, cancel := context.WithCancel(context.Background())
	var loads sync.WaitGroup
	over := make(chan struct{}, 2)
	for range 2 {
		loads.Go(func() {
			_, err := h.Load(ctx, module, wasm.LoadOptions{})
			over <- struct{}{}
			wantError(t, err, abi.Cancelled, "cancel")
		})
	}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		if left, _ := filepath.Glob(filepath.Join(dir, "new-*", "wazero-*")); len(left) == 1 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the child does not begin")
		}
	}
	load(t, h, sin(t, "hostcall"), wasm.LoadOptions{}).Release()          // compiled before
	load(t, h, sin(t, "trap"), wasm.LoadOptions{}).Release()              // by the second child
	load(t, h, sin(t, "echo"), wasm.LoadOptions{Trusted: true}).Release() // here
	if folders, _ := filepath.Glob(filepath.Join(dir, "new-*")); len(folders) != 1 {
		t.Errorf("%d compiles are under way, want 1: %v", len(folders), folders)
	}
	select {
	case <-over:
		t.Error("the slow load was over first, so this shows nothing")
	default:
	}
	cancel()
	loads.Wait()
	noChildren(t)
}

// Two processes, here two hosts, compile the same module at once.
func TestApartTogether(t *testing.T) {
	dir := t.TempDir()
	var wg sync.WaitGroup
	for range 4 {
		h := open(t, wasm.Options{CacheDir: dir})
		wg.Go(func() {
			m, err := h.Load(context.Background(), sin(t, "hostcall"), wasm.LoadOptions{})
			if err != nil {
				t.Error(err)
				return
			}
			defer m.Release()
			if _, err := m.Run(context.Background(), wasm.Invocation{Input: []byte(`1`), Call: ok}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	load(t, openWithout(t, dir), sin(t, "hostcall"), wasm.LoadOptions{}).Release()
}

// A change of one byte, wherever it is, is found before the engine sees it.
func TestDamagedSeal(t *testing.T) {
	dir := t.TempDir()
	load(t, open(t, wasm.Options{CacheDir: dir}), sin(t, "echo"), wasm.LoadOptions{}).Release()
	seals, _ := filepath.Glob(filepath.Join(dir, "*", "sealed-*"))
	files := append(cached(t, dir), seals...)
	if len(seals) != 1 {
		t.Fatalf("seals: %v", seals)
	}
	for _, file := range files {
		whole, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		// The first bytes are where the engine takes damage for another release's
		// code, and would compile it anew at once.
		for _, at := range []int{0, 6, 7, len(whole) / 2, len(whole) - 1} {
			bad := bytes.Clone(whole)
			bad[at] ^= 0x20
			if err := os.WriteFile(file, bad, 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := openWithout(t, dir).Load(context.Background(), sin(t, "echo"), wasm.LoadOptions{})
			if abi.CodeOf(err) != abi.Unavailable {
				t.Errorf("byte %d of %s: %v", at, filepath.Base(file), err)
			}
			load(t, open(t, wasm.Options{CacheDir: dir}), sin(t, "echo"), wasm.LoadOptions{}).Release()
		}
	}
}

func TestCacheOfOthers(t *testing.T) {
	dir := t.TempDir()
	load(t, open(t, wasm.Options{CacheDir: dir}), sin(t, "echo"), wasm.LoadOptions{}).Release()
	if err := os.Chmod(dir, 0o770); err != nil {
		t.Fatal(err)
	}
	_, err := wasm.Open(wasm.Options{CacheDir: dir})
	wantError(t, err, abi.Denied, "others may write to it")
	if os.Geteuid() != 0 {
		if _, err := wasm.Open(wasm.Options{CacheDir: "/"}); err == nil {
			t.Error("root's folder was taken")
		}
		return
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(dir, 65534, 65534); err != nil {
		t.Skip("this system lets nobody give folders away: ", err)
	}
	_, err = wasm.Open(wasm.Options{CacheDir: dir})
	wantError(t, err, abi.Denied, "belongs to another user")
}

// A host without a cache compiles into a folder of its own, and deletes it.
func TestScratch(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	var log bytes.Buffer
	h, err := wasm.Open(wasm.Options{Child: subprocess.Self(), Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		load(t, h, sin(t, "echo"), wasm.LoadOptions{}).Release()
	}
	if dirs, _ := os.ReadDir(temp); len(dirs) != 1 {
		t.Errorf("%v, want one folder", dirs)
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	if dirs, _ := os.ReadDir(temp); len(dirs) != 0 || log.Len() > 0 {
		t.Errorf("left: %v; log: %s", dirs, &log)
	}
}

// TestRefusalsAreRemembered: what took too much is not tried again by another
// host, unless that gives it more.
func TestRefusalsAreRemembered(t *testing.T) {
	module, dir := slow(), t.TempDir()
	nobody := subprocess.Command{Path: "/nonexistent/program"}
	for _, c := range []struct {
		opt   wasm.Options
		code  abi.Code
		words string
	}{
		{wasm.Options{CompileMemory: 24 << 20}, abi.Memory, "more than 24 MB"},
		{wasm.Options{CompileMemory: 24 << 20, Child: nobody}, abi.Memory, "more than 24 MB"},
		{wasm.Options{CompileMemory: 16 << 20, Child: nobody}, abi.Memory, "more than 24 MB"},
		{wasm.Options{CompileMemory: 25 << 20, Child: nobody}, abi.Unavailable, "start child"},
		{wasm.Options{CompileMemory: 24 << 20, CompileTime: time.Hour, Child: nobody}, abi.Unavailable, "start child"},
	} {
		c.opt.CacheDir = dir
		_, err := open(t, c.opt).Load(t.Context(), module, wasm.LoadOptions{})
		wantError(t, err, c.code, c.words)
	}
}
