package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/cli/app"
)

// TestDoAlways answers always: the kind is not asked about any more in this folder by this user, also in
// later tasks, and any other kind, folder and user is.
func TestDoAlways(t *testing.T) {
	status := toolCall("code_shell_execute", map[string]any{"command": "git status -s"})
	edit := func(old, text string) string {
		return toolCall("code_edit", map[string]any{"path": "a.txt", "old": old, "new": text})
	}
	const question = `reject \(n, or n and why\): $`
	task := func(dir string, env map[string]string, lines ...string) *terminal {
		t.Helper()
		again := taskModel(t, append(lines, "All is done.")...)
		again["XDG_CONFIG_HOME"] = env["XDG_CONFIG_HOME"]
		return sit(t, dir, again, "do", "Change a.txt", "--no-check")
	}
	env := taskModel(t, "")
	env["XDG_CONFIG_HOME"] = filepath.Join(t.TempDir(), "conf")
	dir := folder(t, map[string]string{"a.txt": "one\n"})
	term := task(dir, env, status, edit("one", "two"))
	term.await(`(?s)Allow git status\?.*  always  \S*approve, and ask no more in ` + filepath.Base(dir) + ` about git status with other options and files\S*\napprove \(y\) / always / ` + question)
	for _, args := range [][]string{{"inbox", "-o", "json"}, {"list", "-o", "json"}} { // the kind is a field of the decision
		if out, code := without(t, dir, env, args...); code != 0 || strings.Count(out, `"callKind": "git status"`) != 1 {
			t.Errorf("%v: exit code %d, without the kind of the call: %s", args, code, out)
		}
	}
	term.press("alw") // not the whole word
	term.await(`(?s)invalid decision.*Allow git status\?.*` + question)
	term.press("Always")
	term.await(`(?s)Allow code/edit of "a.txt"\?.*about code/edit of each file that models may write\S*\n.*` + question)
	term.press("always")
	term.end(0)
	if got := fileText(t, dir, "a.txt"); got != "two\n" {
		t.Errorf("a.txt is %q", got)
	}

	// The next task asks about neither, and about a line that has no kind it offers no always.
	term = task(dir, env, status, edit("two", "three"), toolCall("code_shell_execute", map[string]any{"command": "rm a.txt"}))
	term.await(`(?s)Allow this line\?.*` + question)
	if shown := term.shown(); strings.Contains(shown, "Allow git status?") || strings.Contains(shown, "Allow code/edit") || strings.Contains(shown, "/ always /") || !strings.Contains(shown, "always allowed in this folder: git status") {
		t.Error(shown)
	}
	term.press("always")
	term.await(`(?s)invalid decision "always".*` + question)
	term.press("n")
	term.end(0)
	if got := fileText(t, dir, "a.txt"); got != "three\n" {
		t.Errorf("a.txt is %q", got)
	}
	list := func(want ...string) {
		t.Helper()
		if out, code := without(t, dir, env, "trust", "--calls"); code != 0 || out != strings.Join(append(want, ""), "\n") {
			t.Errorf("exit code %d, the kinds %q, want %q", code, out, want)
		}
	}
	list("code/edit", "git status")

	// No step, agent or file of the project adds one, and a definition of the project has no use of it.
	if out, code := without(t, dir, env, "trust", "--calls", "--as", "agent:bot"); code != app.ExitDenied {
		t.Errorf("an agent: exit code %d: %s", code, out)
	}
	own := folder(t, map[string]string{"a.txt": "one\n"})
	if err := os.MkdirAll(filepath.Join(dir, ".sentinel", "sentinels"), 0o700); err != nil {
		t.Fatal(err)
	}
	if out, code := without(t, dir, env, "init", "--template", "do"); code != 0 {
		t.Fatal(out)
	}
	for _, elsewhere := range []string{own, dir} {
		term = task(elsewhere, env, status)
		term.await(`(?s)Allow git status\?.*` + question)
		if offered := strings.Contains(term.shown(), "/ always /"); offered != (elsewhere == own) {
			t.Errorf("always is offered: %t\n%s", offered, term.shown())
		}
		term.press("n")
		term.end(0)
	}
	if err := os.RemoveAll(filepath.Join(dir, ".sentinel", "sentinels")); err != nil {
		t.Fatal(err)
	}

	// What is forgotten is asked about again. A revocation of trust forgets all.
	if out, code := without(t, dir, env, "trust", "--forget", "git log"); code != app.ExitNotFound {
		t.Errorf("exit code %d: %s", code, out)
	}
	if out, code := without(t, dir, env, "trust", "--forget", "git status"); code != 0 {
		t.Error(out)
	}
	list("code/edit")
	term = task(dir, env, edit("three", "four"), status)
	term.await(`(?s)Allow git status\?.*` + question)
	term.press("n")
	term.end(0)
	if out, code := without(t, dir, env, "trust", "--revoke"); code != 0 {
		t.Error(out)
	}
	if out, _ := without(t, dir, env, "trust", "--calls", "-o", "json"); !strings.Contains(out, `"calls": []`) {
		t.Error(out)
	}

	// A damaged file allows nothing, and one that others may write.
	file := filepath.Join(env["XDG_CONFIG_HOME"], "sentinel", "calls.json")
	if err := os.WriteFile(file, []byte(`{`), 0o600); err != nil {
		t.Fatal(err)
	}
	term = task(dir, env, status)
	term.await(`(?s)allowed calls.*damaged.*Allow git status\?.*` + question)
	term.press("n")
	term.end(0)
}
