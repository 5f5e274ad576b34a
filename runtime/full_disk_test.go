package runtime_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// fullDiskVar names the state folder in which a re-executed test binary executes
// runs until it is killed, fullDiskCacheVar its compile cache.
const (
	fullDiskVar      = "RUNTIME_TEST_FULL_DISK"
	fullDiskCacheVar = "RUNTIME_TEST_FULL_DISK_CACHE"
)

// fullDiskMain is the child's main: a few workers start runs and emit events and
// print what was acknowledged. It never returns in the child.
func fullDiskMain() bool {
	dir := os.Getenv(fullDiskVar)
	if dir == "" {
		return false
	}
	var out sync.Mutex
	say := func(format string, args ...any) {
		out.Lock()
		defer out.Unlock()
		fmt.Printf(format+"\n", args...)
	}
	w := newFakeHost()
	rt, err := runtime.Open(context.Background(), runtime.Options{
		Dir: dir, CacheDir: os.Getenv(fullDiskCacheVar), Commands: w, Models: w, Executions: w, Limits: runtime.Limits{KeepEvents: 1 << 20},
		Observer: runtime.Observer{Health: func(h runtime.Health) { say("health %t %t %s", h.OK, h.ReadOnly, h.Reason) }},
	})
	if err != nil {
		say("error %v", err)
		os.Exit(1)
	}
	if err := runtime.AddModule(rt, steps()); err != nil {
		say("error %v", err)
		os.Exit(1)
	}
	h := rt.Health()
	say("open %t %t %s", h.OK, h.ReadOnly, h.Reason)
	runs, err := rt.Runs(runtime.RunFilter{})
	if err != nil {
		say("error %v", err)
		os.Exit(1)
	}
	resumed := 0
	for _, r := range runs {
		if r.Status.Final() {
			continue
		}
		if err := rt.Resume(context.Background(), r.ID, runtime.ResumeOptions{OnInterrupt: sentinels.InterruptRetry}); err != nil {
			say("error resume %v", err)
			os.Exit(1)
		}
		resumed++
	}
	say("resumed %d", resumed)
	// The work itself would fill the disk before there is a ballast.
	for h.OK {
		if _, err := os.Stat(filepath.Join(dir, "ballast")); err == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	for i := range 4 {
		go fullDiskWorker(rt, i, say)
	}
	select {}
}

const bigRun = `{"name":"big","steps":[{"type":"call","command":"world/act","value":%q,"outputTo":"a"},
	{"type":"call","command":"world/act","value":"$a","outputTo":"b"}],"loop":{"type":"once"}}`

func fullDiskWorker(rt *runtime.Runtime, i int, say func(string, ...any)) {
	size := 5_000
	if i == 0 {
		size = 80_000 // a blob
	}
	def, problems := rt.Decode(fmt.Appendf(nil, bigRun, strings.Repeat("x", size)), "big.json")
	if len(problems) > 0 {
		say("error %v", problems)
		os.Exit(1)
	}
	ctx := context.Background()
	refused := func(err error) bool {
		if abi.CodeOf(err) == abi.Unavailable {
			time.Sleep(20 * time.Millisecond)
			return true
		}
		say("error %v", err)
		os.Exit(1)
		return true
	}
	for n := 0; ; n++ {
		e, err := rt.Emit(ctx, sentinels.Event{Name: "mark", ID: fmt.Sprintf("%d-%d-%d", os.Getpid(), i, n)})
		if err == nil {
			say("event %s", e.ID)
		} else if refused(err) {
			continue
		}
		id, err := rt.Start(ctx, def, runtime.StartOptions{})
		if err != nil && refused(err) {
			continue
		}
		if res, err := rt.Wait(ctx, id); err != nil || res.Status != sentinels.StatusCompleted {
			say("error run %s ended %s: %v %v", id, res.Status, res.Error, err)
			os.Exit(1)
		}
		say("run %s", id)
	}
}

// A fullDiskChild is the process under test and what it said.
type fullDiskChild struct {
	cmd   *exec.Cmd
	lines chan string
	acked *acked
}

type acked struct {
	mu           sync.Mutex
	runs, events map[string]bool
	n            int
}

func (a *acked) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.n
}

func startFullDisk(t *testing.T, dir string, a *acked) *fullDiskChild {
	t.Helper()
	c := &fullDiskChild{cmd: exec.Command(os.Args[0]), lines: make(chan string, 1000), acked: a}
	c.cmd.Env = append(os.Environ(), fullDiskVar+"="+dir, fullDiskCacheVar+"="+cacheDir)
	c.cmd.Stderr = os.Stderr
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // else it holds the disk when the test gives up
		_ = c.cmd.Process.Kill()
		_ = c.cmd.Wait()
	})
	go func() {
		defer close(c.lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			kind, rest, _ := strings.Cut(s.Text(), " ")
			a.mu.Lock()
			switch kind {
			case "run":
				a.runs[rest] = true
				a.n++
			case "event":
				a.events[rest] = true
				a.n++
			default:
				c.lines <- s.Text()
			}
			a.mu.Unlock()
		}
	}()
	return c
}

