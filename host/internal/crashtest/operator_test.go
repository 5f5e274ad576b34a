//go:build linux

package crashtest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// operatorModel answers the roles of the operator: the first plan fails, the second writes
// two files and reads one of them.
func operatorModel(w http.ResponseWriter, req *http.Request) {
	if req.Method == http.MethodGet {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"object":"list","data":[{"id":"scripted","object":"model","created":1,"owned_by":"test"}]}`)
		return
	}
	var r chatRequest
	if err := json.NewDecoder(req.Body).Decode(&r); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	system, prompt := text(r.Messages[0].Content), text(r.Messages[len(r.Messages)-1].Content)
	reply := `{"approved":true,"confidence":1,"feedback":"reviewed"}`
	switch {
	case strings.HasPrefix(system, "You assess tasks"):
		reply = `{"ready":true,"confidence":0.9}`
	case strings.HasPrefix(system, "You are the Planner") && strings.Contains(prompt, "RETRY ATTEMPT #1"):
		reply = `{"steps":[{"id":1,"skillId":"fs_write","inputs":{"path":"a.txt","content":"one"}},
			{"id":2,"skillId":"fs_read","inputs":{"path":"{{steps.1.outputs.path}}"}},
			{"id":3,"skillId":"fs_write","inputs":{"path":"b.txt","content":"{{steps.2.outputs.content}} two"}}],"reasoning":"r"}`
	case strings.HasPrefix(system, "You are the Planner"):
		reply = `{"steps":[{"id":1,"skillId":"fs_read","inputs":{"path":"none.txt"}}],"reasoning":"r"}`
	}
	answerText(w, reply)
}

// answerText answers with a text in two parts.
func answerText(w http.ResponseWriter, reply string) {
	w.Header().Set("Content-Type", "text/event-stream")
	chunk(w, map[string]any{"role": "assistant", "content": reply[:1]}, nil)
	http.NewResponseController(w).Flush()
	time.Sleep(10 * time.Millisecond) // so that kills meet an answer half given
	chunk(w, map[string]any{"content": reply[1:]}, nil)
	chunk(w, map[string]any{}, "stop")
	fmt.Fprint(w, `data: {"id":"x","object":"chat.completion.chunk","created":1,"model":"scripted","choices":[],"usage":{"prompt_tokens":100,"completion_tokens":20,"total_tokens":120}}`+"\n\ndata: [DONE]\n\n")
}

// TestKillOperator: kill -9 at every state of the operator. The task is completed, each
// audit event was published once and in order, and each attempt counted once.
func TestKillOperator(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(operatorModel))
	defer server.Close()
	definition, _ := sentinels.ShippedText("operator")
	given := strings.NewReplacer(
		`"goal": {"type": "string", "required": true`, `"goal": {"type": "string", "default": "Write two files"`,
		`"default": "supervised_auto"`, `"default": "bounded_auto"`,
		`"budget": {"calls": 100, "tokens": 2000000}`, `"budget": {}`, // interrupted calls count, and a slow machine has many lives
	).Replace(string(definition))
	if !strings.Contains(given, `"budget": {}`) {
		t.Fatal("the definition has another budget")
	}
	want := operatorRun(t, server.URL, given, func(int) plan { return plan{} })
	if len(want) < 20 {
		t.Fatalf("events %v", want)
	}
	most, every := 40, 50 // milliseconds of a life after the run continues, and the lives after which they double
	if testing.Short() {
		most, every = 150, 8 // some 15 lives; all others are of `make soak`
	}
	got := operatorRun(t, server.URL, given, func(life int) plan {
		return soon(life, 0, most, every)
	})
	if !slices.Equal(got, want) {
		t.Errorf("events\n%v\nwithout kills\n%v", got, want)
	}
}

// soon ends a life some milliseconds after the run continues: at most as many as given for the
// first lives, and twice as many every so many lives, so that a slow machine gets to the end too.
// Each round has other times.
func soon(life, round, most, every int) plan {
	return plan{after: afterResume, delay: time.Duration(5+(life+7*round)*13%most) * time.Millisecond << (life / every)}
}

// operatorRun runs the operator in one life after the other until it ends, checks what it
// did, and returns the names of its events.
func operatorRun(t *testing.T, server, definition string, ends func(life int) plan) (names []string) {
	t.Helper()
	ws := t.TempDir()
	if err := os.WriteFile(filepath.Join(ws, "kill.json"), []byte(definition), 0o600); err != nil {
		t.Fatal(err)
	}
	o := order{Dir: filepath.Join(ws, ".sentinel"), Workspace: ws, Crashes: 1000}
	warmCache(t, o.Workspace)
	result, _ := lives(t, o, server, ends)
	if string(result.Variables["status"]) != `"completed"` || string(result.Variables["attempt"]) != "2" {
		t.Errorf("%s: %s after %s: %s", result.Status, result.Variables["status"], result.Variables["attempt"], result.Variables["reason"])
	}
	for name, text := range map[string]string{"a.txt": "one", "b.txt": "one two"} {
		if got, err := os.ReadFile(filepath.Join(ws, name)); err != nil || string(got) != text {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	return eventsOf(t, o, "operator:")
}

// eventsOf returns the names of the events with a prefix, in their order, without it.
func eventsOf(t *testing.T, o order, prefix string) (names []string) {
	t.Helper()
	for _, e := range published(t, o, prefix) {
		names = append(names, strings.TrimPrefix(e.Name, prefix))
	}
	return names
}

// published returns the events with a prefix, in their order.
func published(t *testing.T, o order, prefix string) []sentinels.Event {
	t.Helper()
	h, err := host.Open(t.Context(), host.Options{Dir: o.Dir, Workspace: o.Workspace})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	events, err := h.Runtime().Events(prefix+"*", 1000)
	if err != nil {
		t.Fatal(err)
	}
	return events
}

// lives executes the definition in one process after the other until its run ends, and returns
// how many there were.
func lives(t *testing.T, o order, server string, ends func(life int) plan) (result *runtime.Result, count int) {
	t.Helper()
	for o.Life = 1; result == nil; o.Life++ {
		if o.Life > 400 {
			t.Fatal("400 lives are not enough")
		}
		p := ends(o.Life)
		if o.Run == "" && p.after != never {
			p = plan{after: afterEvent, count: 3} // the run has a name then
		}
		l := start(t, o, server)
		l.live(t, p, func(r report) {
			if r.Progress != nil && o.Run == "" {
				o.Run = r.Progress.Run
			}
			if r.Result != nil {
				result = r.Result
			}
			if r.Error != "" {
				t.Errorf("life %d: %s", o.Life, r.Error)
			}
		})
	}
	t.Logf("%d lives", o.Life-1)
	return result, o.Life - 1
}
