package host_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/host/api"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// handle is the reply of sentinel/status.
type handle struct {
	ID, Run    string
	Definition json.RawMessage
	State      struct {
		ID, Run          string
		Revision         int
		Status, Reason   string
		Iteration        int
		CurrentStepIndex *int
		CurrentStep      *struct{ ID, Type, Address string }
		StartedAt        int64
		LastStepAt       int64
		Variables        map[string]json.RawMessage
		Trace            []traceEntry
		TraceTotal       int
		TraceCursor      uint64
		Usage            *sentinels.Usage
		NextFire         *time.Time
	}
}

type traceEntry struct {
	StepIndex  int
	StepType   string
	ID         string
	Iteration  int
	DurationMs float64
	Success    bool
	Output     json.RawMessage
	Error      *abi.Error
}

// twoWaits waits for two events, with a variable set before each.
const twoWaits = `{"id": "two", "loop": {"type": "count", "max": 2}, "steps": [
	{"id": "first", "type": "set", "values": {"n": {"expr": "$iteration * 10"}}},
	{"id": "go", "type": "wait", "event": "go:one", "outputTo": "heard"},
	{"id": "check", "type": "condition", "check": "$n > 0", "then": [{"id": "inner", "type": "wait", "event": "go:two"}]}]}`

// statusWhen returns the status of a run as soon as ready accepts it.
func statusWhen(t *testing.T, h *host.Host, run any, ready func(handle) bool) handle {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		var out handle
		must(t, h, "sentinel/status", map[string]any{"run": run}, &out)
		if ready(out) {
			return out
		}
		if time.Now().After(deadline) {
			t.Fatalf("it does not get there: %+v", out)
		}
	}
}

// isAt accepts the status of a run that executes the step with an id.
func isAt(id string) func(handle) bool {
	return func(s handle) bool { return s.State.CurrentStep != nil && s.State.CurrentStep.ID == id }
}

// TestSpecHandle (S1 of API.md) quotes the specification: "SentinelHandle { id: UUID, definition:
// SentinelDefinition, state: SentinelState }". Its id is that of the run, also as run.
func TestSpecHandle(t *testing.T) {
	h := open(t, host.Options{})
	must(t, h, "sentinel/create", map[string]any{"definition": twoWaits}, nil)
	run := started(t, h, "two", "")
	got := statusWhen(t, h, run, isAt("go"))
	var def struct{ Steps []json.RawMessage }
	if err := json.Unmarshal(got.Definition, &def); err != nil || len(def.Steps) != 3 {
		t.Errorf("definition %s: %v", got.Definition, err)
	}
	if s := got.State; got.ID != string(run) || got.Run != got.ID || s.ID != got.ID || s.Run != got.ID || s.Revision != 1 ||
		s.Status != "waiting" && s.Status != "running" || s.Usage == nil {
		t.Errorf("%+v", got)
	}
	// By the name of the sentinel too, and short.
	var short handle
	must(t, h, "sentinel/status", `{"sentinelId": "two", "brief": true}`, &short)
	if short.Run != string(run) || short.Definition != nil || short.State.Trace != nil || short.State.Iteration != 1 {
		t.Errorf("%+v", short)
	}
}

// TestSpecStatusOfAnIdleSentinel (S1 of API.md) quotes the specification: "status (idle for one that never
// ran)", and "next fire".
func TestSpecStatusOfAnIdleSentinel(t *testing.T) {
	h := open(t, host.Options{})
	must(t, h, "sentinel/create", `{"definition": {"name": "nightly", "trigger": {"type": "schedule", "cron": "0 3 * * *"}, "steps": [{"type": "wait", "durationMs": 1}]}}`, nil)
	var got handle
	must(t, h, "sentinel/status", `{"sentinelId": "nightly"}`, &got)
	if got.ID != "" || got.State.Status != "idle" || got.State.Revision != 1 || !strings.Contains(string(got.Definition), `"nightly"`) || got.State.Usage == nil {
		t.Errorf("%+v", got)
	}
	if next := got.State.NextFire; next == nil || !next.After(time.Now()) {
		t.Errorf("next fire %v", next)
	}
	if err := call(t, h, "sentinel/status", `{"sentinelId": "none"}`, nil); abi.CodeOf(err) != abi.NotFound {
		t.Errorf("of no sentinel: %v", err)
	}
	if err := call(t, h, "sentinel/status", `{"run": "nightly"}`, nil); abi.CodeOf(err) != abi.NotFound {
		t.Errorf("of no run: %v", err)
	}
}

