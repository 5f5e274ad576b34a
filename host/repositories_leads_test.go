package host_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// TestConfinedShellAndWhatGitFollows: a confined command cannot write what a repository of the workspace
// leads to, wherever that is in the workspace, nor have one lead elsewhere. Git of the user executes
// nothing of it afterwards.
func TestConfinedShellAndWhatGitFollows(t *testing.T) {
	program, err := exec.LookPath("git")
	if err != nil {
		t.Skip(err)
	}
	shell := func(t *testing.T, dir, line string) {
		t.Helper()
		cmd := exec.Command("/bin/sh", "-ec", `git() { '`+program+`' -c user.name=t -c user.email=t@example.com -c init.defaultBranch=main -c protocol.file.allow=always "$@"; }
			`+line)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", line, err, out)
		}
	}
	marker := filepath.Join(t.TempDir(), "executed")
	const separate = "mkdir gits; git init -q --separate-git-dir gits/sub.git sub; "
	const bare = "git init -q first; git -C first commit -q --allow-empty -m first; git clone -q --bare first repo.git; git -C repo.git worktree add -q ../sub main; "
	const linked = separate + "rm sub/.git; ln -s ../gits/sub.git sub/.git; git --git-dir gits/sub.git config --unset core.worktree || true; "
	const plain = "git init -q sub; git -C sub commit -q --allow-empty -m first; "
	h, work := beginConfined(t, map[string]string{"file": "x"})
	for name, c := range map[string]struct {
		layout, evil string // evil are commands of which each fails
		at           string // the work tree, or where it was moved
		refused      string // by its path, after the command
	}{
		"separate git directory":        {separate, `program >> gits/sub.git/config; mv gits other; hook gits/sub.git/hooks/pre-commit`, "sub", ""},
		"worktree of a bare repository": {bare, `program >> repo.git/config; hook repo.git/hooks/pre-commit; program > repo.git/worktrees/sub/config.worktree; mv repo.git other; mv sub other`, "sub", ""},
		"submodule": {plain + "git init -q first; git -C first commit -q --allow-empty -m first; cd sub; git submodule --quiet add ../first in; git submodule --quiet absorbgitdirs; ",
			`program >> sub/.git/modules/in/config; mv sub/in sub/out`, "sub/in", ""},
		"shared directory": {plain + "cp -r sub/.git shared; echo ../../shared > sub/.git/commondir; ", `program >> shared/config; mv shared other; hook shared/hooks/pre-commit`, "sub", ""},
		"linked hook":      {plain + "mkdir sub/scripts; echo exit 0 > sub/scripts/check; chmod +x sub/scripts/check; ln -s ../../scripts/check sub/.git/hooks/pre-commit; ", `hook sub/scripts/check; mv sub/scripts other; rm sub/scripts/check`, "sub", ""},
		"linked hooks":     {plain + "mkdir sub/shared; rm -rf sub/.git/hooks; ln -s ../shared sub/.git/hooks; ", `hook sub/shared/pre-commit; mv sub/shared other`, "sub", ""},
		"linked settings":  {plain + "mv sub/.git/config settings; ln -s ../../settings sub/.git/config; ", `program >> settings`, "sub", ""},
		"linked directory": {linked, `program >> gits/sub.git/config; mv gits other`, "sub", ""},
		"git directory of two lines": {"mkdir gits; git init -q sub; mv sub/.git 'gits/a\nb'; printf 'gitdir: ../gits/a\nb\n' > sub/.git; ", `program >> 'gits/a
b/config'`, "sub", ""},
		"long file":                      {separate + "head -c 9000 /dev/zero | tr '\\0' '\\n' >> sub/.git; ", `program >> gits/sub.git/config`, "sub", ""},
		"moved link":                     {linked, `mkdir x && cp -r gits x/gits && program >> x/gits/sub.git/config && mv sub x/sub && false`, "x/sub", "x/sub/.git"},
		"replaced link":                  {linked + "ln -s gits way; ln -sfn ../way/sub.git sub/.git; ", `cp -r gits other && program >> other/sub.git/config && ln -sfn other way && false`, "sub", "sub/.git"},
		"replaced way":                   {separate + "ln -s gits way; echo gitdir: ../way/sub.git > sub/.git; ", `cp -r gits other && program >> other/sub.git/config && ln -sfn other way && false`, "sub", "sub/.git"},
		"hook that was missing":          {plain + "ln -s ../../scripts/check sub/.git/hooks/pre-commit; ", `mkdir sub/scripts && hook sub/scripts/check && false`, "sub", "sub/.git"},
		"git directory that was missing": {"git init -q first; mkdir sub; echo gitdir: ../gone > sub/.git; ", `cp -r first/.git gone && program >> gone/config && false`, "sub", "sub/.git"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(work, strings.ReplaceAll(name, " ", "-"))
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			shell(t, dir, c.layout)
			line := "cd '" + dir + "'\nprogram() { printf '[core]\\n\\tfsmonitor = \"touch " + marker + "; false\"\\n'; }\n" +
				"hook() { printf '#!/bin/sh\\ntouch " + marker + "\\n' > \"$1\" && chmod +x \"$1\"; }\n"
			for evil := range strings.SplitSeq(c.evil, "; ") {
				line += evil + " && echo 'it did: '" + "\n"
			}
			out, err := confined(t, h, work, line+"echo text > "+c.at+"/ordinary && echo done")
			want := `"exitCode":0`
			if c.refused != "" {
				want = `"exitCode":126`
			}
			if err != nil || strings.Contains(out, "it did") || !strings.Contains(out, "done") || !strings.Contains(out, want) {
				t.Errorf("%s %v", out, err)
			}
			for i, path := range []string{c.refused, c.refused + ".refused-1"} {
				if _, err := os.Lstat(filepath.Join(dir, path)); c.refused != "" && (err == nil) != (i == 1) {
					t.Errorf("%s: %v", path, err)
				}
			}
			if c.refused == "" {
				shell(t, filepath.Join(dir, c.at), `git status >&2; git add -A; git commit -q -m all; git log -1`)
			} else if out, err := confined(t, h, work, "echo next"); err != nil || !strings.Contains(out, `"exitCode":0`) {
				t.Errorf("the next command: %s %v", out, err)
			}
			if _, err := os.Stat(marker); err == nil {
				t.Error("git executed a program of the command")
				_ = os.Remove(marker)
			}
		})
	}
	t.Run("workspace that is a git directory", func(t *testing.T) {
		h, work := beginConfined(t, map[string]string{"file": "x"})
		shell(t, work, "git init -q --bare .; git --git-dir . worktree add -q main $(git --git-dir . commit-tree -m first $(git --git-dir . mktree </dev/null))")
		out, err := confined(t, h, work, "echo x >> config && echo wrote; echo x > hooks/pre-commit && echo wrote; mv hooks other && echo moved; echo text > main/ordinary && echo done")
		if err != nil || strings.Contains(out, "wrote") || strings.Contains(out, "moved\n") || !strings.Contains(out, `done`) || !strings.Contains(out, `"exitCode":0`) {
			t.Errorf("%s %v", out, err)
		}
		out, err = confined(t, h, work, "echo main > commondir && echo done")
		if err != nil || !strings.Contains(out, "done") || !strings.Contains(out, `"exitCode":126`) || !strings.Contains(out, "main/.git") {
			t.Errorf("%s %v", out, err)
		}
	})
}

