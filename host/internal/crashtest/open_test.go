//go:build linux

package crashtest_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// hello is one program.
const hello = `{"name":"hello","steps":[{"type":"shell","command":"sh ./act.sh hello 0.01 $iteration"}],"safety":{"onInterrupt":"retry"}}`

// compiled is a folder with the compiled plugins, made once: those of the program are compiled
// when a run first needs one of their steps.
var compiled = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "crashtest-")
	if err != nil {
		return "", err
	}
	cache := filepath.Join(dir, "plugins")
	ctx := context.Background()
	h, err := host.Open(ctx, host.Options{Dir: filepath.Join(dir, ".sentinel"), Workspace: dir, CacheDir: cache})
	if err != nil {
		return dir, err
	}
	def, problems := h.Runtime().Decode([]byte(`{"name":"warm","steps":[{"type":"wait","durationMs":1}]}`), "warm.json")
	if len(problems) > 0 {
		return dir, errors.Join(problems, h.Close())
	}
	id, err := h.Runtime().Start(ctx, def, runtime.StartOptions{Workspace: dir})
	if err == nil {
		_, err = h.Runtime().Wait(ctx, id)
	}
	if err = errors.Join(err, h.Close()); err != nil {
		return dir, err
	}
	if code, err := filepath.Glob(filepath.Join(cache, "*", "*", "*")); len(code) == 0 || err != nil {
		return dir, errors.Join(err, errors.New("a run left no compiled plugin in "+cache))
	}
	return dir, nil
})

// cacheOf is where the hosts of a workspace keep compiled plugins: it is their home.
func cacheOf(workspace string) string {
	return filepath.Join(workspace, ".cache", "sentinel", "plugins")
}

// warmCache spares the hosts of a workspace the compiling, which takes most of a cold
// start.
func warmCache(t *testing.T, workspace string) {
	t.Helper()
	dir, err := compiled()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(cacheOf(workspace), os.DirFS(filepath.Join(dir, "plugins"))); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(cacheOf(workspace), 0o700); err != nil {
		t.Fatal(err)
	}
}

// TestKillWhileOpening kills the very first opening of a state folder again and
// again. What is left can be opened, and a run executed.
func TestKillWhileOpening(t *testing.T) {
	server := newModelServer(t).URL
	exists := func(pattern string) func() bool {
		return func() bool {
			found, err := filepath.Glob(pattern)
			return err == nil && len(found) > 0
		}
	}
	for _, name := range []string{"at random", "state folder", "store", "cache"} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && (name == "state folder" || name == "store") {
				t.Skip("kills of processes take long: skipped with -short")
			}
			t.Parallel()
			dir := t.TempDir()
			o := order{Dir: filepath.Join(dir, ".sentinel"), Workspace: filepath.Join(dir, "work"), Crashes: 1 << 20}
			state := filepath.Join(o.Dir, "state")
			if err := os.MkdirAll(o.Workspace, 0o700); err != nil {
				t.Fatal(err)
			}
			write(t, o.Workspace, hello)
			kills := 0
			for o.Life = 1; o.Life <= 4; o.Life++ {
				p := plan{after: afterSight, delay: time.Duration(rand.IntN(1500)) * time.Microsecond}
				switch name {
				case "at random":
					p.after, p.delay = atStart, time.Duration(rand.IntN(500))*time.Millisecond
					if raceEnabled {
						p.delay *= 10
					}
				case "state folder":
					p.when = exists(state)
				case "store":
					p.when = exists(filepath.Join(state, "store.db*"))
				case "cache":
					p.when = exists(filepath.Join(cacheOf(o.Workspace), "*", "*"))
				}
				l := start(t, o, server)
				l.live(t, p, nil)
				if !l.killed {
					break // it was faster
				}
				kills++
				if s := (&campaign{cutOff: map[string]int{}}).account(t, l, state); s.root != "" {
					o.Run = s.root
				}
			}
			o.Life = 9
			l := start(t, o, server)
			l.live(t, plan{}, nil)
			if res := l.reports[len(l.reports)-1].Result; res == nil || res.Status != sentinels.StatusCompleted {
				t.Errorf("after %d kills: %s", kills, l.tail())
			}
			t.Logf("%d kills", kills)
			if kills == 0 {
				t.Error("nothing was killed")
			}
		})
	}
}

// TestSecondProcess is refused the state folder at once while another has it,
// and gets it at once when that one was killed.
func TestSecondProcess(t *testing.T) {
	d := newDoubt(t, deed)
	l := start(t, d.order, d.server)
	tried := false
	l.live(t, plan{after: afterSight, when: func() bool { return tried }}, func(r report) {
		if r.Kind != "resumed" {
			return
		}
		fastest := time.Hour // of three
		for range 3 {
			began := time.Now()
			h, err := host.Open(t.Context(), host.Options{Dir: d.order.Dir, Workspace: d.order.Workspace})
			fastest = min(fastest, time.Since(began))
			if err == nil {
				err = h.Close()
			}
			if !errors.Is(err, runtime.ErrHeld) {
				t.Errorf("a second process got %v, not ErrHeld", err)
			}
		}
		// The command line promises a second, with its own start. What a machine
		// takes is not asserted, only that it does not wait for the lock.
		if t.Logf("refused after %s", fastest); fastest > 20*time.Second {
			t.Errorf("the refusal took %s", fastest)
		}
		tried = true
	})
	if !l.killed {
		t.Fatalf("the first process ended by itself: %s", l.tail())
	}
	h, err := host.Open(t.Context(), host.Options{Dir: d.order.Dir, Workspace: d.order.Workspace})
	if err != nil {
		t.Fatalf("after the first one was killed: %v", err)
	}
	defer h.Close()
	if found := strays(t, d.order.Workspace, 1); len(found) > 0 {
		t.Errorf("its programs live on: %v", found)
	}
	if !h.Runtime().Unclean() {
		t.Error("the state folder counts as closed")
	}
}
