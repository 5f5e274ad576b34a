package runtime_test

import (
	"bytes"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/runtime/plugin"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// looping is a plugin whose describe never ends; n makes its bytes differ.
func looping(t testing.TB, n int) plugin.Source {
	t.Helper()
	custom := fmt.Sprintf("\x01x%04d", n)
	code := append(bytes.Clone(guest(t, "describeloop")), "\x00"+string(rune(len(custom)))+custom...)
	return plugin.Source{Name: fmt.Sprintf("loop%d.wasm", n), Wasm: func() ([]byte, error) { return code, nil }}
}

// TestSlowPluginHoldsUpNoOther: while one plugin executes a describe that does not
// end, others load, unload and get their grants.
func TestSlowPluginHoldsUpNoOther(t *testing.T) {
	rt := open(t, newFakeHost(), store.NewMemory(), runtime.Options{})
	loadPlugin(t, rt, echo(t, 1)) // compiled
	begun, ended := make(chan struct{}), make(chan error, 1)
	slow := looping(t, 1)
	code, read := slow.Wasm, atomic.Bool{}
	slow.Wasm = func() ([]byte, error) {
		if !read.Swap(true) {
			close(begun)
		}
		return code()
	}
	var over atomic.Bool
	go func() {
		_, err := rt.LoadPlugin(t.Context(), slow)
		over.Store(true)
		ended <- err
	}()
	<-begun
	meanwhile := 0
	for version := 1; !over.Load() && meanwhile < 3; version++ {
		if _, err := rt.LoadPlugin(t.Context(), echo(t, 1+version%9)); err != nil {
			t.Fatal(err)
		}
		if err := rt.Regrant(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := rt.UnloadPlugin(t.Context(), "echo.wasm"); err != nil {
			t.Fatal(err)
		}
		if !over.Load() {
			meanwhile++
		}
	}
	if err := <-ended; abi.CodeOf(err) != abi.Timeout || !strings.Contains(err.Error(), "time limit of") {
		t.Errorf("the slow plugin: %v, want a timeout", err)
	}
	if meanwhile < 2 {
		t.Errorf("%d loads ended before that of the slow plugin, want several", meanwhile)
	}
}

// TestOpenLoadsSideBySide: the plugins of Options that are slow wait for each other
// no longer than the processors make them, and the order of the list counts.
func TestOpenLoadsSideBySide(t *testing.T) {
	var reading, most atomic.Int32
	slowly := func(p plugin.Source) plugin.Source {
		code := p.Wasm
		p.Wasm = func() ([]byte, error) {
			most.Store(max(most.Load(), reading.Add(1)))
			defer reading.Add(-1)
			for begun := time.Now(); most.Load() < 2 && time.Since(begun) < 10*time.Second; {
				time.Sleep(time.Millisecond)
			}
			return code()
		}
		return p
	}
	first, second := slowly(echo(t, 1)), slowly(echo(t, 2))
	second.Name = "second.wasm"
	rt := open(t, newFakeHost(), store.NewMemory(), runtime.Options{Plugins: []plugin.Source{first, second}})
	if most.Load() < 2 {
		t.Error("one plugin was read after the other")
	}
	a, _ := pluginOf(rt, "echo.wasm")
	b, _ := pluginOf(rt, "second.wasm")
	if a.State != plugin.Live || b.State != plugin.Refused || !strings.Contains(b.Problem, "already provided") {
		t.Errorf("the first is %s, the second %s (%s), want the first live", a.State, b.State, b.Problem)
	}
}

// TestPreparedPlugin: a prepared module is used once, for its own bytes alone, and
// freed if it is not used.
func TestPreparedPlugin(t *testing.T) {
	rt := open(t, newFakeHost(), store.NewMemory(), runtime.Options{})
	prepare := func(p plugin.Source) plugin.Source {
		code, _ := p.Wasm()
		prepared, err := rt.PreparePlugin(t.Context(), code)
		if err != nil {
			t.Fatal(err)
		}
		p.Prepared = prepared
		return p
	}
	p := prepare(echo(t, 1))
	if list := rt.Plugins(); len(list) != 0 {
		t.Errorf("prepared, and listed as %+v", list)
	}
	if info := loadPlugin(t, rt, p); info.Version != "1" || info.State != plugin.Live {
		t.Errorf("loaded as %+v", info)
	}
	other := prepare(echo(t, 2))
	other.Wasm = echo(t, 3).Wasm // the file has changed meanwhile
	if info := loadPlugin(t, rt, other); info.Version != "3" {
		t.Errorf("version %s is live, want that of the bytes", info.Version)
	}
	left := prepare(echo(t, 4)).Prepared
	left.Close()
	left.Close()
	if n := runtime.Guests(rt); n > 2 {
		t.Errorf("%d modules are in memory, want the live one and the last one", n)
	}
}

// TestPluginLimits: more plugins or bytes than the limit are refused with the reason,
// and loaded once others are gone.
func TestPluginLimits(t *testing.T) {
	list := []plugin.Source{asking(t, "p1.wasm", "1"), asking(t, "p2.wasm", "1"), asking(t, "p3.wasm", "1")}
	code, _ := list[0].Wasm()
	for _, c := range []struct {
		limits runtime.Limits
		words  string
	}{
		{runtime.Limits{Plugins: 2}, "there are 3 plugins, the limit is 2"},
		{runtime.Limits{PluginBytes: 3*int64(len(code)) - 1}, fmt.Sprintf("the files of all plugins have %d bytes together, the limit is %d", 3*len(code), 3*len(code)-1)},
	} {
		rt := open(t, newFakeHost(), store.NewMemory(), runtime.Options{Plugins: list, Limits: c.limits})
		if info, ok := pluginOf(rt, "p3.wasm"); !ok || info.State != plugin.Refused || !strings.Contains(info.Problem, c.words) {
			t.Errorf("the last one is %+v, want it refused: %s", info, c.words)
		}
		if _, err := rt.LoadPlugin(t.Context(), list[2]); abi.CodeOf(err) != abi.Limit || !strings.Contains(err.Error(), c.words) {
			t.Errorf("load of one more: %v, want code limit and %q", err, c.words)
		}
		loadPlugin(t, rt, list[1]) // in its own place
		if err := rt.UnloadPlugin(t.Context(), "p1.wasm"); err != nil {
			t.Fatal(err)
		}
		loadPlugin(t, rt, list[2])
	}
}

// TestPluginNames: no plugin of others is called like a part of the program.
func TestPluginNames(t *testing.T) {
	own := asking(t, "steps.wasm", "1")
	own.Trusted = true
	rt := open(t, newFakeHost(), store.NewMemory(), runtime.Options{Plugins: []plugin.Source{own}})
	for _, name := range []string{"builtin", "steps"} {
		p := asking(t, name+".wasm", "2")
		p.Name = "mine.wasm"
		if _, err := rt.LoadPlugin(t.Context(), p); abi.CodeOf(err) != abi.Denied || !strings.Contains(err.Error(), fmt.Sprintf("is named %q, like a part of this program", name)) {
			t.Errorf("a plugin named %q: %v", name, err)
		}
	}
}
func TestForgetTrusted(t *testing.T) {
	db := store.NewMemory()
	if err := db.Enqueue(store.Batch{Puts: []store.Put{{Bucket: "trusted", Key: []byte("foreign"), Value: []byte("1.0.0")}}}).Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	rt := open(t, newFakeHost(), db, runtime.Options{})
	if err := rt.ForgetTrusted(t.Context()); err != nil {
		t.Fatal(err)
	}
	if value, ok, err := db.Get("trusted", []byte("foreign")); ok || err != nil {
		t.Errorf("it is trusted: %q %v", value, err)
	}
}
