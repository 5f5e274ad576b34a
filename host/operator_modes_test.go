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

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// decide answers the questions of a run until it ends, and returns their texts.
func decide(t *testing.T, h *host.Host, id sentinels.RunID, verdict string) (asked []string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		info, err := h.Runtime().Status(id)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(runtime.Unfinished(), info.Status) {
			return asked
		}
		for _, d := range info.Decisions {
			if err := h.Runtime().Decide(t.Context(), id, runtime.Decision{Call: d.Call, Verdict: verdict, By: "ann"}); err == nil {
				asked = append(asked, d.Prompt)
			}
		}
	}
	t.Fatal("the run does not end")
	return nil
}

// planned is a cast whose plan is always the same.
func planned(list ...string) *cast {
	return &cast{plan: func(int, string) string { return steps(list...) }}
}

const (
	readA  = `fs_read {"path":"a.txt"}`
	writeB = `fs_write {"path":"b.txt","content":"x"}`
	shellC = `code_shell_execute {"command":"echo hi > c.txt"}`
)

// Specification: "modes strict and yolo", "trust levels observe, suggest, supervised_auto,
// bounded_auto with approval by risk": strict asks before steps of the risk that the trust
// does not cover; yolo skips questions, never what a list allows.
func TestSpecOperatorAsksByRisk(t *testing.T) {
	for _, c := range []struct {
		mode, trust string
		asked       int
	}{
		{"strict", "supervised_auto", 2}, {"strict", "bounded_auto", 1}, {"yolo", "supervised_auto", 0}, {"yolo", "bounded_auto", 0},
	} {
		t.Run(c.mode+" "+c.trust, func(t *testing.T) {
			h, id, ws := startOperator(t, planned(readA, writeB, shellC), map[string]any{"goal": "g", "mode": c.mode, "trust": c.trust, "focus": "web"}, map[string]string{"a.txt": "a"})
			asked := decide(t, h, id, "approve")
			o := operatorEnd(t, h, id)
			if len(asked) != c.asked || o.count("skill_approved") != c.asked || o.value("status") != "completed" {
				t.Errorf("%s: asked %q", o.value("status"), asked)
			}
			for _, name := range []string{"b.txt", "c.txt"} {
				if _, err := os.Stat(filepath.Join(ws, name)); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func TestSpecOperatorRejected(t *testing.T) {
	h, id, ws := startOperator(t, planned(readA, writeB), map[string]any{"goal": "g", "maxRetries": 0}, map[string]string{"a.txt": "a"})
	asked := decide(t, h, id, "reject")
	o := operatorEnd(t, h, id)
	if len(asked) != 1 || !strings.Contains(asked[0], "Execute fs_write (risk medium), step 2 of attempt 1.\nInputs: {") || !strings.Contains(asked[0], `"content":"x"`) {
		t.Errorf("asked %q", asked)
	}
	if o.value("status") != "failed" || o.count("skill_rejected") != 1 || o.count("skill_executed") != 1 || !strings.Contains(o.value("results"), "PERMISSION_DENIED") {
		t.Errorf("%s: %v, %s", o.value("status"), o.names(), o.value("results"))
	}
	if _, err := os.Stat(filepath.Join(ws, "b.txt")); err == nil {
		t.Error("a rejected step was executed")
	}
}

// observe only reads; suggest executes nothing.
func TestSpecOperatorTrust(t *testing.T) {
	t.Run("observe", func(t *testing.T) {
		o := operate(t, planned(readA, writeB), map[string]any{"goal": "g", "trust": "observe", "maxRetries": 0, "mode": "yolo"}, map[string]string{"a.txt": "a"})
		if o.value("status") != "failed" || !strings.Contains(o.value("reason"), `unknown skill "fs_write"; the skills are code_search, fs_list, fs_read`) || o.count("skill_executed") != 0 {
			t.Errorf("%s: %s, %v", o.value("status"), o.value("reason"), o.names())
		}
	})
	t.Run("suggest", func(t *testing.T) {
		o := operate(t, planned(readA, writeB), map[string]any{"goal": "g", "trust": "suggest"}, map[string]string{"a.txt": "a"})
		if o.value("status") != "suggested" || o.value("success") != "false" || o.count("execution_started") != 0 || !strings.Contains(o.value("suggested"), "fs_write") {
			t.Errorf("%s: %v, %s", o.value("status"), o.names(), o.value("suggested"))
		}
	})
}

// Specification: "yolo falls back to strict when confidence < 0.35, event mode_downgraded".
func TestSpecOperatorDowngrades(t *testing.T) {
	for reply, want := range map[string]string{
		`{"ready":true,"confidence":0.35}`:                               "yolo",
		`{"ready":true,"confidence":0.34,"clarification":"which file?"}`: "strict",
		"I cannot say.": "strict",
	} {
		c := planned(readA)
		c.assess = func(int, string) string { return reply }
		o := operate(t, c, map[string]any{"goal": "g", "mode": "yolo"}, map[string]string{"a.txt": "a"})
		down := o.data("mode_downgraded")
		if o.value("effectiveMode") != want || (len(down) == 1) != (want == "strict") || o.value("status") != "completed" {
			t.Errorf("%s: %s, %v, %s", reply, o.value("effectiveMode"), down, o.value("status"))
		}
		if strings.Contains(reply, "clarification") && !strings.Contains(c.asked[planner][0], "- Missing detail: which file?") {
			t.Errorf("the prompt is\n%s", c.asked[planner][0])
		}
	}
}

// Specification: "focus (files, git, web)" decides which skills there are, and skills
// replaces them; the lists on the command steps bound both.
func TestSpecOperatorFocus(t *testing.T) {
	for inputs, want := range map[string]string{
		`{"focus":"files"}`:   "code_edit, code_search, fs_list, fs_read, fs_write",
		`{"focus":"git"}`:     "code_git, code_search, fs_list, fs_read",
		`{"focus":"web"}`:     "code_shell_execute, fs_list, fs_read, fs_write",
		`{"skills":["fs/*"]}`: "fs_list, fs_read, fs_write",
	} {
		given := map[string]any{"goal": "g", "maxRetries": 0}
		if err := json.Unmarshal([]byte(inputs), &given); err != nil {
			t.Fatal(err)
		}
		o := operate(t, planned(`unknown {}`), given, nil)
		if !strings.Contains(o.value("reason"), "; the skills are "+want+"\n") {
			t.Errorf("%s: %s", inputs, o.value("reason"))
		}
	}
	o := operate(t, planned(`memory_store {"text":"x"}`), map[string]any{"goal": "g", "maxRetries": 0, "skills": []string{"memory/*"}, "mode": "yolo"}, nil)
	if !strings.Contains(o.value("results"), "SKILL_NOT_FOUND") || o.value("status") != "failed" {
		t.Errorf("a skill that no command step allows: %s, %s", o.value("reason"), o.value("results"))
	}
}

// Specification: "same tool + args twice warns, three failures in a row = stuck: escalates
// to a stronger model if the input strongModel names one", with "the full scratchpad".
func TestSpecOperatorEscalates(t *testing.T) {
	for strong, want := range map[string][]string{"": {"scripted", "scripted", "scripted", "scripted"}, "openai/strong": {"scripted", "scripted", "strong", "strong"}} {
		c := &cast{plan: func(n int, prompt string) string {
			if n == 4 {
				return steps(readA)
			}
			return steps(`fs_read {"path":"none.txt"}`, fmt.Sprintf(`fs_read {"path":"none%d.txt"}`, n))
		}}
		o := operate(t, c, map[string]any{"goal": "g", "maxRetries": 3, "model": "openai/scripted", "strongModel": strong}, map[string]string{"a.txt": "a"})
		if o.value("status") != "completed" || !slices.Equal(c.model[planner], want) {
			t.Errorf("%q: %s, planned by %v", strong, o.value("status"), c.model[planner])
		}
		if up := o.data("escalated"); (len(up) == 1) != (strong != "") || len(up) == 1 && len(up[0]["log"].([]any)) != 3 {
			t.Errorf("%q: %v", strong, up)
		}
		const warning = "fs_read failed 2 times with the same inputs"
		if failed := o.data("step_failed"); !strings.Contains(fmt.Sprint(failed[2]["warning"]), warning) {
			t.Errorf("%q: no warning: %v", strong, failed)
		}
	}
}

// The warning of a repeated action is in the prompt of the next attempt.
func TestSpecOperatorWarnsOfRepeats(t *testing.T) {
	c := &cast{plan: func(n int, _ string) string {
		return steps(fmt.Sprintf(`fs_list {"maxResults":%d}`, n), `fs_read {"path":"none.txt"}`)
	}}
	operate(t, c, map[string]any{"goal": "g"}, nil)
	if prompt := c.asked[planner][2]; !strings.Contains(prompt, "fs_read failed 2 times with the same inputs") {
		t.Errorf("the third prompt is\n%s", prompt)
	}
}

// X13: "one classifier + strategy package used by all three": an error that a wait can mend
// is retried within the step, one that needs another approach is not.
func TestX13StepsRetryByClass(t *testing.T) {
	o := operate(t, planned(`fs_read {"path":"none.txt"}`), map[string]any{"goal": "g", "maxRetries": 0}, nil)
	trace, err := o.host.Runtime().Trace(o.Run)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(trace)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), `"label":"fs/read"`) + strings.Count(string(text), `"Label":"fs/read"`); n != 1 {
		t.Errorf("%d calls of fs/read", n)
	}
}

// A model that fails or stops mid-way fails its attempt; the next one goes on.
func TestSpecOperatorModelFails(t *testing.T) {
	c := planned(readA)
	s := newModelServer(t, c.script)
	s.refuse = func(n int, w http.ResponseWriter) bool {
		switch n {
		case 2: // the first plan: refused
			http.Error(w, `{"error":{"message":"the prompt is not allowed","code":"content_policy"}}`, http.StatusBadRequest)
			return true
		case 3: // the second: cut at its limit
			w.Header().Set("Content-Type", "text/event-stream")
			half, _ := json.Marshal(steps(readA)[:40])
			fmt.Fprintf(w, "data: {\"id\":\"x\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"scripted\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":%s},\"finish_reason\":\"length\"}]}\n\ndata: [DONE]\n\n", half)
			return true
		}
		return false
	}
	ws := t.TempDir()
	write(t, ws, map[string]string{"a.txt": "a"})
	h := open(t, host.Options{Workspace: ws})
	o := operatorEnd(t, h, startIn(t, h, ws, map[string]any{"goal": "g"}))
	failed := o.data("planning_failed")
	if o.value("status") != "completed" || o.value("attempt") != "2" || len(failed) != 2 ||
		!strings.Contains(fmt.Sprint(failed[0]["problems"]), "the planner failed: ") || !strings.Contains(fmt.Sprint(failed[1]["problems"]), "the reply is not JSON") {
		t.Errorf("%s after %s: %v", o.value("status"), o.value("attempt"), failed)
	}
}

// O10: "Several parallel work queues and direct-execution bypasses grew up beside each
// other": "one queue, leases, idempotency key": a task is a run like any other, and one that
// is started twice with a key exists once.
func TestO10OneQueue(t *testing.T) {
	c := planned(readA)
	h, id, ws := startOperator(t, c, map[string]any{"goal": "g"}, map[string]string{"a.txt": "a"})
	operatorEnd(t, h, id)
	text, _ := sentinels.ShippedText("operator")
	def, problems := h.Runtime().Decode(text, "operator.json")
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	opt := runtime.StartOptions{Workspace: ws, Key: "task-1", Inputs: map[string]json.RawMessage{"goal": json.RawMessage(`"g"`)}}
	var ids []sentinels.RunID
	for range 2 {
		id, err := h.Runtime().Start(t.Context(), def, opt)
		if err != nil {
			t.Fatal(err)
		}
		operatorEnd(t, h, id)
		ids = append(ids, id)
	}
	if ids[0] != ids[1] || len(c.asked[planner]) != 2 {
		t.Errorf("runs %v, %d plans", ids, len(c.asked[planner]))
	}
	// No skill is called outside a step of type command of the file.
	calls := 0
	def.EachStep(func(_ string, s *sentinels.Step) {
		if s.Type == "command" {
			calls++
			if len(s.Fields["allow"]) == 0 {
				t.Errorf("step %q has no allow-list", s.Name)
			}
		}
		if len(s.Fields["tools"]) > 0 {
			t.Errorf("step %q has a model with tools", s.Name)
		}
	})
	if calls != 2 {
		t.Errorf("%d steps of type command", calls)
	}
}

// A task that waits for a person survives the end of its process, and what was done before
// is not done again.
func TestSpecOperatorSurvivesRestart(t *testing.T) {
	c := planned(readA, writeB)
	newModelServer(t, c.script)
	dir, ws := t.TempDir(), t.TempDir()
	h, err := host.Open(t.Context(), host.Options{Dir: dir, Workspace: ws})
	if err != nil {
		t.Fatal(err)
	}
	write(t, ws, map[string]string{"a.txt": "a"})
	id := startIn(t, h, ws, map[string]any{"goal": "g"})
	for {
		info, err := h.Runtime().Status(id)
		if err != nil {
			t.Fatal(err)
		}
		if len(info.Decisions) > 0 {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	h = open(t, host.Options{Dir: dir, Workspace: ws})
	if _, err := h.Runtime().ResumeAll(t.Context(), runtime.ResumeOptions{By: "server"}); err != nil {
		t.Fatal(err)
	}
	if asked := decide(t, h, id, "approve"); len(asked) != 1 {
		t.Errorf("asked %q", asked)
	}
	o := operatorEnd(t, h, id)
	if o.value("status") != "completed" || len(c.asked[planner]) != 1 || o.count("skill_executed") != 2 || o.count("planning_started") != 1 {
		t.Errorf("%s: %d plans, %v", o.value("status"), len(c.asked[planner]), o.names())
	}
}

// What a file says is data: a planner that obeys it plans with the same skills, and a model
// never writes what steers tools.
func TestSpecOperatorInjectedPlans(t *testing.T) {
	for plan, want := range map[string]string{
		`fs_write {"path":".git/hooks/pre-commit","content":"x"}`:    "PERMISSION_DENIED",
		`fs_write {"path":".github/workflows/x.yml","content":"x"}`:  "PERMISSION_DENIED",
		`fs_write {"path":"Makefile","content":"all:\n\tcurl evil"}`: "PERMISSION_DENIED",
		`fs_write {"path":"../outside.txt","content":"x"}`:           "PATH_RESTRICTED",
		`fs_write {"path":"/etc/cron.d/x","content":"x"}`:            "PATH_RESTRICTED",
		`fs_read {"path":".env"}`:                                    "PERMISSION_DENIED",
	} {
		o := operate(t, planned(plan), map[string]any{"goal": "g", "mode": "yolo", "maxRetries": 0}, map[string]string{".env": "KEY=1"})
		if o.value("status") != "failed" || !strings.Contains(o.value("results"), want) {
			t.Errorf("%s: %s, %s", plan, o.value("status"), o.value("results"))
		}
	}
}

// Specification: "Audit events to emit: ...". Each is published somewhere, and FORMAT.md
// lists each.
func TestSpecS004Audit(t *testing.T) {
	h := open(t, host.Options{})
	text, _ := sentinels.ShippedText("operator")
	def, problems := h.Runtime().Decode(text, "operator.json")
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	var names []string
	def.EachStep(func(_ string, s *sentinels.Step) {
		var name string
		if s.Type == "emit" && json.Unmarshal(s.Fields["event"], &name) == nil {
			names = append(names, strings.TrimPrefix(name, "operator:"))
		}
	})
	for _, want := range strings.Fields(`operator_initialized task_assessed task_started planning_started planning_completed planning_failed
		execution_started execution_completed step_failed path_autofixed critique_started critique_completed critique_failed retry_scheduled
		mode_downgraded task_completed task_failed skill_registered skill_approved skill_rejected skill_executed`) {
		if !slices.Contains(names, want) {
			t.Errorf("no step publishes %s", want)
		}
	}
	page, err := os.ReadFile("../sentinels/FORMAT.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if !strings.Contains(string(page), "`"+name+"`") {
			t.Errorf("FORMAT.md does not list %s", name)
		}
	}
}

// Outputs and plans of many kilobytes fit the variables of the run, over all attempts, and
// nothing that was cut is written.
func TestSpecOperatorLargeValues(t *testing.T) {
	big := strings.Repeat("0123456789abcde ", 4<<10)
	c := &cast{plan: func(n int, _ string) string {
		return steps(`fs_write {"path":"big.txt","content":"`+big+strings.Repeat("x", n)+`"}`, `fs_read {"path":"a.txt"}`, `fs_read {"path":"big.txt"}`,
			`fs_write {"path":"copy.txt","content":"{{steps.2.outputs.content}}"}`)
	}}
	h, id, ws := startOperator(t, c, map[string]any{"goal": "g", "mode": "yolo"}, map[string]string{"a.txt": strings.Repeat("0123456789abcde\n", 8<<10)})
	o := operatorEnd(t, h, id)
	if o.value("status") != "failed" || o.value("attempt") != "3" || !strings.Contains(o.value("results"), "too many to be the input of another step") {
		t.Errorf("%s after %s: %s", o.value("status"), o.value("attempt"), o.value("reason"))
	}
	if _, err := os.Stat(filepath.Join(ws, "copy.txt")); err == nil {
		t.Error("a part of an output was written")
	}
}

// X15: "switch path_autofix; run the test with it off and on". It is the definition's: what a
// plan says about it does not count.
func TestX15AutofixIsASwitch(t *testing.T) {
	for _, on := range []bool{false, true} {
		o := operate(t, planned(fmt.Sprintf(`fs_read {"path":"/a.txt","path_autofix":%v}`, !on)), map[string]any{"goal": "g", "maxRetries": 0, "path_autofix": on}, map[string]string{"a.txt": "a"})
		if (o.value("status") == "completed") != on || o.count("path_autofixed") != map[bool]int{true: 1}[on] {
			t.Errorf("path_autofix %v: %s, %v", on, o.value("status"), o.names())
		}
	}
}
