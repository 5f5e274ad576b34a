package host_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// TestDocumentsOfAgents: documents, chat messages and memories of an agent have a bound together, and
// those of other agents and of persons are accepted beside them. What an agent deletes is free again.
func TestDocumentsOfAgents(t *testing.T) {
	h := open(t, host.Options{Set: map[string]string{"limits.agentBytes": "20000"}})
	call := func(by command.By, as, name, params string) error {
		_, err := h.CallAs(t.Context(), &command.Call{Command: name, Params: json.RawMessage(params), By: by, As: as})
		return err
	}
	text := strings.Repeat("x", 3000)
	writes := []func(n int) (name, params string){
		func(n int) (string, string) {
			return "data/create", fmt.Sprintf(`{"collection":"c","id":"d%d","data":{"x":%q}}`, n, text)
		},
		func(int) (string, string) {
			return "collaboration/chat/send", fmt.Sprintf(`{"room":"r","message":%q}`, text)
		},
		func(n int) (string, string) {
			return "memory/store", fmt.Sprintf(`{"sentinelId":"s","key":"k%d","text":%q}`, n, text)
		},
	}
	refused := 0
	for n := range 12 {
		name, params := writes[n%3](n)
		switch err := call(command.ByAgent, "ci", name, params); {
		case err == nil && refused == 0 && n < 7:
		case abi.CodeOf(err) == abi.Limit && n > 3 && strings.Contains(err.Error(), "agent:ci has"):
			refused++
		default:
			t.Errorf("%s, write %d of the agent: %v", name, n, err)
		}
	}
	if refused < 3 {
		t.Errorf("%d writes are refused", refused)
	}
	for i, write := range writes {
		name, params := write(100 + i)
		for range 10 {
			if err := call(command.ByUser, "", name, params); err != nil && abi.CodeOf(err) != abi.Conflict {
				t.Errorf("%s of a person: %v", name, err)
			}
		}
		if name, params = write(200 + i); call(command.ByAgent, "other", name, params) != nil {
			t.Errorf("%s of another agent is refused", name)
		}
	}
	if err := call(command.ByAgent, "ci", "data/delete", `{"collection":"c","id":"d0"}`); err != nil {
		t.Fatal(err)
	}
	name, params := writes[0](300)
	if err := call(command.ByAgent, "ci", name, params); err != nil {
		t.Errorf("after a deletion: %v", err)
	}
}

// TestReadsOfAgents: one call of an agent reads a bounded number of bytes, and its answer says where the
// next one continues, so that all documents are found. A person gets all of them at once.
func TestReadsOfAgents(t *testing.T) {
	h := open(t, host.Options{})
	call := func(by command.By, name, params string) (out struct {
		Items []struct{ ID string }
		Next  string
	}, err error) {
		raw, err := h.CallAs(t.Context(), &command.Call{Command: name, Params: json.RawMessage(params), By: by, As: "ci"})
		if err == nil {
			err = json.Unmarshal(raw, &out)
		}
		return out, err
	}
	large := strings.Repeat("x", 1000_000)
	for n := range 20 {
		if _, err := call(command.ByUser, "data/create", fmt.Sprintf(`{"collection":"c","id":"d%02d","data":{"n":%d,"x":%q}}`, n, n, large)); err != nil {
			t.Fatal(err)
		}
	}
	after, pages := "", 0
	for found := 0; ; {
		out, err := call(command.ByAgent, "data/list", fmt.Sprintf(`{"collection":"c","filter":{"n":{"$in":[3,19]}}%s}`, after))
		if err != nil {
			t.Fatal(err)
		}
		found += len(out.Items)
		if pages++; out.Next == "" || pages > 20 {
			if found != 2 {
				t.Errorf("an agent found %d documents in %d pages, want 2", found, pages)
			}
			break
		}
		after = fmt.Sprintf(`,"after":%q`, out.Next)
	}
	if pages != 3 {
		t.Errorf("an agent read 20 MB in %d calls, want 3", pages)
	}
	if out, err := call(command.ByUser, "data/list", `{"collection":"c","filter":{"n":{"$in":[3,19]}}}`); err != nil || len(out.Items) != 2 || out.Next != "" {
		t.Errorf("a person: %d documents, next %q, %v", len(out.Items), out.Next, err)
	}
	for name, params := range map[string]string{
		"data/read": `{"collection":"c","filter":{"n":19}}`,
		"data/list": `{"collection":"c","filter":{"n":19},"orderBy":[{"field":"n"}]}`,
	} {
		if _, err := call(command.ByAgent, name, params); abi.CodeOf(err) != abi.Limit {
			t.Errorf("%s of an agent reads all documents: %v", name, err)
		}
		if _, err := call(command.ByUser, name, params); err != nil {
			t.Errorf("%s of a person: %v", name, err)
		}
	}
}

