//go:build linux

package damagetest_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A fullState is a state folder with all kinds of content, of which damaged copies
// are opened.
type fullState struct {
	dir     string            // the project
	store   []byte            // its database file
	older   []byte            // the file when half of the content was there
	content map[string]string // see contentOf
}

// newFullState makes a state folder whose database file has about size bytes, and a
// store snapshot in the middle.
func newFullState(t *testing.T, size int) *fullState {
	t.Helper()
	f := &fullState{dir: project(t)}
	state := f.state()
	h, err := host.Open(t.Context(), host.Options{Dir: filepath.Join(f.dir, ".sentinel"), Workspace: f.dir})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		f.fill(t, h.Runtime(), i, size/10)
		if i == 5 {
			if _, err := h.Runtime().Snapshot(t.Context(), "hourly"); err != nil {
				t.Fatal(err)
			}
			f.older = readAll(t, filepath.Join(state, "store.db"))
		}
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	f.store = readAll(t, filepath.Join(state, "store.db"))
	f.content = contentOf(t, state)
	t.Logf("store of %d KB with %d things", len(f.store)>>10, len(f.content))
	return f
}

func (f *fullState) state() string { return filepath.Join(f.dir, ".sentinel", "state") }

// fill adds runs with journals, events, definitions, and documents up to a size.
func (f *fullState) fill(t *testing.T, rt *runtime.Runtime, round, size int) {
	t.Helper()
	ctx := t.Context()
	steps := `{"type":"set","values":{"a":"$iteration","fill":"` + strings.Repeat("f", 300) + `"}}`
	for i := range 3 {
		text := fmt.Sprintf(`{"id":"d%d-%d","name":"d","steps":[%s,%s],"loop":{"type":"count","max":10}}`, round, i, steps, steps)
		def, problems := rt.Decode([]byte(text), "d.json")
		if def == nil {
			t.Fatal(problems)
		}
		if _, err := rt.Save(ctx, def, runtime.AnyRevision); err != nil {
			t.Fatal(err)
		}
		id, err := rt.Start(ctx, def, runtime.StartOptions{Workspace: f.dir})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := rt.Wait(ctx, id); err != nil {
			t.Fatal(err)
		}
	}
	for n := 0; n < size; {
		err := rt.Documents().Update(ctx, func(tx *runtime.DocumentTx) error {
			for range 50 {
				data, err := json.Marshal(map[string]any{"n": n, "fill": strings.Repeat("d", 200+n%4000)})
				if err != nil {
					return err
				}
				if _, err := tx.Put(ctx, "things", fmt.Sprintf("%d-%08d", round, n), data, 0); err != nil {
					return err
				}
				n += 2 * len(data) // about what the pages take
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := rt.Emit(ctx, sentinels.Event{Name: "filled", Data: json.RawMessage(fmt.Sprintf(`{"n":%d}`, n))}); err != nil {
			t.Fatal(err)
		}
	}
}

// contentOf opens a state folder and returns what is in it: a digest for each
// document, event, revision and run.
func contentOf(t *testing.T, state string) map[string]string {
	t.Helper()
	rt, err := runtime.Open(t.Context(), runtime.Options{Dir: state})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	content := map[string]string{}
	add := func(key string, value any) {
		text, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		content[key] = fmt.Sprintf("%x", sha256.Sum256(text))
	}
	problem := rt.Documents().Update(t.Context(), func(tx *runtime.DocumentTx) error {
		return tx.Scan(t.Context(), "things", "", false, func(d sentinels.Document) bool { add("document "+d.ID, d); return true })
	})
	events, err := rt.Events("filled", 100_000)
	problem = errors.Join(problem, err)
	for _, e := range events {
		add("event "+e.ID, e)
	}
	defs, err := rt.Definitions()
	problem = errors.Join(problem, err)
	for _, d := range defs {
		add("definition "+string(d.ID), d)
	}
	runs, err := rt.Runs(runtime.RunFilter{})
	problem = errors.Join(problem, err)
	for _, r := range runs {
		trace, err := rt.Trace(r.ID)
		problem = errors.Join(problem, err)
		add("run "+string(r.ID), trace)
	}
	if problem != nil {
		t.Errorf("read the content: %v", problem)
	}
	return content
}

func readAll(t *testing.T, file string) []byte {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// copyOf makes a project with the given database file. Its owner has closed it or
// was killed.
func (f *fullState) copyOf(t *testing.T, file []byte, killed bool) (dir string) {
	t.Helper()
	dir = project(t)
	state := filepath.Join(dir, ".sentinel", "state")
	for _, part := range []string{"snapshots", "blobs"} {
		if err := os.CopyFS(filepath.Join(state, part), os.DirFS(filepath.Join(f.state(), part))); err != nil {
			t.Fatal(err)
		}
	}
	if killed {
		if err := os.WriteFile(filepath.Join(state, "store.open"), []byte("999999 1\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(state, "store.db"), file, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// kinds are the kinds of damage.
var kinds = []string{"zeroed page", "swapped pages", "old page", "flipped bit", "cut file"}

// damaged returns a damaged copy of the file.
func (f *fullState) damaged(r *rand.Rand, kind string) (string, []byte) {
	const size = 4096
	b := bytes.Clone(f.store)
	// The two meta pages would be hit too rarely.
	pages := len(b) / size
	at := r.IntN(pages)
	if r.IntN(20) == 0 {
		at = r.IntN(2)
	}
	page := func(i int) []byte { return b[i*size : (i+1)*size] }
	switch kind {
	case "zeroed page":
		clear(page(at))
	case "swapped pages":
		other := r.IntN(pages)
		saved := bytes.Clone(page(other))
		copy(page(other), page(at))
		copy(page(at), saved)
		return fmt.Sprintf("pages %d and %d swapped", at, other), b
	case "old page":
		for range 1000 { // one that has changed since
			if at < len(f.older)/size && !bytes.Equal(page(at), f.older[at*size:(at+1)*size]) {
				break
			}
			at = r.IntN(len(f.older) / size)
		}
		copy(page(at), f.older[at*size:])
	case "flipped bit":
		bit := r.IntN(8 * size)
		page(at)[bit/8] ^= 1 << (bit % 8)
	case "cut file":
		return fmt.Sprintf("cut at page %d", at), b[:at*size+r.IntN(size)]
	}
	return fmt.Sprintf("%s %d of kind %#x", kind, at, binary.NativeEndian.Uint16(f.store[at*size+8:])), b
}

// A served is a process that serves a project.
type served struct {
	cmd *exec.Cmd
	end chan error

	mu     sync.Mutex
	errors bytes.Buffer
	ready  chan struct{}
	once   sync.Once
}

func (s *served) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.errors.Write(p)
	if strings.Contains(s.errors.String(), "serving") {
		s.once.Do(func() { close(s.ready) })
	}
	return len(p), nil
}

func (s *served) stderr() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.errors.String()
}

func sentinelIn(ctx context.Context, dir string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "sentinel", args...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "GOGC=" + os.Getenv("GOGC"), "HOME=" + dir, "GOTRACEBACK=all", "SENTINEL_TRUST_ROOTS=" + dir}
	return cmd
}

// serveIn serves a project and waits until it is ready or has ended.
func serveIn(t *testing.T, dir string) *served {
	t.Helper()
	s := &served{cmd: sentinelIn(t.Context(), dir, "serve", "--listen", "none"), end: make(chan error, 1), ready: make(chan struct{})}
	s.cmd.Stderr, s.cmd.Stdout = s, s
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { s.end <- s.cmd.Wait() }()
	select {
	case <-s.ready:
	case err := <-s.end:
		s.end <- err
	case <-time.After(2 * time.Minute):
		t.Fatalf("neither ready nor over:\n%s", s.stderr())
	}
	return s
}

// stop asks the process to end and returns its exit code.
func (s *served) stop(t *testing.T) int {
	t.Helper()
	_ = s.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	select {
	case <-s.end:
	case <-time.After(2 * time.Minute):
		_ = s.cmd.Process.Kill()
		t.Errorf("it does not end:\n%s", s.stderr())
	}
	return s.cmd.ProcessState.ExitCode()
}

// checkOutput checks that a process ended in order and what it says is for people.
func checkOutput(t *testing.T, what string, code int, text string) {
	t.Helper()
	if code != 0 && code != 1 || strings.Contains(text, "goroutine ") || strings.Contains(text, "panic:") || strings.Contains(text, "SIGSEGV") || strings.Contains(text, "SIGBUS") {
		t.Errorf("%s: exit code %d:\n%.4000s", what, code, text)
	}
}

// refusedWith reports whether a text has the message of a damaged store.
func refusedWith(text string) bool {
	return strings.Contains(text, "is damaged: ") && strings.Contains(text, "sentinel recover --state")
}

// recoverAndServe repairs a project and serves it.
func recoverAndServe(t *testing.T, what, dir string) {
	t.Helper()
	cmd := sentinelIn(t.Context(), dir, "recover")
	out, err := cmd.CombinedOutput()
	checkOutput(t, what+": recover", cmd.ProcessState.ExitCode(), string(out))
	if err != nil {
		t.Errorf("%s: recover: %v:\n%s", what, err, out)
	}
	s := serveIn(t, dir)
	code := s.stop(t)
	checkOutput(t, what+": serve after recover", code, s.stderr())
	if code != 0 {
		t.Errorf("%s: serve after recover ends with %d:\n%s", what, code, s.stderr())
	}
}

// TestDamagedCopies serves damaged copies of a store. Each of them is served with
// everything that was in it, or says what may be missing, or is refused with the
// way to repair it, which works. No process ends in a stack trace.
func TestDamagedCopies(t *testing.T) {
	copies, size := 400, 50<<20
	if testing.Short() {
		copies, size = 2*len(kinds), 2<<20
	}
	f := newFullState(t, size)
	r := rand.New(rand.NewPCG(11, 5))
	count := map[string]int{}
	for n := range copies {
		kind, killed := kinds[n%len(kinds)], n/len(kinds)%2 == 1
		what, b := f.damaged(r, kind)
		what = fmt.Sprintf("copy %d, %s, owner killed %t", n, what, killed)
		dir := f.copyOf(t, b, killed)
		s := serveIn(t, dir)
		code := s.stop(t)
		text := s.stderr()
		checkOutput(t, what, code, text)
		switch said := strings.Contains(text, "commit may be missing"); {
		case code == 0:
			lost := missing(f.content, contentOf(t, filepath.Join(dir, ".sentinel", "state")))
			result := "served whole"
			switch {
			case said:
				result = "served, loss said"
			case lost != "":
				result = "lost in silence"
				t.Errorf("%s: lost in silence: %s", what, lost)
			}
			count[result]++
			count[kind+": "+result]++
		case refusedWith(text):
			recoverAndServe(t, what, dir)
			count["refused and repaired"]++
			count[kind+": refused and repaired"]++
		default:
			t.Errorf("%s: exit code %d:\n%s", what, code, text)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
	for _, result := range slices.Sorted(maps.Keys(count)) {
		t.Logf("%4d %s", count[result], result)
	}
	if count["refused and repaired"] == 0 || count["served whole"] == 0 {
		t.Error("want copies of both kinds")
	}
}

// missing returns one thing that differs, "" if nothing does.
func missing(want, have map[string]string) string {
	for key, digest := range want {
		if have[key] != digest {
			return fmt.Sprintf("%s (%d things of %d are there)", key, len(have), len(want))
		}
	}
	return ""
}

// TestDamageUnderServe damages the file of a store that a process serves, and then
// uses it. Each use ends in an answer, and the process in order.
func TestDamageUnderServe(t *testing.T) {
	copies, size := 40, 50<<20
	if testing.Short() {
		copies, size = 5, 2<<20
	}
	f := newFullState(t, size)
	r := rand.New(rand.NewPCG(3, 9))
	count := map[string]int{}
	for n := range copies {
		kind := kinds[n%len(kinds)]
		dir := f.copyOf(t, f.store, n%2 == 1)
		s := serveIn(t, dir)
		what := fmt.Sprintf("copy %d", n)

		// Several pages: what is used here meets one of them.
		damages := 1
		if kind != "cut file" {
			damages = 200
		}
		for range damages {
			one, hurt := f.damaged(r, kind)
			what = fmt.Sprintf("copy %d, %s", n, one)
			writeUnder(t, filepath.Join(dir, ".sentinel", "state", "store.db"), f.store, hurt)
		}
		said := 0
		for _, args := range [][]string{
			{"list"}, {"status"}, {"events"}, {"emit", "a:b"}, {"start", "d1-1"}, {"show", "d2-2"}, {"revisions", "d3-1"},
			{"exec", "data/list", `{"collection":"things"}`}, {"exec", "data/create", `{"collection":"things","data":{"a":1}}`}, {"trace", "d4-1"}, {"run", "d1-2"}, {"list"},
		} {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			out, err := sentinelIn(ctx, dir, args...).CombinedOutput()
			if ctx.Err() != nil {
				t.Errorf("%s: %v gives no answer:\n%s", what, args, s.stderr())
			}
			cancel()
			if err != nil && strings.Contains(string(out), "damaged") {
				said++
			}
			if text := string(out); strings.Contains(text, "goroutine ") || strings.Contains(text, "panic:") {
				t.Errorf("%s: %v:\n%s", what, args, text)
			}
		}
		code := s.stop(t)
		checkOutput(t, what, code, s.stderr())
		if readOnly := strings.Contains(s.stderr(), "nothing is written to it any more"); readOnly != (code == 1) {
			t.Errorf("%s: read-only %t, exit code %d:\n%s", what, readOnly, code, s.stderr())
		}
		result := "not met"
		if said > 0 || strings.Contains(s.stderr(), "damaged") {
			result = "met and said"
		}
		count[kind+": "+result]++
		// The next process finds it.
		again := serveIn(t, dir)
		code = again.stop(t)
		checkOutput(t, what+": again", code, again.stderr())
		if code != 0 {
			if !refusedWith(again.stderr()) {
				t.Errorf("%s: again: exit code %d:\n%s", what, code, again.stderr())
			}
			recoverAndServe(t, what, dir)
			count[kind+": refused and repaired afterwards"]++
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
	for _, result := range slices.Sorted(maps.Keys(count)) {
		t.Logf("%4d %s", count[result], result)
	}
}

// writeUnder writes the pages in which hurt differs from the file that was, or cuts
// the file.
func writeUnder(t *testing.T, file string, was, hurt []byte) {
	t.Helper()
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if len(hurt) < len(was) {
		if err := f.Truncate(int64(len(hurt))); err != nil {
			t.Fatal(err)
		}
		return
	}
	for at := 0; at+4096 <= len(was); at += 4096 {
		if !bytes.Equal(was[at:at+4096], hurt[at:at+4096]) {
			if _, err := f.WriteAt(hurt[at:at+4096], int64(at)); err != nil {
				t.Fatal(err)
			}
		}
	}
}