// TestConfinedShellInWhatGitFollows: with a workspace below the served one, a confined command cannot
// write what a repository beside or above it leads to.
func TestConfinedShellInWhatGitFollows(t *testing.T) {
	program, err := exec.LookPath("git")
	if err != nil {
		t.Skip(err)
	}
	h, work := beginConfined(t, map[string]string{"scripts/pre-commit": "exit 0", "scripts/deep/a": "a", "githooks/x/a": "a", "late/a": "a", "other/a": "a", "bare/a": "a"})
	layout := exec.Command("/bin/sh", "-ec", `git() { '`+program+`' -c user.name=t -c user.email=t@example.com -c init.defaultBranch=main "$@"; }
		git init -q . ; ln -s ../../scripts/pre-commit .git/hooks/pre-commit; ln -s ../../late/made .git/hooks/pre-push
		git init -q w; rm -rf w/.git/hooks; ln -s ../../githooks w/.git/hooks
		mkdir gits; git init -q --separate-git-dir gits/plain plain
		git init -q first; git -C first commit -q --allow-empty -m first; git clone -q --bare first bare/repo; git -C bare/repo worktree add -q main main; git -C bare/repo worktree add -q -b more more`)
	layout.Dir = work
	if out, err := layout.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, c := range []struct {
		dir, line string
		works     bool
	}{
		{"scripts", "echo evil >> pre-commit || echo kept; mv pre-commit x || echo kept; echo done", true},
		{"scripts/deep", "echo done", true},
		{"githooks", "echo evil > pre-commit", false},
		{"githooks/x", "echo done", false},
		{"gits/plain", "echo evil >> config", false},
		{"gits/plain/hooks", "echo evil > pre-commit", false},
		{"gits", "echo evil >> plain/config || echo kept; mv plain x || echo kept; echo done", true},
		{"late", "echo evil > made", false},
		{"bare/repo/main", "echo x > new && echo kept; echo done", true},
		{"bare/repo", "echo evil >> config || echo kept; echo evil > hooks/pre-commit || echo kept; echo done", true},
		{"other", "echo done", true},
	} {
		t.Run(c.dir, func(t *testing.T) {
			out, err := confined(t, h, filepath.Join(work, c.dir), c.line)
			if (err == nil) != c.works || c.works && (!strings.Contains(out, "done") || strings.Contains(c.line, "kept") && !strings.Contains(out, "kept\\n")) {
				t.Errorf("%s %v", out, err)
			}
		})
	}
	found, err := exec.Command("grep", "-rl", "--exclude-dir=.sentinel", "evil", work).Output()
	if len(found) > 0 {
		t.Errorf("written: %s %v", found, err)
	}
}

