package files_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers"
	"github.com/sentinel-runtime/sentinel/triggers/files"
)

func trigger(options string) sentinels.Trigger {
	return sentinels.Trigger{Type: "file", Options: json.RawMessage(options)}
}

func TestCheck(t *testing.T) {
	k := files.New(files.Options{})
	for _, o := range []string{`{"paths":["src/**/*.go"]}`, `{"paths":["*"],"ignore":["dist"],"on":["created"],"settleMs":0,"debounceMs":100}`} {
		if err := k.Check(trigger(o)); err != nil {
			t.Errorf("Check(%s) = %v", o, err)
		}
	}
	for o, want := range map[string]string{
		``:                                  "missing paths",
		`{"paths":[]}`:                      "missing paths",
		`{"path":["a"]}`:                    `did you mean "paths"?`,
		`{"paths":"a"}`:                     `option "paths" is a string, want an array of strings`,
		`{"paths":["/etc/*"]}`:              "absolute",
		`{"paths":["../*"]}`:                `pattern "../*" leaves the workspace`,
		`{"paths":["a"],"on":["changed"]}`:  `invalid on[0] "changed": want created, modified or deleted`,
		`{"paths":["a"],"settleMs":-1}`:     "invalid settleMs -1",
		`{"paths":["a"],"ignore":["["]}`:    `invalid pattern "["`,
		`{"paths":["node_modules/x/*.js"]}`: "never watched",
	} {
		if err := k.Check(trigger(o)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Check(%s) = %v, want %q", o, err, want)
		}
	}
}

func FuzzCheck(f *testing.F) {
	f.Add([]byte(`{"paths":["src/**/*.go"],"on":["created"]}`))
	f.Add([]byte(`{"paths":["{a,b{c,d}}[^a-z]"]}`))
	k := files.New(files.Options{})
	f.Fuzz(func(_ *testing.T, options []byte) {
		if k.Check(sentinels.Trigger{Type: "file", Options: options}) == nil {
			_, _ = k.Arm(sentinels.Trigger{Type: "file", Options: options}, triggers.Env{}) // it must return for any input
		}
	})
}

// fakeHost admits the firings of a trigger and stores its state as the runtime
// does.
type fakeHost struct {
	t     *testing.T
	dir   string
	since time.Time
	fires chan string

	mu    sync.Mutex
	state json.RawMessage
	fail  int // number of next firings that fail undecided
}

func newHost(t *testing.T) *fakeHost {
	return &fakeHost{t: t, dir: t.TempDir(), since: time.Now(), fires: make(chan string, 100)}
}

// run arms a trigger and runs it until stop is called.
func (h *fakeHost) run(k *files.Kind, options string) (stop func()) {
	h.t.Helper()
	h.mu.Lock()
	a, err := k.Arm(trigger(options), triggers.Env{Sentinel: "s", Name: "n", Workspace: h.dir, Since: h.since, State: h.state})
	h.mu.Unlock()
	if err != nil {
		h.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(h.t.Context())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx, h.fire) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			h.t.Errorf("Run = %v", err)
		}
	}
}

func (h *fakeHost) fire(_ context.Context, f triggers.Firing) (triggers.Admission, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.fail > 0 {
		h.fail--
		return triggers.Admission{}, errors.New("the store is full")
	}
	var d struct {
		Paths   []string
		Changes []struct{ Path, Op string }
		More    int
		Offline bool
	}
	if err := json.Unmarshal(f.Event.Data, &d); err != nil || f.Event.Name != "file" || f.Event.ID == "" || len(d.Paths) != len(d.Changes) {
		h.t.Errorf("event %+v: %v", f.Event, err)
	}
	line := ""
	for _, c := range d.Changes {
		line += fmt.Sprintf(" %s %s", c.Op, c.Path)
	}
	if d.More > 0 {
		line += fmt.Sprintf(" and %d more", d.More)
	}
	if d.Offline {
		line += " offline"
	}
	h.state = f.State
	h.fires <- strings.TrimSpace(line)
	return triggers.Admission{Outcome: triggers.Started}, nil
}

func (h *fakeHost) want(line string) {
	h.t.Helper()
	select {
	case got := <-h.fires:
		if diff := cmp.Diff(line, got); diff != "" {
			h.t.Errorf("firing (-want +got):\n%s", diff)
		}
	case <-time.After(2 * time.Minute):
		h.t.Fatalf("no firing, want %q", line)
	}
}

func (h *fakeHost) wantNone() {
	h.t.Helper()
	select {
	case got := <-h.fires:
		h.t.Errorf("firing %q, want none", got)
	case <-time.After(150 * time.Millisecond):
	}
}

