package runtime_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/sentinel-runtime/sentinel/plugins"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/runtime/plugin"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

var update = flag.Bool("update", false, "rewrite the wanted traces and results of testdata")

// TestScripts executes testdata/*.txtar with the built-in step types, once with waiting
// guests in memory and once with every waiting guest parked: both must have the same
// result. A script has, after its prose:
//
//	definition.json  what to run
//	NAME.json        definitions that are stored before, any number
//	start.json       inputs, event, variables, limits, keep ("stored" starts the stored revision)
//	responses.json   answers of commands and models, see scriptedHost
//	actions.json     actions from outside, one after the other, see action
//	want.calls       the calls that reached the host, sorted
//	want.trace       iterations, steps, attempts and calls of each run
//	want.result      the result of each run
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no scripts", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			ar, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			resident := runScript(t, ar, 0)
			if *update {
				rewrite(t, file, ar, resident)
			} else {
				compare(t, "resident", ar, resident)
			}
			compare(t, "parked", ar, runScript(t, ar, -1))
		})
	}
}

var wanted = []string{"want.calls", "want.trace", "want.result"}

func compare(t *testing.T, mode string, ar *txtar.Archive, got map[string]string) {
	t.Helper()
	for _, name := range wanted {
		if diff := cmp.Diff(strings.Split(string(section(ar, name)), "\n"), strings.Split(got[name], "\n")); diff != "" {
			t.Errorf("%s, guests %s (-want +got):\n%s", name, mode, diff)
		}
	}
}

func rewrite(t *testing.T, file string, ar *txtar.Archive, got map[string]string) {
	t.Helper()
	var kept []txtar.File
	for _, f := range ar.Files {
		if !strings.HasPrefix(f.Name, "want.") {
			kept = append(kept, f)
		}
	}
	for _, name := range wanted {
		if got[name] != "" {
			kept = append(kept, txtar.File{Name: name, Data: []byte(got[name])})
		}
	}
	ar.Files = kept
	if err := os.WriteFile(file, txtar.Format(ar), 0o644); err != nil {
		t.Fatal(err)
	}
}

func section(ar *txtar.Archive, name string) []byte {
	for _, f := range ar.Files {
		if f.Name == name {
			return f.Data
		}
	}
	return nil
}

type scriptStart struct {
	Inputs    map[string]json.RawMessage `json:"inputs"`
	Variables map[string]json.RawMessage `json:"variables"`
	Event     *sentinels.Event           `json:"event"`
	Limits    runtime.Limits             `json:"limits"`
	Stored    bool                       `json:"stored"` // definition.json is saved first
	Pinned    bool                       `json:"pinned"`
}

// An action is done from outside after the progress that it waits for, which must come
// after that of the previous action.
type action struct {
	On        moment                 `json:"on"` // without it: at once
	Do        string                 `json:"do"` // decide, pause, resume, stop, emit, save
	Call      string                 `json:"call"`
	Verdict   string                 `json:"verdict"`
	By        string                 `json:"by"`
	Comment   string                 `json:"comment"`
	Extension runtime.LimitExtension `json:"extension"`
	Emit      sentinels.Event        `json:"emit"`
	Save      json.RawMessage        `json:"save"`
	Refused   string                 `json:"refused"` // the action is an error with this code
}

// A moment is the first progress with all these values.
type moment struct {
	Event     runtime.ProgressKind `json:"event"`
	Label     string               `json:"label"`
	Address   string               `json:"address"`
	Status    sentinels.Status     `json:"status"`
	Decisions int                  `json:"decisions"` // number of pending decisions
}

// A watcher records progress and lets actions wait for it.
type watcher struct {
	mu   sync.Mutex
	cond *sync.Cond
	seen []runtime.Progress
	over bool
}

func newWatcher() *watcher {
	w := &watcher{}
	w.cond = sync.NewCond(&w.mu)
	return w
}

func (w *watcher) progress(p runtime.Progress) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen = append(w.seen, p)
	w.cond.Broadcast()
}

func (w *watcher) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	w.cond.Broadcast()
}

