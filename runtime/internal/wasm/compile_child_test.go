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

// openWithoutChild opens a host that cannot start child processes.
func openWithoutChild(t testing.TB, dir string) *wasm.Host {
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

// TestNoChild: without a child process only trusted modules are compiled.
func TestNoChild(t *testing.T) {
	dir := t.TempDir()
	h := openWithoutChild(t, dir)
	_, err := h.Load(context.Background(), watGuest(t, "echo"), wasm.LoadOptions{})
	wantError(t, err, abi.Unavailable, "compiled in a child process, and none is configured")
	if e := abi.As(err); e == nil || !strings.Contains(e.Hint, "ServeChild") {
		t.Errorf("the hint does not name ServeChild: %+v", e)
	}
	// A trusted module is compiled in this process, but its code is not used for an
	// untrusted load.
	load(t, h, watGuest(t, "echo"), wasm.LoadOptions{Trusted: true}).Release()
	if _, err := h.Load(context.Background(), watGuest(t, "echo"), wasm.LoadOptions{}); abi.CodeOf(err) != abi.Unavailable {
		t.Errorf("after a trusted load: %v", err)
	}
	load(t, open(t, wasm.Options{CacheDir: dir}), watGuest(t, "echo"), wasm.LoadOptions{}).Release()
	load(t, h, watGuest(t, "echo"), wasm.LoadOptions{}).Release() // from the cache
}

// TestCachedCodeIsNotWritten: code in the cache is loaded and not compiled again.
func TestCachedCodeIsNotWritten(t *testing.T) {
	dir := t.TempDir()
	h := open(t, wasm.Options{CacheDir: dir})
	load(t, h, watGuest(t, "echo"), wasm.LoadOptions{}).Release()
	before := modTimes(t, dir)
	for range 3 {
		load(t, openWithoutChild(t, dir), watGuest(t, "echo"), wasm.LoadOptions{}).Release()
	}
	for name, modified := range modTimes(t, dir) {
		if was, ok := before[name]; !ok || was != modified {
			t.Errorf("%s was written by a load", name)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "new-*")); len(left) != 0 {
		t.Errorf("temporary folders: %v, want none", left)
	}
}

// modTimes returns the modification time of each file below dir.
func modTimes(t *testing.T, dir string) map[string]time.Time {
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

// slowModule passes the scan and takes many seconds to compile.
func slowModule() []byte {
	return pluginModule("\x03\x40" + strings.Repeat("\x41\x00\x0d\x00", 40_000) + "\x0b")
}

// pluginModule is a module with the exports of a plugin. run has code; describe
// writes nothing.
func pluginModule(code string) []byte {
	none := "\x04\x00\x41\x00\x0b"
	body := "\x00" + code + "\x41\x00\x0b"
	content := "\x02" + none + leb(len(body)) + body
	return cat([]byte("\x00asm\x01\x00\x00\x00"),
		"\x01\x05\x01\x60\x00\x01\x7f", // () -> i32
		"\x03\x03\x02\x00\x00",
		"\x07\x12\x02\x08describe\x00\x00\x03run\x00\x01",
		"\x0a"+leb(len(content))+content)
}

// TestCompileChildEnds: a compile in a child ends at each limit and for each fault
// of the child, and leaves no process and no file.
func TestCompileChildEnds(t *testing.T) {
	module := slowModule()
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
			if (c.code == abi.Memory || c.code == abi.Timeout) && len(left) == 1 && strings.HasPrefix(filepath.Base(left[0]), "refused-") {
				left = nil // a refusal, which spares the next load the compile
			}
			if err != nil || len(left) != 0 {
				t.Errorf("files in the cache: %v, %v, want none", left, err)
			}
			noChildren(t)
		})
	}
}

// noChildren fails if this process has a child process, or a zombie.
func noChildren(t *testing.T) {
	t.Helper()
	if stdruntime.GOOS != "linux" {
		return
	}
	tasks, _ := filepath.Glob("/proc/self/task/*/children")
	for _, task := range tasks {
		if text, err := os.ReadFile(task); err == nil && len(bytes.TrimSpace(text)) > 0 {
			t.Errorf("child processes: %s, want none", text)
		}
	}
}

// TestCompileChildBlocksNoOther: other modules load while a child compiles, and two
// loads of the same module share a child.
func TestCompileChildBlocksNoOther(t *testing.T) {
	dir := t.TempDir()
	h := open(t, wasm.Options{CacheDir: dir})
	load(t, h, watGuest(t, "hostcall"), wasm.LoadOptions{}).Release()
	module := slowModule()
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
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(time.Millisecond) {
		if left, _ := filepath.Glob(filepath.Join(dir, "new-*", "wazero-*")); len(left) == 1 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the child did not start to compile")
		}
	}
	load(t, h, watGuest(t, "hostcall"), wasm.LoadOptions{}).Release()          // from the cache
	load(t, h, watGuest(t, "trap"), wasm.LoadOptions{}).Release()              // by the second child
	load(t, h, watGuest(t, "echo"), wasm.LoadOptions{Trusted: true}).Release() // in this process
	if folders, _ := filepath.Glob(filepath.Join(dir, "new-*")); len(folders) != 1 {
		t.Errorf("%d compiles are active, want 1: %v", len(folders), folders)
	}
	select {
	case <-over:
		t.Error("the slow load ended first, so this test proves nothing")
	default:
	}
	cancel()
	loads.Wait()
	noChildren(t)
}