func (h *fakeHost) write(name, text string) {
	h.t.Helper()
	if err := os.MkdirAll(filepath.Dir(filepath.Join(h.dir, name)), 0o755); err != nil {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(h.dir, name), []byte(text), 0o644); err != nil {
		h.t.Fatal(err)
	}
}

// waitForBaseline gives a trigger the time to take its baseline.
func waitForBaseline() { time.Sleep(50 * time.Millisecond) }

func fast() *files.Kind { return files.New(files.Options{Debounce: 10 * time.Millisecond}) }

// TestFires checks that changes close together cause one firing.
func TestFires(t *testing.T) {
	h := newHost(t)
	h.write("old.go", "0")
	defer h.run(fast(), `{"paths":["**/*.go"],"settleMs":100}`)()
	waitForBaseline()
	h.wantNone()
	h.write("a.go", "1")
	h.write("x/b.go", "1")
	h.write("c.txt", "1")
	h.want("created a.go created x/b.go")
	h.write("old.go", "1")
	os.Remove(filepath.Join(h.dir, "a.go"))
	h.want("deleted a.go modified old.go")
	h.wantNone()
}

func TestOnlyNamedOperations(t *testing.T) {
	h := newHost(t)
	defer h.run(fast(), `{"paths":["*"],"on":["deleted"],"settleMs":0}`)()
	waitForBaseline()
	h.write("a", "1")
	h.wantNone()
	os.Remove(filepath.Join(h.dir, "a"))
	h.want("deleted a")
}

// TestUndecided checks that a firing that was not decided is repeated.
func TestUndecided(t *testing.T) {
	h := newHost(t)
	h.fail = 1
	defer h.run(fast(), `{"paths":["*"],"settleMs":0}`)()
	waitForBaseline()
	h.write("a", "1")
	h.want("created a")
}

// TestRestart checks that changes while the host is down cause one firing.
func TestRestart(t *testing.T) {
	h := newHost(t)
	options := `{"paths":["*"],"settleMs":0}`
	stop := h.run(fast(), options)
	waitForBaseline()
	h.write("a", "1")
	h.want("created a")
	stop()

	stop = h.run(fast(), options) // nothing changed
	h.wantNone()
	stop()

	h.write("b", "1")
	h.write("a", "1") // with equal content
	stop = h.run(fast(), options)
	h.want("modified a modified b offline") // both have a later change time
	stop()
	stop = h.run(fast(), options)
	h.wantNone()
	stop()

	os.Remove(filepath.Join(h.dir, "a"))
	stop = h.run(fast(), `{"paths":["*"],"settleMs":0,"on":["deleted"]}`)
	h.want("offline")
	stop()
}

// TestRestartBeforeFirstFiring checks that without a state the time of arming
// decides.
func TestRestartBeforeFirstFiring(t *testing.T) {
	h := newHost(t)
	h.write("old", "1")
	if err := os.Chtimes(filepath.Join(h.dir, "old"), time.Unix(1, 0), time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	h.since = time.Now().Add(-time.Hour)
	h.write("new", "1")
	stop := h.run(fast(), `{"paths":["new"],"settleMs":0}`)
	h.want("modified new offline")
	stop()
	h2 := &fakeHost{t: t, dir: h.dir, since: time.Now().Add(time.Second - time.Hour).Add(time.Hour), fires: make(chan string, 1)}
	stop = h2.run(fast(), `{"paths":["*"],"settleMs":0}`)
	h2.wantNone() // first armed just now
	stop()
}

// TestManyTriggersOneWatcher checks that 200 triggers of a workspace share one
// source, which ends with the last of them.
func TestManyTriggersOneWatcher(t *testing.T) {
	var mu sync.Mutex
	opened := 0
	k := files.New(files.Options{Debounce: 10 * time.Millisecond, Source: func() (files.Source, error) {
		mu.Lock()
		defer mu.Unlock()
		opened++
		return nil, errors.New("not here")
	}, Poll: 20 * time.Millisecond})
	h := newHost(t)
	var stops []func()
	for range 200 {
		stops = append(stops, h.run(k, `{"paths":["*"],"settleMs":0}`))
	}
	waitForBaseline()
	h.write("a", "1")
	for range stops {
		h.want("created a")
	}
	for _, stop := range stops {
		stop()
	}
	stop := h.run(k, `{"paths":["*"],"settleMs":0}`)
	waitForBaseline()
	stop()
	if opened != 2 {
		t.Errorf("%d sources were opened, want 2: one, and another after all triggers had ended", opened)
	}
}
