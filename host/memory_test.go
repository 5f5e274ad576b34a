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

// TestMemoriesHaveAuthors: an agent replaces no memory that a person or a step of a person's definition stored, and the
// text of what it adds names it. A person's definition that it starts stores under the keys of the person.
func TestMemoriesHaveAuthors(t *testing.T) {
	h := open(t, host.Options{})
	must(t, h, "memory/store", `{"sentinelId": "quick", "key": "host", "text": "prod1"}`, nil)
	must(t, h, "sentinel/create", `{"definition": {"id": "quick", "inputs": {"n": {"default": "1"}}, "steps": [{"command": "memory/store", "params": {"key": "last", "text": "run $n"}}]}}`, nil)
	must(t, h, "sentinel/run", `{"sentinelId": "quick"}`, nil)
	for _, key := range []string{"host", "last"} {
		err := asAgent(t, h, "memory/store", map[string]any{"sentinelId": "quick", "key": key, "text": "evil.example"}, nil)
		if abi.CodeOf(err) != abi.Denied || !strings.Contains(err.Error(), "an agent does not replace it") {
			t.Errorf("%s by an agent: %v", key, err)
		}
	}
	own := map[string]any{"definition": map[string]any{"id": "quick", "name": "quick", "steps": []any{map[string]any{"command": "memory/store", "params": map[string]any{"key": "host", "text": "evil.example"}}}}}
	var res struct{ Status, Error any }
	if err := asAgent(t, h, "sentinel/run", own, &res); abi.CodeOf(err) != abi.Denied && abi.CodeOf(err) != abi.Conflict {
		t.Errorf("a definition of the agent with the id of the person's: %v, %+v", err, res)
	}
	if err := asAgent(t, h, "sentinel/run", map[string]any{"sentinelId": "quick", "inputs": map[string]any{"n": "2"}}, &res); err != nil || res.Status != "completed" {
		t.Errorf("a person's definition that an agent starts: %v, %+v", err, res)
	}
	for _, text := range []string{"first", "second"} {
		if err := asAgent(t, h, "memory/store", map[string]any{"sentinelId": "quick", "key": "mine", "text": text}, nil); err != nil {
			t.Errorf("a key of the agent: %v", err)
		}
	}
	must(t, h, "memory/store", `{"sentinelId": "quick", "key": "host", "text": "prod1"}`, nil) // the same again
	var out struct {
		Memories []struct{ Key, Text, By string }
		Text     string
	}
	must(t, h, "memory/recall", `{"sentinelId": "quick"}`, &out)
	got := map[string]string{}
	for _, m := range out.Memories {
		got[m.Key] = m.By + ": " + m.Text
	}
	for key, want := range map[string]string{"host": "user: prod1", "mine": "agent:bot: second", "last": "agent:bot: run 2"} {
		if got[key] != want {
			t.Errorf("%s is %q, want %q", key, got[key], want)
		}
	}
	if !strings.Contains(out.Text, "[stored by agent:bot] second") || strings.Contains(out.Text, "] prod1") {
		t.Errorf("text %q", out.Text)
	}
}
