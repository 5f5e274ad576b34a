package host_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/host/llm/llmtest"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A run that failed is begun again by command: as it was, from a step, with a
// newer revision, and with a step changed.
func TestRetryAndForkByCommand(t *testing.T) {
	ws := t.TempDir()
	h := open(t, host.Options{Workspace: ws})
	const src = `{"name":"build","steps":[
		{"type":"shell","command":"echo first >> log; echo made","outputTo":"made"},
		{"type":"shell","id":"check","command":"echo second >> log; test -e %s && echo $made"}]}`
	def := fmt.Sprintf(src, "ok")
	if err := call(t, h, "sentinel/create", `{"definition":`+def+`}`, nil); err != nil {
		t.Fatal(err)
	}
	res := run(t, h, def, ws)
	if res.Status != sentinels.StatusFailed {
		t.Fatalf("%s: %v", res.Status, res.Error)
	}
	lines := func() int {
		b, err := os.ReadFile(filepath.Join(ws, "log"))
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(string(b), "\n")
	}
	type rerun struct {
		Run       sentinels.RunID
		RetryOf   sentinels.RunID
		From      string
		Iteration int
		Revision  int
	}
	again := func(name, params string, want sentinels.Status, steps int) rerun {
		t.Helper()
		before := lines()
		var out rerun
		if err := call(t, h, name, params, &out); err != nil {
			t.Fatalf("%s %s: %v", name, params, err)
		}
		got, err := h.Runtime().Wait(context.Background(), out.Run)
		if err != nil || got.Status != want || lines()-before != steps || out.RetryOf != res.Run {
			t.Errorf("%s %s: %s with %d steps, of %s; want %s with %d: %v %v", name, params, got.Status, lines()-before, out.RetryOf, want, steps, got.Error, err)
		}
		return out
	}
	of := func(rest string) string { return fmt.Sprintf(`{"run":%q%s}`, res.Run, rest) }
	again("sentinel/retry", of(""), sentinels.StatusFailed, 2)
	again("sentinel/retry", of(`,"from":"check"`), sentinels.StatusFailed, 1)
	if out := again("sentinel/fork", of(`,"iteration":1,"from":"1","index":1,"params":{"command":"echo third >> log; test \"$made\""}`), sentinels.StatusCompleted, 1); out.From != "1" || out.Iteration != 1 {
		t.Errorf("%+v", out)
	}
	again("sentinel/fork", of(`,"iteration":1,"address":"check","step":{"type":"shell","command":"echo fourth >> log"}`), sentinels.StatusCompleted, 2)
	if err := call(t, h, "sentinel/update", `{"sentinelId":"build","definition":`+fmt.Sprintf(src, "log")+`}`, nil); err != nil {
		t.Fatal(err)
	}
	if out := again("sentinel/retry", of(`,"from":1,"withRevision":"latest"`), sentinels.StatusCompleted, 1); out.Revision != 2 {
		t.Errorf("revision %d, want 2", out.Revision)
	}
	again("sentinel/retry", of(`,"withRevision":1`), sentinels.StatusFailed, 2)
	for _, bad := range []struct{ name, params, want string }{
		{"sentinel/retry", of(`,"withRevision":"newest"`), "is no revision"},
		{"sentinel/retry", of(`,"from":"missing"`), "want the address, id or name of a step"},
		{"sentinel/fork", of(`,"iteration":1,"index":1`), "nothing to change"},
		{"sentinel/fork", of(`,"iteration":1,"params":{}`), "no step is named"},
		{"sentinel/fork", of(`,"iteration":9`), "has executed 1 iterations, not 9"},
	} {
		err := call(t, h, bad.name, bad.params, nil)
		if err == nil || !strings.Contains(err.Error(), bad.want) || abi.As(err) == nil {
			t.Errorf("%s %s: %v, want %q", bad.name, bad.params, err, bad.want)
		}
	}
}