// TestRunsOfAgents: the unfinished runs of an agent have a bound in number and in bytes, also after a
// restart, and those of other agents and of persons are accepted beside them.
func TestRunsOfAgents(t *testing.T) {
	opt := host.Options{Workspace: t.TempDir(), Set: map[string]string{"limits.agentRuns": "3", "limits.agentBytes": "100000"}}
	h := open(t, opt)
	start := func(by command.By, as string, bytes int) (string, error) {
		params := fmt.Sprintf(`{"definition": {"id": "hog", "name": "h", "steps": [{"type": "wait", "durationMs": 86000000}]}, "variables": {"x": %q}}`, strings.Repeat("x", bytes))
		raw, err := h.CallAs(t.Context(), &command.Call{Command: "sentinel/start", Params: json.RawMessage(params), By: by, As: as})
		var out struct{ Run string }
		if err == nil {
			err = json.Unmarshal(raw, &out)
		}
		return out.Run, err
	}
	refused := func(when string, bytes int, names ...string) {
		t.Helper()
		_, err := start(command.ByAgent, "ci", bytes)
		for _, name := range append(names, "agent:ci") {
			if abi.CodeOf(err) != abi.Limit || !strings.Contains(err.Error(), name) {
				t.Errorf("%s: %v, want the error limit with %q", when, err, name)
			}
		}
	}
	first := ""
	for _, n := range []int{60_000, 1000} {
		run, err := start(command.ByAgent, "ci", n)
		if err != nil {
			t.Fatal(err)
		}
		if first == "" {
			first = run
		}
	}
	refused("in bytes", 60_000, "limits.agentBytes", "at most 97 KiB")
	if _, err := start(command.ByAgent, "ci", 1000); err != nil {
		t.Fatal(err)
	}
	refused("in number", 10, "limits.agentRuns", "3 unfinished runs")
	if _, err := start(command.ByAgent, "other", 60_000); err != nil {
		t.Errorf("another agent: %v", err)
	}
	for range 4 {
		if _, err := start(command.ByUser, "", 60_000); err != nil {
			t.Errorf("a person: %v", err)
		}
	}
	// What the agent has changed of a person's sentinel counts for the agent, and the person starts it nevertheless.
	must(t, h, "sentinel/create", `{"definition": {"id": "mine", "name": "mine", "steps": [{"id": "s", "type": "set", "values": {"a": 1}}]}}`, nil)
	edit := json.RawMessage(`{"sentinelId": "mine", "address": "s", "params": {"values": {"a": 2}}}`)
	if _, err := h.CallAs(t.Context(), &command.Call{Command: "sentinel/step/update", Params: edit, By: command.ByAgent, As: "ci"}); err != nil {
		t.Fatal(err)
	}
	must(t, h, "sentinel/run", `{"sentinelId": "mine"}`, nil)
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	h = open(t, opt)
	refused("after a restart", 10, "limits.agentRuns")
	if _, err := h.Call(t.Context(), "sentinel/stop", json.RawMessage(fmt.Sprintf(`{"run": %q}`, first))); err != nil {
		t.Fatal(err)
	}
	if _, err := start(command.ByAgent, "ci", 60_000); err != nil {
		t.Errorf("after one has ended: %v", err)
	}
}