// await returns the index after the first progress, from index from on, that a waits
// for; false if the runs end without it.
func (w *watcher) await(a action, from int) (int, bool) {
	if a.On == (moment{}) {
		return from, true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := from; ; i++ {
		for i >= len(w.seen) {
			if w.over {
				return 0, false
			}
			w.cond.Wait()
		}
		p := w.seen[i]
		if (a.On.Event == "" || a.On.Event == p.Event) && (a.On.Label == "" || a.On.Label == p.Label) &&
			(a.On.Address == "" || a.On.Address == p.Address) && (a.On.Status == "" || a.On.Status == p.Status) {
			return i + 1, true
		}
	}
}

// builtins returns the cache of compiled code; the first script fills it.
var builtins = sync.OnceValues(func() (string, error) {
	rt, err := runtime.Open(context.Background(), scriptOptions(filepath.Join(cacheDir, "plugins")))
	if err != nil {
		return "", err
	}
	return filepath.Join(cacheDir, "plugins"), rt.Close()
})

func scriptOptions(cache string) runtime.Options {
	return runtime.Options{CacheDir: cache, Plugins: []plugin.Source{{Name: "builtin", Wasm: plugins.Builtin, Manifest: plugins.Manifest, Trusted: true}}}
}

// openBuiltin opens a runtime with the built-in step types.
func openBuiltin(t testing.TB, db store.Store, opt runtime.Options) *runtime.Runtime {
	t.Helper()
	cache, err := builtins()
	if err != nil {
		t.Fatal(err)
	}
	base := scriptOptions(cache)
	opt.CacheDir, opt.Plugins = base.CacheDir, base.Plugins
	rt, err := runtime.OpenOn(context.Background(), db, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rt.Close() })
	return rt
}

