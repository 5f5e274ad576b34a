package host_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// editOut is what the commands that edit answer.
type editOut struct {
	SentinelID string `json:"sentinelId"`
	Run        string
	Revision   int
	Edit       int
	Hash       string
	Steps      int
	Address    string
	Note       string
	Warning    string
}

// call calls a command as a person does and decodes what it answers.
func call(t testing.TB, h *host.Host, name string, params any, into any) error {
	t.Helper()
	raw, ok := params.(string)
	if !ok {
		b, err := json.Marshal(params)
		if err != nil {
			t.Fatal(err)
		}
		raw = string(b)
	}
	out, err := h.Call(t.Context(), name, json.RawMessage(raw))
	if err == nil && into != nil {
		if err := json.Unmarshal(out, into); err != nil {
			t.Fatalf("%s answered %s: %v", name, out, err)
		}
	}
	return err
}

func must(t testing.TB, h *host.Host, name string, params any, into any) {
	t.Helper()
	if err := call(t, h, name, params, into); err != nil {
		t.Fatalf("%s %v: %v", name, params, err)
	}
}

// stepTexts are the steps of a sentinel or run as step/list shows them.
func stepTexts(t *testing.T, h *host.Host, id string) []string {
	t.Helper()
	var out struct {
		Steps []struct {
			Address string
			Step    json.RawMessage
		}
	}
	must(t, h, "sentinel/step/list", map[string]any{"sentinelId": id}, &out)
	var texts []string
	for _, s := range out.Steps {
		texts = append(texts, s.Address+" "+string(s.Step))
	}
	return texts
}

const abc = `{"id":"abc","name":"abc","steps":[
	{"id":"first","type":"command","command":"code/tree"},
	{"type":"command","command":"code/shell/execute","params":{"command":"make","timeoutMs":5000}},
	{"type":"condition","check":"true","then":[{"type":"wait","durationMs":1}]},
	{"type":"llm","prompt":"p","model":"ollama/m"}]}`

// The lines that the specification has for steps do what it says, and all else
// about a place is a clear error.
func TestStepCommands(t *testing.T) {
	h := open(t, host.Options{})
	must(t, h, "sentinel/create", `{"definition":`+abc+`}`, nil)
	var out editOut
	must(t, h, "sentinel/step/add", `{"sentinelId":"abc","index":2,"step":{"command":"code/verify","outputTo":"result"}}`, &out)
	if out.Revision != 2 || out.Steps != 5 || out.Address != "2" {
		t.Errorf("add answered %+v", out)
	}
	must(t, h, "sentinel/step/update", `{"sentinelId":"abc","index":1,"params":{"command":"cargo test","timeoutMs":null}}`, &out)
	must(t, h, "sentinel/step/remove", `{"sentinelId":"abc","index":3}`, &out)
	want := []string{
		`0 {"type":"command","id":"first","command":"code/tree"}`,
		`1 {"type":"command","command":"code/shell/execute","params":{"command":"cargo test"}}`,
		`2 {"type":"command","command":"code/verify","outputTo":"result"}`,
		`3 {"type":"llm","model":"ollama/m","prompt":"p"}`,
	}
	if got := stepTexts(t, h, "abc"); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("steps are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	must(t, h, "sentinel/step/update", `{"sentinelId":"abc","index":3,"params":{"prompt":"q","outputTo":"o"}}`, &out)
	must(t, h, "sentinel/step/update", `{"sentinelId":"abc","address":"first","step":"{\"type\":\"condition\",\"check\":\"1\",\"then\":[]}"}`, &out)
	must(t, h, "sentinel/step/add", `{"sentinelId":"abc","address":"0.then.0","step":{"type":"wait","durationMs":2}}`, &out)
	must(t, h, "sentinel/step/add", `{"sentinelId":"abc","index":4,"step":{"type":"emit","event":"e"},"revision":7}`, &out)
	if got := stepTexts(t, h, "abc"); len(got) != 6 || got[1] != `0.then.0 {"type":"wait","durationMs":2}` ||
		got[4] != `3 {"type":"llm","model":"ollama/m","prompt":"q","outputTo":"o"}` || got[5] != `4 {"type":"emit","event":"e"}` {
		t.Errorf("steps are\n%s", strings.Join(got, "\n"))
	}
	for _, c := range []struct {
		name, params string
		code         abi.Code
		says         string
	}{
		{"add", `{"index":6,"step":{"type":"wait","durationMs":1}}`, abi.BadFields, "index 6: the sentinel has 5 steps"},
		{"add", `{"index":-1,"step":{"type":"wait","durationMs":1}}`, abi.BadFields, "index"},
		{"add", `{"index":0,"address":"0","step":{"type":"wait","durationMs":1}}`, abi.BadFields, "twice"},
		{"add", `{"index":0,"step":{"type":"wiat","durationMs":1}}`, abi.BadFields, `unknown step type "wiat"`},
		{"add", `{"index":0,"step":{"type":"wait","durationMs":1,"id":"x y"}}`, abi.BadFields, "x y"},
		{"add", `{"index":0,"step":{"type":"wait","durationMs":1},"revision":3}`, abi.Conflict, "have 3, current is 8"},
		{"add", `{"index":0,"step":{"type":"wait","durationMs":1},"hash":"abc"}`, abi.Conflict, "hash abc"},
		{"update", `{"index":5,"params":{}}`, abi.BadFields, "index 5: the sentinel has 5 steps"},
		{"update", `{"index":0}`, abi.BadFields, "either params or step"},
		{"update", `{"index":0,"params":{"nonsense":1}}`, abi.BadFields, `unknown key "nonsense"`},
		{"update", `{"address":"0.else.0","params":{}}`, abi.BadFields, `no list "else"`},
		{"update", `{"address":"frist","params":{}}`, abi.NotFound, `"frist"`},
		{"remove", `{}`, abi.BadFields, "no step is named"},
		{"remove", `{"index":5}`, abi.BadFields, "has 5 steps"},
	} {
		err := call(t, h, "sentinel/step/"+c.name, `{"sentinelId":"abc",`+c.params[1:], nil)
		if c.params == "{}" {
			err = call(t, h, "sentinel/step/"+c.name, `{"sentinelId":"abc"}`, nil)
		}
		if abi.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s %s: %v", c.name, c.params, err)
		}
	}
	if err := call(t, h, "sentinel/step/remove", `{"sentinelId":"abd","index":0}`, nil); abi.CodeOf(err) != abi.NotFound || abi.As(err).Hint != `did you mean "abc"?` {
		t.Errorf("another sentinel: %v", err)
	}
}