// TestLinksBesideGit: a confined command that replaces a folder by a link while git of the host is between
// two of its files neither reads nor writes a file outside of the workspace by it, for any caller of git.
func TestLinksBesideGit(t *testing.T) {
	program, err := exec.LookPath("git")
	if err != nil {
		t.Skip(err)
	}
	const private = "PRIVATE"
	for _, c := range []struct {
		params, before string
	}{
		{`{"operation":"add","paths":["d"]}`, ""},
		{`{"operation":"commit","message":"m","all":true}`, "git add . && git commit -qm tracked && echo more | tee d/a d/z"},
		{`{"operation":"diff"}`, "git add . && git commit -qm tracked && echo more | tee d/a d/z"},
		{`{"operation":"checkout","paths":["d"]}`, "git add . && git commit -qm tracked && rm d/a d/z"},
	} {
		for _, by := range []command.By{command.ByAgent, command.ByUser} {
			t.Run(string(by)+" "+c.params, func(t *testing.T) {
				outside := t.TempDir()
				filesOf(t, outside, map[string]string{"z": private})
				settings := filepath.Join(t.TempDir(), "gitconfig")
				t.Setenv("GIT_CONFIG_GLOBAL", settings)
				h, work := beginConfined(t, map[string]string{"d/a": "a", "d/z": "own", ".gitattributes": "/d/a filter=wait\n", ".gitignore": ".sentinel\nl\nbegun\nfirst\nswapped\n"})
				shell := exec.Command("/bin/sh", "-ec", `git() { '`+program+`' -c user.name=t -c user.email=t@example.com "$@"; }; git init -q; git add .gitignore .gitattributes; git commit -qm one; `+c.before)
				shell.Dir = work
				if out, err := shell.CombinedOutput(); err != nil {
					t.Fatalf("%v %s", err, out)
				}
				// The filter, which is the user's own, stops git behind the first file until the folder is a link.
				filter := `touch begun; i=0; while test ! -e swapped && test $i -lt 600; do sleep 0.05; i=$((i+1)); done; cat`
				filesOf(t, filepath.Dir(settings), map[string]string{"gitconfig": "[user]\nname = t\nemail = t@example.com\n[filter \"wait\"]\nclean = \"" + filter + "\"\nsmudge = \"" + filter + "\"\n"})
				ended := make(chan string)
				go func() {
					out, err := confined(t, h, work, "ln -s '"+outside+"' l; touch first; i=0; while test ! -e begun && test $i -lt 600; do sleep 0.05; i=$((i+1)); done; test -e end || { mv d was && mv l d; touch swapped; }")
					ended <- fmt.Sprint(out, err)
				}()
				awaitFile(t, filepath.Join(work, "first"))
				out, err := h.CallAs(t.Context(), &command.Call{Command: "code/git", Params: json.RawMessage(c.params), By: by, As: map[command.By]string{command.ByAgent: "bot"}[by], Workspace: work})
				if abi.CodeOf(err) != abi.Conflict || !strings.Contains(fmt.Sprint(err), "confined command") {
					t.Errorf("git beside the command: %s %v", out, err)
				}
				filesOf(t, work, map[string]string{"end": "", "begun": ""})
				if out := <-ended; !strings.Contains(out, `"exitCode":0`) {
					t.Error(out)
				}
				text, err := os.ReadFile(filepath.Join(outside, "z"))
				if files, failed := os.ReadDir(outside); len(files) != 1 || string(text) != private {
					t.Errorf("outside: %v %v, %s %v", files, failed, text, err)
				}
				indexed := exec.Command(program, "grep", "-q", "--cached", private)
				indexed.Dir = work
				if err := indexed.Run(); err == nil || strings.Contains(string(out), private) {
					t.Errorf("git has a file from outside: %s", out)
				}
				// The command has ended: git works again. The name of the folder is free for its filter.
				filesOf(t, work, map[string]string{"swapped": ""})
				if _, err := h.CallAs(t.Context(), &command.Call{Command: "code/git", Params: json.RawMessage(c.params), By: by, As: map[command.By]string{command.ByAgent: "bot"}[by], Workspace: work}); err != nil {
					t.Errorf("afterwards: %v", err)
				}
			})
		}
	}
}