// TestConcurrentHosts: several hosts, which stand for processes, compile the same
// module into one cache at the same time.
func TestConcurrentHosts(t *testing.T) {
	dir := t.TempDir()
	var wg sync.WaitGroup
	for range 4 {
		h := open(t, wasm.Options{CacheDir: dir})
		wg.Go(func() {
			m, err := h.Load(context.Background(), watGuest(t, "hostcall"), wasm.LoadOptions{})
			if err != nil {
				t.Error(err)
				return
			}
			defer m.Release()
			if _, err := m.Run(context.Background(), wasm.Invocation{Input: []byte(`1`), Call: echoRequest}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	load(t, openWithoutChild(t, dir), watGuest(t, "hostcall"), wasm.LoadOptions{}).Release()
}

// TestDamagedSeal: a change of any byte of compiled code or of its seal is detected
// before wazero reads the code.
func TestDamagedSeal(t *testing.T) {
	dir := t.TempDir()
	load(t, open(t, wasm.Options{CacheDir: dir}), watGuest(t, "echo"), wasm.LoadOptions{}).Release()
	seals, _ := filepath.Glob(filepath.Join(dir, "*", "sealed-*"))
	files := append(compiledFiles(t, dir), seals...)
	if len(seals) != 1 {
		t.Fatalf("seals: %v", seals)
	}
	for _, file := range files {
		whole, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		// wazero takes damage in the first bytes for code of another release, and
		// would compile it again in this process.
		for _, at := range []int{0, 6, 7, len(whole) / 2, len(whole) - 1} {
			bad := bytes.Clone(whole)
			bad[at] ^= 0x20
			if err := os.WriteFile(file, bad, 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := openWithoutChild(t, dir).Load(context.Background(), watGuest(t, "echo"), wasm.LoadOptions{})
			if abi.CodeOf(err) != abi.Unavailable {
				t.Errorf("byte %d of %s: %v", at, filepath.Base(file), err)
			}
			load(t, open(t, wasm.Options{CacheDir: dir}), watGuest(t, "echo"), wasm.LoadOptions{}).Release()
		}
	}
}

// TestCacheOfAnotherUser: a cache folder that another user owns or can write to is
// rejected.
func TestCacheOfAnotherUser(t *testing.T) {
	dir := t.TempDir()
	load(t, open(t, wasm.Options{CacheDir: dir}), watGuest(t, "echo"), wasm.LoadOptions{}).Release()
	if err := os.Chmod(dir, 0o770); err != nil {
		t.Fatal(err)
	}
	_, err := wasm.Open(wasm.Options{CacheDir: dir})
	wantError(t, err, abi.Denied, "others may write to it")
	if os.Geteuid() != 0 {
		if _, err := wasm.Open(wasm.Options{CacheDir: "/"}); err == nil {
			t.Error("a folder of root was accepted")
		}
		return
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(dir, 65534, 65534); err != nil {
		t.Skip("this system does not allow chown: ", err)
	}
	_, err = wasm.Open(wasm.Options{CacheDir: dir})
	wantError(t, err, abi.Denied, "belongs to another user")
}

// TestTempCache: a host without a cache folder compiles into a temporary one and
// deletes it.
func TestTempCache(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	var log bytes.Buffer
	h, err := wasm.Open(wasm.Options{Child: subprocess.Self(), Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		load(t, h, watGuest(t, "echo"), wasm.LoadOptions{}).Release()
	}
	if dirs, _ := os.ReadDir(temp); len(dirs) != 1 {
		t.Errorf("%v, want one folder", dirs)
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	if dirs, _ := os.ReadDir(temp); len(dirs) != 0 || log.Len() > 0 {
		t.Errorf("temporary folders: %v, want none; log: %s", dirs, &log)
	}
}

// TestRefusalsAreRemembered: another host does not compile a module again that
// exceeded a limit, unless its own limit is higher.
func TestRefusalsAreRemembered(t *testing.T) {
	module, dir := slowModule(), t.TempDir()
	noChild := subprocess.Command{Path: "/nonexistent/program"}
	for _, c := range []struct {
		opt   wasm.Options
		code  abi.Code
		words string
	}{
		{wasm.Options{CompileMemory: 24 << 20}, abi.Memory, "more than 24 MB"},
		{wasm.Options{CompileMemory: 24 << 20, Child: noChild}, abi.Memory, "more than 24 MB"},
		{wasm.Options{CompileMemory: 16 << 20, Child: noChild}, abi.Memory, "more than 24 MB"},
		{wasm.Options{CompileMemory: 25 << 20, Child: noChild}, abi.Unavailable, "start child"},
		{wasm.Options{CompileMemory: 24 << 20, CompileTime: time.Hour, Child: noChild}, abi.Unavailable, "start child"},
	} {
		c.opt.CacheDir = dir
		_, err := open(t, c.opt).Load(t.Context(), module, wasm.LoadOptions{})
		wantError(t, err, c.code, c.words)
	}
}

// TestSchemasInAChild: the schemas of an untrusted module are compiled once in a
// child before they are used.
func TestSchemasInAChild(t *testing.T) {
	dir := t.TempDir()
	load(t, open(t, wasm.Options{CacheDir: dir}), watGuest(t, "echo"), wasm.LoadOptions{}).Release()
	notes, err := filepath.Glob(filepath.Join(dir, "*", "schemas-*"))
	if err != nil || len(notes) != 1 {
		t.Fatalf("markers %v, %v, want one", notes, err)
	}
	load(t, openWithoutChild(t, dir), watGuest(t, "echo"), wasm.LoadOptions{}).Release()
	if err := os.Remove(notes[0]); err != nil {
		t.Fatal(err)
	}
	_, err = openWithoutChild(t, dir).Load(context.Background(), watGuest(t, "echo"), wasm.LoadOptions{})
	wantError(t, err, abi.Unavailable, "compile schemas: an untrusted plugin is compiled in a child process, and none is configured")
	load(t, openWithoutChild(t, dir), watGuest(t, "echo"), wasm.LoadOptions{Trusted: true}).Release()
	noChildren(t)
}