// TestSpecCurrentStep (S2 of API.md) quotes the specification: "currentStepIndex: number // Where in the
// pipeline we are". The step has its id, its type and its address, also within another.
func TestSpecCurrentStep(t *testing.T) {
	ws := t.TempDir()
	h := open(t, host.Options{Workspace: ws})
	must(t, h, "sentinel/create", map[string]any{"definition": twoWaits}, nil)
	run := started(t, h, "two", "")
	at := func(s handle) string {
		if s.State.CurrentStep == nil || s.State.CurrentStepIndex == nil {
			return "none"
		}
		return fmt.Sprint(*s.State.CurrentStepIndex, *s.State.CurrentStep)
	}
	if got := at(statusWhen(t, h, run, isAt("go"))); got != "1 {go wait 1}" {
		t.Errorf("it is at %s", got)
	}
	tell(t, h, "go:one", "")
	if got := at(statusWhen(t, h, run, isAt("inner"))); got != "2 {inner wait 2.then.0}" {
		t.Errorf("it is at %s", got)
	}
	must(t, h, "sentinel/stop", map[string]any{"run": run}, nil)

	// Paused between two steps, the one that comes next, and the one that failed.
	must(t, h, "sentinel/create", `{"definition": {"name": "fails", "steps": [{"type": "shell", "id": "green", "command": "while [ ! -e go ]; do sleep 0.01; done"}, {"id": "red", "type": "shell", "command": "exit 3"}]}}`, nil)
	failed := started(t, h, "fails", "")
	statusWhen(t, h, failed, isAt("green"))
	must(t, h, "sentinel/pause", map[string]any{"run": failed}, nil)
	write(t, ws, map[string]string{"go": ""})
	paused := statusWhen(t, h, failed, func(s handle) bool { return s.State.TraceTotal == 1 })
	if got := at(paused); paused.State.Status != "paused" || got != "1 {red shell 1}" {
		t.Errorf("it is %s at %s", paused.State.Status, got)
	}
	must(t, h, "sentinel/resume", map[string]any{"run": failed}, nil)
	ended(t, h, failed)
	if got := at(statusWhen(t, h, failed, func(handle) bool { return true })); got != "1 {red shell 1}" {
		t.Errorf("it failed at %s", got)
	}
}

// TestSpecVariablesWhileItRuns (S3 of API.md) quotes the specification: "variables: Map<string, any> // Step
// outputs (persisted across iterations)", "also of running and paused runs".
func TestSpecVariablesWhileItRuns(t *testing.T) {
	state := t.TempDir()
	h, err := host.Open(t.Context(), host.Options{Workspace: t.TempDir(), State: state})
	if err != nil {
		t.Fatal(err)
	}
	must(t, h, "sentinel/create", map[string]any{"definition": twoWaits}, nil)
	run := started(t, h, "two", "")
	if v := statusWhen(t, h, run, isAt("go")).State.Variables; string(v["n"]) != "10" || v["heard"] != nil {
		t.Errorf("running: %s", v)
	}
	tell(t, h, "go:one", "")
	statusWhen(t, h, run, isAt("inner"))
	tell(t, h, "go:two", "")
	second := statusWhen(t, h, run, func(s handle) bool { return s.State.Iteration == 2 && isAt("go")(s) })
	if v := second.State.Variables; string(v["n"]) != "20" || !strings.Contains(string(v["heard"]), `"go:one"`) {
		t.Errorf("in the second iteration: %s", v)
	}
	must(t, h, "sentinel/pause", map[string]any{"run": run}, nil)
	if s := statusWhen(t, h, run, func(handle) bool { return true }).State; s.Status != "paused" || string(s.Variables["n"]) != "20" {
		t.Errorf("%s: %s", s.Status, s.Variables)
	}
	// And when no process executes it.
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	h = open(t, host.Options{Workspace: t.TempDir(), State: state})
	if s := statusWhen(t, h, run, func(handle) bool { return true }).State; s.Status != "paused" || string(s.Variables["n"]) != "20" || s.Iteration != 2 {
		t.Errorf("after a restart %s: %s", s.Status, s.Variables)
	}
}