// awaitFile waits until a file exists.
func awaitFile(t *testing.T, path string) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(path); err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s does not appear", path)
		}
	}
}

// TestGitBesideConfinedCommands: git of the host does not work in a repository that a confined command has
// made which is still being executed, since the command can change its settings meanwhile, nor in files
// that one can write. What it knows of the repository without its files it still answers.
func TestGitBesideConfinedCommands(t *testing.T) {
	program, err := exec.LookPath("git")
	if err != nil {
		t.Skip(err)
	}
	h, work := beginConfined(t, map[string]string{"known/a": "a"})
	for _, args := range [][]string{{"init", "-q"}, {"-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "-q", "--allow-empty", "-m", "one"}} {
		if out, err := exec.Command(program, append([]string{"-C", filepath.Join(work, "known")}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("%v %s", err, out)
		}
	}
	ended := make(chan string)
	go func() {
		out, err := confined(t, h, work, "git init -q made; touch made/a ready; i=0; while test ! -e end && test $i -lt 600; do sleep 0.05; i=$((i+1)); done")
		ended <- fmt.Sprint(out, err)
	}()
	awaitFile(t, filepath.Join(work, "ready"))
	git := func(operation, dir string) error {
		_, err := h.CallAs(t.Context(), &command.Call{Command: "code/git", Params: json.RawMessage(`{"operation":"` + operation + `","paths":["a"],"branch":"main"}`), By: command.ByAgent, As: "bot", Workspace: filepath.Join(work, dir)})
		return err
	}
	if err := git("branch", "made"); abi.CodeOf(err) != abi.Conflict || !strings.Contains(err.Error(), "have made") {
		t.Errorf("the repository of the command: %v", err)
	}
	if err := git("log", "known"); err != nil {
		t.Errorf("another repository: %v", err)
	}
	for _, operation := range []string{"status", "diff", "add", "commit", "checkout", "pull", "init"} {
		if err := git(operation, "known"); abi.CodeOf(err) != abi.Conflict || !strings.Contains(abi.As(err).Hint, "log, show") {
			t.Errorf("%s in files of the command: %v", operation, err)
		}
	}
	call := func(by command.By, name string, params map[string]any, out any) error {
		raw, err := json.Marshal(params)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := h.CallAs(t.Context(), &command.Call{Command: name, Params: raw, By: by, As: map[command.By]string{command.ByAgent: "bot"}[by], Workspace: work})
		if err == nil && out != nil {
			err = json.Unmarshal(answer, out)
		}
		return err
	}
	var made, claimed struct {
		Ticket struct {
			ID    string `json:"id"`
			Lease struct {
				Token uint64 `json:"token"`
			} `json:"lease"`
		} `json:"ticket"`
	}
	if err := call(command.ByUser, "ticket/create", map[string]any{"title": "t", "repo_url": filepath.Join(work, "made"), "acceptance_criteria": map[string]any{"checks": []any{map[string]any{"type": "file_exists", "verify": map[string]any{"path": "a"}}}}}, &made); err != nil {
		t.Fatal(err)
	}
	if err := call(command.ByAgent, "ticket/claim", map[string]any{"id": made.Ticket.ID}, &claimed); err != nil {
		t.Fatal(err)
	}
	err = call(command.ByAgent, "worktree/add", map[string]any{"ticket": made.Ticket.ID, "token": claimed.Ticket.Lease.Token}, nil)
	if abi.CodeOf(err) != abi.Conflict || !strings.Contains(err.Error(), "confined command") {
		t.Errorf("a worktree of the repository of the command: %v", err)
	}
	if err := os.WriteFile(filepath.Join(work, "end"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if out := <-ended; !strings.Contains(out, "renamed to names with") {
		t.Error(out)
	}
	if err := git("add", "known"); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}
