package host_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A part is one of the three roles that the operator gives to its model.
type part string

const (
	assessor part = "You assess tasks"
	planner  part = "You are the Planner"
	critic   part = "You are the Critic"
)

// A cast is what the model answers in each role. A nil assess is ready and sure; a nil
// critique approves.
type cast struct {
	assess, critique func(n int, prompt string) string
	plan             func(n int, prompt string) string

	mu    sync.Mutex
	asked map[part][]string // prompts
	model map[part][]string

	systems []string
}

// script answers a request in its role.
func (c *cast) script(r chatRequest) answer {
	c.mu.Lock()
	defer c.mu.Unlock()
	prompt, system := r.text("user"), r.text("system")
	c.systems = append(c.systems, system)
	for _, role := range []part{assessor, planner, critic} {
		if !strings.Contains(system, string(role)) {
			continue
		}
		if c.asked == nil {
			c.asked, c.model = map[part][]string{}, map[part][]string{}
		}
		c.asked[role] = append(c.asked[role], prompt)
		c.model[role] = append(c.model[role], r.Model)
		n := len(c.asked[role])
		switch {
		case role == assessor && c.assess == nil:
			return answer{text: `{"ready":true,"confidence":0.9,"rationale":"clear"}`}
		case role == assessor:
			return answer{text: c.assess(n, prompt)}
		case role == planner:
			return answer{text: c.plan(n, prompt)}
		case c.critique == nil:
			return answer{text: `{"approved":true,"confidence":0.9,"feedback":"done"}`}
		}
		return answer{text: c.critique(n, prompt)}
	}
	return answer{text: "unknown role"}
}

// An operated is a run of the operator that has ended.
type operated struct {
	runtime.Result
	t      *testing.T
	events []sentinels.Event
	host   *host.Host
}

// startOperator starts the shipped operator in a workspace with files.
func startOperator(t *testing.T, c *cast, inputs map[string]any, files map[string]string) (*host.Host, sentinels.RunID, string) {
	t.Helper()
	newModelServer(t, c.script)
	ws := t.TempDir()
	write(t, ws, files)
	h := open(t, host.Options{Workspace: ws})
	return h, startIn(t, h, ws, inputs), ws
}

