package output_test

import (
	"encoding/json"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/cli/output"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// TestStepResult: a step that ended without an error says whether a condition was true and whether
// a command failed, and shows the line of its output that says most.
func TestStepResult(t *testing.T) {
	cases := []struct {
		of           sentinels.StepType
		result, mark string
		line         string
	}{
		{"condition", `{"branch":"else","value":false,"output":{"exitCode":0}}`, "no, else", ""},
		{"condition", `{"branch":"none","value":false,"output":null}`, "no", ""},
		{"condition", `{"branch":"then","value":true,"output":null}`, "yes", ""},
		{"shell", `{"success":true,"exitCode":0,"output":"error: none\nlast\n"}`, "ok", "last"},
		{"command", `{"success":false,"exitCode":1,"output":"?  example.com [no test files]\n--- FAIL: TestX\nexit\n"}`, "exit code 1 (allowed)", "--- FAIL: TestX"},
		{"command", `{"success":false,"text":"two\nlines"}`, "no success (allowed)", "two"},
		{"watch", `{"success":false,"exitCode":2,"text":"all is well\nbut no"}`, "exit code 2 (allowed)", "but no"},
		{"llm", `{"text":"first\nsecond"}`, "ok", "first"},
		{"set", `[1]`, "ok", ""},
	}
	for _, c := range cases {
		r := output.ReadStepResult(json.RawMessage(c.result))
		if mark := string(r.Mark(false, c.of)); mark != c.mark || r.Line() != c.line {
			t.Errorf("%s: %q, %q; want %q, %q", c.result, mark, r.Line(), c.mark, c.line)
		}
	}
}

// TestOneLine: of a command the line that says most stays, of other messages the first.
func TestOneLine(t *testing.T) {
	for message, want := range map[string]string{
		"one": "one", "": "",
		"exit code 4: warning: low space\nrsync: no":                  "exit code 4: rsync: no",
		"shell \"x\": exit code 1: a\nfatal: b\nc\n":                  "shell \"x\": exit code 1: fatal: b",
		"d.json:1:1: no steps\nd.json:2:1: no name\nd.json:3:1: more": "d.json:1:1: no steps (and 2 more lines)",
	} {
		if got := output.OneLine(message); got != want {
			t.Errorf("%q: %q, want %q", message, got, want)
		}
	}
}
