package host_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/config"
	"github.com/sentinel-runtime/sentinel/host/secret"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// asked waits until a run asks a question that is not the one before.
func asked(t *testing.T, h *host.Host, id sentinels.RunID, before string) runtime.PendingDecision {
	t.Helper()
	for t.Context().Err() == nil {
		info, err := h.Runtime().Status(id)
		if err != nil || info.Status.Final() {
			t.Fatalf("%+v %v", info, err)
		}
		if len(info.Decisions) == 1 && info.Decisions[0].Question != before {
			return info.Decisions[0]
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatal("the test has ended")
	return runtime.PendingDecision{}
}

// TestAnswersNameTheirQuestion: an answer that is sent again, in a loop or by a double click,
// does not answer the next question.
func TestAnswersNameTheirQuestion(t *testing.T) {
	h := open(t, host.Options{})
	start := func(definition string) sentinels.RunID {
		t.Helper()
		def, problems := h.Runtime().Decode([]byte(definition), "test.json")
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		id, err := h.Runtime().Start(t.Context(), def, runtime.StartOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	decide := func(id sentinels.RunID, more map[string]any) error {
		params := map[string]any{"run": id, "verdict": "approve"}
		for name, v := range more {
			params[name] = v
		}
		return call(t, h, "sentinel/decide", params, nil)
	}
	for name, definition := range map[string]string{
		"rounds of a loop": `{"name": "rounds", "loop": {"type": "count", "max": 2}, "steps": [{"type": "approve", "prompt": "Deploy?"}]}`,
		"two steps":        `{"name": "steps", "steps": [{"type": "approve", "prompt": "staging?"}, {"type": "approve", "prompt": "PRODUCTION?"}]}`,
		"another text":     `{"name": "text", "loop": {"type": "count", "max": 2}, "steps": [{"type": "approve", "prompt": "Deploy $iteration?"}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			id := start(definition)
			first := asked(t, h, id, "")
			for _, bare := range []map[string]any{nil, {"call": first.Call}} {
				if err := decide(id, bare); abi.CodeOf(err) != abi.BadFields || !strings.Contains(abi.As(err).Hint, first.Question) {
					t.Errorf("without a question, %v: %v", bare, err)
				}
			}
			answer := map[string]any{"question": first.Question}
			if err := decide(id, answer); err != nil {
				t.Fatal(err)
			}
			second := asked(t, h, id, first.Question)
			for _, again := range []map[string]any{answer, {"question": first.Question, "call": second.Call}} {
				if err := decide(id, again); abi.CodeOf(err) != abi.Conflict || !strings.Contains(abi.As(err).Hint, second.Prompt) {
					t.Errorf("the first answer again, %v: %v", again, err)
				}
			}
			if err := decide(id, map[string]any{"question": second.Question}); err != nil {
				t.Error(err)
			}
			if r, err := h.Runtime().Wait(t.Context(), id); err != nil || r.Status != "completed" {
				t.Errorf("%+v %v", r, err)
			}
		})
	}
}

// TestApprovalIsOfOneRun: a fork or retry by an agent begins behind no step that a person
// approved for the other run; one that begins with the step asks again.
func TestApprovalIsOfOneRun(t *testing.T) {
	h := open(t, host.Options{})
	ws := t.TempDir()
	def, problems := h.Runtime().Decode([]byte(`{"name": "deploy", "steps": [{"type": "set", "values": {"built": 1}}, {"id": "gate", "type": "approve", "prompt": "Deploy?"}, {"id": "deploy", "type": "shell", "command": "echo deployed"}]}`), "test.json")
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	id, err := h.Runtime().Start(t.Context(), def, runtime.StartOptions{Workspace: ws})
	if err != nil {
		t.Fatal(err)
	}
	must(t, h, "sentinel/decide", map[string]any{"run": id, "question": asked(t, h, id, "").Question, "verdict": "approve", "by": "ada"}, nil)
	if r, err := h.Runtime().Wait(t.Context(), id); err != nil || r.Status != "completed" {
		t.Fatalf("%+v %v", r, err)
	}
	for name, params := range map[string]map[string]any{
		"sentinel/retry": {"run": id, "from": "deploy"},
		"sentinel/fork":  {"run": id, "iteration": 1, "from": "deploy", "address": "2", "params": map[string]any{"command": "echo changed"}},
	} {
		if _, err := held(t, h, ws, name, params); abi.CodeOf(err) != abi.Denied || !strings.Contains(err.Error(), "step 1 before step 2 was approved by ada") {
			t.Errorf("%s behind the gate: %v", name, err)
		}
	}
	out, err := held(t, h, ws, "sentinel/retry", map[string]any{"run": id, "from": "gate"})
	if err != nil {
		t.Fatal(err)
	}
	var again struct{ Run sentinels.RunID }
	if err := json.Unmarshal([]byte(out), &again); err != nil {
		t.Fatal(err)
	}
	asked(t, h, again.Run, "")
	must(t, h, "sentinel/retry", map[string]any{"run": id, "from": "deploy"}, &again) // by a person
	if r, err := h.Runtime().Wait(t.Context(), again.Run); err != nil || r.Status != "completed" {
		t.Fatalf("%+v %v", r, err)
	}
	if _, err := held(t, h, ws, "sentinel/retry", map[string]any{"run": again.Run, "from": "deploy"}); abi.CodeOf(err) != abi.Denied || !strings.Contains(err.Error(), "approved by ada") {
		t.Errorf("behind the gate of the run that the other is a fork of: %v", err)
	}
}

// TestApprovalElsewhere: an approval in an earlier iteration, or in a child that began before the place of the fork,
// is not used by a fork of an agent either. What comes before the gate is.
func TestApprovalElsewhere(t *testing.T) {
	h := open(t, host.Options{})
	ws := t.TempDir()
	for name, tt := range map[string]struct {
		src            string
		behind, before map[string]any
	}{
		"iteration": {`{"name": "a", "loop": {"type": "count", "max": 2}, "steps": [
			{"id": "first", "type": "set", "values": {"n": "$iteration"}},
			{"id": "ask", "type": "condition", "check": "$iteration === 1", "then": [{"type": "approve", "prompt": "Deploy?"}]},
			{"id": "deploy", "type": "shell", "command": "echo deployed"}]}`,
			map[string]any{"iteration": 2, "from": "first"}, map[string]any{"iteration": 1, "from": "ask"}},
		"child": {`{"name": "b", "steps": [
			{"id": "first", "type": "set", "values": {"n": 1}},
			{"id": "ask", "type": "sentinel", "definition": {"name": "c", "steps": [{"type": "sentinel", "definition": {"name": "d", "steps": [{"type": "approve", "prompt": "Deploy?"}]}}]}},
			{"id": "deploy", "type": "shell", "command": "echo deployed"}]}`,
			map[string]any{"iteration": 1, "from": "deploy"}, map[string]any{"iteration": 1, "from": "ask"}},
	} {
		t.Run(name, func(t *testing.T) {
			def, problems := h.Runtime().Decode([]byte(tt.src), "test.json")
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			id, err := h.Runtime().Start(t.Context(), def, runtime.StartOptions{Workspace: ws})
			if err != nil {
				t.Fatal(err)
			}
			at := id
			for at == id && t.Context().Err() == nil {
				all, err := h.Runtime().Runs(runtime.RunFilter{Root: id})
				if err != nil {
					t.Fatal(err)
				}
				for _, r := range all {
					if len(r.Decisions) > 0 {
						at = r.ID
					}
				}
				if name == "iteration" {
					break
				}
			}
			must(t, h, "sentinel/decide", map[string]any{"run": at, "question": asked(t, h, at, "").Question, "verdict": "approve", "by": "ada"}, nil)
			if r, err := h.Runtime().Wait(t.Context(), id); err != nil || r.Status != "completed" {
				t.Fatalf("%+v %v", r, err)
			}
			for _, verb := range []string{"sentinel/retry", "sentinel/fork"} {
				tt.behind["run"] = id
				if _, err := held(t, h, ws, verb, tt.behind); abi.CodeOf(err) != abi.Denied || !strings.Contains(err.Error(), "approved by ada for that run only") {
					t.Errorf("%s behind the gate: %v", verb, err)
				}
			}
			tt.before["run"] = id
			if _, err := held(t, h, ws, "sentinel/retry", tt.before); err != nil {
				t.Errorf("before the gate: %v", err)
			}
			must(t, h, "sentinel/retry", tt.behind, nil) // by a person
		})
	}
}

// TestApprovalSetOff: an approval in a run that a step started without being its parent, that its event started, or
// whose event it waited for, is not used by a fork of an agent either, also of a fork that a person made.
func TestApprovalSetOff(t *testing.T) {
	h := open(t, host.Options{})
	if err := h.Runtime().Arm(t.Context()); err != nil {
		t.Fatal(err)
	}
	ws := t.TempDir()
	create := func(id, more string) {
		t.Helper()
		must(t, h, "sentinel/create", `{"definition":{"id":"`+id+`","name":"`+id+`",`+more+`}}`, nil)
	}
	const gate = `{"type":"approve","prompt":"Deploy?"}`
	create("gate", `"steps":[`+gate+`]`)
	create("heard", `"trigger":{"type":"event","event":"ask:heard"},"steps":[`+gate+`,{"type":"emit","event":"done:heard"}]`)
	create("keeper", `"steps":[{"type":"wait","event":"ask:keeper"},`+gate+`,{"type":"emit","event":"done:keeper"}]`)
	asks := map[string]sentinels.ID{"started": "gate", "event": "heard", "before": "keeper"}
	for name, ask := range map[string]string{
		"started": `{"type":"command","command":"sentinel/start","params":{"sentinelId":"gate"},"outputTo":"c"},{"type":"command","command":"sentinel/await","params":{"run":"$c.run"}}`,
		"event":   `{"type":"emit","event":"ask:heard"},{"type":"wait","event":"done:heard"}`,
		"before":  `{"type":"emit","event":"ask:keeper"},{"type":"wait","event":"done:keeper"}`,
	} {
		t.Run(name, func(t *testing.T) {
			if name == "before" {
				var kept struct{ Run sentinels.RunID }
				must(t, h, "sentinel/start", `{"sentinelId":"keeper"}`, &kept)
				awaitWait(t, h, kept.Run, 1)
			}
			create(name, `"steps":[{"id":"first","type":"set","values":{"n":1}},`+ask+`,{"id":"deploy","type":"shell","command":"echo deployed"}]`)
			var p struct{ Run sentinels.RunID }
			must(t, h, "sentinel/start", map[string]any{"sentinelId": name, "workspace": ws}, &p)
			if name != "started" {
				awaitWait(t, h, p.Run, 1) // a wait takes the events from its start on
			}
			var asking runtime.RunInfo
			for asking.ID == "" && t.Context().Err() == nil {
				all, err := h.Runtime().Runs(runtime.RunFilter{Status: sentinels.StatusWaiting, Sentinel: asks[name]})
				if err != nil {
					t.Fatal(err)
				}
				for _, r := range all {
					if len(r.Decisions) > 0 {
						asking = r
					}
				}
			}
			must(t, h, "sentinel/decide", map[string]any{"run": asking.ID, "question": asking.Decisions[0].Question, "verdict": "approve", "by": "ada"}, nil)
			if r, err := h.Runtime().Wait(t.Context(), p.Run); err != nil || r.Status != "completed" {
				t.Fatalf("%+v %v", r, err)
			}
			refused := func(run sentinels.RunID) {
				t.Helper()
				if _, err := held(t, h, ws, "sentinel/retry", map[string]any{"run": run, "from": "deploy"}); abi.CodeOf(err) != abi.Denied || !strings.Contains(err.Error(), "was approved by ada for that run only") {
					t.Errorf("an agent begins behind the approval: %v", err)
				}
			}
			refused(p.Run)
			if _, err := held(t, h, ws, "sentinel/fork", map[string]any{"run": p.Run, "iteration": 1, "from": "first"}); err != nil {
				t.Errorf("before the approval: %v", err)
			}
			var again struct{ Run sentinels.RunID }
			must(t, h, "sentinel/retry", map[string]any{"run": p.Run, "from": "deploy"}, &again) // by a person
			if r, err := h.Runtime().Wait(t.Context(), again.Run); err != nil || r.Status != "completed" {
				t.Fatalf("%+v %v", r, err)
			}
			refused(again.Run)
		})
	}
}

// TestRerunsOfAgentsAreWhatAPersonDecided: an agent's retry or fork with other inputs behind the first steps, or of a revision
// that was replaced, executes what no person has decided: a gate may depend on the inputs or be newer. It has no secrets
// then. A repetition without a change has them, and so has the newest revision from its first step.
func TestRerunsOfAgentsAreWhatAPersonDecided(t *testing.T) {
	home := t.TempDir()
	env := map[string]string{"SENTINEL_SECRET_KEY": "hush-hush-hush", "HOME": home, "XDG_CONFIG_HOME": home, "PATH": os.Getenv("PATH")}
	opt := host.Options{Workspace: t.TempDir(), Getenv: func(name string) string { return env[name] }}
	if err := secret.NewAllowed(config.Path(opt.Getenv), filepath.Join(opt.Workspace, ".sentinel"), nil).Set(t.Context(), "KEY", []string{"x"}, true); err != nil {
		t.Fatal(err)
	}
	s := &storing{T: t, h: open(t, opt), ws: opt.Workspace}
	gate := map[string]any{"id": "gate", "type": "approve", "prompt": "Deploy?", "condition": "$target === 'production'"}
	deploy := map[string]any{"id": "deploy", "type": "shell", "command": "echo $target with ${#KEY}", "env": map[string]any{"KEY": map[string]any{"secret": "KEY"}}}
	define := func(steps ...any) map[string]any {
		return map[string]any{"id": "x", "name": "x", "inputs": map[string]any{"target": map[string]any{"default": "staging"}}, "steps": steps}
	}
	start := func() sentinels.RunID {
		t.Helper()
		raw, err := s.call(command.ByUser, "sentinel/run", map[string]any{"sentinelId": "x"})
		var r struct {
			Run    sentinels.RunID
			Status sentinels.Status
		}
		if err == nil {
			err = json.Unmarshal(raw, &r)
		}
		if err != nil || r.Status != sentinels.StatusCompleted {
			t.Fatalf("%s %v", raw, err)
		}
		return r.Run
	}
	// deployed reports whether an agent's rerun has executed the step with the secret.
	deployed := func(verb string, params map[string]any) bool {
		t.Helper()
		raw, err := s.call(command.ByAgent, verb, params)
		var r struct{ Run sentinels.RunID }
		if err == nil {
			err = json.Unmarshal(raw, &r)
		}
		if err != nil {
			t.Fatalf("%s %v: %v", verb, params, err)
		}
		for t.Context().Err() == nil {
			info, err := s.h.Runtime().Status(r.Run)
			if err != nil {
				t.Fatal(err)
			}
			if len(info.Decisions) > 0 {
				return false
			}
			if info.Status.Final() {
				return info.Status == sentinels.StatusCompleted
			}
			time.Sleep(time.Millisecond)
		}
		return false
	}
	production := map[string]any{"target": "production"}
	set := map[string]any{"id": "first", "type": "set", "values": map[string]any{"n": 1}}
	s.must(command.ByUser, "sentinel/create", map[string]any{"definition": define(set, deploy)})
	old := start()
	s.must(command.ByUser, "sentinel/update", map[string]any{"sentinelId": "x", "definition": define(set, gate, deploy)})
	id := start()
	for _, tt := range []struct {
		name, verb string
		params     map[string]any
		want       bool
	}{
		{"the same", "sentinel/retry", map[string]any{"run": id, "from": "deploy"}, true},
		{"the newest revision with inputs that need no gate", "sentinel/retry", map[string]any{"run": id, "inputs": map[string]any{"target": "test"}}, true},
		{"the newest revision with inputs that need it", "sentinel/retry", map[string]any{"run": id, "inputs": production}, false},
		{"other inputs behind the gate", "sentinel/retry", map[string]any{"run": id, "from": "deploy", "inputs": production}, false},
		{"other inputs behind the gate, fork", "sentinel/fork", map[string]any{"run": id, "iteration": 1, "from": "deploy", "inputs": production}, false},
		{"a run from before the gate", "sentinel/retry", map[string]any{"run": old, "inputs": production}, false},
		{"a run from before the gate, fork", "sentinel/fork", map[string]any{"run": old, "iteration": 1, "inputs": production}, false},
		{"the revision from before the gate", "sentinel/retry", map[string]any{"run": id, "withRevision": 1, "inputs": production}, false},
		{"a run from before the gate, with the newest revision behind it", "sentinel/retry", map[string]any{"run": old, "withRevision": "latest", "from": "deploy", "inputs": production}, false},
	} {
		if got := deployed(tt.verb, tt.params); got != tt.want {
			t.Errorf("%s: deployed %t, want %t", tt.name, got, tt.want)
		}
	}
	raw, err := s.call(command.ByUser, "sentinel/retry", map[string]any{"run": id, "from": "deploy", "inputs": production})
	if err != nil {
		t.Fatal(err)
	}
	var r struct{ Run sentinels.RunID }
	if err := json.Unmarshal(raw, &r); err != nil {
		t.Fatal(err)
	}
	if res, err := s.h.Runtime().Wait(t.Context(), r.Run); err != nil || res.Status != sentinels.StatusCompleted {
		t.Errorf("by a person: %+v %v", res, err)
	}
	// What was deleted is executed for a person alone.
	s.must(command.ByUser, "sentinel/delete", map[string]any{"sentinelId": "x"})
	if deployed("sentinel/retry", map[string]any{"run": id}) {
		t.Error("deleted: deployed for an agent")
	}
}

// TestRerunsBehindStepsOfAgents: an agent that has taken back its change of a run, or of the sentinel, does not have the rest
// of the run executed as a person's: its steps may have set the variables.
func TestRerunsBehindStepsOfAgents(t *testing.T) {
	home := t.TempDir()
	env := map[string]string{"SENTINEL_SECRET_KEY": "hush-hush-hush", "HOME": home, "XDG_CONFIG_HOME": home, "PATH": os.Getenv("PATH")}
	opt := host.Options{Workspace: t.TempDir(), Getenv: func(name string) string { return env[name] }}
	if err := secret.NewAllowed(config.Path(opt.Getenv), filepath.Join(opt.Workspace, ".sentinel"), nil).Set(t.Context(), "KEY", []string{"x-false", "x-true"}, true); err != nil {
		t.Fatal(err)
	}
	h := open(t, opt)
	for _, ofSentinel := range []bool{false, true} {
		id := fmt.Sprintf("x-%t", ofSentinel)
		must(t, h, "sentinel/create", `{"definition": {"id": "`+id+`", "safety": {"maxIterations": 9}, "loop": {"type": "until", "check": "$iteration >= 3"}, "variables": {"target": "good"}, "steps": [
			{"type": "watch", "event": "go:x"}, {"id": "deploy", "type": "shell", "command": "echo $target with ${#KEY}", "env": {"KEY": {"secret": "KEY"}}}]}}`, nil)
		var made struct{ Run sentinels.RunID }
		must(t, h, "sentinel/start", map[string]any{"sentinelId": id}, &made)
		run := made.Run
		iteration := func(n int) {
			t.Helper()
			for t.Context().Err() == nil {
				info, err := h.Runtime().Status(run)
				if err != nil || info.Status.Final() {
					t.Fatalf("%+v %v", info, err)
				}
				if info.Iteration == n {
					return
				}
				time.Sleep(time.Millisecond)
			}
		}
		target := string(run)
		if ofSentinel {
			target = id
		}
		by := func(name string, params map[string]any) {
			t.Helper()
			params["sentinelId"] = target
			if err := callBy(t, h, command.ByAgent, name, params); err != nil {
				t.Fatal(err)
			}
		}
		iteration(1)
		by("sentinel/step/update", map[string]any{"address": "deploy", "params": map[string]any{"condition": "$iteration > 100"}})
		by("sentinel/step/add", map[string]any{"step": map[string]any{"type": "set", "values": map[string]any{"target": "evil"}}})
		must(t, h, "events/emit", `{"event": "go:x"}`, nil)
		iteration(2)
		if ofSentinel {
			by("sentinel/rollback", map[string]any{"to": 1})
		} else {
			by("sentinel/step/remove", map[string]any{"index": 2})
			by("sentinel/step/update", map[string]any{"address": "deploy", "params": map[string]any{"condition": nil}})
		}
		must(t, h, "events/emit", `{"event": "go:x"}`, nil)
		iteration(3)
		must(t, h, "events/emit", `{"event": "go:x"}`, nil)
		if res, err := h.Runtime().Wait(t.Context(), run); err != nil || res.Status != sentinels.StatusFailed {
			t.Fatalf("%s: the run: %+v %v", id, res, err)
		}
		for _, revision := range []any{nil, 1, "latest"} {
			params := map[string]any{"run": run, "iteration": 3, "from": "deploy"}
			if revision != nil {
				params["withRevision"] = revision
			}
			out, err := held(t, h, opt.Workspace, "sentinel/retry", params)
			if err == nil {
				err = json.Unmarshal([]byte(out), &made)
			}
			if err != nil {
				t.Fatal(err)
			}
			if res, err := h.Runtime().Wait(t.Context(), made.Run); err != nil || res.Status != sentinels.StatusFailed {
				t.Errorf("%s with revision %v: %+v %v", id, revision, res, err)
			}
		}
	}
}

// TestApprovalBeforeAForkCounts: an approval that a fork of a person uses is not used by a fork of that fork, also if a
// later step of it was approved too.
func TestApprovalBeforeAForkCounts(t *testing.T) {
	h := open(t, host.Options{})
	ws := t.TempDir()
	def, problems := h.Runtime().Decode([]byte(`{"name": "deploy", "steps": [{"type": "approve", "prompt": "Deploy?"}, {"id": "deploy", "type": "shell", "command": "echo deployed"}, {"type": "approve", "prompt": "Tell?"}]}`), "test.json")
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	id, err := h.Runtime().Start(t.Context(), def, runtime.StartOptions{Workspace: ws})
	if err != nil {
		t.Fatal(err)
	}
	approve := func(id sentinels.RunID, questions int) {
		t.Helper()
		before := ""
		for range questions {
			before = asked(t, h, id, before).Question
			must(t, h, "sentinel/decide", map[string]any{"run": id, "question": before, "verdict": "approve", "by": "ada"}, nil)
		}
		if r, err := h.Runtime().Wait(t.Context(), id); err != nil || r.Status != "completed" {
			t.Fatalf("%+v %v", r, err)
		}
	}
	approve(id, 2)
	var fork struct{ Run sentinels.RunID }
	must(t, h, "sentinel/retry", map[string]any{"run": id, "from": "deploy"}, &fork)
	approve(fork.Run, 1)
	if _, err := held(t, h, ws, "sentinel/retry", map[string]any{"run": fork.Run, "from": "deploy"}); abi.CodeOf(err) != abi.Denied || !strings.Contains(err.Error(), "approved by ada") {
		t.Errorf("behind the gate of the run that the other is a fork of: %v", err)
	}
}

// TestQuestionsShowChangesOfForks: the question of a fork in which an agent changed a step names the agent and shows the
// difference, also in a fork of that fork. One that an agent or a person leaves as it is has none. A step with an id
// that another one has is refused as bad input.
func TestQuestionsShowChangesOfForks(t *testing.T) {
	h := open(t, host.Options{})
	ws := t.TempDir()
	def, problems := h.Runtime().Decode([]byte(`{"name": "deploy", "steps": [{"id": "gate", "type": "approve", "prompt": "Deploy?"}, {"id": "deploy", "type": "shell", "command": "echo deployed"}]}`), "test.json")
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	id, err := h.Runtime().Start(t.Context(), def, runtime.StartOptions{Workspace: ws})
	if err != nil {
		t.Fatal(err)
	}
	asked(t, h, id, "")
	fork := func(of sentinels.RunID, more map[string]any) sentinels.RunID {
		t.Helper()
		params := map[string]any{"run": of, "iteration": 1}
		maps.Copy(params, more)
		out, err := held(t, h, ws, "sentinel/fork", params)
		var forked struct{ Run sentinels.RunID }
		if err == nil {
			err = json.Unmarshal([]byte(out), &forked)
		}
		if err != nil {
			t.Fatal(err)
		}
		asked(t, h, forked.Run, "")
		return forked.Run
	}
	changed := fork(id, map[string]any{"address": "deploy", "params": map[string]any{"command": "echo changed"}})
	var byPerson struct{ Run sentinels.RunID }
	must(t, h, "sentinel/fork", map[string]any{"run": id, "iteration": 1, "address": "deploy", "params": map[string]any{"command": "echo mine"}}, &byPerson)
	asked(t, h, byPerson.Run, "")
	for name, c := range map[string]struct {
		run    sentinels.RunID
		origin string
		lines  bool
	}{
		"changed":                 {changed, "with steps of agent:ci; started for agent:ci", true},
		"changed twice":           {fork(changed, map[string]any{"address": "gate", "params": map[string]any{"prompt": "Deploy now?"}}), "with steps of agent:ci; started for agent:ci", true},
		"a fork of the fork":      {fork(changed, nil), "with steps of agent:ci; started for agent:ci", true},
		"a fork without a change": {fork(id, nil), "started for agent:ci", false},
		"changed by a person":     {byPerson.Run, "", false},
	} {
		var out struct {
			Entries []struct {
				Origin string
				Lines  []string
			}
		}
		must(t, h, "inbox/list", map[string]any{"id": c.run}, &out)
		if len(out.Entries) != 1 || out.Entries[0].Origin != c.origin {
			t.Errorf("%s: %+v, want origin %q", name, out.Entries, c.origin)
			continue
		}
		lines := strings.Join(out.Entries[0].Lines, "\n")
		if shown := strings.Contains(lines, "echo deployed") && strings.Contains(lines, "echo changed"); shown != c.lines || !shown && lines != "" {
			t.Errorf("%s: lines %q", name, lines)
		}
	}
	_, err = held(t, h, ws, "sentinel/fork", map[string]any{"run": id, "iteration": 1, "address": "deploy", "step": map[string]any{"type": "set", "id": "gate", "values": map[string]any{"a": 1}}})
	if abi.CodeOf(err) != abi.BadFields || !strings.Contains(err.Error(), "gate") {
		t.Errorf("a step with the id of another one: %v", err)
	}
}

// TestQuestionsShowChangesOfEdits: so does the question of a run that an agent has edited, and that of a child of a fork.
// What would be too long to show is refused.
func TestQuestionsShowChangesOfEdits(t *testing.T) {
	h := open(t, host.Options{})
	ws := t.TempDir()
	start := func(text string) sentinels.RunID {
		t.Helper()
		def, problems := h.Runtime().Decode([]byte(text), "test.json")
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		id, err := h.Runtime().Start(t.Context(), def, runtime.StartOptions{Workspace: ws})
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	lines := func(id sentinels.RunID) string {
		t.Helper()
		var out struct{ Entries []struct{ Lines []string } }
		must(t, h, "inbox/list", map[string]any{"id": id}, &out)
		if len(out.Entries) != 1 {
			t.Fatalf("%+v", out)
		}
		return strings.Join(out.Entries[0].Lines, "\n")
	}
	command := func(text string) map[string]any { return map[string]any{"command": text} }
	edited := start(`{"name": "deploy", "steps": [{"id": "gate", "type": "approve", "prompt": "Deploy?"}, {"id": "deploy", "type": "shell", "command": "echo deployed"}]}`)
	asked(t, h, edited, "")
	if got := lines(edited); got != "" {
		t.Errorf("unchanged: %s", got)
	}
	if _, err := held(t, h, ws, "sentinel/step/update", map[string]any{"sentinelId": edited, "address": "deploy", "params": command("echo changed")}); err != nil {
		t.Fatal(err)
	}
	if got := lines(edited); !strings.Contains(got, "echo deployed") || !strings.Contains(got, "echo changed") {
		t.Errorf("edited: %s", got)
	}
	for verb, params := range map[string]map[string]any{
		"sentinel/step/update": {"sentinelId": edited}, "sentinel/fork": {"run": edited, "iteration": 1},
	} {
		params["address"], params["params"] = "deploy", command("echo "+strings.Repeat("x", 70<<10))
		if _, err := held(t, h, ws, verb, params); abi.CodeOf(err) != abi.Limit || !strings.Contains(err.Error(), "has to see all of it") {
			t.Errorf("%s with a long change: %v", verb, err)
		}
	}
	out, err := held(t, h, ws, "sentinel/fork", map[string]any{"run": edited, "iteration": 1})
	var forked struct{ Run sentinels.RunID }
	if err == nil {
		err = json.Unmarshal([]byte(out), &forked)
	}
	if err != nil {
		t.Fatal(err)
	}
	asked(t, h, forked.Run, "")
	if got := lines(forked.Run); strings.Contains(got, "echo changed") {
		t.Errorf("a fork of an iteration from before the edit: %s", got)
	}

	kid := func(line string) map[string]any {
		return map[string]any{"id": "kid", "type": "sentinel", "definition": map[string]any{"name": "kid", "steps": []any{
			map[string]any{"type": "approve", "prompt": "Deploy?"}, map[string]any{"type": "shell", "command": line},
		}}}
	}
	text, err := json.Marshal(map[string]any{"name": "above", "steps": []any{kid("echo deployed")}})
	if err != nil {
		t.Fatal(err)
	}
	child := func(of sentinels.RunID) (id sentinels.RunID) {
		t.Helper()
		for t.Context().Err() == nil {
			all, err := h.Runtime().Runs(runtime.RunFilter{Root: of})
			if err != nil {
				t.Fatal(err)
			}
			for _, info := range all {
				if info.Parent == of && len(info.Decisions) > 0 {
					return info.ID
				}
			}
			time.Sleep(time.Millisecond)
		}
		return ""
	}
	above := start(string(text))
	if got := lines(child(above)); got != "" {
		t.Errorf("a child of an unchanged run: %s", got)
	}
	out, err = held(t, h, ws, "sentinel/fork", map[string]any{"run": above, "iteration": 1, "address": "kid", "step": kid("echo changed")})
	if err == nil {
		err = json.Unmarshal([]byte(out), &forked)
	}
	if err != nil {
		t.Fatal(err)
	}
	if got := lines(child(forked.Run)); !strings.Contains(got, "above this one") || !strings.Contains(got, "echo changed") {
		t.Errorf("a child of a fork: %s", got)
	}
}

// TestRerunsOfInlineChildren: a retry of a child of an inline definition has the secrets of the sentinel that it
// is written in, and not those of a stored one with its id; that of an agent has none, because the approval of the run above
// was for the child that it started.
func TestRerunsOfInlineChildren(t *testing.T) {
	home := t.TempDir()
	env := map[string]string{"SENTINEL_SECRET_KEY": "hush-hush-hush", "SENTINEL_SECRET_OTHER": "hush-hush-other", "HOME": home, "XDG_CONFIG_HOME": home, "PATH": os.Getenv("PATH")}
	opt := host.Options{Workspace: t.TempDir(), Getenv: func(name string) string { return env[name] }}
	allowed := secret.NewAllowed(config.Path(opt.Getenv), filepath.Join(opt.Workspace, ".sentinel"), nil)
	allow := func(name string, owners []string, allow bool) {
		t.Helper()
		if err := allowed.Set(t.Context(), name, owners, allow); err != nil {
			t.Fatal(err)
		}
	}
	allow("KEY", []string{"above"}, true)
	allow("OTHER", []string{"above", "inner"}, true)
	s := &storing{T: t, h: open(t, opt), ws: opt.Workspace}
	child := func(name string) map[string]any {
		return map[string]any{"type": "sentinel", "onError": "skip", "definition": map[string]any{"id": "inner", "name": "inner", "steps": []any{
			map[string]any{"type": "shell", "command": "echo deployed", "env": map[string]any{"K": map[string]any{"secret": name}}},
		}}}
	}
	s.must(command.ByUser, "sentinel/create", map[string]any{"definition": map[string]any{"id": "above", "name": "above", "steps": []any{child("KEY"), child("OTHER")}}})
	s.must(command.ByUser, "sentinel/run", map[string]any{"sentinelId": "above"})
	allow("OTHER", []string{"above"}, false)
	children, err := s.h.Runtime().Runs(runtime.RunFilter{Limit: 10})
	if err != nil {
		t.Fatal(err)
	}
	retried := 0
	for _, info := range children {
		if info.Parent == "" {
			continue
		}
		retried++
		if info.Status != sentinels.StatusCompleted {
			t.Errorf("%s: %s", info.Sentinel, info.Status)
		}
		for by, want := range map[command.By]bool{command.ByUser: info.Sentinel == "above@0", command.ByAgent: false} {
			raw, err := s.call(by, "sentinel/retry", map[string]any{"run": info.ID})
			var r struct{ Run sentinels.RunID }
			if err == nil {
				err = json.Unmarshal(raw, &r)
			}
			if err != nil {
				if want || !strings.Contains(err.Error(), "may not use it") {
					t.Errorf("%s by %s: %v", info.Sentinel, by, err)
				}
				continue
			}
			res, err := s.h.Runtime().Wait(t.Context(), r.Run)
			if err != nil || (res.Status == sentinels.StatusCompleted) != want || res.Sentinel != info.Sentinel {
				t.Errorf("retry of %s by %s: %s of %s, completed should be %t: %v %v", info.Sentinel, by, res.Status, res.Sentinel, want, res.Error, err)
			}
		}
	}
	if retried != 2 {
		t.Errorf("%d children", retried)
	}
}

// TestQuestionsShowInputsOfAgents: the question of a run shows the inputs that an agent gave for it and those above it, also in
// a fork, in a child and where a person retries the run, and none that a person gave or that are defaults.
func TestQuestionsShowInputsOfAgents(t *testing.T) {
	h := open(t, host.Options{})
	ws := t.TempDir()
	must(t, h, "sentinel/create", `{"definition": {"id": "deploy", "inputs": {"target": {"default": "staging"}, "note": {"default": "none"}}, "steps": [{"id": "gate", "type": "approve", "prompt": "Deploy?"}]}}`, nil)
	must(t, h, "sentinel/create", `{"definition": {"id": "parent", "inputs": {"where": {"default": "staging"}}, "steps": [{"type": "sentinel", "definition": {"$ref": "deploy"}, "inputs": {"target": "$where"}}]}}`, nil)
	started := func(out string, err error) sentinels.RunID {
		t.Helper()
		var made struct{ Run sentinels.RunID }
		if err == nil {
			err = json.Unmarshal([]byte(out), &made)
		}
		if err != nil {
			t.Fatal(err)
		}
		return made.Run
	}
	byAgent := func(command string, params map[string]any) sentinels.RunID {
		t.Helper()
		return started(held(t, h, ws, command, params))
	}
	byPerson := func(command string, params map[string]any) sentinels.RunID {
		t.Helper()
		text, err := json.Marshal(params)
		if err != nil {
			t.Fatal(err)
		}
		out, err := h.Call(t.Context(), command, text)
		return started(string(out), err)
	}
	prod := map[string]any{"target": "PROD"}
	mine, theirs := byPerson("sentinel/start", map[string]any{"sentinelId": "deploy", "inputs": prod}), byAgent("sentinel/start", map[string]any{"sentinelId": "deploy", "inputs": prod})
	for id, c := range map[sentinels.RunID]struct{ what, lines string }{
		mine:   {"a person's start", ""},
		theirs: {"an agent's start", `input "target", given by agent:ci: "PROD"`},
		byAgent("sentinel/start", map[string]any{"sentinelId": "deploy"}):                                          {"an agent's start without inputs", ""},
		byAgent("sentinel/retry", map[string]any{"run": mine}):                                                     {"an agent's retry without inputs", ""},
		byAgent("sentinel/retry", map[string]any{"run": mine, "inputs": map[string]any{"note": "now"}}):            {"an agent's retry", `input "note", given by agent:ci: "now"`},
		byPerson("sentinel/retry", map[string]any{"run": theirs}):                                                  {"a person's retry of an agent's run", `input "target", given by agent:ci: "PROD"`},
		byPerson("sentinel/retry", map[string]any{"run": theirs, "inputs": map[string]any{"target": "elsewhere"}}): {"a person's retry with another value", ""},
	} {
		asked(t, h, id, "")
		if lines := linesOfQuestion(t, h, id); lines != c.lines {
			t.Errorf("%s: lines %q, want %q", c.what, lines, c.lines)
		}
	}
	ofChild := func(of sentinels.ID, parent sentinels.RunID) string {
		t.Helper()
		child := sentinels.RunID("")
		for deadline := time.Now().Add(time.Minute); child == ""; time.Sleep(20 * time.Millisecond) {
			runs, err := h.Runtime().Runs(runtime.RunFilter{Sentinel: of})
			if err != nil || time.Now().After(deadline) {
				t.Fatalf("no child run: %v", err)
			}
			for _, r := range runs {
				if r.Parent == parent {
					child = r.ID
				}
			}
		}
		asked(t, h, child, "")
		return strings.ReplaceAll(linesOfQuestion(t, h, child), string(parent), "PARENT")
	}
	parent := byAgent("sentinel/start", map[string]any{"sentinelId": "parent", "inputs": map[string]any{"where": "PROD"}})
	if lines := ofChild("deploy", parent); lines != `input "target", given by agent:ci: "PROD"`+"\n"+`input "where" of run PARENT of parent, above this one, given by agent:ci: "PROD"` {
		t.Errorf("the child of an agent's run: lines %q", lines)
	}
	// A question that has no inputs itself decides about what the run above does next.
	must(t, h, "sentinel/create", `{"definition": {"id": "ask", "steps": [{"id": "gate", "type": "approve", "prompt": "Go on?"}]}}`, nil)
	must(t, h, "sentinel/create", `{"definition": {"id": "above", "inputs": {"target": {"default": "staging"}}, "steps": [{"type": "sentinel", "definition": {"$ref": "ask"}}]}}`, nil)
	again := byAgent("sentinel/retry", map[string]any{"run": byPerson("sentinel/start", map[string]any{"sentinelId": "above"}), "inputs": prod})
	if lines := ofChild("ask", again); lines != `input "target" of run PARENT of above, above this one, given by agent:ci: "PROD"` {
		t.Errorf("a child without inputs: lines %q", lines)
	}
}

// TestQuestionsShowInputsOfModels: what a model in the run of a person starts asks with the inputs that it gave, and says that
// a model started it, also without inputs; it stands behind what persons caused.
func TestQuestionsShowInputsOfModels(t *testing.T) {
	h := open(t, host.Options{})
	must(t, h, "sentinel/create", `{"definition": {"id": "deploy", "inputs": {"target": {"default": "staging"}}, "steps": [{"id": "gate", "type": "approve", "prompt": "Deploy?"}]}}`, nil)
	for params, lines := range map[string]string{
		`{"sentinelId": "deploy", "inputs": {"target": "PROD"}}`: `input "target", given by model: "PROD"`,
		`{"sentinelId": "deploy"}`:                               "",
	} {
		out, err := h.Commands().Call(t.Context(), &command.Call{Command: "sentinel/start", Params: json.RawMessage(params), By: command.ByModel, Tools: []string{"sentinel/start"}, Workspace: t.TempDir()})
		var made struct{ Run sentinels.RunID }
		if err == nil {
			err = json.Unmarshal(out, &made)
		}
		if err != nil {
			t.Fatal(err)
		}
		if q := asked(t, h, made.Run, ""); q.Origin != "started by model" || q.OriginBy != "model" {
			t.Errorf("%s: origin %q by %q", params, q.Origin, q.OriginBy)
		}
		if shown := linesOfQuestion(t, h, made.Run); shown != lines {
			t.Errorf("%s: lines %q, want %q", params, shown, lines)
		}
	}
	var out struct{ Entries []struct{ By string } }
	if must(t, h, "inbox/list", map[string]any{"by": "model"}, &out); len(out.Entries) != 2 {
		t.Errorf("of models: %+v", out)
	}
}

// TestQuestionsShowStepsOfAgents: a question says that a child executed what an agent had made of it and no person accepted.
func TestQuestionsShowStepsOfAgents(t *testing.T) {
	h := open(t, host.Options{})
	must(t, h, "sentinel/create", `{"definition": {"id": "build", "steps": [{"type": "set", "values": {"version": "1.0"}}]}}`, nil)
	must(t, h, "sentinel/create", `{"definition": {"id": "release", "steps": [
		{"type": "sentinel", "definition": {"$ref": "build"}, "outputTo": "b"}, {"id": "gate", "type": "approve", "prompt": "Release?"}]}}`, nil)
	origin := func() string {
		t.Helper()
		var made struct{ Run sentinels.RunID }
		must(t, h, "sentinel/start", `{"sentinelId": "release"}`, &made)
		return asked(t, h, made.Run, "").Origin
	}
	if got := origin(); got != "" {
		t.Errorf("before: %q", got)
	}
	if _, err := held(t, h, t.TempDir(), "sentinel/update", map[string]any{"sentinelId": "build", "definition": json.RawMessage(`{"id": "build", "steps": [{"type": "set", "values": {"version": "2.0"}}]}`)}); err != nil {
		t.Fatal(err)
	}
	if got := origin(); got != "after steps of agent:ci in revision 2 of build; may start revision 2 of build by agent:ci" {
		t.Errorf("after an edit of an agent: %q", got)
	}
}

// TestQuestionsShowEditsOfChildren: a question of a run shows what an agent changed in the run of a child before.
func TestQuestionsShowEditsOfChildren(t *testing.T) {
	h := open(t, host.Options{})
	must(t, h, "sentinel/create", `{"definition": {"id": "build", "safety": {"maxIterations": 9}, "loop": {"type": "until", "check": "$iteration >= 2"}, "steps": [
		{"type": "set", "values": {"out": "good"}}, {"type": "condition", "check": "$iteration == 1", "then": [{"type": "approve", "prompt": "Once more?"}]}]}}`, nil)
	must(t, h, "sentinel/create", `{"definition": {"id": "release", "steps": [
		{"type": "sentinel", "definition": {"$ref": "build"}, "outputTo": "b"}, {"id": "gate", "type": "approve", "prompt": "Release?"}]}}`, nil)
	var made struct{ Run sentinels.RunID }
	must(t, h, "sentinel/start", `{"sentinelId": "release"}`, &made)
	child := sentinels.RunID("")
	for child == "" && t.Context().Err() == nil {
		runs, err := h.Runtime().Runs(runtime.RunFilter{Parent: made.Run})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range runs {
			child = r.ID
		}
		time.Sleep(time.Millisecond)
	}
	question := asked(t, h, child, "").Question
	if _, err := held(t, h, t.TempDir(), "sentinel/step/update", map[string]any{"sentinelId": child, "index": 0, "step": map[string]any{"type": "set", "values": map[string]any{"out": "evil"}}}); err != nil {
		t.Fatal(err)
	}
	must(t, h, "sentinel/decide", map[string]any{"run": child, "question": question, "verdict": "approve"}, nil)
	q := asked(t, h, made.Run, "")
	if q.Origin != fmt.Sprintf("after what agent:ci gave run %s of build", child) || q.OriginBy != "agent:ci" {
		t.Errorf("origin %q by %q", q.Origin, q.OriginBy)
	}
	if lines := linesOfQuestion(t, h, made.Run); !strings.Contains(lines, fmt.Sprintf("in run %s of build:", child)) || !strings.Contains(lines, "evil") {
		t.Errorf("lines %q", lines)
	}
}

// TestQuestionsShowWhatWasTakenBack: the variables of a step that an agent added stay when it takes the step back, so the
// questions of later iterations show the step, also when a person has accepted the sentinel without it, and those of a retry behind it.
func TestQuestionsShowWhatWasTakenBack(t *testing.T) {
	h := open(t, host.Options{})
	for _, ofSentinel := range []bool{false, true} {
		id := fmt.Sprintf("loop-%t", ofSentinel)
		must(t, h, "sentinel/create", `{"definition": {"id": "`+id+`", "safety": {"maxIterations": 9}, "loop": {"type": "until", "check": "$iteration >= 4"}, "variables": {"out": "good"}, "steps": [{"type": "approve", "prompt": "Deploy?"}]}}`, nil)
		var made struct{ Run sentinels.RunID }
		must(t, h, "sentinel/start", map[string]any{"sentinelId": id}, &made)
		target, undo, params := string(made.Run), "sentinel/step/remove", map[string]any{"index": 1}
		if ofSentinel {
			target, undo, params = id, "sentinel/rollback", map[string]any{"to": 1}
		}
		by := func(name string, params map[string]any) {
			t.Helper()
			params["sentinelId"] = target
			if _, err := held(t, h, t.TempDir(), name, params); err != nil {
				t.Fatal(err)
			}
		}
		next := func(before string) string {
			t.Helper()
			must(t, h, "sentinel/decide", map[string]any{"run": made.Run, "question": before, "verdict": "approve"}, nil)
			return asked(t, h, made.Run, before).Question
		}
		question := asked(t, h, made.Run, "").Question
		by("sentinel/step/add", map[string]any{"step": map[string]any{"type": "set", "values": map[string]any{"out": "evil"}}})
		question = next(question)
		by(undo, params)
		question = next(question)
		if ofSentinel {
			must(t, h, "sentinel/accept", map[string]any{"sentinelId": id, "revision": 3}, nil)
		}
		next(question)
		shows := func(run sentinels.RunID) {
			t.Helper()
			if q := asked(t, h, run, ""); !strings.Contains(q.Origin, "agent:ci") || q.OriginBy != "agent:ci" {
				t.Errorf("%s: origin %q by %q", id, q.Origin, q.OriginBy)
			}
			if lines := linesOfQuestion(t, h, run); !strings.Contains(lines, "evil") {
				t.Errorf("%s: lines %q", id, lines)
			}
		}
		shows(made.Run)
		must(t, h, "sentinel/retry", map[string]any{"run": made.Run, "iteration": 3, "from": 0}, &made)
		shows(made.Run)
	}
}

// TestQuestionsShowEventsWaitedFor: so does the question of a run of which a step has waited for an event of an agent; those of
// its later iterations name the agent.
func TestQuestionsShowEventsWaitedFor(t *testing.T) {
	h := open(t, host.Options{})
	must(t, h, "sentinel/create", `{"definition": {"id": "deploy", "safety": {"maxIterations": 9}, "loop": {"type": "until", "check": "$iteration >= 2"}, "steps": [
		{"type": "condition", "check": "$iteration == 1", "then": [{"type": "watch", "event": "ready:x", "outputTo": "e"}]}, {"type": "approve", "prompt": "Deploy?"}]}}`, nil)
	var made struct{ Run sentinels.RunID }
	must(t, h, "sentinel/start", `{"sentinelId": "deploy"}`, &made)
	if err := callBy(t, h, command.ByAgent, "events/emit", map[string]any{"event": "ready:x", "data": map[string]any{"target": "evil.example"}}); err != nil {
		t.Fatal(err)
	}
	q := asked(t, h, made.Run, "")
	if q.Origin != `event "ready:x" from agent:ci` || q.OriginBy != "agent:ci" {
		t.Errorf("origin %q by %q", q.Origin, q.OriginBy)
	}
	if lines := linesOfQuestion(t, h, made.Run); !strings.HasPrefix(lines, `event "ready:x", given by agent:ci: {`) || !strings.Contains(lines, `"target":"evil.example"`) {
		t.Errorf("lines %q", lines)
	}
	must(t, h, "sentinel/decide", map[string]any{"run": made.Run, "question": q.Question, "verdict": "approve"}, nil)
	if q := asked(t, h, made.Run, q.Question); q.Origin != "after events of agent:ci" || q.OriginBy != "agent:ci" {
		t.Errorf("the next iteration: origin %q by %q", q.Origin, q.OriginBy)
	}
}

// TestQuestionsShowWhatMayFollow: a question shows what an agent has made of a sentinel that the run starts behind it, by a step, a
// command or another sentinel; what a person has accepted is not shown.
func TestQuestionsShowWhatMayFollow(t *testing.T) {
	h := open(t, host.Options{})
	must(t, h, "sentinel/create", `{"definition": {"id": "deploy", "steps": [{"type": "set", "values": {"to": "good"}}]}}`, nil)
	must(t, h, "sentinel/create", `{"definition": {"id": "between", "steps": [{"type": "command", "command": "sentinel/run", "params": {"sentinelId": "deploy"}}]}}`, nil)
	ask := func() (sentinels.RunID, runtime.PendingDecision) {
		t.Helper()
		var made struct{ Run sentinels.RunID }
		must(t, h, "sentinel/start", `{"sentinelId": "release"}`, &made)
		return made.Run, asked(t, h, made.Run, "")
	}
	must(t, h, "sentinel/create", `{"definition": {"id": "release", "steps": [{"type": "approve", "prompt": "Release?"}, {"type": "sentinel", "definition": {"$ref": "between"}}]}}`, nil)
	if _, q := ask(); q.Origin != "" || q.OriginBy != "" {
		t.Errorf("before: origin %q by %q", q.Origin, q.OriginBy)
	}
	if _, err := held(t, h, t.TempDir(), "sentinel/step/update", map[string]any{"sentinelId": "deploy", "index": 0, "params": map[string]any{"values": map[string]any{"to": "evil"}}}); err != nil {
		t.Fatal(err)
	}
	run, q := ask()
	if q.Origin != "may start revision 2 of deploy by agent:ci" || q.OriginBy != "agent:ci" {
		t.Errorf("origin %q by %q", q.Origin, q.OriginBy)
	}
	if lines := linesOfQuestion(t, h, run); !strings.HasPrefix(lines, "revision 2 of deploy by agent:ci, which it may start:\n") || !strings.Contains(lines, "good") || !strings.Contains(lines, "evil") {
		t.Errorf("lines %q", lines)
	}
	must(t, h, "sentinel/accept", `{"sentinelId": "deploy", "revision": 2}`, nil)
	if _, q := ask(); q.Origin != "" || q.OriginBy != "" {
		t.Errorf("accepted: origin %q by %q", q.Origin, q.OriginBy)
	}
}

// TestQuestionsShowEventsOfAgents: a question shows the event that an agent gave the run, or emitted for its trigger, also
// that of a child, once; and with one that is too long no approval is asked for.
func TestQuestionsShowEventsOfAgents(t *testing.T) {
	h := open(t, host.Options{})
	must(t, h, "sentinel/create", `{"definition": {"id": "deploy", "steps": [{"id": "gate", "type": "approve", "prompt": "Deploy?"}]}}`, nil)
	must(t, h, "sentinel/create", `{"definition": {"id": "above", "trigger": {"type": "event", "event": "go"}, "steps": [{"type": "sentinel", "definition": {"$ref": "deploy"}}]}}`, nil)
	if err := h.Runtime().Arm(t.Context()); err != nil {
		t.Fatal(err)
	}
	start := func(params map[string]any) sentinels.RunID {
		t.Helper()
		out, err := held(t, h, t.TempDir(), "sentinel/start", params)
		var made struct{ Run sentinels.RunID }
		if err == nil {
			err = json.Unmarshal([]byte(out), &made)
		}
		if err != nil {
			t.Fatal(err)
		}
		return made.Run
	}
	id := start(map[string]any{"sentinelId": "deploy", "event": map[string]any{"target": "evil.example"}})
	asked(t, h, id, "")
	if lines := linesOfQuestion(t, h, id); !strings.HasPrefix(lines, `event "manual", given by agent:ci: {`) || !strings.Contains(lines, `"target":"evil.example"`) {
		t.Errorf("lines %q", lines)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	res, err := h.Runtime().Wait(ctx, start(map[string]any{"sentinelId": "deploy", "event": map[string]any{"target": strings.Repeat("x", 64<<10)}}))
	if err != nil || res.Status != sentinels.StatusFailed || res.Error.Code != abi.Limit {
		t.Errorf("a long event: %s %v %v", res.Status, res.Error, err)
	}
	emit := &command.Call{Command: "events/emit", Params: json.RawMessage(`{"event": "go", "data": {"target": "evil.example"}}`), By: command.ByAgent, As: "ci"}
	if _, err := h.CallAs(t.Context(), emit); err != nil {
		t.Fatal(err)
	}
	child := sentinels.RunID("")
	for deadline := time.Now().Add(time.Minute); child == ""; time.Sleep(20 * time.Millisecond) {
		runs, err := h.Runtime().Runs(runtime.RunFilter{Sentinel: "deploy"})
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("no child run: %v", err)
		}
		for _, r := range runs {
			if r.Parent != "" {
				child = r.ID
			}
		}
	}
	asked(t, h, child, "")
	if lines := linesOfQuestion(t, h, child); !strings.HasPrefix(lines, `event "go", given by agent:ci: {`) || strings.Count(lines, `"target":"evil.example"`) != 1 {
		t.Errorf("of a trigger: lines %q", lines)
	}
}

// TestLongInputsOfAgents: a question shows inputs of an agent of 64 KiB whole. With longer ones in the run, or in one above
// it, no approval is asked for, since the person would not see what is approved; a run without one may have them.
func TestLongInputsOfAgents(t *testing.T) {
	h := open(t, host.Options{})
	for _, definition := range []string{
		`{"id": "deploy", "inputs": {"target": {}}, "steps": [{"id": "gate", "type": "approve", "prompt": "Deploy?"}]}`,
		`{"id": "ask", "steps": [{"id": "gate", "type": "approve", "prompt": "Go on?"}]}`,
		`{"id": "above", "inputs": {"target": {}}, "steps": [{"type": "sentinel", "definition": {"$ref": "ask"}}]}`,
		`{"id": "silent", "inputs": {"target": {}}, "steps": [{"type": "set", "values": {"x": 1}}]}`,
	} {
		must(t, h, "sentinel/create", `{"definition": `+definition+`}`, nil)
	}
	start := func(of string, bytes int) sentinels.RunID {
		t.Helper()
		text := "begin" + strings.Repeat("x", bytes-len("targetbeginend")-len(`""`)) + "end"
		out, err := held(t, h, t.TempDir(), "sentinel/start", map[string]any{"sentinelId": of, "inputs": map[string]any{"target": text}})
		var made struct{ Run sentinels.RunID }
		if err == nil {
			err = json.Unmarshal([]byte(out), &made)
		}
		if err != nil {
			t.Fatal(err)
		}
		return made.Run
	}
	const most = 64 << 10
	whole := start("deploy", most)
	asked(t, h, whole, "")
	if lines := linesOfQuestion(t, h, whole); !strings.Contains(lines, strings.Repeat("x", most-len("targetbeginend")-len(`""`))+`end"`) {
		t.Errorf("%d bytes of %d are shown: %.100s", len(lines), most, lines)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for of, completes := range map[string]bool{"deploy": false, "above": false, "silent": true} {
		id := start(of, most+1)
		res, err := h.Runtime().Wait(ctx, id)
		switch {
		case err != nil || (res.Status == sentinels.StatusCompleted) != completes:
			t.Errorf("%s: %s %v %v", of, res.Status, res.Error, err)
		case !completes && (res.Error.Code != abi.Limit || !strings.Contains(res.Error.Message, fmt.Sprintf("the inputs and the event that agent:ci gave run %s of %s are longer than 65536 bytes", id, of))):
			t.Errorf("%s: %v", of, res.Error)
		}
	}
}

// linesOfQuestion returns the lines that the inbox shows with the question of a run.
func linesOfQuestion(t *testing.T, h *host.Host, id sentinels.RunID) string {
	t.Helper()
	var out struct{ Entries []struct{ Lines []string } }
	if must(t, h, "inbox/list", map[string]any{"id": id}, &out); len(out.Entries) != 1 {
		t.Fatalf("run %s: %+v", id, out)
	}
	return strings.Join(out.Entries[0].Lines, "\n")
}
