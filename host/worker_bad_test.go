package host_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Two tickets of a project: one that goes wrong, and behind it one that can be done.
const (
	firstOf  = `{"id": "%[1]s-1", "project": "%[1]s", "title": "Make first-%[1]s.txt green", "acceptance_criteria": {"checks": [{"id": "green", "type": "code_pattern", "verify": {"file": "first-%[1]s.txt", "pattern": "green", "should_match": true}}]}}`
	secondOf = `{"id": "%[1]s-2", "project": "%[1]s", "title": "Write second-%[1]s.txt", "priority": -1, "acceptance_criteria": {"checks": [{"id": "made", "type": "file_exists", "verify": {"path": "second-%[1]s.txt"}}]}}`
)

// forSecond is a model that does the second ticket of a project. ok is false for requests
// about other tickets.
func forSecond(r chatRequest) (a answer, ok bool) {
	file := secondFile.FindString(r.text("user"))
	switch {
	case file == "":
		return answer{}, false
	case r.answers() > 0:
		return answer{text: "done"}, true
	}
	return fileOf(file, "second\n"), true
}

var secondFile = regexp.MustCompile(`second-[a-z0-9-]+\.txt`)

// workTogether files two tickets for each project, has a worker for each work on them at
// the same time, and returns the first tickets. The second ones must be done, and neither
// the user's tree nor its branch may change.
func workTogether(t *testing.T, h *host.Host, ws string, git func(...string) string, projects []string) map[string]filed {
	t.Helper()
	tip, status := git("rev-parse", "main"), git("status", "--porcelain")
	workers := map[string]sentinels.RunID{}
	for _, p := range projects {
		must(t, h, "ticket/create", fmt.Sprintf(firstOf, p), nil)
		must(t, h, "ticket/create", fmt.Sprintf(secondOf, p), nil)
		workers[p] = startShipped(t, h, ws, "forge-worker", map[string]json.RawMessage{"project": json.RawMessage(`"` + p + `"`)})
	}
	first := map[string]filed{}
	for p, id := range workers {
		f := workerResult(t, h, id)
		first[p] = ticketOf(t, h, p+"-1")
		second := ticketOf(t, h, p+"-2").Ticket
		if second.State != "done" || git("show", "sentinel/"+p+"-2:second-"+p+".txt") != "second" {
			t.Errorf("%s: the next ticket is %s: worked %+v", p, second.State, f.Worked)
		}
	}
	var list struct{ Worktrees []any }
	must(t, h, "worktree/list", `{}`, &list)
	if len(list.Worktrees) > 0 {
		t.Errorf("worktrees are left: %v", list.Worktrees)
	}
	if git("rev-parse", "main") != tip || git("status", "--porcelain") != status {
		t.Error("the user's tree or branch was changed")
	}
	return first
}

// chunkOf is a chunk of a streamed answer.
func chunkOf(delta map[string]any, finish any) string {
	b, _ := json.Marshal(map[string]any{
		"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "scripted",
		"choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": finish}},
	})
	return "data: " + string(b) + "\n\n"
}

// toolChunk is a call of fs_write with arguments as they are.
func toolChunk(arguments string, finish any) string {
	return chunkOf(map[string]any{"role": "assistant", "tool_calls": []any{map[string]any{
		"index": 0, "id": "call_1", "type": "function", "function": map[string]any{"name": "fs_write", "arguments": arguments},
	}}}, finish)
}

// cutBehind sends the beginning of an answer and closes the connection.
func cutBehind(text string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		_, _ = w.Write([]byte(text))
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
}

// A model server that answers rubbish, stops mid-way or answers too much ends its ticket in
// a named state with a readable reason, and the next ticket is done.
func TestSpecWorkerBadModels(t *testing.T) {
	const done = "data: [DONE]\n\n"
	say := func(text string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) { _, _ = w.Write([]byte(text)) }
	}
	cases := map[string]struct {
		answer        func(w http.ResponseWriter)
		state, reason string
	}{
		"cut-text": {cutBehind(chunkOf(map[string]any{"role": "assistant", "content": "I will now write"}, nil)), "ready", "failed 4 times, the last time: model \"openai/scripted\": broken stream"},
		"cut-call": {cutBehind(toolChunk(`{"path": "a.txt", "content": "gre`, nil)), "ready", "broken stream: unexpected EOF"},
		"50-mb": {func(w http.ResponseWriter) {
			text := chunkOf(map[string]any{"content": strings.Repeat("x", 1<<20)}, nil)
			for range 50 {
				if _, err := w.Write([]byte(text)); err != nil {
					return
				}
			}
			say(chunkOf(map[string]any{}, "stop") + done)(w)
		}, "on_hold", "the answer is larger than 16777216 bytes"},
		"html": {func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "text/html")
			say("<html>log in first</html>")(w)
		}, "on_hold", `answered with "text/html"`},
		"no-json":   {say("data: {{{\n\n" + done), "ready", "broken stream: an event of the stream"},
		"nothing":   {say(chunkOf(map[string]any{"role": "assistant", "content": ""}, "stop") + done), "blocked", "verification failed 3 times"},
		"arguments": {say(toolChunk(`path=a.txt content=green`, "tool_calls") + done), "blocked", "verification failed 3 times"},
		"no-tool":   {say(strings.Replace(toolChunk(`{"path": "a.txt", "content": "green"}`, "tool_calls"), "fs_write", "write_green_file", 1) + done), "blocked", "verification failed 3 times"},
		"down":      {func(w http.ResponseWriter) { http.Error(w, "down", http.StatusServiceUnavailable) }, "ready", "503"},
		"busy": {func(w http.ResponseWriter) {
			w.Header().Set("Retry-After", "1")
			http.Error(w, `{"error": {"message": "slow down"}}`, http.StatusTooManyRequests)
		}, "ready", "slow down"},
		"key": {func(w http.ResponseWriter) {
			http.Error(w, `{"error": {"message": "wrong key"}}`, http.StatusUnauthorized)
		}, "ready", "wrong key"},
	}
	// Of each end one case: a broken stream, a hold, a failed verification, and a wait that the server asks for.
	inShort(t, cases, "cut-call", "50-mb", "no-tool", "busy")
	ws, git := project(t)
	s := newModelServer(t, func(r chatRequest) answer { a, _ := forSecond(r); return a })
	s.refuse = func(n int, w http.ResponseWriter) bool {
		s.mu.Lock()
		r := s.asked[n-1]
		s.mu.Unlock()
		if _, ok := forSecond(r); ok {
			return false
		}
		for name, c := range cases {
			if strings.Contains(r.task(), "first-"+name+".txt") {
				w.Header().Set("Content-Type", "text/event-stream")
				c.answer(w)
			}
		}
		return true
	}
	h := open(t, host.Options{Workspace: ws, Dir: filepath.Join(t.TempDir(), ".sentinel"), Set: map[string]string{"tickets.review": "off", "worktrees.most": "50"}})
	var names []string
	for name := range cases {
		names = append(names, name)
	}
	for name, f := range workTogether(t, h, ws, git, names) {
		got, want := f.Ticket, cases[name]
		if got.State != want.state || !strings.Contains(got.Error+got.HoldReason, want.reason) || len(got.Error) > 2000 || got.PullRequest != nil {
			t.Errorf("%s: %s, want %s: %q %q", name, got.State, want.state, got.HoldReason, got.Error)
		}
		if want.state == "ready" && got.RetryAfter == nil {
			t.Errorf("%s: the ticket does not wait", name)
		}
	}
}
