package host_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/host/audit"
	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// TestPagesHaveBytes: a page of a list has at most 8 MiB, however large its entries are, and the pages
// together have every entry once.
func TestPagesHaveBytes(t *testing.T) {
	h := open(t, host.Options{})
	text := strings.Repeat("x", 250_000)
	var want []string
	for i := range 12 {
		id := fmt.Sprintf("big-%02d", i)
		want = append(want, id)
		def, err := json.Marshal(map[string]any{
			"id": id, "name": id, "description": text, "variables": map[string]string{"a": text, "b": text, "c": text},
			"steps": []map[string]any{{"command": "code/shell/execute", "params": map[string]string{"command": "true"}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		// Its author may not call the command, so that a person is asked about the definition.
		call := &command.Call{Command: "sentinel/create", Params: json.RawMessage(`{"definition": ` + string(def) + `}`), By: command.ByModel, Tools: []string{"sentinel/create"}}
		if _, err := h.CallAs(t.Context(), call); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 30 {
		id := fmt.Sprintf("small-%02d", i)
		must(t, h, "sentinel/create", map[string]any{"definition": map[string]any{"id": id, "name": id, "description": text, "steps": []any{}}}, nil)
	}
	pages := func(name, params, after string, ids func(raw json.RawMessage) (list []string, next string)) (all []string, n int) {
		for n = 1; ; n++ {
			raw, err := h.Call(t.Context(), name, json.RawMessage(params))
			if err != nil || len(raw) > 9<<20 {
				t.Fatalf("%s: %d bytes, %v", name, len(raw), err)
			}
			list, next := ids(raw)
			if all = append(all, list...); next == "" {
				return all, n
			}
			params = strings.TrimSuffix(strings.Split(params, `, "after"`)[0], "}") + fmt.Sprintf(`, %q: %q}`, after, next)
		}
	}
	inbox, n := pages("inbox/list", `{"kind": ["definition"]}`, "after", func(raw json.RawMessage) (list []string, next string) {
		var out struct {
			Entries []struct {
				ID    string
				Lines []string
			}
			Next string
		}
		if err := json.Unmarshal(raw, &out); err != nil {
			t.Fatal(err)
		}
		for _, e := range out.Entries {
			if list = append(list, e.ID); len(e.Lines) == 0 {
				t.Errorf("%s: no lines", e.ID)
			}
		}
		return list, out.Next
	})
	if slices.Sort(inbox); n < 2 || !slices.Equal(inbox, want) {
		t.Errorf("inbox/list: %d pages: %v", n, inbox)
	}
	for i := range 30 {
		want = append(want, fmt.Sprintf("small-%02d", i))
	}
	listed, n := pages("sentinel/list", `{"only": "sentinels"}`, "after", func(raw json.RawMessage) (list []string, next string) {
		var out struct {
			Sentinels    []struct{ SentinelID string }
			NextSentinel string
		}
		if err := json.Unmarshal(raw, &out); err != nil {
			t.Fatal(err)
		}
		for _, s := range out.Sentinels {
			list = append(list, s.SentinelID)
		}
		return list, out.NextSentinel
	})
	if n < 2 || !slices.Equal(listed, want) {
		t.Errorf("sentinel/list: %d pages: %v", n, listed)
	}
	var one struct{ Sentinels []struct{ SentinelID string } }
	must(t, h, "sentinel/list", `{"only": "sentinels", "sentinelId": "small-03"}`, &one)
	if len(one.Sentinels) != 1 || one.Sentinels[0].SentinelID != "small-03" {
		t.Errorf("one sentinel: %+v", one)
	}
}

// smallAnswers are the commands that read and that count nothing of what they hold, and what bounds it. A
// caller has 256 connections at most.
var smallAnswers = map[string]string{
	"ai/model":           "the name of a model",
	"checkpoint/diff":    "1000 files, without the patch for all but persons; the calls for a workspace take turns",
	"checkpoint/list":    "the checkpoints of a workspace that are kept, 100 by default",
	"code/shell/list":    "200 executions, of whose command lines 400 bytes are shown",
	"code/shell/status":  "one execution, of whose command line 400 bytes are shown",
	"code/tree":          "200 KiB of names",
	"fs/list":            "200 KiB of names",
	"logs/list":          "200 executions, of whose command lines 400 bytes are shown",
	"plugin/list":        "the plugins that the operator has put into the folder, at most 256 of others live",
	"search_tools":       "the best commands for some words",
	"sentinel/revisions": "the revisions that are kept, 50 by default, without definitions",
	"sentinel/triggers":  "the triggers of definitions, of which an agent has 500",
	"sentinel/validate":  "the problems of one definition, whose number is bounded",
	"worktree/list":      "1000 worktrees",
}

// ofDocuments are the commands whose answers are made of documents, which count when the store reads them.
var ofDocuments = []string{
	"collaboration/chat/history", "data/list", "data/read", "memory/recall", "ticket/activity", "ticket/attempts", "ticket/children",
	"ticket/dependents", "ticket/get", "ticket/list", "ticket/rules", "ticket/stats", "verify/history", "verify/status",
}

// TestCommandsCountWhatTheyHold: each command that reads counts what it holds for its answer before the answer is
// made, so that calls at once cannot take more memory than the share of their caller. Others are in a table with
// what bounds them.
func TestCommandsCountWhatTheyHold(t *testing.T) {
	ws, state := t.TempDir(), t.TempDir()
	h := open(t, host.Options{Workspace: ws, State: state})
	line := strings.Repeat("x", 999) + "\n"
	const size = 600_000
	text := strings.Repeat(line, size/len(line))
	for _, argv := range [][]string{
		{"init", "-q"}, {"-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-q", "--allow-empty", "-m", "first"}, {"add", "-N", "."},
	} {
		if argv[0] == "add" {
			if err := os.WriteFile(filepath.Join(ws, "big.txt"), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if out, err := exec.Command("git", append([]string{"-C", ws}, argv...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", argv, err, out)
		}
	}
	// A run with a large output, and definitions with large texts.
	definition := func(id, filler string) map[string]any {
		return map[string]any{
			"id": id, "name": id, "description": filler, "variables": map[string]string{"a": filler, "b": filler},
			"steps": []map[string]any{
				{"type": "shell", "argv": []string{"cat", "big.txt"}, "outputTo": "out", "name": filler[:200_000]}, {"type": "set", "values": map[string]string{"c": "{{a}}"}},
			},
		}
	}
	filler := strings.Repeat("y", 240_000)
	must(t, h, "sentinel/create", map[string]any{"definition": definition("big", filler)}, nil)
	must(t, h, "sentinel/update", map[string]any{"sentinelId": "big", "definition": definition("big", strings.Repeat("z", 240_000))}, nil)
	var ran struct{ Run, Status string }
	must(t, h, "sentinel/run", map[string]any{"sentinelId": "big"}, &ran)
	if ran.Status != "done" && ran.Status != "completed" {
		t.Fatalf("run: %+v", ran)
	}
	var logs struct {
		Executions []struct{ ExecutionID string }
	}
	must(t, h, "logs/list", map[string]any{"run": ran.Run}, &logs)
	execution := logs.Executions[0].ExecutionID
	held := definition("asked", filler)
	held["steps"] = []map[string]any{{"command": "code/shell/execute", "params": map[string]string{"command": filler}}}
	asked, err := json.Marshal(map[string]any{"definition": held})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.CallAs(t.Context(), &command.Call{Command: "sentinel/create", Params: asked, By: command.ByModel, Tools: []string{"sentinel/create"}}); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		must(t, h, "data/create", map[string]any{"collection": "big", "id": fmt.Sprint("d", i), "data": map[string]string{"text": filler}}, nil)
		must(t, h, "events/emit", map[string]any{"event": "big:event", "data": filler}, nil)
	}
	var entries bytes.Buffer
	for i := range 600 {
		fmt.Fprintf(&entries, `{"timestamp":"2026-01-02T03:04:05Z","level":"info","category":"action","event":"e%d","actor":"user","outcome":"ok","details":%q}`+"\n", i, line[:900])
	}
	if err := os.MkdirAll(filepath.Join(state, "audit"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(state, audit.Name), entries.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	calls := map[string]map[string]any{
		"audit/list":        {"limit": 1000},
		"code/diff":         {},
		"code/preview":      {"command": "code/write", "params": map[string]string{"path": "big.txt", "content": "z"}},
		"code/read":         {"path": "big.txt"},
		"code/search":       {"pattern": "xyz|yx"},
		"code/shell/watch":  {"executionId": execution, "cursor": 0},
		"events/tail":       {"pattern": "big:event"},
		"fs/read":           {"path": "big.txt"},
		"inbox/list":        {},
		"logs/read":         {"executionId": execution},
		"logs/search":       {"executionId": execution, "pattern": "y"},
		"logs/tail":         {"executionId": execution, "lines": 5000},
		"rag/build":         {"query": "xyz"},
		"rag/search":        {"query": "something"},
		"sentinel/await":    {"run": ran.Run},
		"sentinel/diff":     {"sentinelId": "big"},
		"sentinel/export":   {"sentinelId": "big"},
		"sentinel/list":     {"only": "sentinels"},
		"sentinel/result":   {"run": ran.Run},
		"sentinel/revision": {"sentinelId": "big", "revision": 1},
		"sentinel/status":   {"run": ran.Run},
		"sentinel/trace":    {"run": ran.Run},

		"sentinel/step/list": {"sentinelId": "big"},
		"data/list":          {"collection": "big"},
		"data/read":          {"collection": "big", "id": "d1"},
	}
	known := func(name string) bool {
		_, called := calls[name]
		return called || smallAnswers[name] != "" || slices.Contains(ofDocuments, name) || name == "worktree/diff" // which counts [worktree.MaxDiff]
	}
	for _, c := range h.Commands().List() {
		if c.Effect == command.Reads && !known(c.Name) {
			t.Errorf("%s: count what a call holds with Call.Count, Call.Page or Call.Peak and add a call to this test, or add it to smallAnswers with what bounds it", c.Name)
		}
		if c.Effect != command.Reads || slices.Contains(ofDocuments, c.Name) && !c.InStore {
			continue
		}
		params, ok := calls[c.Name]
		if !ok {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			raw, err := json.Marshal(params)
			if err != nil {
				t.Fatal(err)
			}
			refused := &abi.Error{Code: abi.Unavailable, Message: "the share is used up"}
			as := func(most int64) (answer json.RawMessage, counted int64, err error) {
				answer, err = h.CallAs(t.Context(), &command.Call{Command: c.Name, Params: raw, By: command.ByAgent, As: "ci", Attempt: 1, Workspace: ws, Charge: func(bytes int64) error {
					if counted += bytes; counted > most {
						return refused
					}
					return nil
				}})
				return answer, counted, err
			}
			answer, counted, err := as(1 << 40)
			if err != nil {
				t.Fatal(err)
			}
			if counted < 200_000 || counted < int64(len(answer))-64<<10 {
				t.Errorf("%d bytes are counted for an answer of %d bytes", counted, len(answer))
			}
			if _, _, err := as(counted - 1); abi.CodeOf(err) != abi.Unavailable {
				t.Errorf("with less memory: %v", err)
			}
		})
	}
}
