package validation_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/sentinels"
)

// everyKey is a valid definition with a key of each kind at each place.
const everyKey = `{
  "name": "every-key", "description": "d", "version": 1, "createdBy": "me", "isPublic": true, "tags": ["a"], "tools": ["code/read"],
  "workspace": "w", "ragSources": ["git:status"], "timeoutMs": 5, "maxIterations": 3, "concurrency": "queue",
  "safety": {"maxStepTimeoutMs": 5, "maxMemoryMb": 100, "maxSteps": 5, "onTimeout": "pause", "onInterrupt": "ask"},
  "budget": {"tokens": 5, "costUsd": 0.5, "calls": 5},
  "inputs": {"n": {"type": "integer", "description": "d", "required": false, "default": 1, "enum": [1, 2]}},
  "variables": {"list": [1]},
  "loop": {"type": "until", "check": "$n > 1"},
  "trigger": [
    {"type": "schedule", "cronExpression": "0 6 * * *", "timeZone": "UTC", "catchUp": "last", "catchUpWindowMs": 5, "jitterMs": 5, "filter": "true"},
    {"type": "event", "event": "a:b", "debounceMs": 5, "maxWaitMs": 9, "allowConcurrent": true},
    {"type": "file", "paths": ["a/**"], "ignore": ["b"], "on": ["created"], "settleMs": 5},
    {"type": "webhook", "secretEnv": "S", "auth": "token", "tokenHeader": "T", "methods": ["POST"], "event": "e", "eventHeader": "E", "idempotencyHeader": "I"},
    {"type": "immediate", "on": "edit"}],
  "steps": [
    {"id": "a", "name": "n", "type": "shell", "condition": "$n > 0", "command": "true", "cwd": "c", "stdin": "s", "env": {"A": "b"}, "allowFailure": true, "outputTo": "out", "parse": "trim", "timeoutMs": 5, "onInterrupt": "retry",
     "onError": {"retry": {"maxRetries": 2, "backoffType": "linear", "baseDelayMs": 5, "maxDelayMs": 9}}},
    {"type": "shell", "argv": ["a"]},
    {"type": "command", "command": "code/edit", "params": {"path": "p", "edits": [{"old": "a", "new": "b", "replaceAll": true}], "ifHash": "h"}},
    {"type": "command", "command": "code/git", "params": {"operation": "log", "limit": 5, "paths": ["p"], "staged": true}},
    {"type": "llm", "prompt": "p", "system": "s", "model": "ollama/m", "tools": ["code/read"], "parseToolCalls": true, "schema": {"type": "object"}, "temperature": 1, "maxTokens": 300, "maxTurns": 3, "maxToolCalls": 2},
    {"type": "approve", "prompt": "p", "approvers": ["a"]},
    {"type": "wait", "durationMs": 5},
    {"type": "wait", "until": "2020-01-02T03:04:05Z"},
    {"type": "watch", "file": "f", "from": "start", "until": "match", "timeoutMs": 5, "rules": [{"pattern": "p", "classification": "error", "action": "Suppress"}]},
    {"type": "emit", "event": "a:b", "data": 1},
    {"type": "set", "values": {"v": {"expr": "1"}}},
    {"type": "condition", "check": "true", "then": [{"type": "shell", "command": "true"}], "else": [{"type": "wait", "durationMs": 1}]},
    {"type": "loop", "each": "$list", "as": "x", "indexAs": "i", "steps": [{"type": "loop", "while": "false", "maxIterations": 5, "steps": [{"type": "wait", "durationMs": 1}]}]},
    {"type": "parallel", "maxConcurrent": 2, "failFast": true, "branches": [[{"type": "wait", "durationMs": 1}], [{"type": "emit", "event": "c"}]]},
    {"type": "sentinel", "await": true, "inputs": {"q": 1}, "definition": {"name": "inner", "inputs": {"q": "integer"}, "safety": {"timeoutMs": 5}, "loop": {"type": "count", "max": 2}, "steps": [{"type": "shell", "command": "true", "allowFailure": true}]}}
  ]
}`

// anything matches paths below which any key, or at which any value, is valid.
var anything = regexp.MustCompile(`^\.(variables|inputs|version)\b|^\.concurrency$|\.(data|inputs|env|schema|v|default|enum|params)(\..*|\[\])?$|\.values\.|\.inner\b`)

// TestEveryPlace: "No message of `validate` ... lacks a place". Each key of a definition is
// misspelt, and each value gets another type: a problem names that very key, on its line.
func TestEveryPlace(t *testing.T) {
	h := newHarness(t)
	decode := func() object {
		var d object
		if err := json.Unmarshal([]byte(everyKey), &d); err != nil {
			t.Fatal(err)
		}
		return d
	}
	if _, problems := h.validate([]byte(everyKey)); len(problems.Errors()) > 0 {
		t.Fatal(problems.Errors())
	}
	var all []place
	places(decode(), "", &all)
	n := 0
	for i, p := range all {
		misspelt := p.key + "x"
		if p.parent != nil && !anything.MatchString(p.path) {
			n++
			d := decode()
			changed := at(d, i)
			delete(changed.parent, p.key)
			changed.parent[misspelt] = p.value
			src, problems := h.pretty(t, d)
			if !names(src, problems, misspelt) {
				t.Errorf("%s misspelt: no problem is at the key: %v", p.path, problems)
			}
		}
		if anything.MatchString(p.path) || p.parent == nil {
			continue
		}
		d := decode()
		wrong := any(object{"a": object{}})
		if _, is := p.value.(object); is || p.key == "each" || p.key == "branches" { // which may be objects
			wrong = 5
		}
		at(d, i).set(wrong)
		src, problems := h.pretty(t, d)
		if !names(src, problems, p.key) {
			t.Errorf("%s of another type: no problem is at the key: %v", p.path, problems)
		}
	}
	if n < 100 {
		t.Errorf("found only %d keys", n)
	}
}

// at returns the i-th place of a document.
func at(d object, i int) place {
	var all []place
	places(d, "", &all)
	return all[i]
}

// pretty validates a definition with each key on a line of its own.
func (h *harness) pretty(t *testing.T, d object) ([]string, sentinels.Problems) {
	t.Helper()
	src, err := json.MarshalIndent(d, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	_, problems := h.validate(src)
	for _, bad := range badProblems(src, problems) {
		t.Error(bad)
	}
	return strings.Split(string(src), "\n"), problems.Errors()
}

// names reports whether one of the problems has a path that ends with the key, and is on the
// line of such a key.
func names(lines []string, problems sentinels.Problems, key string) bool {
	for _, p := range problems {
		if strings.Contains(p.Hint, fmt.Sprintf("instead of %q", key)) {
			return true // the problem is that another one is missing
		}
		if strings.HasSuffix("."+p.Path, "."+key) && strings.Contains(lines[p.Line-1], fmt.Sprintf("%q", key)) {
			return true
		}
	}
	return false
}