func runScript(t *testing.T, ar *txtar.Archive, resident int) map[string]string {
	t.Helper()
	var begin scriptStart
	var outside scriptedHost
	var steer []action
	for name, into := range map[string]any{"start.json": &begin, "responses.json": &outside, "actions.json": &steer} {
		if raw := section(ar, name); raw != nil {
			d := json.NewDecoder(bytes.NewReader(raw))
			d.DisallowUnknownFields()
			if err := d.Decode(into); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
	}
	begin.Limits.Resident = resident
	seen := newWatcher()
	live := &runtime.StateRecorder{}
	rt := openBuiltin(t, store.NewMemory(), runtime.RecordStates(runtime.Options{
		Commands: &outside, Models: &outside, Limits: begin.Limits, Observer: runtime.Observer{Progress: seen.progress},
	}, live))
	defer rt.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	for _, f := range ar.Files {
		switch f.Name {
		case "definition.json", "start.json", "responses.json", "actions.json":
			continue
		}
		if strings.HasSuffix(f.Name, ".json") {
			if _, err := rt.Save(ctx, decode(t, rt, string(f.Data)), 0); err != nil {
				t.Fatal(err)
			}
		}
	}
	def, problems := rt.Decode(section(ar, "definition.json"), "definition.json")
	if len(problems) > 0 {
		return map[string]string{"want.result": "refused\n" + mask(problems.Error()) + "\n"}
	}
	opt := runtime.StartOptions{Inputs: begin.Inputs, Variables: begin.Variables, Event: begin.Event, Workspace: "/workspace", Pinned: begin.Pinned}
	if begin.Stored {
		if _, err := rt.Save(ctx, def, 0); err != nil {
			t.Fatal(err)
		}
		opt.Revision = 1
	}
	id, err := rt.Start(ctx, def, opt)
	if err != nil {
		return map[string]string{"want.result": "refused\n" + err.Error() + "\n"}
	}
	var acts sync.WaitGroup
	acts.Go(func() { doActions(t, rt, id, steer, seen) })
	if _, err := rt.Wait(ctx, id); err != nil {
		info, _ := rt.Status(id)
		t.Fatalf("run is %s %s, decisions %v: %v", info.Status, info.Reason, info.Decisions, err)
	}
	for _, r := range allRuns(t, rt) { // children that no step awaits
		if _, err := rt.Wait(ctx, r.ID); err != nil {
			t.Fatal(err)
		}
	}
	seen.close()
	acts.Wait()
	got := map[string]string{"want.calls": "", "want.trace": "", "want.result": ""}
	for _, line := range outside.happened() {
		got["want.calls"] += line + "\n"
	}
	for _, r := range allRuns(t, rt) {
		if states, err := runtime.CheckFold(rt, r.ID, live); err != nil || states == 0 {
			t.Errorf("run %s, after %d states: %v", r.ID, states, err)
		}
		trace, err := rt.Trace(r.ID)
		if err != nil {
			t.Fatal(err)
		}
		got["want.trace"] += renderTrace(rt, trace)
		got["want.result"] += renderResult(t, wait(t, rt, r.ID))
	}
	for name := range got {
		got[name] = mask(got[name])
	}
	return got
}

// allRuns returns the runs of a script, in the order of their starts.
func allRuns(t *testing.T, rt *runtime.Runtime) []runtime.RunInfo {
	t.Helper()
	runs, err := rt.Runs(runtime.RunFilter{})
	if err != nil {
		t.Fatal(err)
	}
	sort.Slice(runs, func(i, j int) bool { return runs[i].ID < runs[j].ID })
	return runs
}

func doActions(t *testing.T, rt *runtime.Runtime, id sentinels.RunID, steer []action, seen *watcher) {
	at := 0
	for i, a := range steer {
		var ok bool
		if at, ok = seen.await(a, at); !ok {
			t.Errorf("action %d, %s: the progress that it waits for did not occur", i, a.Do)
			return
		}
		for a.On.Decisions > 0 {
			info, err := rt.Status(id)
			if err != nil || info.Status.Final() || len(info.Decisions) == a.On.Decisions {
				break
			}
			time.Sleep(time.Millisecond)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		err := act(ctx, rt, id, a)
		cancel()
		if code := codeOf(err); code != a.Refused {
			t.Errorf("action %d, %s: %v, want code %q", i, a.Do, err, a.Refused)
		}
	}
}

func act(ctx context.Context, rt *runtime.Runtime, id sentinels.RunID, a action) error {
	switch a.Do {
	case "decide":
		return rt.Decide(ctx, id, runtime.Decision{Call: a.Call, Verdict: a.Verdict, By: a.By, Comment: a.Comment})
	case "pause":
		return rt.Pause(ctx, id, a.By)
	case "resume":
		return rt.Resume(ctx, id, runtime.ResumeOptions{Extension: a.Extension, By: a.By})
	case "stop":
		return rt.Stop(ctx, id)
	case "emit":
		_, err := rt.Emit(ctx, a.Emit)
		return err
	case "save":
		def, problems := rt.Decode(a.Save, "actions.json")
		if len(problems) > 0 {
			return problems
		}
		_, err := rt.Save(ctx, def, -1)
		return err
	}
	return errors.New("no such action")
}

var masks = []struct {
	re   *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "RUN"},
	{regexp.MustCompile(`[0-9a-f]{32}`), "ID"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`), "TIME"},
}

// mask replaces what differs between two executions of a script.
func mask(s string) string {
	for _, m := range masks {
		s = m.re.ReplaceAllString(s, m.with)
	}
	return s
}

// renderTrace writes a trace without times and ids, branches in their order.
func renderTrace(rt *runtime.Runtime, trace *runtime.Trace) string {
	var b strings.Builder
	fmt.Fprintf(&b, "run %s", trace.Run.Sentinel)
	if up, err := rt.Status(trace.Run.Parent); trace.Run.Parent != "" && err == nil {
		fmt.Fprintf(&b, " of %s", up.Sentinel)
	}
	b.WriteByte('\n')
	for _, it := range trace.Iterations {
		fmt.Fprintf(&b, "iteration %d", it.Number)
		if it.Revision != 0 {
			fmt.Fprintf(&b, " revision %d", it.Revision)
		}
		if !it.Done {
			b.WriteString(" not done")
		}
		b.WriteByte('\n')
		renderSteps(&b, "  ", it.Steps, trace.Run.Status)
	}
	return b.String()
}

// isRacy reports whether a call may be in one trace of a script and not in another,
// because a limit or a stop interrupted its step.
func isRacy(c *runtime.TraceCall, run sentinels.Status) bool {
	cut := run == sentinels.StatusStopped || run == sentinels.StatusTimedOut
	return !c.Ended || cut && c.Child != "" || c.Error != nil && (c.Error.Code == abi.Timeout || c.Error.Code == abi.Cancelled)
}

func renderSteps(b *strings.Builder, indent string, steps []*runtime.TraceStep, status sentinels.Status) {
	steps = append([]*runtime.TraceStep(nil), steps...)
	sort.SliceStable(steps, func(i, j int) bool { return lessPath(steps[i].Path, steps[j].Path) })
	for _, s := range steps {
		fmt.Fprintf(b, "%s%s %s %s", indent, s.Path, s.Type, s.State())
		if s.Skipped != "" {
			fmt.Fprintf(b, " (%s)", s.Skipped)
		}
		if s.Error != nil {
			fmt.Fprintf(b, " %s", s.Error.Code)
		}
		b.WriteByte('\n')
		for _, a := range s.Attempts {
			inner := indent + "  "
			if len(s.Attempts) > 1 {
				fmt.Fprintf(b, "%sattempt %d", inner, a.Number)
				if a.Category != "" {
					fmt.Fprintf(b, " %s, again: %s", a.Error.Code, a.Category)
				}
				b.WriteByte('\n')
				inner += "  "
			}
			for _, name := range a.Unknown {
				fmt.Fprintf(b, "%sunknown %s\n", inner, name)
			}
			for _, name := range a.Unset {
				fmt.Fprintf(b, "%sunset %s\n", inner, name)
			}
			for _, c := range a.Calls {
				if !isRacy(c, status) {
					renderCall(b, inner, c)
				}
			}
			renderSteps(b, inner, a.Steps, status)
		}
	}
}

func renderCall(b *strings.Builder, indent string, c *runtime.TraceCall) {
	fmt.Fprintf(b, "%s%s", indent, strings.TrimPrefix(c.Function, "sentinel_"))
	if c.Label != "" {
		fmt.Fprintf(b, " %s", c.Label)
	}
	if c.Error != nil {
		fmt.Fprintf(b, ": %s", c.Error.Code)
	}
	b.WriteByte('\n')
}

// lessPath orders paths with their numbers as numbers.
func lessPath(a, b string) bool {
	split := func(s string) []string {
		return strings.FieldsFunc(s, func(r rune) bool { return r == '.' || r == '#' })
	}
	x, y := split(a), split(b)
	for i := 0; i < len(x) && i < len(y); i++ {
		n, errN := strconv.Atoi(x[i])
		m, errM := strconv.Atoi(y[i])
		switch {
		case errN == nil && errM == nil && n != m:
			return n < m
		case x[i] != y[i]:
			return x[i] < y[i]
		}
	}
	return len(x) < len(y)
}

func renderResult(t *testing.T, res runtime.Result) string {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s, iterations %d", res.Sentinel, res.Status, res.Iterations)
	for _, part := range []struct{ name, text string }{{"reason", res.Reason}, {"step", res.Step}} {
		if part.text != "" {
			fmt.Fprintf(&b, ", %s %s", part.name, part.text)
		}
	}
	if res.Usage.Calls > 0 {
		fmt.Fprintf(&b, ", model calls %d", res.Usage.Calls)
	}
	b.WriteByte('\n')
	if res.Error != nil {
		fmt.Fprintf(&b, "  error %s: %s\n", res.Error.Code, res.Error.Message)
	}
	names := make([]string, 0, len(res.Variables))
	for name := range res.Variables {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		var v any
		if err := json.Unmarshal(res.Variables[name], &v); err != nil {
			t.Fatal(err)
		}
		sorted, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if len(sorted) > 10_000 {
			sorted = fmt.Appendf(nil, "%d bytes", len(sorted))
		}
		fmt.Fprintf(&b, "  $%s = %s\n", name, sorted)
	}
	return b.String()
}