// startIn starts the shipped operator in a workspace.
func startIn(t *testing.T, h *host.Host, ws string, inputs map[string]any) sentinels.RunID {
	t.Helper()
	text, ok := sentinels.ShippedText("operator")
	if !ok {
		t.Fatal("no operator")
	}
	def, problems := h.Runtime().Decode(withoutDelays(t, text), "operator.json")
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	given := map[string]json.RawMessage{}
	for name, v := range inputs {
		var err error
		if given[name], err = json.Marshal(v); err != nil {
			t.Fatal(err)
		}
	}
	id, err := h.Runtime().Start(t.Context(), def, runtime.StartOptions{Workspace: ws, Inputs: given})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// operate runs the operator to its end.
func operate(t *testing.T, c *cast, inputs map[string]any, files map[string]string) *operated {
	t.Helper()
	h, id, _ := startOperator(t, c, inputs, files)
	return operatorEnd(t, h, id)
}

func operatorEnd(t *testing.T, h *host.Host, id sentinels.RunID) *operated {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	res, err := h.Runtime().Wait(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	// A task that failed is a run that failed, with the reason.
	o := &operated{Result: res, t: t, host: h}
	failed := o.value("status") == "failed"
	if failed != (res.Status == sentinels.StatusFailed) || failed && !strings.Contains(res.Error.Message, o.value("reason")) || !failed && res.Status != sentinels.StatusCompleted {
		t.Fatalf("%s: %v; the task is %s: %s", res.Status, res.Error, o.value("status"), o.value("reason"))
	}
	events, err := h.Runtime().Events("operator:*", 1000)
	if err != nil {
		t.Fatal(err)
	}
	o.events = events
	return o
}

// names are the events in their order, without the prefix.
func (o *operated) names() []string {
	list := make([]string, len(o.events))
	for i, e := range o.events {
		list[i] = strings.TrimPrefix(e.Name, "operator:")
	}
	return list
}

// data returns the data of all events of a name.
func (o *operated) data(name string) (list []map[string]any) {
	o.t.Helper()
	for _, e := range o.events {
		if e.Name != "operator:"+name {
			continue
		}
		var m map[string]any
		if err := json.Unmarshal(e.Data, &m); err != nil {
			o.t.Fatal(err)
		}
		list = append(list, m)
	}
	return list
}

// count counts the events of a name.
func (o *operated) count(name string) int {
	return len(slices.DeleteFunc(o.names(), func(n string) bool { return n != name }))
}

// value returns a variable of the run as text.
func (o *operated) value(name string) string {
	var s string
	if json.Unmarshal(o.Variables[name], &s) == nil {
		return s
	}
	return string(o.Variables[name])
}

// steps writes a plan: each step as skill and inputs.
func steps(list ...string) string {
	var all []string
	for i, s := range list {
		skill, inputs, _ := strings.Cut(s, " ")
		all = append(all, fmt.Sprintf(`{"id":%d,"description":"step %d","skillId":%q,"inputs":%s,"expectedOutput":"it works"}`, i+1, i+1, skill, inputs))
	}
	return `{"steps":[` + strings.Join(all, ",") + `],"reasoning":"because"}`
}

const document = "docs/dev/MULTI_MODEL_INTEGRATION_STATUS.md"

// byFeedback plans as a model does that reads its prompt: what failed before decides.
func byFeedback(first, search, read string) func(int, string) string {
	return func(_ int, prompt string) string {
		switch {
		case !strings.Contains(prompt, "RETRY ATTEMPT #"):
			return steps(first)
		case strings.Contains(prompt, "fs_list"):
			return steps(search, read)
		}
		return "I have no idea."
	}
}

// S004, test case 1: "Read the file at /docs/dev/MULTI_MODEL_INTEGRATION_STATUS.md": "First
// attempt fails with path validation error; retry context passed to planner; second attempt
// uses fs_list to search for the file; finds it; reads file successfully". X15: "auto-fix
// makes its test case 1 pass at once: switch path_autofix; run the test with it off and on".
func TestSpecS004Case1(t *testing.T) {
	for _, fix := range []bool{false, true} {
		t.Run(fmt.Sprintf("path_autofix %v", fix), func(t *testing.T) {
			c := &cast{
				plan: byFeedback(`fs_read {"path":"/`+document+`"}`, `fs_list {"pattern":"MULTI_MODEL_INTEGRATION_STATUS*"}`, `fs_read {"path":"{{steps.1.outputs.files.0}}"}`),
				critique: func(_ int, prompt string) string {
					if strings.Contains(prompt, "all models work") {
						return `{"approved":true,"confidence":1,"feedback":"read"}`
					}
					return "```json\n" + `{"approved":false,"confidence":0.9,"feedback":"The path was rejected.","suggestions":"Search with fs_list."}` + "\n```"
				},
			}
			o := operate(t, c, map[string]any{"goal": "Read the file at /" + document, "path_autofix": fix}, map[string]string{document: "all models work"})
			if o.value("status") != "completed" || !strings.Contains(o.value("results"), "all models work") {
				t.Fatalf("%s: %s, %s", o.value("status"), o.value("reason"), o.value("results"))
			}
			fixed := o.data("path_autofixed")
			if fix {
				if o.value("attempt") != "1" || len(fixed) != 1 || fixed[0]["from"] != "/"+document || fixed[0]["to"] != document {
					t.Errorf("%s attempts, fixed %v", o.value("attempt"), fixed)
				}
				return
			}
			failed := o.data("step_failed")
			if o.value("attempt") != "2" || len(fixed) != 0 || len(failed) != 1 || failed[0]["error"].(map[string]any)["code"] != "PATH_RESTRICTED" {
				t.Errorf("%s attempts, fixed %v, failed %v", o.value("attempt"), fixed, failed)
			}
		})
	}
}

// S004, test case 2: "Read the README file": "First attempt tries to read "README"
// directly, fails; second attempt uses fs_list to search for "README*"; finds README.md".
func TestSpecS004Case2(t *testing.T) {
	c := &cast{
		plan: byFeedback(`fs_read {"path":"README"}`, `fs_list {"pattern":"README*"}`, `fs_read {"path":"{{steps.1.outputs.files.0}}"}`),
		critique: func(_ int, prompt string) string {
			return fmt.Sprintf(`{"approved":%v,"confidence":1,"feedback":"reviewed"}`, strings.Contains(prompt, "hello from the readme"))
		},
	}
	o := operate(t, c, map[string]any{"goal": "Read the README file"}, map[string]string{"README.md": "hello from the readme"})
	if o.value("status") != "completed" || o.value("attempt") != "2" {
		t.Fatalf("%s after %s: %s", o.value("status"), o.value("attempt"), o.value("reason"))
	}
	if failed := o.data("step_failed"); len(failed) != 1 || failed[0]["error"].(map[string]any)["code"] != "FILE_NOT_FOUND" {
		t.Errorf("failed %v", failed)
	}
	// The advice comes from the code of the error; this critic gave none.
	if prompt := c.asked[planner][1]; !strings.Contains(prompt, "Use fs_list with a broader search pattern") {
		t.Errorf("the second prompt is\n%s", prompt)
	}
}

// S004, test case 3: "check out MULTI_MODEL_INTEGRATION_STATUS.md and let me know what you
// think": "done in 1 to 2 attempts".
func TestSpecS004Case3(t *testing.T) {
	c := &cast{
		plan: byFeedback(`fs_read {"path":"/docs/dev/other/MULTI_MODEL_INTEGRATION_STATUS.md"}`, `fs_list {"pattern":"**/MULTI_MODEL*"}`, `fs_read {"path":"{{steps.1.outputs.files[0]}}"}`),
	}
	o := operate(t, c, map[string]any{"goal": "I just made some more edits to your system - check out MULTI_MODEL_INTEGRATION_STATUS.md and let me know what you think"},
		map[string]string{document: "all models work"})
	if o.value("status") != "completed" || o.value("attempt") != "2" || !strings.Contains(o.value("results"), "all models work") {
		t.Fatalf("%s after %s: %s", o.value("status"), o.value("attempt"), o.value("reason"))
	}
}

// O1: "log attemptNumber, previous plan hash, failed steps, feedback". S004: "Check audit
// logs for planning_started events with retry context; verify attemptNumber increments on
// retries; confirm different approaches used on subsequent attempts".
func TestO1AuditOfRetries(t *testing.T) {
	c := &cast{
		plan: byFeedback(`fs_read {"path":"README"}`, `fs_list {"pattern":"README*"}`, `fs_read {"path":"{{steps.1.outputs.files.0}}"}`),
		critique: func(n int, _ string) string {
			return fmt.Sprintf(`{"approved":%v,"confidence":1,"feedback":"feedback %d","suggestions":"suggestion %d"}`, n > 1, n, n)
		},
	}
	o := operate(t, c, map[string]any{"goal": "Read the README file"}, map[string]string{"README.md": "hello"})
	want := []string{
		"operator_initialized", "skill_registered", "task_assessed", "task_started",
		"planning_started", "planning_completed", "execution_started", "skill_executed", "step_failed", "execution_completed", "critique_started", "critique_completed", "retry_scheduled",
		"planning_started", "planning_completed", "execution_started", "skill_executed", "skill_executed", "execution_completed", "critique_started", "critique_completed", "task_completed",
	}
	if !slices.Equal(o.names(), want) {
		t.Errorf("events\n%v, want\n%v", o.names(), want)
	}
	planned, done := o.data("planning_started"), o.data("planning_completed")
	if len(planned) != 2 || len(done) != 2 {
		t.Fatalf("%d plans", len(planned))
	}
	first, second := planned[0], planned[1]
	if first["attemptNumber"] != 1.0 || first["previousPlanHash"] != nil || first["criticFeedback"] != nil {
		t.Errorf("first %v", first)
	}
	if second["attemptNumber"] != 2.0 || second["previousPlanHash"] != done[0]["planHash"] || second["criticFeedback"] != "feedback 1" ||
		!strings.Contains(fmt.Sprint(second["failedSteps"]), "FILE_NOT_FOUND") || !strings.Contains(fmt.Sprint(second["suggestedFixes"]), "suggestion 1") {
		t.Errorf("second %v", second)
	}
	var logged struct {
		Entries []struct {
			Details struct{ AttemptNumber float64 }
		}
	}
	must(t, o.host, "audit/list", map[string]any{"event": "operator:planning_started"}, &logged)
	if len(logged.Entries) != 2 || logged.Entries[0].Details.AttemptNumber != 2 || logged.Entries[1].Details.AttemptNumber != 1 {
		t.Errorf("the audit log has %+v", logged)
	}
	if done[0]["planHash"] == done[1]["planHash"] {
		t.Error("both plans have the same hash")
	}
	// "Planner prompt on retry: attempt number, previous plan as JSON, failed steps with id
	// and error, feedback, suggested fixes when present, an explicit order to try something
	// different".
	prompt := c.asked[planner][1]
	for _, text := range []string{
		"RETRY ATTEMPT #1\n", "Previous attempt failed. Learn from these mistakes:", "\"path\": \"README\"", "  - Step 1: FILE_NOT_FOUND: open \"README\": no such file",
		"Critic Feedback:\nfeedback 1", "Suggested Fixes:\nsuggestion 1", "try a DIFFERENT approach",
		"- Ready: yes", "- Confidence: 90%", "- Notes: clear", "Create a step-by-step plan to accomplish this task.",
	} {
		if !strings.Contains(prompt, text) {
			t.Errorf("%q is missing in\n%s", text, prompt)
		}
	}
	// What a file says is never part of a system prompt.
	for _, system := range c.systems {
		if strings.Contains(system, "# Variables") || strings.Contains(system, "hello") {
			t.Errorf("a system prompt has variables:\n%s", system)
		}
	}
	if strings.Contains(c.asked[planner][0], "RETRY") {
		t.Error("the first prompt has a retry context")
	}
}

// O2 in a run: a missing file before a write of it stays a failure of its step.
func TestO2MissingFileFails(t *testing.T) {
	c := &cast{plan: func(int, string) string {
		return steps(`fs_read {"path":"notes.txt"}`, `fs_write {"path":"notes.txt","content":"new"}`)
	}}
	o := operate(t, c, map[string]any{"goal": "g", "maxRetries": 0, "trust": "bounded_auto"}, nil)
	if o.value("status") != "failed" || o.count("step_failed") != 1 || !strings.Contains(o.value("results"), "FILE_NOT_FOUND") {
		t.Errorf("%s: %s", o.value("status"), o.value("results"))
	}
}

// O5: "Execution stops at the first failed step, later independent steps lost; global "last
// file" memory leaked between tasks": "per-task state; step dependency decides".
func TestO5IndependentStepsContinue(t *testing.T) {
	c := &cast{plan: func(int, string) string {
		return steps(`fs_read {"path":"none.txt"}`, `fs_read {"path":"{{steps.1.outputs.content}}"}`, `fs_read {"path":"a.txt"}`, `fs_write {"path":"b.txt","content":"{{steps.3.outputs.content}} again"}`)
	}}
	h, id, ws := startOperator(t, c, map[string]any{"goal": "g", "maxRetries": 0, "trust": "bounded_auto"}, map[string]string{"a.txt": "text of a"})
	o := operatorEnd(t, h, id)
	var results []struct {
		Success, Skipped bool
		Error            struct{ Message string }
	}
	if err := json.Unmarshal(o.Variables["results"], &results); err != nil {
		t.Fatal(err)
	}
	if len(results) != 4 || results[0].Success || !results[1].Skipped || results[1].Error.Message != "not executed, because step 1 failed" || !results[2].Success || !results[3].Success {
		t.Errorf("%s", o.Variables["results"])
	}
	if text, err := os.ReadFile(filepath.Join(ws, "b.txt")); err != nil || string(text) != "text of a again" {
		t.Errorf("%q, %v", text, err)
	}
	if o.value("status") != "failed" || o.count("skill_executed") != 3 {
		t.Errorf("%s, %d executed", o.value("status"), o.count("skill_executed"))
	}
}

// O6: "Critic failure ended the task; critic's word was final": "deterministic checks first;
// critic error = not approved, retryable".
func TestO6Critic(t *testing.T) {
	good := func(n int, _ string) string { return steps(fmt.Sprintf(`fs_read {"path":"a%d.txt"}`, n)) }
	files := map[string]string{"a1.txt": "x", "a2.txt": "x"}
	t.Run("error", func(t *testing.T) {
		c := &cast{plan: good, critique: func(n int, _ string) string {
			if n <= 2 { // the reply and its correction
				return "It looks fine to me."
			}
			return `{"approved":true,"confidence":1,"feedback":"done"}`
		}}
		o := operate(t, c, map[string]any{"goal": "g"}, files)
		if o.value("status") != "completed" || o.value("attempt") != "2" || o.count("critique_failed") != 1 || o.count("critique_completed") != 1 {
			t.Errorf("%s after %s: %v", o.value("status"), o.value("attempt"), o.names())
		}
		if !strings.Contains(c.asked[planner][1], "The review failed: llm: the reply does not match the schema") {
			t.Errorf("the prompt is\n%s", c.asked[planner][1])
		}
	})
	t.Run("a word that is wrong", func(t *testing.T) {
		c := &cast{plan: func(int, string) string { return steps(`fs_read {"path":"none.txt"}`) }}
		if o := operate(t, c, map[string]any{"goal": "g", "maxRetries": 0}, nil); o.value("status") != "failed" {
			t.Errorf("%s: a failed step was approved", o.value("status"))
		}
	})
}

// X14: "Critic fields approved/suggestions (S004) vs success/shouldRetry/suggestedFixes (its
// code): canonical S004 + shouldRetry; accept aliases".
func TestX14CriticFields(t *testing.T) {
	good := func(n int, _ string) string { return steps(fmt.Sprintf(`fs_read {"path":"a%d.txt"}`, n)) }
	files := map[string]string{"a1.txt": "x", "a2.txt": "x"}
	t.Run("aliases", func(t *testing.T) {
		c := &cast{plan: good, critique: func(n int, _ string) string {
			return fmt.Sprintf(`{"success":%v,"feedback":"f","suggestedFixes":["fix one","fix two"]}`, n > 1)
		}}
		o := operate(t, c, map[string]any{"goal": "g"}, files)
		if o.value("status") != "completed" || o.value("attempt") != "2" || !strings.Contains(c.asked[planner][1], "Suggested Fixes:\nfix one\nfix two") {
			t.Errorf("%s after %s", o.value("status"), o.value("attempt"))
		}
	})
	t.Run("shouldRetry", func(t *testing.T) {
		c := &cast{plan: good, critique: func(int, string) string {
			return `{"approved":false,"confidence":1,"feedback":"impossible","shouldRetry":false}`
		}}
		o := operate(t, c, map[string]any{"goal": "g"}, files)
		if o.value("status") != "failed" || o.value("attempt") != "1" || o.value("reason") != "the critic stopped: impossible" {
			t.Errorf("%s after %s: %s", o.value("status"), o.value("attempt"), o.value("reason"))
		}
	})
}

// O7: "reject a plan equal to a failed one (normalised), re-ask once, record both".
func TestO7EqualPlanIsAskedAgain(t *testing.T) {
	c := &cast{plan: func(n int, prompt string) string {
		switch {
		case strings.Contains(prompt, "Your plan was refused"):
			return steps(`fs_read {"path":"a.txt"}`)
		case n == 1:
			return steps(`fs_read {"path":"README"}`)
		}
		return `{"reasoning":"other words","steps":[{"inputs":{ "path":" README " },"skillId":"fs/read","id":"first","description":"the same"}]}`
	}}
	o := operate(t, c, map[string]any{"goal": "g"}, map[string]string{"a.txt": "x"})
	failed, done := o.data("planning_failed"), o.data("planning_completed")
	if o.value("status") != "completed" || o.value("attempt") != "2" || len(failed) != 1 || failed[0]["equal"] != true || failed[0]["equalTo"] != 1.0 ||
		failed[0]["attemptNumber"] != 2.0 || len(done) != 2 || failed[0]["planHash"] != done[0]["planHash"] || failed[0]["plan"] == nil {
		t.Errorf("%s after %s: %v", o.value("status"), o.value("attempt"), failed)
	}
	if o.count("skill_executed") != 2 || len(c.asked[planner]) != 3 {
		t.Errorf("%d executed, %d asked", o.count("skill_executed"), len(c.asked[planner]))
	}
	// A planner that insists fails its attempt without executing anything.
	c = &cast{plan: func(int, string) string { return steps(`fs_read {"path":"README"}`) }}
	o = operate(t, c, map[string]any{"goal": "g"}, nil)
	if o.value("status") != "failed" || o.count("skill_executed") != 1 || o.count("planning_failed") != 4 || !strings.Contains(o.value("reason"), "equal to the failed plan of attempt 1") {
		t.Errorf("%s: %s, %v", o.value("status"), o.value("reason"), o.names())
	}
}

// O8: "validate ids and inputs before execution": nothing of a plan with an unknown skill
// is executed.
func TestO8UnknownSkill(t *testing.T) {
	c := &cast{plan: func(n int, prompt string) string {
		if n == 1 {
			return steps(`fs_write {"path":"a.txt","content":"x"}`, `shell {"command":"rm -rf /"}`)
		}
		if !strings.Contains(prompt, `unknown skill "shell"; the skills are code_edit, code_search, fs_list, fs_read, fs_write`) {
			return "no"
		}
		return steps(`fs_list {}`)
	}}
	h, id, ws := startOperator(t, c, map[string]any{"goal": "g", "trust": "bounded_auto"}, nil)
	o := operatorEnd(t, h, id)
	if o.value("status") != "completed" || o.value("attempt") != "1" || o.count("planning_failed") != 1 {
		t.Errorf("%s: %v", o.value("status"), o.names())
	}
	if _, err := os.Stat(filepath.Join(ws, "a.txt")); err == nil {
		t.Error("a part of the refused plan was executed")
	}
}

// X16: "maxRetries: text 1 to 2, code default 1: default 2 (3 attempts)".
func TestX16DefaultOfRetries(t *testing.T) {
	c := planned(`fs_read {"path":"none.txt"}`)
	c.plan = func(n int, _ string) string { return steps(fmt.Sprintf(`fs_read {"path":"none%d.txt"}`, n)) }
	o := operate(t, c, map[string]any{"goal": "g"}, nil)
	if o.value("status") != "failed" || o.count("planning_started") != 3 || o.count("retry_scheduled") != 2 {
		t.Errorf("%s: %v", o.value("status"), o.names())
	}
}

// O9: "invariant tests on counters", and the hard cap.
func TestO9Counters(t *testing.T) {
	for retries, want := range map[any]int{nil: 3, 0: 1, 1: 2, -5: 1, 100: 10} {
		c := &cast{
			plan:     func(n int, _ string) string { return steps(fmt.Sprintf(`fs_read {"path":"none%d.txt"}`, n)) },
			critique: func(n int, _ string) string { return fmt.Sprintf(`{"approved":false,"feedback":"no %d"}`, n) },
		}
		inputs := map[string]any{"goal": "g"}
		if retries != nil {
			inputs["maxRetries"] = retries
		}
		o := operate(t, c, inputs, nil)
		if o.value("status") != "failed" || o.value("attempt") != fmt.Sprint(want) || o.value("reason") != fmt.Sprintf("max_retries: no %d", want) {
			t.Errorf("%v: %s after %s: %s", retries, o.value("status"), o.value("attempt"), o.value("reason"))
		}
		for name, count := range map[string]int{
			"planning_started": want, "planning_completed": want, "execution_completed": want, "critique_completed": want, "step_failed": want,
			"retry_scheduled": want - 1, "task_failed": 1, "task_completed": 0, "operator_initialized": 1, "task_started": 1,
		} {
			if o.count(name) != count {
				t.Errorf("%v: %d %s, want %d", retries, o.count(name), name, count)
			}
		}
		for i, d := range o.data("planning_started") {
			if d["attemptNumber"] != float64(i+1) {
				t.Errorf("%v: attempt %v, want %d", retries, d["attemptNumber"], i+1)
			}
		}
	}
}

// A planner that answers rubbish, stops mid-way, or plans in circles ends in a named state
// with a reason.
func TestSpecOperatorBadPlanners(t *testing.T) {
	whole := steps(`fs_read {"path":"a.txt"}`, `fs_read {"path":"b.txt"}`)
	for name, c := range map[string]struct{ reply, reason string }{
		"rubbish":  {"lorem ipsum dolor", "the reply has no JSON"},
		"empty":    {"", "the reply"},
		"mid-way":  {whole[:len(whole)/2], "the reply is not JSON"},
		"circular": {`{"steps":[{"id":1,"skillId":"fs_list","dependsOn":[2]},{"id":2,"skillId":"fs_list","dependsOn":[1]}]}`, "in a circle: 1 2"},
		"injected": {steps(`code_shell_execute {"command":"curl evil"}`), `unknown skill "code_shell_execute"`},
	} {
		t.Run(name, func(t *testing.T) {
			o := operate(t, &cast{plan: func(int, string) string { return c.reply }}, map[string]any{"goal": "g"}, nil)
			if o.value("status") != "failed" || !strings.Contains(o.value("reason"), c.reason) || o.count("skill_executed") != 0 || o.count("planning_failed") != 6 || o.count("task_failed") != 1 {
				t.Errorf("%s: %s, %v", o.value("status"), o.value("reason"), o.names())
			}
		})
	}
}

// TestOutputsAreNotShellCode: the content of a file that a plan refers to in a shell line is
// not executed. The planner learns how to pass it, and the value arrives as data.
func TestOutputsAreNotShellCode(t *testing.T) {
	const title = "x'; touch PWNED; echo '"
	c := &cast{plan: func(n int, _ string) string {
		if n == 1 {
			return steps(`fs_read {"path":"title.txt"}`, `code_shell_execute {"command":"echo 'title: {{steps.1.outputs.content}}' > seen.txt"}`)
		}
		return steps(`fs_read {"path":"title.txt"}`, `code_shell_execute {"command":"echo \"title: $TITLE\" > seen.txt","env":{"TITLE":"{{steps.1.outputs.content}}"}}`)
	}}
	h, id, ws := startOperator(t, c, map[string]any{"goal": "g", "focus": "web", "mode": "yolo"}, map[string]string{"title.txt": title})
	o := operatorEnd(t, h, id)
	if _, err := os.Stat(filepath.Join(ws, "PWNED")); err == nil {
		t.Error("the content of the file was executed")
	}
	if text, err := os.ReadFile(filepath.Join(ws, "seen.txt")); err != nil || string(text) != "title: "+title+"\n" {
		t.Errorf("%q, %v", text, err)
	}
	asked := c.asked[planner]
	if o.value("status") != "completed" || len(asked) != 2 || !strings.Contains(asked[1], "steps[1].inputs.command: a reference is not replaced here, because the output would be executed as code") {
		t.Errorf("%s: the planner was asked %q", o.value("status"), asked)
	}
}

// TestPlanKnowsAllShellLines: the step plan refuses references in the parameters that the
// host executes as shell lines; there is no other.
func TestPlanKnowsAllShellLines(t *testing.T) {
	for _, c := range open(t, host.Options{}).Commands().List() {
		if len(c.Shell) > 0 && (c.Name != "code/shell/execute" || !slices.Equal(c.Shell, []string{"command"})) {
			t.Errorf("%s has shell lines in %v, which plugins/plan does not know", c.Name, c.Shell)
		}
	}
}
