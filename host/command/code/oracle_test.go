package code_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/command/code"
	"github.com/sentinel-runtime/sentinel/host/redact"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

const (
	hiddenValue = "hunter2-of-the-database"
	hiddenFile  = "user: app\npassword: hunter2-of-the-database\nport: 1\n"
)

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func hiding(t *testing.T, files map[string]string) *harness {
	t.Helper()
	var r redact.Redactor
	if err := r.Register(hiddenValue); err != nil {
		t.Fatal(err)
	}
	return newHarness(t, code.Options{Rules: command.FileRules{Redact: r.Redact}}, files)
}

// TestGuessesTellNothing: whatever a model or an agent compares with a file in which a secret is
// gets the same answer for a right guess as for a wrong one, and the rest of the file can be
// edited.
func TestGuessesTellNothing(t *testing.T) {
	for _, by := range []command.By{command.ByModel, command.ByAgent} {
		answers := func(guess string) []string {
			var all []string
			for _, in := range []struct {
				command string
				params  params
			}{
				{"code/edit", params{"path": "app.conf", "old": "password: " + guess[:4], "new": "x"}},
				{"code/edit", params{"path": "app.conf", "old": guess[:4], "new": "x"}},
				{"code/edit", params{"path": "app.conf", "edits": []any{params{"old": "user: ", "new": guess[:4]}, params{"old": guess[:4], "new": "y"}}}},
				{"code/edit", params{"path": "app.conf", "old": "port: 1", "new": "port: 2", "ifHash": hashOf("user: app\npassword: " + guess + "\nport: 1\n")}},
				{"code/write", params{"path": "app.conf", "content": "user: app\npassword: " + guess + "\nport: 1\n", "ifHash": "00"}},
			} {
				b := hiding(t, map[string]string{"app.conf": hiddenFile})
				out, err := b.try(by, in.command, in.params)
				text, _ := json.Marshal(out)
				if err != nil {
					text = []byte(err.Error() + abi.As(err).Hint)
				}
				all = append(all, string(text))
			}
			return all
		}
		right, wrong := answers(hiddenValue), answers("hunsecond-of-the-databas")
		for i := range right {
			if right[i] != wrong[i] {
				t.Errorf("%s, %d: a right guess is answered by %s\na wrong one by %s", by, i, right[i], wrong[i])
			}
		}
		b := hiding(t, map[string]string{"app.conf": hiddenFile})
		out, err := b.try(by, "code/read", params{"path": "app.conf"})
		if err != nil || out["hash"] != hashOf(strings.ReplaceAll(hiddenFile, hiddenValue, redact.Mark)) {
			t.Fatalf("hash of a file: %v, %v", out, err)
		}
		out, err = b.try(by, "code/edit", params{"path": "app.conf", "old": redact.Mark + "\nport: 1", "new": redact.Mark + "\nport: 2\nhost: x", "ifHash": out["hash"]})
		if err != nil || b.get("app.conf") != strings.Replace(hiddenFile, "port: 1", "port: 2\nhost: x", 1) {
			t.Errorf("an edit beside the secret: %v, %v; %q", out, err, b.get("app.conf"))
		}
		if _, err := b.try(by, "code/edit", params{"path": "app.conf", "old": redact.Mark, "new": "mine"}); abi.CodeOf(err) != abi.Denied || !strings.Contains(b.get("app.conf"), hiddenValue) {
			t.Errorf("an edit of the secret: %v", err)
		}
	}
}

// TestLinesAreCutWithoutSecrets: a secret across the place where a long line is cut shows no part
// of itself, to models, agents or steps.
func TestLinesAreCutWithoutSecrets(t *testing.T) {
	for _, by := range []command.By{command.ByModel, command.ByAgent, command.ByStep} {
		for _, before := range []int{16<<10 - 1, 16<<10 - 7, 16<<10 - len(hiddenValue)} {
			b := hiding(t, map[string]string{"a.txt": strings.Repeat("x", before) + hiddenValue + strings.Repeat("y", 100)})
			out, err := b.try(by, "code/read", params{"path": "a.txt"})
			if err != nil || strings.Contains(strings.Trim(out["content"].(string), "xy"), "h"+"unt") || strings.Contains(out["content"].(string), "xh") {
				t.Errorf("%s, %d: %v, %.60q", by, before, err, out["content"].(string)[before-5:])
			}
		}
	}
}