// until waits for a line that begins with prefix and returns it.
func (c *fullDiskChild) until(t *testing.T, prefix string) string {
	t.Helper()
	limit := time.After(time.Minute)
	for {
		select {
		case line, ok := <-c.lines:
			if !ok {
				t.Fatalf("the child ended while %q was waited for", prefix)
			}
			t.Log(line)
			if strings.HasPrefix(line, prefix) {
				return line
			}
			if strings.HasPrefix(line, "error") {
				t.Fatal(line)
			}
		case <-limit:
			t.Fatalf("no line %q", prefix)
		}
	}
}

func (c *fullDiskChild) kill(t *testing.T) {
	t.Helper()
	if err := c.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for range c.lines { // to the end of what it said
	}
	_ = c.cmd.Wait() // it was killed
}

// TestFullDisk fills a small disk under a working process, kills it while it is
// full, starts the next one on the full disk, frees space, and expects that all
// goes on and that nothing acknowledged is lost.
func TestFullDisk(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	dir := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=48m,mode=700", "none", dir).CombinedOutput(); err != nil {
		t.Skipf("cannot mount a small file system here: %v: %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", dir).CombinedOutput(); err != nil {
			t.Errorf("umount: %v: %s", err, out)
		}
	})
	state, filler := filepath.Join(dir, "state"), filepath.Join(dir, "filler")
	a := &acked{runs: map[string]bool{}, events: map[string]bool{}}
	more := func(than int) {
		t.Helper()
		until(t, "more work to be acknowledged", func() bool { return a.count() > than+20 })
	}

	c := startFullDisk(t, state, a)
	c.until(t, "open true")
	more(0)
	ballast := filepath.Join(state, "ballast")
	if _, err := os.Stat(ballast); err != nil {
		t.Errorf("no ballast: %v", err)
	}
	fill(t, filler)
	c.until(t, "health false true")
	until(t, "the ballast to be deleted", func() bool { _, err := os.Stat(ballast); return err != nil })
	before := a.count()
	if err := os.Remove(filler); err != nil { // it recovers by itself, without a restart
		t.Fatal(err)
	}
	c.until(t, "health true")
	more(before)
	fill(t, filler)
	c.until(t, "health false true")
	c.kill(t)

	c = startFullDisk(t, state, a)
	// What the killed process had open went with it, so there may be room for a
	// moment.
	opened := c.until(t, "open ")
	c.until(t, "resumed")
	if !strings.HasPrefix(opened, "open false true") {
		c.until(t, "health false true")
	}
	before = a.count()
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	c.until(t, "health true")
	more(before)
	c.kill(t)
	checkFullDisk(t, state, a)
}

// fill writes until the disk has no room.
func fill(t *testing.T, file string) {
	t.Helper()
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for n := 0; n < 20; { // other processes free some now and then
		if _, err := f.Write(make([]byte, 64<<10)); err != nil {
			n++
			time.Sleep(50 * time.Millisecond)
		}
	}
}

func checkFullDisk(t *testing.T, state string, a *acked) {
	t.Helper()
	if err := runtime.CheckStore(state); err != nil {
		t.Fatal(err)
	}
	rt, err := runtime.Open(context.Background(), runtime.Options{Dir: state, CacheDir: cacheDir, Limits: runtime.Limits{KeepEvents: 1 << 20}})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	for id := range a.runs {
		info, err := rt.Status(sentinels.RunID(id))
		if err != nil || info.Status != sentinels.StatusCompleted {
			t.Errorf("acknowledged run %s is %s, %v", id, info.Status, err)
			continue
		}
		if res, err := rt.Wait(within(t), info.ID); err != nil || len(res.Variables["b"]) < 5_000 {
			t.Errorf("result of run %s: %d bytes, %v", id, len(res.Variables["b"]), err)
		}
	}
	events, err := rt.Events("mark", 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	kept := map[string]bool{}
	for _, e := range events {
		kept[e.ID] = true
	}
	for id := range a.events {
		if !kept[id] {
			t.Errorf("acknowledged event %s is lost", id)
		}
	}
	t.Logf("%d runs and %d events acknowledged, none lost", len(a.runs), len(a.events))
	if len(a.runs) == 0 || len(a.events) == 0 {
		t.Error(errors.New("nothing was acknowledged"))
	}
}