// TestSpecLongVariables (S3 of API.md) quotes the specification: "values over 16 KB shortened with their
// size".
func TestSpecLongVariables(t *testing.T) {
	h := open(t, host.Options{})
	must(t, h, "sentinel/create", `{"definition": {"name": "long", "steps": [
		{"type": "set", "values": {"long": {"expr": "'é'.repeat(10000)"}, "list": {"expr": "[ 'b'.repeat(20000) ]"}, "fits": {"expr": "'c'.repeat(16000)"}}}]}}`, nil)
	run := started(t, h, "long", "")
	ended(t, h, run)
	s := statusWhen(t, h, run, func(handle) bool { return true }).State
	type shortened struct {
		Bytes int
		Start string
	}
	for name, want := range map[string]shortened{
		"long": {20002, strings.Repeat("é", 512)},
		"list": {20004, `["` + strings.Repeat("b", 1022)},
	} {
		var got shortened
		if err := json.Unmarshal(s.Variables[name], &got); err != nil || got != want {
			t.Errorf("%s is %.80s: %v", name, s.Variables[name], err)
		}
	}
	if len(s.Variables["fits"]) != 16002 {
		t.Errorf("16,000 bytes are %.80s", s.Variables["fits"])
	}
	var out shortened
	if err := json.Unmarshal(s.Trace[0].Output, &out); err != nil || out.Bytes < 56000 {
		t.Errorf("output %.80s: %v", s.Trace[0].Output, err)
	}

	// Of many values so much is left that a step can read the reply.
	var values []string
	for i := range 15 {
		values = append(values, fmt.Sprintf(`"v%d": {"expr": "'x'.repeat(15000)"}`, i))
	}
	must(t, h, "sentinel/create", `{"definition": {"name": "many", "loop": {"type": "count", "max": 3}, "steps": [
		{"type": "set", "values": {`+strings.Join(values, ",")+`}},
		{"id": "look", "command": "sentinel/status", "params": {"sentinelId": "many"}, "outputTo": "status"}]}}`, nil)
	many := started(t, h, "many", "")
	if res := ended(t, h, many); res.Status != sentinels.StatusCompleted {
		t.Errorf("%s: %v", res.Status, res.Error)
	}
}

// TestSpecTraceOfStatus (S4 of API.md) quotes the specification: "trace: StepTrace[] // Execution history",
// "the last 50 trace entries {stepIndex, stepType, id, iteration, durationMs, success,
// output or error} with total and cursor".
func TestSpecTraceOfStatus(t *testing.T) {
	h := open(t, host.Options{})
	must(t, h, "sentinel/create", `{"definition": {"name": "traced", "loop": {"type": "count", "max": 40}, "steps": [
		{"id": "one", "type": "set", "values": {"n": {"expr": "$iteration"}}},
		{"type": "condition", "check": "$n == 40", "then": [{"id": "last", "type": "shell", "command": "echo late >&2; exit 9"}]}]}}`, nil)
	run := started(t, h, "traced", "")
	ended(t, h, run)
	newest := statusWhen(t, h, run, func(handle) bool { return true }).State
	if newest.TraceTotal != 81 || len(newest.Trace) != 50 {
		t.Fatalf("%d of %d entries", len(newest.Trace), newest.TraceTotal)
	}
	last := newest.Trace[47:]
	if e := last[0]; e.StepIndex != 0 || e.StepType != "set" || e.ID != "one" || e.Iteration != 40 || e.DurationMs <= 0 || !e.Success || string(e.Output) != `{"n":40}` || e.Error != nil {
		t.Errorf("a step that ended well: %+v", e)
	}
	// The step within another ends first, and has the index of the other.
	if e := last[1]; e.StepIndex != 1 || e.StepType != "shell" || e.ID != "last" || e.Success || e.Error == nil || !strings.Contains(e.Error.Message, "exit code 9: late") {
		t.Errorf("a step that failed: %+v", e)
	}
	if e := last[2]; e.StepIndex != 1 || e.StepType != "condition" || e.Success {
		t.Errorf("the step around it: %+v", e)
	}
	// By cursor, all of it in order, and then nothing new.
	var all []string
	for after := uint64(1); ; {
		var page handle
		must(t, h, "sentinel/status", map[string]any{"run": run, "after": after}, &page)
		if len(page.State.Trace) == 0 {
			if page.State.TraceCursor != after || after != newest.TraceCursor {
				t.Errorf("cursor %d behind %d, the newest is %d", page.State.TraceCursor, after, newest.TraceCursor)
			}
			break
		}
		for _, e := range page.State.Trace {
			all = append(all, fmt.Sprint(e.Iteration, ".", e.StepIndex, e.ID))
		}
		after = page.State.TraceCursor
	}
	var want []string
	for i := 1; i <= 40; i++ {
		want = append(want, fmt.Sprint(i, ".", 0, "one"))
		if i == 40 {
			want = append(want, "40.1last")
		}
		want = append(want, fmt.Sprint(i, ".", 1, ""))
	}
	if diff := cmp.Diff(want, all); diff != "" {
		t.Errorf("pages (-want +got):\n%s", diff)
	}
}

