package host_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

type recalledOut struct {
	Memories []struct {
		ID, Sentinel, Key, Text string
		Tags                    []string
	}
	Total int
	Text  string
}

func (r recalledOut) keys() string {
	var keys []string
	for _, m := range r.Memories {
		keys = append(keys, m.Key)
	}
	return strings.Join(keys, " ")
}

// The original has memory/store and memory/recall. What a sentinel remembers is there in
// its later runs, also after a restart, and not for another sentinel.
func TestMemory(t *testing.T) {
	dir := t.TempDir()
	opt := host.Options{Workspace: dir, State: filepath.Join(dir, "state")}
	h := open(t, opt)
	for _, text := range []string{
		`"text": "The build needs Go 1.26 and GNU make", "key": "tools", "tags": ["build", "go"]`,
		`"text": "Tests of the shell are slow", "key": "slow", "tags": ["build"]`,
		`"text": "Anna reviews changes of the build", "key": "people"`,
	} {
		must(t, h, "memory/store", `{"sentinelId": "keeper", `+text+`}`, nil)
	}
	must(t, h, "memory/store", `{"sentinelId": "other", "key": "secret", "text": "The build of another"}`, nil)
	recall := func(params string) (out recalledOut) {
		t.Helper()
		must(t, h, "memory/recall", `{"sentinelId": "keeper"`+params+`}`, &out)
		return out
	}
	for params, want := range map[string]string{
		`, "query": "gnu MAKE"`:                "tools",
		`, "query": "build slow"`:              "slow people tools",
		`, "query": "changes of the build"`:    "people slow tools",
		`, "query": "nothing"`:                 "",
		`, "key": "slow"`:                      "slow",
		`, "tags": ["Build", "go"]`:            "tools",
		`, "query": "build", "limit": 1`:       "people",
		``:                                     "people slow tools",
		`, "tags": ["build"], "query": "slow"`: "slow",
	} {
		if got := recall(params); got.keys() != want {
			t.Errorf("recall %s: %s, want %s", params, got.keys(), want)
		}
	}
	if got := recall(`, "query": "build", "limit": 2`); got.Total != 3 || got.Text != got.Memories[0].Text+"\n\n"+got.Memories[1].Text || got.Memories[0].Sentinel != "keeper" {
		t.Errorf("recall: %+v", got)
	}
	// The same key replaces.
	var stored struct{ Created bool }
	must(t, h, "memory/store", `{"sentinelId": "keeper", "key": "slow", "text": "Tests of the shell are fast now"}`, &stored)
	if got := recall(`, "key": "slow"`); stored.Created || got.Total != 1 || got.Text != "Tests of the shell are fast now" || got.Memories[0].Tags != nil {
		t.Errorf("after a replacement: %v, %+v", stored.Created, got)
	}
	// A run of the sentinel has them without naming it, also in an inline definition, and adds
	// one; a user who names none finds those of all.
	must(t, h, "sentinel/create", `{"definition": {"name": "keeper", "steps": [
		{"command": "memory/recall", "params": {"key": "people"}, "outputTo": "found"},
		{"type": "sentinel", "definition": {"name": "inner", "steps": [{"command": "memory/store", "params": {"key": "run", "text": "I found: $found"}}]}}]}}`, nil)
	var run struct{ Run, Status string }
	must(t, h, "sentinel/run", `{"sentinelId": "keeper"}`, &run)
	if got := recall(`, "key": "run"`); run.Status != "completed" || got.Text != "I found: Anna reviews changes of the build" {
		t.Errorf("after a run that is %s: %+v", run.Status, got)
	}
	var all recalledOut
	must(t, h, "memory/recall", `{"limit": 100}`, &all)
	if all.Total != 5 {
		t.Errorf("of all: %+v", all)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	h = open(t, opt)
	if got := recall(``); got.Total != 4 {
		t.Errorf("after a restart: %+v", got)
	}
}

func TestMemoryRefuses(t *testing.T) {
	h := open(t, host.Options{})
	for params, want := range map[string]string{
		`{"text": "a"}`:                    "sentinelId is missing",
		`{"sentinelId": "a", "text": " "}`: "text: is empty",
		`{"sentinelId": "a", "text": "` + strings.Repeat("x", 70000) + `"}`:                "text: has 70000 bytes",
		`{"sentinelId": "a", "text": "a", "key": "` + strings.Repeat("k", 201) + `"}`:      "key: has 201 bytes",
		`{"sentinelId": "a", "text": "a", "tags": [""]}`:                                   "tags: ",
		`{"sentinelId": "a", "text": "a", "tags": ["` + strings.Repeat(`x","`, 20) + `"]}`: "tags: are 21",
	} {
		if err := call(t, h, "memory/store", params, nil); abi.CodeOf(err) != abi.BadFields || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: %v", params, err)
		}
	}
	// A long answer is cut.
	for i := range 5 {
		must(t, h, "memory/store", fmt.Sprintf(`{"sentinelId": "a", "text": "%d%s"}`, i, strings.Repeat("x", 60000)), nil)
	}
	var out recalledOut
	must(t, h, "memory/recall", `{"sentinelId": "a"}`, &out)
	if out.Total != 5 || len(out.Memories) != 1 {
		t.Errorf("%d of %d memories", len(out.Memories), out.Total)
	}
}

// A model has the memories of its own sentinel.
func TestMemoryOfModels(t *testing.T) {
	newModelServer(t, func(r chatRequest) answer {
		switch r.answers() {
		case 0:
			return answer{tool: "memory_store", args: map[string]any{"text": "mine", "key": "k"}}
		case 1:
			return answer{tool: "memory_recall", args: map[string]any{"sentinelId": "other"}}
		}
		return answer{text: r.text("tool")}
	})
	h := open(t, host.Options{})
	must(t, h, "memory/store", `{"sentinelId": "other", "text": "hidden"}`, nil)
	var res struct {
		Variables struct{ R struct{ Text string } }
	}
	must(t, h, "sentinel/run", `{"definition": {"name": "own", "steps": [{"type": "llm", "prompt": "go", "tools": ["memory/*"], "outputTo": "r"}]}}`, &res)
	if text := res.Variables.R.Text; !strings.Contains(text, "own sentinel only") || strings.Contains(text, "hidden") {
		t.Errorf("the model got %s", text)
	}
	var out recalledOut
	must(t, h, "memory/recall", `{"sentinelId": "own"}`, &out)
	if out.Text != "mine" {
		t.Errorf("recall: %+v", out)
	}
}
