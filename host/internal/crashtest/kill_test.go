//go:build linux

package crashtest_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/runtime"
)

// A campaign is many runs that are killed, in parallel lanes.
type campaign struct {
	want map[string]any // the result of a run without kills

	mu     sync.Mutex
	left   int            // kills to make
	made   int            // kills made
	cutOff map[string]int // by what was under way
}

// A lane has one run after the other.
type lane struct {
	*campaign
	server *modelServer
	rng    *rand.Rand
}

// TestKill kills hosts at random moments until every run has ended, and checks that
// nothing was lost and no effect was repeated without a decision.
func TestKill(t *testing.T) {
	c := &campaign{left: 200, cutOff: map[string]int{}}
	switch {
	case testing.Short():
		c.left = 12
	case raceEnabled: // a host then takes seconds to open
		c.left = 40
	}
	if n, err := strconv.Atoi(os.Getenv("SENTINEL_KILLS")); err == nil {
		c.left = n
	}
	seed := uint64(time.Now().UnixNano())
	if n, err := strconv.ParseUint(os.Getenv("SENTINEL_SEED"), 10, 64); err == nil {
		seed = n
	}
	t.Logf("seed %d", seed)
	newLane := func(t *testing.T, n uint64) *lane {
		return &lane{campaign: c, server: newModelServer(t), rng: rand.New(rand.NewPCG(seed, n))}
	}
	t.Run("undisturbed", func(t *testing.T) {
		l := newLane(t, 0)
		state := filepath.Join(t.TempDir(), "state")
		c.want = l.round(t, state, "retry", 0)
	})
	if c.want["status"] != "completed" {
		t.Fatalf("without a kill: %v", c.want)
	}
	t.Run("killed", func(t *testing.T) {
		for n := range uint64(2) {
			t.Run(fmt.Sprint("lane ", n), func(t *testing.T) {
				t.Parallel()
				l := newLane(t, n+1)
				for i := 0; l.more() && !t.Failed(); i++ {
					policy := []string{"retry", ""}[i%2]
					t.Run(fmt.Sprintf("run %d, onInterrupt %q", i, policy), func(t *testing.T) {
						l.round(t, filepath.Join(t.TempDir(), "state"), policy, 45)
					})
				}
			})
		}
	})
	noHelpers(t)
	kinds := make([]string, 0, len(c.cutOff))
	for kind, n := range c.cutOff {
		kinds = append(kinds, fmt.Sprintf("%s %d", kind, n))
	}
	sort.Strings(kinds)
	t.Logf("%d kills; under way were: %s", c.made, strings.Join(kinds, ", "))
}

// more reports whether there are kills to make.
func (c *campaign) more() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.left > 0
}

// plan chooses the moment of a kill. Life is short for a while and then longer,
// so that a run ends whatever the machine.
func (c *lane) plan(life int) plan {
	mean := 90 * time.Millisecond
	if life > 25 {
		mean *= 4
	}
	delay := time.Duration(c.rng.ExpFloat64() * float64(mean))
	switch n := c.rng.IntN(100); {
	case n < 8:
		return plan{after: atStart, delay: time.Duration(c.rng.IntN(200)) * time.Millisecond}
	case n < 14:
		return plan{after: afterOpen, delay: time.Duration(c.rng.IntN(2000)) * time.Microsecond}
	case n < 50: // just behind a commit, or a little later
		often := []runtime.ProgressKind{"", runtime.OnStepStart, runtime.OnCallStart, runtime.OnCallEnd, runtime.OnStepEnd, runtime.OnText}
		rare := []runtime.ProgressKind{runtime.OnRunStart, runtime.OnIterationStart, runtime.OnIterationEnd, runtime.OnRunEnd}
		p := plan{after: afterEvent, event: often[c.rng.IntN(len(often))], count: 1 + c.rng.IntN(8), delay: time.Duration(c.rng.IntN(1500)) * time.Microsecond}
		if n < 20 {
			p.event, p.count = rare[c.rng.IntN(len(rare))], 1
		}
		return p
	}
	return plan{after: afterResume, delay: delay}
}

