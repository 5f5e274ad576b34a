package host_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A planner that plans in circles, A, B, A, B, ends at the cap: a plan that failed is
// neither executed again when it comes back after another one, nor by other words.
func TestSpecOperatorCircles(t *testing.T) {
	c := &cast{plan: func(n int, _ string) string {
		if n%2 == 1 {
			return steps(`fs_read {"path":"a.txt"}`)
		}
		return steps(`fs_list {"pattern":"b*"}`, `fs_read {"path":"b.txt"}`)
	}}
	o := operate(t, c, map[string]any{"goal": "g", "maxRetries": 9}, nil)
	if o.value("status") != "failed" || o.value("attempt") != "10" || !strings.HasPrefix(o.value("reason"), "max_retries: ") || o.count("task_failed") != 1 {
		t.Errorf("%s after %s: %s", o.value("status"), o.value("attempt"), o.value("reason"))
	}
	// Each of the two plans is executed once, in the first attempts; afterwards both are
	// refused in each attempt.
	if o.count("execution_started") != 2 || o.count("skill_executed") != 3 || o.count("planning_failed") != 2*8 {
		t.Errorf("%d executions, %d skills, %d plans refused", o.count("execution_started"), o.count("skill_executed"), o.count("planning_failed"))
	}
	for i, d := range o.data("planning_failed") {
		if d["equal"] != true || d["equalTo"] == nil {
			t.Errorf("refusal %d: %v", i, d)
		}
	}
	// A planner that alternates within an attempt is asked twice in each.
	if len(c.asked[planner]) != 2+2*8 {
		t.Errorf("%d plans", len(c.asked[planner]))
	}
}

// A model server that answers rubbish, stops mid-way or answers too much fails its attempt
// with a reason, and the next task of the host is done.
func TestSpecOperatorBadModels(t *testing.T) {
	const done = "data: [DONE]\n\n"
	say := func(text string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) { _, _ = w.Write([]byte(text)) }
	}
	cases := map[string]struct {
		answer func(http.ResponseWriter)
		reason string
	}{
		"cut in the middle": {cutBehind(chunkOf(map[string]any{"role": "assistant", "content": steps(readA)[:40]}, nil)), "broken stream"},
		"50 MB": {func(w http.ResponseWriter) {
			text := chunkOf(map[string]any{"content": strings.Repeat("x", 1<<20)}, nil)
			for range 50 {
				if _, err := w.Write([]byte(text)); err != nil {
					return
				}
			}
			say(chunkOf(map[string]any{}, "stop") + done)(w)
		}, "the answer is larger than 16777216 bytes"},
		"1 MB":        {say(chunkOf(map[string]any{"content": strings.Repeat("x", 1<<20)}, "stop") + done), "the reply"},
		"no JSON":     {say("data: {{{\n\n" + done), "broken stream"},
		"nothing":     {say(chunkOf(map[string]any{"role": "assistant", "content": ""}, "stop") + done), "the reply"},
		"a tool call": {say(toolChunk(`{"path":".git/config","content":"x"}`, "tool_calls") + done), "the reply"},
		"down":        {func(w http.ResponseWriter) { http.Error(w, "down", http.StatusBadRequest) }, "400"},
	}
	inShort(t, cases, "cut in the middle", "50 MB", "nothing") // of a broken stream, a limit and a wrong reply one each
	cast := planned(readA)
	s := newModelServer(t, cast.script)
	s.refuse = func(n int, w http.ResponseWriter) bool {
		s.mu.Lock()
		r := s.asked[n-1]
		s.mu.Unlock()
		name, bad := strings.CutPrefix(strings.Split(r.task(), "\n")[0], "Task: bad ")
		if !bad || !strings.Contains(r.text("system"), string(planner)) {
			return false
		}
		w.Header().Set("Content-Type", "text/event-stream")
		cases[name].answer(w)
		return true
	}
	ws := t.TempDir()
	write(t, ws, map[string]string{"a.txt": "a"})
	h := open(t, host.Options{Workspace: ws})
	runs := map[string]sentinels.RunID{}
	for name := range cases { // at the same time, so that the delays between tries overlap
		runs[name] = startIn(t, h, ws, map[string]any{"goal": "bad " + name, "maxRetries": 0})
	}
	for name, id := range runs {
		o := operatorEnd(t, h, id)
		var plans []struct{ OK bool }
		if err := json.Unmarshal(o.Variables["plans"], &plans); err != nil {
			t.Fatal(err)
		}
		if o.value("status") != "failed" || !strings.Contains(o.value("reason"), cases[name].reason) || len(o.value("reason")) > 4000 || o.value("results") != "[]" || len(plans) != 2 || plans[0].OK || plans[1].OK {
			t.Errorf("%s: %s: %.500s, %+v", name, o.value("status"), o.value("reason"), plans)
		}
	}
	if o := operatorEnd(t, h, startIn(t, h, ws, map[string]any{"goal": "good"})); o.value("status") != "completed" {
		t.Errorf("the next task: %s: %s", o.value("status"), o.value("reason"))
	}
}