// A definition has one history for all editors.
func TestRevisionCommands(t *testing.T) {
	h := open(t, host.Options{})
	must(t, h, "sentinel/create", `{"definition":`+abc+`}`, nil)
	var out editOut
	must(t, h, "sentinel/update", `{"sentinelId":"abc","note":"shorter","definition":{"name":"Renamed","steps":[{"id":"first","type":"command","command":"code/tree"}]}}`, &out)
	if out.Revision != 2 || out.SentinelID != "abc" || out.Steps != 1 {
		t.Fatalf("update answered %+v", out)
	}
	if err := call(t, h, "sentinel/update", `{"sentinelId":"abc","definition":{"id":"other","name":"x","steps":[]}}`, nil); abi.CodeOf(err) != abi.BadFields {
		t.Errorf("another id: %v", err)
	}
	if err := call(t, h, "sentinel/update", `{"sentinelId":"abc","revision":1,"definition":{"id":"abc","name":"x","steps":[]}}`, nil); abi.CodeOf(err) != abi.Conflict {
		t.Errorf("a stale update: %v", err)
	}
	var diff struct {
		From, To int
		Changes  []sentinels.Change
		Text     string
	}
	must(t, h, "sentinel/diff", `{"sentinelId":"abc"}`, &diff)
	if diff.From != 1 || diff.To != 2 || len(diff.Changes) != 4 || !strings.HasPrefix(diff.Text, "--- abc@1\n+++ abc@2\n@@ ") {
		t.Errorf("diff answered %+v", diff)
	}
	var gone struct{ Revision int }
	must(t, h, "sentinel/delete", `{"sentinelId":"abc","revision":2}`, &gone)
	if err := call(t, h, "sentinel/start", `{"sentinelId":"abc"}`, nil); abi.CodeOf(err) != abi.NotFound {
		t.Errorf("a start of a deleted sentinel: %v", err)
	}
	must(t, h, "sentinel/rollback", `{"sentinelId":"abc","to":1}`, &out)
	if out.Revision != 4 || out.Steps != 4 {
		t.Errorf("rollback answered %+v", out)
	}
	var all struct {
		Revisions []struct {
			Revision int
			By, Note string
			Deleted  bool
		}
	}
	must(t, h, "sentinel/revisions", `{"sentinelId":"abc"}`, &all)
	if got := fmt.Sprintf("%+v", all.Revisions); got != "[{Revision:4 By:user Note:rollback to revision 1 Deleted:false} {Revision:3 By:user Note: Deleted:true} {Revision:2 By:user Note:shorter Deleted:false} {Revision:1 By:user Note: Deleted:false}]" {
		t.Errorf("revisions are %s", got)
	}
	var one struct{ Definition struct{ Name string } }
	must(t, h, "sentinel/revision", `{"sentinelId":"abc","revision":2}`, &one)
	if one.Definition.Name != "Renamed" {
		t.Errorf("revision 2 is %+v", one)
	}
}

