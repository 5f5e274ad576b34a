//go:build linux

package crashtest_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/llm/llmtest"
)

// fileText is what the model reads.
const fileText = "text of the file"

// A killer passes requests on to a stand-in, and kills the program before it passes on the first one
// in which a reply goes back.
type killer struct {
	*llmtest.Server

	mu      sync.Mutex
	program *exec.Cmd // nil once it was killed
}

func (k *killer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(strings.NewReader(string(body)))
	k.mu.Lock()
	kill := k.program != nil && strings.Contains(string(body), fileText)
	if kill {
		_ = k.program.Process.Kill() // the test sees whether it was
		k.program = nil
	}
	k.mu.Unlock()
	if kill {
		<-r.Context().Done() // it has no answer
		return
	}
	k.Server.ServeHTTP(w, r)
}

// TestKillBetweenAReplyAndItsUse kills the program when a model has thought and called a tool, before
// the reply goes back with the result. Continued, the reply goes back byte for byte: the stand-ins
// refuse any other one.
func TestKillBetweenAReplyAndItsUse(t *testing.T) {
	for _, spec := range llmtest.Specs() {
		switch spec.String() {
		case "deepseek/chat", "gemini/chat", "mistral/chat", "openrouter/chat", "openai/responses", "anthropic/messages":
		default:
			continue
		}
		t.Run(spec.String(), func(t *testing.T) {
			// What each process has to learn is refused once more.
			spec.MaxOutput, spec.Reserves, spec.Refuses = 0, false, nil
			k := &killer{Server: llmtest.New(spec)}
			server := httptest.NewServer(k)
			defer server.Close()
			kind := `"openai","protocol":"` + spec.Protocol + `"`
			if spec.Protocol == llmtest.Messages {
				kind = `"anthropic"`
			}
			o := doProject(t, map[string]string{
				"a<b>.txt": fileText, "kill.json": `{"name": "kill", "steps": [{"type": "llm", "model": "p/stand-in", "prompt": "tools", "context": false, "tools": ["code/read"], "outputTo": "r"}]}`,
			})
			o.Life = 1
			state := filepath.Join(o.Dir, "state")
			with := func(args ...string) *exec.Cmd {
				o.CLI = append(args, "--state", state)
				cmd := command(t, o, server.URL)
				cmd.Env = append(cmd.Env, fmt.Sprintf(`SENTINEL_MODELS_PROVIDERS=[{"name":"p","kind":%s,"baseUrl":"%s/v1","keyEnv":"OPENAI_API_KEY"}]`, kind, server.URL))
				return cmd
			}
			first := with("run", "kill.json", "-o", "jsonl")
			k.mu.Lock()
			k.program = first
			out, err := first.StdoutPipe()
			if err == nil {
				err = first.Start()
			}
			k.mu.Unlock()
			if err != nil {
				t.Fatal(err)
			}
			text, _ := io.ReadAll(out)
			if first.Wait() == nil || k.program != nil {
				t.Fatalf("the program was not killed: %s", text)
			}
			o.Life = 2
			if !strings.Contains(string(text), `"run":"`) { // it was killed before it wrote what it had begun
				if text, err = with("list", "-o", "jsonl").Output(); err != nil {
					t.Fatal(err)
				}
			}
			_, rest, _ := strings.Cut(string(text), `"run":"`)
			run, _, _ := strings.Cut(rest, `"`)
			if text, err := with("run", "--resume", run, "-o", "jsonl").CombinedOutput(); err != nil || !strings.Contains(string(text), llmtest.Done) {
				t.Fatalf("%v: %s", err, text)
			}
			before := 0
			for _, r := range k.Requests() {
				if r.Status == http.StatusOK && !strings.Contains(r.Body, fileText) {
					before++
				}
				if r.Status != http.StatusOK {
					t.Errorf("refused: %s", r.Body)
				}
			}
			if before != 1 {
				t.Errorf("the model was asked %d times for the first reply", before)
			}
		})
	}
}
