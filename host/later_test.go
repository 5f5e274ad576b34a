package host_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/host/command"
)

// "aliases args timeoutSecs parallel.steps provider, every 5m"
func TestSpecLaterAliases(t *testing.T) {
	h := open(t, environment("OPENAI_API_KEY", "sk-test-0123456789abcdef"))
	steps := func(list string) string {
		def, problems := h.Runtime().Decode([]byte(`{"name": "a", "steps": [`+list+`]}`), "")
		if len(problems.Errors()) > 0 {
			t.Fatalf("%s: %v", list, problems)
		}
		text, err := json.Marshal(def.Steps)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for later, own := range map[string]string{
		`{"cmd": "echo", "args": ["a b", "c"]}`:                                    `{"type": "shell", "argv": ["echo", "a b", "c"]}`,
		`{"cmd": "ls -l | wc", "args": []}`:                                        `{"cmd": "ls -l | wc"}`,
		`{"cmd": "ls", "timeoutSecs": 1.5}`:                                        `{"cmd": "ls", "timeoutMs": 1500}`,
		`{"type": "approve", "prompt": "p", "timeoutSecs": 60}`:                    `{"type": "approve", "prompt": "p", "timeoutMs": 60000}`,
		`{"type": "watch", "event": "a:b", "timeoutSecs": 3}`:                      `{"type": "watch", "event": "a:b", "timeoutMs": 3000}`,
		`{"type": "parallel", "steps": [{"cmd": "a"}, {"cmd": "b"}]}`:              `{"type": "parallel", "branches": [[{"cmd": "a"}], [{"cmd": "b"}]]}`,
		`{"type": "llm", "prompt": "p", "provider": "openai", "model": "gpt-5"}`:   `{"type": "llm", "prompt": "p", "model": "openai/gpt-5"}`,
		`{"if": "true", "then": [{"event": "a:b", "payload": 1}]}`:                 `{"check": "true", "then": [{"event": "a:b", "data": 1}]}`,
		`{"type": "sentinel", "pipeline": {"name": "b", "steps": [{"cmd": "a"}]}}`: `{"type": "sentinel", "definition": {"name": "b", "steps": [{"cmd": "a"}]}}`,
	} {
		if diff := cmp.Diff(steps(own), steps(later)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", later, diff)
		}
	}
	for text, want := range map[string]string{
		`{"name": "a", "steps": [{"cmd": "ls", "timeoutSecs": 1, "timeoutMs": 5}]}`: `steps[0].timeoutSecs: "timeoutSecs" and "timeoutMs" are the same field`,
		`{"name": "a", "steps": [{"type": "shell", "args": ["a"]}]}`:                "args need cmd, the program",
		`{"name": "a", "steps": [{"type": "llm", "prompt": "p", "provider": "x"}]}`: "a provider needs a model",
		`{"name": "a", "steps": [{"cmd": "a", "args": "b"}]}`:                       "steps[0].args: is a string, want an array of strings",
	} {
		if valid, lines := validated(t, h, text, nil); valid || !strings.Contains(strings.Join(lines, "\n"), want) {
			t.Errorf("%s: %v, want %q", text, lines, want)
		}
	}
	if valid, lines := validated(t, h, `{"name": "a", "trigger": {"type": "cron", "schedule": "every 5m"}, "steps": [{"cmd": "ls"}]}`, nil); !valid {
		t.Errorf("every 5m: %v", lines)
	}
	// A patch may have them too.
	answerTo(t, h, "sentinel/create", `{"name": "p", "steps": [{"id": "s", "cmd": "ls", "timeoutMs": 5}]}`)
	answerTo(t, h, "sentinel/step/update", `{"sentinelId": "p", "address": "s", "params": {"timeoutSecs": 2}}`)
	if out := answerTo(t, h, "sentinel/export", `{"sentinelId": "p"}`); !strings.Contains(out, `"timeoutMs":2000`) {
		t.Errorf("after a patch: %s", out)
	}
}

// "Every other name of those documents is refused at validate by name with what to use
// instead."
func TestSpecLaterNamesAreRefused(t *testing.T) {
	h := open(t, environment("OPENAI_API_KEY", "sk-test-0123456789abcdef"))
	for step, want := range map[string]string{
		`{"type": "webresearch", "query": "x"}`:                                         `unknown step type "webresearch" | fetch pages with a step of type http`,
		`{"type": "codingagent", "prompt": "x"}`:                                        `unknown step type "codingagent" | use a step of type llm with "parseToolCalls"`,
		`{"type": "escalate"}`:                                                          `unknown step type "escalate" | use a step of type approve`,
		`{"type": "llm", "prompt": "p", "model": "openai/gpt-5", "activeAdapters": []}`: `unknown key "activeAdapters" | adapters are part of a model`,
		`{"command": "genome/train"}`:                                                   `unknown command "genome/train" | models are named in "model"`,
		`{"command": "sentinel/cancel"}`:                                                `unknown command "sentinel/cancel" | use "sentinel/stop"`,
		`{"command": "sentinel/logs/tail"}`:                                             `unknown command "sentinel/logs/tail" | use "logs/tail"`,
		`{"command": "sentinel/list-checkpoints"}`:                                      `use "sentinel/trace"`,
		`{"command": "sentinel/extend-budget"}`:                                         `use "sentinel/resume"`,
		`{"command": "sentinel/cleanup"}`:                                               `the settings "retention"`,
		`{"command": "sentinel/config"}`:                                                `settings are of the host`,
		`{"command": "sentinel/escalate"}`:                                              `use a step of type approve`,
		`{"command": "inbox/peek"}`:                                                     `use "inbox/list"`,
		`{"command": "health-check"}`:                                                   `GET /v1/health`,
		`{"command": "code/read", "params": {"path": "{{steps.0.output}}"}}`:            `warning steps[0].params.path: {{steps.0.output}} stays as written | write $steps["ID"].output`,
		`{"type": "llm", "prompt": "{{input.x}} {{named.a.b}} {{loop.0.x}}", "model": "openai/gpt-5"}`: "write $inputs.x; `sentinel import --from-continuum FILE`",
		`{"cmd": "echo {{env.HOME}}"}`: "{{env.HOME}}",
	} {
		if _, lines := validated(t, h, `{"name": "a", "steps": [`+step+`]}`, nil); !strings.Contains(strings.Join(lines, "\n"), want) {
			t.Errorf("%s: %v, want %q", step, lines, want)
		}
	}
}

// "createdBy": a definition that a sentinel makes is found as its own.
func TestSpecCreatedBy(t *testing.T) {
	h := open(t, environment())
	for range 2 { // equal content is no change
		if _, err := h.CallAs(t.Context(), &command.Call{
			Command: "sentinel/create", By: command.ByStep, Sentinel: "maker", Params: json.RawMessage(`{"name": "made", "steps": [{"cmd": "ls"}]}`),
		}); err != nil {
			t.Fatal(err)
		}
	}
	if out := answerTo(t, h, "sentinel/list", `{"personaId": "maker"}`); !strings.Contains(out, `"createdBy":"maker"`) {
		t.Errorf("%s", out)
	}
	// The persona of a run, or the author of its definition, is who made it.
	answerTo(t, h, "sentinel/create", `{"definition": {"name": "of-persona", "createdBy": "helper-ai", "steps": [{"cmd": "ls"}]}}`)
	for as, want := range map[string]string{"ann": "ann", "": "helper-ai"} {
		if _, err := h.CallAs(t.Context(), &command.Call{
			Command: "sentinel/create", By: command.ByStep, As: as, Sentinel: "of-persona", Params: json.RawMessage(`{"name": "made-by-` + want + `", "steps": [{"cmd": "ls"}]}`),
		}); err != nil {
			t.Fatal(err)
		}
		if out := answerTo(t, h, "sentinel/list", `{"personaId": "`+want+`"}`); !strings.Contains(out, `"sentinelId":"made-by-`+want+`"`) {
			t.Errorf("%s", out)
		}
	}
}

// TestDecisionsHaveTests: each row of FORMAT's list of decisions about the specification
// names tests that exist.
func TestDecisionsHaveTests(t *testing.T) {
	page, err := os.ReadFile("../sentinels/FORMAT.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(page), "\n## F13 ")
	if !ok {
		t.Fatal("FORMAT has no section F13")
	}
	known := map[string]bool{}
	if err := filepath.WalkDir("..", func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		switch {
		case strings.HasSuffix(path, ".txtar"):
			known[filepath.Base(path)] = true
		case strings.HasSuffix(path, "_test.go"):
			src, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllSubmatch(src, -1) {
				known[string(m[1])] = true
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	rows := 0
	for line := range strings.Lines(section) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) != 6 || strings.HasPrefix(cells[1], "---") || strings.TrimSpace(cells[1]) == "of" {
			continue
		}
		rows++
		found := regexp.MustCompile("`(Test\\w+|[\\w-]+\\.txtar)`").FindAllStringSubmatch(cells[4], -1)
		if len(found) == 0 {
			t.Errorf("no test: %s", line)
		}
		for _, m := range found {
			if !known[m[1]] {
				t.Errorf("no test is called %s: %s", m[1], line)
			}
		}
	}
	if rows < 60 {
		t.Errorf("%d rows", rows)
	}
}

// answerTo returns the answer of a command.
func answerTo(t *testing.T, h *host.Host, name, params string) string {
	t.Helper()
	out, err := h.Call(t.Context(), name, json.RawMessage(params))
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