// awaitWait returns once a run waits in one of its steps, in the given iteration.
func awaitWait(t *testing.T, h *host.Host, run sentinels.RunID, iteration int) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		var list struct {
			Runs  int
			Steps []struct {
				InFlight []struct {
					Iteration int
					WaitsFor  string
				}
			}
		}
		must(t, h, "sentinel/step/list", map[string]any{"sentinelId": run}, &list)
		for _, step := range list.Steps {
			if f := step.InFlight; len(f) == 1 && f[0].Iteration == iteration && strings.HasPrefix(f[0].WaitsFor, "sentinel_wait") && list.Runs == 1 {
				return
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("step list %+v", list)
		}
	}
}

// A run that is named is edited alone; the pass it is in goes on unchanged.
func TestEditOneRun(t *testing.T) {
	h := open(t, host.Options{})
	must(t, h, "sentinel/create", `{"definition":{"id":"loop","name":"loop","steps":[{"type":"wait","event":"go"},{"id":"say","type":"shell","command":"echo old","outputTo":"said"}],
		"loop":{"type":"count","max":2}}}`, nil)
	var run struct{ Run sentinels.RunID }
	must(t, h, "sentinel/start", `{"sentinelId":"loop"}`, &run)
	awaitWait(t, h, run.Run, 1)
	var out editOut
	must(t, h, "sentinel/step/update", map[string]any{"sentinelId": run.Run, "address": "say", "params": map[string]any{"command": "echo new"}}, &out)
	if out.Run != string(run.Run) || out.Edit != 1 || out.Revision != 1 || !strings.Contains(out.Note, "only this run") {
		t.Errorf("the edit answered %+v", out)
	}
	if err := call(t, h, "sentinel/step/remove", map[string]any{"sentinelId": run.Run, "index": 0, "revision": 1}, nil); abi.CodeOf(err) != abi.BadFields {
		t.Errorf("a revision of a run: %v", err)
	}
	var diff struct {
		Edit    int
		Changes []sentinels.Change
	}
	must(t, h, "sentinel/diff", map[string]any{"sentinelId": run.Run}, &diff)
	if diff.Edit != 1 || len(diff.Changes) != 1 || diff.Changes[0].Path != "steps[1].command" {
		t.Errorf("the run differs by %+v", diff)
	}
	var shown struct{ Edit, Revision int }
	must(t, h, "sentinel/export", map[string]any{"sentinelId": run.Run}, &shown)
	if shown.Edit != 1 || shown.Revision != 1 {
		t.Errorf("the run's definition is %+v", shown)
	}
	must(t, h, "events/emit", `{"event":"go"}`, nil)
	awaitWait(t, h, run.Run, 2)
	must(t, h, "events/emit", `{"event":"go"}`, nil)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if res, err := h.Runtime().Wait(ctx, run.Run); err != nil || res.Status != sentinels.StatusCompleted || !strings.Contains(string(res.Variables["said"]), "new") {
		t.Fatalf("%+v, %v", res, err)
	}
	tr, err := h.Runtime().Trace(run.Run)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct {
		edit int
		said string
	}{{0, "old"}, {1, "new"}} {
		if it := tr.Iterations[i]; it.Edit != want.edit || it.Revision != 1 || !strings.Contains(string(it.Steps[1].Output), want.said) {
			t.Errorf("pass %d used edit %d and said %s", it.Number, it.Edit, it.Steps[1].Output)
		}
	}
	if got := stepTexts(t, h, "loop")[1]; !strings.Contains(got, "echo old") {
		t.Errorf("the sentinel has %s", got)
	}
}

// A sentinel may edit itself: its next pass uses the change, and the history
// says who it was.
func TestSentinelEditsItself(t *testing.T) {
	h := open(t, host.Options{})
	must(t, h, "sentinel/create", `{"definition":{"id":"self","name":"self","steps":[
		{"type":"command","command":"sentinel/step/add","params":{"sentinelId":"self","step":{"type":"wait","durationMs":1}}}],"loop":{"type":"count","max":3}}}`, nil)
	var run struct{ Run sentinels.RunID }
	must(t, h, "sentinel/start", `{"sentinelId":"self"}`, &run)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if res, err := h.Runtime().Wait(ctx, run.Run); err != nil || res.Status != sentinels.StatusCompleted {
		t.Fatalf("%+v, %v", res, err)
	}
	tr, err := h.Runtime().Trace(run.Run)
	if err != nil {
		t.Fatal(err)
	}
	for i, it := range tr.Iterations {
		if it.Revision != i+1 || len(it.Steps) != i+1 {
			t.Errorf("pass %d used revision %d and had %d steps", it.Number, it.Revision, len(it.Steps))
		}
	}
	kept, err := h.Runtime().Revisions("self")
	if err != nil || len(kept) != 4 || kept[0].By != "step of sentinel self" {
		t.Errorf("revisions %+v, %v", kept, err)
	}
}
