package host_test

import (
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// The original has sentinel/run, which starts a run and waits for its end: a command, so
// that a step, a model and a client can use it.
func TestRunStartsAndWaits(t *testing.T) {
	h := open(t, host.Options{})
	must(t, h, "sentinel/create", `{"definition": {"name": "double", "inputs": {"n": "number"}, "steps": [{"type": "set", "values": {"twice": {"expr": "$n * 2"}}}]}}`, nil)
	must(t, h, "sentinel/create", `{"definition": {"name": "fails", "steps": [{"type": "shell", "command": "exit 3"}]}}`, nil)
	type result struct {
		Run, Sentinel, Status string
		Variables             map[string]any
	}
	var res result
	must(t, h, "sentinel/run", `{"sentinelId": "double", "inputs": {"n": 4}}`, &res)
	if res.Status != "completed" || res.Variables["twice"] != 8.0 {
		t.Errorf("run: %+v", res)
	}
	must(t, h, "sentinel/run", `{"sentinelId": "fails"}`, &res)
	if res.Status != "failed" {
		t.Errorf("a run that fails: %+v", res)
	}
	must(t, h, "sentinel/run", `{"definition": {"name": "caller", "steps": [
		{"command": "sentinel/run", "params": {"sentinelId": "double", "inputs": {"n": 21}}, "outputTo": "r"},
		{"type": "set", "values": {"answer": "$r.variables.twice"}}]}}`, &res)
	if res.Variables["answer"] != 42.0 {
		t.Errorf("run by a step: %+v", res)
	}
	err := call(t, h, "sentinel/run", `{"definition": {"name": "long", "steps": [{"type": "wait", "durationMs": 600000}]}, "timeoutMs": 20}`, nil)
	if abi.CodeOf(err) != abi.Timeout || !strings.Contains(err.Error(), "has not ended after 20 ms") {
		t.Errorf("a run that takes longer: %v", err)
	}
	if err := call(t, h, "sentinel/run", `{"sentinelId": "missing"}`, nil); abi.CodeOf(err) != abi.NotFound {
		t.Errorf("a sentinel that is not there: %v", err)
	}
}

// The original has sentinel/save, which stores a definition, also that of a run.
func TestSave(t *testing.T) {
	h := open(t, host.Options{})
	type savedOut struct {
		SentinelID string
		Revision   int
	}
	var out savedOut
	must(t, h, "sentinel/save", `{"definition": {"name": "a", "steps": [{"type": "wait", "durationMs": 1}]}, "name": "My loop", "tags": ["x"]}`, &out)
	if out != (savedOut{"my-loop", 1}) {
		t.Errorf("save: %+v", out)
	}
	var list struct {
		Sentinels []struct {
			SentinelID, Name string
			Tags             []string
		}
	}
	must(t, h, "sentinel/list", `{"tag": "x", "only": "sentinels"}`, &list)
	if len(list.Sentinels) != 1 || list.Sentinels[0].Name != "My loop" {
		t.Errorf("list: %+v", list)
	}
	// What was tried out in a run is kept.
	var run struct{ Run string }
	must(t, h, "sentinel/run", `{"definition": {"name": "draft", "steps": [{"type": "set", "values": {"a": 1}}]}}`, &run)
	must(t, h, "sentinel/save", `{"run": "`+run.Run+`", "name": "kept", "description": "from a draft"}`, &out)
	if out != (savedOut{"kept", 1}) {
		t.Errorf("save of a run: %+v", out)
	}
	var res struct{ Variables map[string]any }
	must(t, h, "sentinel/run", `{"sentinelId": "kept"}`, &res)
	if res.Variables["a"] != 1.0 {
		t.Errorf("the run of what was kept: %+v", res)
	}
	must(t, h, "sentinel/save", `{"run": "`+run.Run+`"}`, &out)
	if out != (savedOut{"draft", 1}) {
		t.Errorf("save of a run without a name: %+v", out)
	}
	for _, c := range []struct {
		params string
		code   abi.Code
	}{ // in this order: what was replaced is not in conflict any more
		{`{"run": "` + run.Run + `", "name": "my loop"}`, abi.Conflict},
		{`{"run": "` + run.Run + `", "name": "my loop", "replace": true}`, ""},
		{`{"run": "` + run.Run + `", "name": "kept", "revision": 7}`, abi.Conflict},
		{`{"name": "kept"}`, abi.BadFields},
		{`{"run": "` + run.Run + `", "definition": {"name": "a", "steps": []}}`, abi.BadFields},
		{`{"definition": {"name": "a", "steps": [{"type": "shel"}]}}`, abi.BadFields},
		{`{"run": "missing"}`, abi.NotFound},
	} {
		if err := call(t, h, "sentinel/save", c.params, nil); abi.CodeOf(err) != c.code {
			t.Errorf("save %s: %v, want %q", c.params, err, c.code)
		}
	}
}
