package host_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host"
)

// Spec 002: "Tool availability (highlights, not filters): tools?: string[]". The tools of a
// definition come first in every list of tools, and are offered where the step has none.
func TestDefinitionToolsAreHighlights(t *testing.T) {
	server := newModelServer(t, func(r chatRequest) answer {
		if r.answers() > 0 {
			return answer{text: r.text("tool")}
		}
		if strings.Contains(r.text("user"), "status") {
			return answer{tool: "code_git", args: map[string]any{"operation": "status"}}
		}
		return answer{text: "done"}
	})
	ws := repository(t, map[string]string{"a.txt": "one\n"})
	h := open(t, host.Options{Workspace: ws})
	ask := func(tools, fields string) (result string, offered []string) {
		t.Helper()
		var run struct{ Run string }
		must(t, h, "sentinel/start", `{"definition": {"name": "ask", `+tools+`"steps": [{"type": "llm", "outputTo": "r", `+fields+`}]}}`, &run)
		var res struct {
			Status    string
			Variables struct{ R struct{ Text string } }
		}
		must(t, h, "sentinel/await", `{"run": "`+run.Run+`"}`, &res)
		server.mu.Lock()
		defer server.mu.Unlock()
		for _, tool := range server.asked[len(server.asked)-1].Tools {
			offered = append(offered, tool.Function.Name)
		}
		return res.Status + " " + res.Variables.R.Text, offered
	}
	const highlights = `"tools": ["code/search", "code/git", "code/read", "not/here"], `

	_, all := ask("", `"prompt": "go", "parseToolCalls": true`)
	if slices.Contains(all, "code_git") || !slices.Contains(all, "data_list") {
		t.Fatalf("without highlights, the tools are %v", all)
	}
	if _, got := ask(highlights, `"prompt": "go", "parseToolCalls": true`); len(got) != len(all)+1 || !slices.Equal(got[:3], []string{"code_search", "code_git", "code_read"}) {
		t.Errorf("with parseToolCalls, the tools are %v", got)
	}
	if _, got := ask(highlights, `"prompt": "go", "tools": ["code/edit", "code/read", "code/search"]`); !slices.Equal(got, []string{"code_search", "code_read", "code_edit"}) {
		t.Errorf("of its own list, the tools are %v", got)
	}
	if _, got := ask(highlights, `"prompt": "go"`); got != nil {
		t.Errorf("a step that may call none has the tools %v", got)
	}
	// A highlight can be called, also one that has to be named.
	if result, _ := ask(highlights, `"prompt": "status", "parseToolCalls": true`); !strings.HasPrefix(result, "completed ") || !strings.Contains(result, "on branch main") {
		t.Errorf("the call of a highlight: %s", result)
	}
	if result, _ := ask("", `"prompt": "status", "parseToolCalls": true`); strings.Contains(result, "on branch main") {
		t.Errorf("the call of a command that is no highlight: %s", result)
	}
}