// TestSpecTimesOfState (S2 of API.md) quotes the specification: "startedAt: number, lastStepAt: number", in
// milliseconds.
func TestSpecTimesOfState(t *testing.T) {
	h := open(t, host.Options{})
	must(t, h, "sentinel/create", map[string]any{"definition": twoWaits}, nil)
	before := time.Now().UnixMilli()
	run := started(t, h, "two", "")
	first := statusWhen(t, h, run, isAt("go")).State
	if now := time.Now().UnixMilli(); first.StartedAt < before || first.LastStepAt < first.StartedAt || first.LastStepAt > now {
		t.Errorf("asked from %d to %d: started at %d, last step at %d", before, now, first.StartedAt, first.LastStepAt)
	}
	tell(t, h, "go:one", "")
	if later := statusWhen(t, h, run, isAt("inner")).State; later.StartedAt != first.StartedAt || later.LastStepAt < first.LastStepAt {
		t.Errorf("later started at %d, last step at %d", later.StartedAt, later.LastStepAt)
	}
}

// TestSpecStateHidesSecrets (S3 of API.md) quotes the specification: "secrets redacted". A trace also hides
// them in the values of shell lines.
func TestSpecStateHidesSecrets(t *testing.T) {
	const secret = "hunter2-hunter2"
	t.Setenv("SENTINEL_SECRET_DEPLOY", secret)
	h := open(t, host.Options{})
	must(t, h, "sentinel/create", `{"definition": {"name": "hides", "inputs": {"n": {"type": "string"}}, "steps": [
		{"id": "say", "type": "shell", "command": "echo deploy with \"$inputs.n\"", "outputTo": "said"},
		{"type": "wait", "event": "go:on"}, {"type": "shell", "command": "false"}]}}`, nil)
	run := started(t, h, "hides", secret)
	shows := func(when string) {
		t.Helper()
		for _, name := range []string{"sentinel/status", "sentinel/trace"} {
			out, err := h.Call(t.Context(), name, json.RawMessage(`{"run": "`+string(run)+`"}`))
			if err != nil || strings.Contains(string(out), secret) || !strings.Contains(string(out), "redacted") {
				t.Errorf("%s, %s: %s, %v", name, when, out, err)
			}
		}
	}
	statusWhen(t, h, run, func(s handle) bool { return s.State.CurrentStepIndex != nil && *s.State.CurrentStepIndex == 1 })
	shows("while it runs")
	tell(t, h, "go:on", "")
	ended(t, h, run)
	shows("when it is over")
}