// round executes one run with at most this many kills, judges it and returns its
// result.
func (c *lane) round(t *testing.T, state, policy string, most int) map[string]any {
	dir := t.TempDir()
	o := order{Dir: filepath.Join(dir, ".sentinel"), State: state, Workspace: filepath.Join(dir, "work"), Crashes: 1 << 20, Verdict: "retry"}
	if err := os.MkdirAll(o.Workspace, 0o700); err != nil {
		t.Fatal(err)
	}
	warmCache(t, o.Workspace)
	write(t, o.Workspace, everythingWith(policy))
	h := &record{snaps: map[int]*snapshot{}}
	before := len(c.server.asked())
	for o.Life = 1; ; o.Life++ {
		o.Resident = -1 // no guest waits in memory
		p := plan{}
		if most > 0 {
			o.Resident = []int{0, -1, 2}[c.rng.IntN(3)]
			if o.Life <= most && c.more() {
				p = c.plan(o.Life)
			}
		}
		l := start(t, o, c.server.URL)
		l.live(t, p, func(r report) {
			if r.Kind != "opened" {
				return
			}
			if found := strays(t, o.Workspace, o.Life-1); len(found) > 0 {
				t.Errorf("life %d has the state folder open, and of earlier ones there are\n%s", o.Life, strings.Join(found, "\n"))
			}
		})
		s := c.account(t, l, state)
		h.take(t, l, s)
		if s.root != "" {
			o.Run = s.root
		}
		if t.Failed() {
			t.FailNow()
		}
		if l.killed {
			continue
		}
		res := l.reports[len(l.reports)-1].Result
		if res == nil {
			t.Fatalf("life %d ended without a result: %s", o.Life, l.tail())
		}
		if res.Error != nil {
			t.Errorf("the run ended as %s: step %s: %v", res.Status, res.Step, res.Error)
		}
		h.last = o.Life
		h.judge(t, o.Workspace, policy, c.server.asked()[before:])
		nothingLives(t, o.Workspace, o.Life)
		got := stable(t, *res)
		got["marks"], got["ticks"] = s.marks[1], s.ticks[1]
		if diff := cmp.Diff(c.want, got); c.want != nil && diff != "" {
			t.Errorf("result after %d kills (-undisturbed +killed):\n%s", o.Life-1, diff)
		}
		return got
	}
}

// account reads what a life left and counts what its kill cut off.
func (c *campaign) account(t *testing.T, l *life, state string) *snapshot {
	t.Helper()
	s := &snapshot{}
	if _, err := os.Stat(state); err == nil {
		s = look(t, state)
	}
	if !l.killed {
		return s
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.made++
	c.left--
	kinds := s.open()
	switch {
	case !l.saw("opened"):
		kinds = map[string]int{"start-up": 1}
	case !l.saw("resumed"):
		kinds = map[string]int{"recovery": 1}
	case len(kinds) == 0:
		kinds = map[string]int{"nothing, between steps": 1}
	}
	for kind := range kinds {
		c.cutOff[kind]++
	}
	return s
}

// nothingLives holds a run's end to it: the processes that it started are gone.
func nothingLives(t *testing.T, workspace string, life int) {
	t.Helper()
	if found := strays(t, workspace, life); len(found) > 0 {
		t.Errorf("the run is over, and there are\n%s", strings.Join(found, "\n"))
	}
}

// noHelpers expects that no host is left, nor a helper of one: it ends when it
// notices that its host is gone.
func noHelpers(t *testing.T) {
	t.Helper()
	for range 100 {
		if len(helpers(t)) == 0 {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Errorf("hosts or their helpers live on: %v", helpers(t))
}

// unstable are the names whose values differ between two honest runs.
var unstable = []string{
	"run", "id", "executionId", "durationMs", "timestamp", "createdAt", "updatedAt", "time", "at", "source",
	"lines", "bytes", "cursor", "dropped", "droppedBytes", "pid", "starts", "startedAt",
}

// stable drops from a result what differs between two honest runs.
func stable(t *testing.T, res runtime.Result) map[string]any {
	t.Helper()
	out := map[string]any{"status": string(res.Status), "iterations": res.Iterations}
	for name, raw := range res.Variables {
		var v any
		if err := json.Unmarshal(raw, &v); err != nil {
			t.Fatal(err)
		}
		out[name] = strip(v)
	}
	return out
}

func strip(v any) any {
	switch v := v.(type) {
	case map[string]any:
		if _, watched := v["finished"]; watched {
			delete(v, "text") // what was written before a kill comes again
		}
		for name := range v {
			if slices.Contains(unstable, name) {
				delete(v, name)
				continue
			}
			v[name] = strip(v[name])
		}
		return v
	case []any:
		for i := range v {
			v[i] = strip(v[i])
		}
		return v
	case string:
		return nonce.ReplaceAllString(v, "nonce=*")
	}
	return v
}