// A stop by command ends the whole tree at once: the shells of every run of it,
// and what they have started.
func TestStopEndsTheShellsOfATree(t *testing.T) {
	ws := t.TempDir()
	h := open(t, host.Options{Workspace: ws})
	const nap = `sh -c 'while :; do echo x >> %s; sleep 0.02; done' & while :; do echo x >> %s; sleep 0.02; done`
	shell := func(file string) string {
		b, _ := json.Marshal(fmt.Sprintf(nap, file, file))
		return `{"type":"command","command":"code/shell/execute","params":{"command":` + string(b) + `,"wait":false}},{"type":"shell","command":` + string(b) + `}`
	}
	src := `{"name":"top","steps":[
		{"type":"sentinel","await":false,"definition":{"name":"mid","steps":[
			{"type":"sentinel","await":false,"definition":{"name":"low","steps":[` + shell("low") + `]}},` + shell("mid") + `]}},` + shell("top") + `]}`
	def, problems := h.Runtime().Decode([]byte(src), "test.json")
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	id, err := h.Runtime().Start(context.Background(), def, runtime.StartOptions{Workspace: ws})
	if err != nil {
		t.Fatal(err)
	}
	size := func(name string) int64 {
		info, err := os.Stat(filepath.Join(ws, name))
		if err != nil {
			return 0
		}
		return info.Size()
	}
	files := []string{"top", "mid", "low"}
	for deadline := time.Now().Add(2 * time.Minute); size("top") < 20 || size("mid") < 20 || size("low") < 20; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the shells did not all start")
		}
	}
	if err := call(t, h, "sentinel/stop", fmt.Sprintf(`{"run":%q}`, id), nil); err != nil {
		t.Fatal(err)
	}
	runs, err := h.Runtime().Runs(runtime.RunFilter{Root: id})
	if err != nil || len(runs) != 3 {
		t.Fatalf("%d runs, %v", len(runs), err)
	}
	for _, r := range runs {
		if r.Status != sentinels.StatusStopped {
			t.Errorf("%s is %s", r.Sentinel, r.Status)
		}
	}
	before := map[string]int64{}
	for _, f := range files {
		before[f] = size(f)
	}
	time.Sleep(150 * time.Millisecond)
	for _, f := range files {
		if size(f) != before[f] {
			t.Errorf("a process of %s goes on after the stop", f)
		}
	}
}

// TestRepliesInAFork: a run is forked while its model answers, and again behind its end. In each the
// replies go back to the model as it has said them, byte for byte: the stand-in refuses any other one.
func TestRepliesInAFork(t *testing.T) {
	for _, spec := range llmtest.Specs() {
		switch spec.String() {
		case "deepseek/chat", "gemini/chat", "openrouter/chat", "openai/responses", "anthropic/messages":
		default:
			continue
		}
		t.Run(spec.String(), func(t *testing.T) {
			spec.MaxOutput, spec.Refuses = 0, nil
			s := llmtest.New(spec)
			server := httptest.NewServer(s)
			defer server.Close()
			kind := `"openai","protocol":"` + spec.Protocol + `"`
			if spec.Protocol == llmtest.Messages {
				kind = `"anthropic"`
			}
			t.Setenv("MODEL_KEY", "a-key-of-a-model")
			t.Setenv("SENTINEL_MODELS_PROVIDERS", fmt.Sprintf(`[{"name":"p","kind":%s,"baseUrl":"%s/v1","keyEnv":"MODEL_KEY"}]`, kind, server.URL))
			ws := t.TempDir()
			write(t, ws, map[string]string{"a<b>.txt": "text"})
			h := open(t, host.Options{Workspace: ws})
			def, problems := h.Runtime().Decode([]byte(`{"name":"f","steps":[{"type":"set","values":{"a":1}},{"type":"llm","model":"p/stand-in","prompt":"tools","context":false,"tools":["code/read"],"outputTo":"r"}]}`), "f.json")
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			s.Next("", "hang") // the second turn of the first run is under way at the fork
			first, err := h.Runtime().Start(t.Context(), def, runtime.StartOptions{Workspace: ws})
			if err != nil {
				t.Fatal(err)
			}
			<-s.Hangs()
			id := first
			for range 2 {
				if id, err = h.Runtime().Fork(t.Context(), id, runtime.ForkOptions{From: "1"}); err != nil {
					t.Fatal(err)
				}
				res, err := h.Runtime().Wait(t.Context(), id)
				if err != nil || res.Status != sentinels.StatusCompleted || !strings.Contains(string(res.Variables["r"]), llmtest.Done) {
					t.Fatalf("%s: %v, %v", res.Status, res.Error, err)
				}
			}
			if err := h.Runtime().Stop(t.Context(), first); err != nil {
				t.Error(err)
			}
			<-s.Gone()
			for _, r := range s.Requests() {
				if r.Status != http.StatusOK {
					t.Errorf("refused: %s", r.Body)
				}
			}
		})
	}
}