// TestSpecOneSetOfNames (S1 of API.md) quotes the specification: "start, status, result, list use the same
// names". Each has the run under id and run, its status, and when it was started.
func TestSpecOneSetOfNames(t *testing.T) {
	h := open(t, host.Options{})
	a, err := api.New(api.Options{Commands: registryOf{h}, Tokens: anyToken{}})
	if err != nil {
		t.Fatal(err)
	}
	srv := serveAPI(t, a)
	do := caller(t, srv, http.StatusOK, http.StatusCreated)
	do("POST", "/v1/sentinels", `{"name": "one", "steps": [{"type": "set", "values": {"n": 1}}]}`, nil)
	var idle map[string]json.RawMessage
	do("GET", "/v1/sentinels/one/status", "", &idle)
	if !strings.Contains(string(idle["state"]), `"status":"idle"`) {
		t.Errorf("idle: %s", idle)
	}
	type fields = map[string]json.RawMessage
	var start, result fields
	do("POST", "/v1/sentinels/one/runs", `{}`, &start)
	run := strings.Trim(string(start["run"]), `"`)
	ended(t, h, sentinels.RunID(run))
	do("POST", "/v1/commands/sentinel/result", `{"run": "`+run+`"}`, &result)
	var status, brief struct {
		ID, Run    string
		Definition json.RawMessage
		State      fields
	}
	do("GET", "/v1/runs/"+run, "", &status)
	do("GET", "/v1/runs/"+run+"?brief=true&after=3", "", &brief)
	var list struct{ Runs []fields }
	do("GET", "/v1/runs", "", &list)
	if status.ID != run || status.Run != run || status.Definition == nil || brief.Definition != nil || len(list.Runs) != 1 {
		t.Fatalf("status %+v, brief %+v, list %s", status, brief, list.Runs)
	}
	for _, name := range []string{"id", "run", "sentinel", "startedAt", "status"} {
		want := string(status.State[name])
		for from, got := range map[string]string{"start": string(start[name]), "result": string(result[name]), "list": string(list.Runs[0][name])} {
			running := from == "start" && name == "status" && got == `"running"`
			if got != want && !running || want == "" {
				t.Errorf("%s of %s is %q, in its status %q", name, from, got, want)
			}
		}
	}
	for _, name := range []string{"iteration", "usage"} {
		if got := []string{string(result[name]), string(list.Runs[0][name])}; slices.Contains(got, "") || got[0] != got[1] || got[0] != string(status.State[name]) {
			t.Errorf("%s is %q, in its status %q", name, got, status.State[name])
		}
	}
}

// TestStatusWithoutItsPlugin shows that the state of a run (S1 of API.md) is also to be had when its definition cannot be read any more.
func TestStatusWithoutItsPlugin(t *testing.T) {
	dir, state := t.TempDir(), t.TempDir()
	echo, err := os.ReadFile("../runtime/internal/wasm/testdata/wat/echo.wasm")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "echo.wasm"), echo, 0o600); err != nil {
		t.Fatal(err)
	}
	h, err := host.Open(t.Context(), host.Options{Workspace: t.TempDir(), State: state, Plugins: dir})
	if err != nil {
		t.Fatal(err)
	}
	var echoType string
	for _, p := range h.Runtime().Plugins() {
		if p.Source == "echo.wasm" {
			echoType = string(p.Types[0])
		}
	}
	must(t, h, "sentinel/create", `{"definition": {"name": "gone", "steps": [{"type": "`+echoType+`", "outputTo": "said"}]}}`, nil)
	run := started(t, h, "gone", "")
	ended(t, h, run)
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	h = open(t, host.Options{Workspace: t.TempDir(), State: state, Plugins: t.TempDir()})
	var got struct {
		handle
		State struct {
			Status    string
			Variables map[string]json.RawMessage
			Trace     []traceEntry
			Warnings  []string
		}
	}
	must(t, h, "sentinel/status", map[string]any{"run": run}, &got)
	if s := got.State; s.Status != "completed" || s.Variables["said"] == nil || len(s.Trace) != 1 {
		t.Errorf("%+v", s)
	}
	if w := got.State.Warnings; got.Definition != nil || len(w) != 1 || !strings.Contains(w[0], "its definition cannot be read: ") || !strings.Contains(w[0], "unknown step type") {
		t.Errorf("definition %s, warnings %q", got.Definition, w)
	}
}
