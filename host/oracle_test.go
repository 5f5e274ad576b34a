package host_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// TestMatchesTellNoSecret: who does not see a secret in results does not find it by asking
// whether a pattern or a filter fits either. A person does.
func TestMatchesTellNoSecret(t *testing.T) {
	const value = "hunter2-secret-value"
	h := open(t, host.Options{})
	if err := h.Redact(value); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(h.Workspace(), "deploy.txt"), []byte("name=a\ntoken="+value+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	must(t, h, "data/create", map[string]any{"collection": "things", "id": "t", "data": map[string]any{"token": value, "n": 1}}, nil)
	must(t, h, "data/create", map[string]any{"collection": "things", "id": "u", "data": map[string]any{"token": "a", "n": 2}}, nil)
	must(t, h, "data/create", map[string]any{"collection": "things", "id": value, "data": map[string]any{"n": 3}}, nil)
	must(t, h, "ticket/create", map[string]any{"title": "Deploy " + value, "description": "with " + value, "labels": []string{value}, "project": value}, nil)
	must(t, h, "memory/store", map[string]any{"text": "use " + value, "key": value, "tags": []string{value}, "sentinelId": "a"}, nil)
	for _, name := range []string{"plain", value} {
		must(t, h, "sentinel/create", map[string]any{"definition": map[string]any{
			"name": name, "description": value, "tags": []string{value}, "trigger": map[string]any{"type": "event", "event": "a:b"},
			"steps": []any{map[string]any{"type": "shell", "command": "echo " + value}},
		}}, nil)
	}
	named := filepath.Join(h.Workspace(), value+".txt")
	if err := os.WriteFile(named, []byte("ordinary words of a document\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	count := func(by command.By, name, list, params string) int {
		t.Helper()
		out, err := h.CallAs(t.Context(), &command.Call{Command: name, Params: json.RawMessage(params), By: by, As: "ci"})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var answer map[string]json.RawMessage
		var found []json.RawMessage
		if err := json.Unmarshal(out, &answer); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(answer[list], &found); err != nil {
			t.Fatal(err)
		}
		return len(found)
	}
	for _, c := range []struct{ name, list, right, wrong string }{
		{"code/search", "matches", `{"pattern": "token=hun", "literal": true}`, `{"pattern": "token=hux", "literal": true}`},
		{"code/search", "matches", `{"pattern": "token=(h.*|\\[reda.*)"}`, `{"pattern": "token=(x.*|\\[reda.*)"}`},
		{"data/list", "items", `{"collection": "things", "filter": {"token": "` + value + `"}}`, `{"collection": "things", "filter": {"token": "other"}}`},
		{"data/list", "items", `{"collection": "things", "filter": {"token": {"$gte": "hunter"}}}`, `{"collection": "things", "filter": {"token": {"$gte": "hunterz"}}}`},
		{"data/list", "items", `{"collection": "things", "filter": {"token": {"$in": ["` + value + `"]}}}`, `{"collection": "things", "filter": {"token": {"$in": ["x"]}}}`},
		{"data/list", "items", `{"collection": "things", "after": "hunter1", "limit": 1, "filter": {"n": 3}}`, `{"collection": "things", "after": "hunter3", "limit": 1, "filter": {"n": 3}}`},
		{"data/list", "items", `{"collection": "things", "filter": {"id": {"$gte": "hunter1", "$lt": "hunter3"}}}`, `{"collection": "things", "filter": {"id": {"$gte": "x"}}}`},
		{"data/list", "items", `{"collection": "sentinels", "filter": {"description": {"$gte": "hunter1", "$lt": "hunter3"}}}`, `{"collection": "sentinels", "filter": {"description": {"$gte": "x"}}}`},
		{"data/list", "items", `{"collection": "sentinels", "after": "hunter1", "filter": {"id": {"$lt": "i"}}}`, `{"collection": "sentinels", "after": "hunter3", "filter": {"id": {"$lt": "i"}}}`},
		{"data/list", "items", `{"collection": "tickets", "filter": {"title": {"$gte": "Deploy h", "$lt": "Deploy i"}}}`, `{"collection": "tickets", "filter": {"title": {"$gte": "Deploy x"}}}`},
		{"ticket/list", "tickets", `{"query": "hunt"}`, `{"query": "hunx"}`},
		{"ticket/list", "tickets", `{"query": "deploy hunter2 sec"}`, `{"query": "deploy hunter2 sex"}`},
		{"ticket/list", "tickets", `{"query": "hunter2"}`, `{"query": "hunter3"}`},
		{"ticket/list", "tickets", `{"label": "` + value + `"}`, `{"label": "x"}`},
		{"ticket/list", "tickets", `{"project": "` + value + `"}`, `{"project": "x"}`},
		{"memory/recall", "memories", `{"sentinelId": "a", "query": "hunt"}`, `{"sentinelId": "a", "query": "hunx"}`},
		{"memory/recall", "memories", `{"sentinelId": "a", "key": "` + value + `"}`, `{"sentinelId": "a", "key": "x"}`},
		{"memory/recall", "memories", `{"sentinelId": "a", "tags": ["` + value + `"]}`, `{"sentinelId": "a", "tags": ["x"]}`},
		{"sentinel/list", "sentinels", `{"only": "sentinels", "after": "hunter1"}`, `{"only": "sentinels", "after": "hunter3"}`},
		{"sentinel/list", "sentinels", `{"tag": "` + value + `"}`, `{"tag": "x"}`},
		{"sentinel/triggers", "triggers", `{"after": "hunter1"}`, `{"after": "hunter3"}`},
		{"code/search", "matches", `{"pattern": "ordinary", "glob": "hunt*"}`, `{"pattern": "ordinary", "glob": "hunx*"}`},
		{"fs/list", "files", `{"pattern": "hunt*"}`, `{"pattern": "hunx*"}`},
		{"rag/search", "results", `{"query": "hunt"}`, `{"query": "hunx"}`},
		{"rag/search", "results", `{"query": "hunter2 secret"}`, `{"query": "hunter3 secreu"}`},
		{"rag/search", "results", `{"query": "ordinary words", "paths": ["hunt*"]}`, `{"query": "ordinary words", "paths": ["hunx*"]}`},
	} {
		if right, wrong := count(command.ByAgent, c.name, c.list, c.right), count(command.ByAgent, c.name, c.list, c.wrong); right != wrong {
			t.Errorf("%s %s: an agent finds %d, and %d with a wrong guess", c.name, c.right, right, wrong)
		}
	}
	if n := count(command.ByUser, "data/list", "items", `{"collection": "things", "filter": {"token": "`+value+`"}}`); n != 1 {
		t.Errorf("a person finds %d documents, want 1", n)
	}
	if n := count(command.ByUser, "ticket/list", "tickets", `{"query": "hunt"}`); n != 1 {
		t.Errorf("a person finds %d tickets, want 1", n)
	}
	if n := count(command.ByUser, "rag/search", "results", `{"query": "hunt"}`); n != 2 {
		t.Errorf("a person finds %d files, want 2", n)
	}
	if n := count(command.ByAgent, "rag/search", "results", `{"query": "token"}`); n != 1 {
		t.Errorf("an agent finds %d files by a word that is not a secret, want 1", n)
	}
	if n := count(command.ByAgent, "ticket/list", "tickets", `{"query": "depl"}`); n != 1 {
		t.Errorf("an agent finds %d tickets by a word that is not a secret, want 1", n)
	}
	if n := count(command.ByAgent, "data/list", "items", `{"collection": "things", "filter": {"n": {"$gte": 1}}, "orderBy": [{"field": "token"}]}`); n != 2 {
		t.Errorf("an agent finds %d documents by a number, want 2", n)
	}
}

// TestMemoriesAreSeparate: models and agents reach memories by the commands that know whose they
// are, and not as documents of a collection. Persons do.
func TestMemoriesAreSeparate(t *testing.T) {
	h := open(t, host.Options{})
	must(t, h, "data/create", map[string]any{"collection": "memory", "id": "m", "data": map[string]any{"sentinel": "a", "text": "t"}}, nil)
	for name, params := range map[string]string{
		"data/create": `{"collection": "memory", "data": {"sentinel": "a"}}`, "data/update": `{"collection": "memory", "id": "m", "data": {"text": "u"}}`,
		"data/delete": `{"collection": "memory", "id": "m"}`, "data/read": `{"collection": "memory", "id": "m"}`, "data/list": `{"collection": "memory"}`,
	} {
		_, err := h.CallAs(t.Context(), &command.Call{Command: name, Params: json.RawMessage(params), By: command.ByAgent, As: "ci"})
		if e := abi.As(err); e == nil || e.Code != abi.Denied || !strings.Contains(e.Hint, "memory/recall") {
			t.Errorf("%s: %v", name, err)
		}
	}
	must(t, h, "data/read", map[string]any{"collection": "memory", "id": "m"}, nil)
}

// TestRecallIsBounded: every word and tag of a search is looked for in every memory.
func TestRecallIsBounded(t *testing.T) {
	h := open(t, host.Options{})
	for params, want := range map[string]abi.Code{
		`{"sentinelId": "a", "query": "` + strings.Repeat("w ", 64) + `"}`:                   "",
		`{"sentinelId": "a", "query": "` + strings.Repeat("w ", 65) + `"}`:                   abi.BadFields,
		`{"sentinelId": "a", "tags": [` + strings.Repeat(`"t",`, 64) + `"t"]}`:               abi.BadFields,
		`{"sentinelId": "a", "tags": [` + strings.Repeat(`"t",`, 63) + `"t"], "query": "w"}`: "",
	} {
		if err := call(t, h, "memory/recall", params, nil); abi.CodeOf(err) != want {
			t.Errorf("%.60s: %v, want %q", params, err, want)
		}
	}
}
