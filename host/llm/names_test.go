package llm_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/host/llm"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

func turnWith(names ...string) sentinels.Turn { return withTools(sentinels.Turn{}, names...) }

func TestNames(t *testing.T) {
	long := "mcp/" + strings.Repeat("x", 80)
	sent, back := llm.NameMap(turnWith("code/read", "code_read", "code.read", "search_tools", long, long+"y", "ünï", "/"))
	want := map[string]string{
		"code/read": "code_read_2", "code_read": "code_read", "code.read": "code_read_3", "search_tools": "search_tools",
		long: "mcp_" + strings.Repeat("x", 60), long + "y": "mcp_" + strings.Repeat("x", 58) + "_2", "ünï": "_n_", "/": "_",
	}
	if diff := cmp.Diff(want, sent); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	for original, name := range sent {
		if got := back(name); got != original {
			t.Errorf("%q comes back as %q, not %q", name, got, original)
		}
	}
}

func TestNamesThatWereNotSent(t *testing.T) {
	_, back := llm.NameMap(turnWith("code/read", "code/shell/execute", "data/list", "data-list"))
	for in, want := range map[string]string{
		"code/read":           "code/read",
		"Code_Read":           "code/read",
		"code.shell.execute":  "code/shell/execute",
		"functions.code_read": "code/read",
		"datalist":            "datalist", // two tools would do
		"rm_rf":               "rm_rf",
		"":                    "",
	} {
		if got := back(in); got != want {
			t.Errorf("back(%q) is %q, want %q", in, got, want)
		}
	}
}

func FuzzNames(f *testing.F) {
	f.Add("code/read\ncode_read\ncode.read_2")
	valid := regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
	f.Fuzz(func(t *testing.T, lines string) {
		list := strings.Split(lines, "\n")
		sent, back := llm.NameMap(turnWith(list...))
		used := map[string]bool{}
		for _, name := range list {
			s, ok := sent[name]
			if !ok || !valid.MatchString(s) {
				t.Fatalf("%q is sent as %q", name, s)
			}
			if back(s) != name {
				t.Fatalf("%q is sent as %q and comes back as %q", name, s, back(s))
			}
			used[s] = true
		}
		if len(used) != len(sent) {
			t.Fatalf("two names of %q are sent as one", list)
		}
	})
}

func TestReadJSON(t *testing.T) {
	tests := []struct {
		name, text string
		schema     bool
		want       string
	}{
		{"object", ` {"a":1} `, false, `{"a":1}`},
		{"list", `[1]`, false, `[1]`},
		{"number is text", `42`, false, ``},
		{"number with a schema", `42`, true, `42`},
		{"prose", `a {"b":1}`, false, ``},
		{"fence", "```json\n{\"a\":1}\n```", false, `{"a":1}`},
		{"bare fence alone", "```\n{\"a\":1}\n```", false, `{"a":1}`},
		{"bare fence in prose", "x\n```\n{\"a\":1}\n```", false, ``},
		{"fence in prose", "x\n```JSON\n{\"a\":1}\n```\ny", false, `{"a":1}`},
		{"beside other code", "```go\nx\n```\n```json\n[1]\n```", false, `[1]`},
		{"two fences", "```json\n[1]\n```\n```json\n[2]\n```", false, ``},
		{"not repaired", "{'a': 1,}", false, ``},
		{"empty", "", true, ``},
	}
	for _, tt := range tests {
		if got := string(llm.ReadJSON(tt.text, tt.schema)); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

func FuzzReadJSON(f *testing.F) {
	f.Add("x\n```json\n{\"a\":1}\n```", false)
	f.Fuzz(func(t *testing.T, text string, schema bool) {
		if got := llm.ReadJSON(text, schema); got != nil && (!json.Valid(got) || !strings.Contains(text, string(got))) {
			t.Fatalf("%q was read from %q", got, text)
		}
	})
}

func TestReadArguments(t *testing.T) {
	for in, want := range map[string]string{
		"": `{}`, "null": `{}`, " {\"a\":1} ": `{"a":1}`, `"{\"a\":1}"`: `{"a":1}`,
		`{"a":`: `"{\"a\":"`, `[1]`: `"[1]"`, "text": `"text"`,
	} {
		if got := string(llm.ReadArguments(in)); got != want {
			t.Errorf("ReadArguments(%q) is %s, want %s", in, got, want)
		}
	}
}

func TestIDsAreUniqueInAConversation(t *testing.T) {
	before := []sentinels.Message{{ToolCalls: []sentinels.ToolCall{{ID: "a"}, {ID: "call_1_1"}}}}
	calls := []sentinels.ToolCall{{}, {ID: "a"}, {ID: "b"}, {ID: "b"}}
	llm.GiveIDs(calls, before)
	seen := map[string]bool{"a": true, "call_1_1": true}
	for _, call := range calls {
		if call.ID == "" || seen[call.ID] {
			t.Errorf("ids are %+v", calls)
		}
		seen[call.ID] = true
	}
	if calls[2].ID != "b" {
		t.Error("an id that was free was changed")
	}
}
