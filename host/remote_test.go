package host_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/sentinel-runtime/sentinel/host"
)

// onRemote makes a bare copy of a repository, and returns its folder and the URL at which an
// ssh in PATH has it: the program in place of ssh executes the command on this machine.
func onRemote(t *testing.T, git func(...string) string) (bare, url string) {
	t.Helper()
	bare = filepath.Join(t.TempDir(), "remote.git")
	git("clone", "-q", "--bare", ".", bare)
	bin := t.TempDir()
	script := "#!/bin/sh\nfor last; do :; done\nexec sh -c \"$(printf %s \"$last\" | sed 's|/o/r.git|" + bare + "|')\"\n"
	if err := os.WriteFile(filepath.Join(bin, "ssh"), []byte(script), 0o700); err != nil { //nolint:gosec // it is a program
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	return bare, "ssh://git@127.0.0.1/o/r.git"
}

// A ticket for a repository on another machine: the work is verified before anything of it
// is pushed, and the reviewer reads what the remote has.
func TestSpecWorkerOnARemote(t *testing.T) {
	ws, git := project(t)
	bare, url := onRemote(t, git)
	pushed := ""
	newModelServer(t, func(r chatRequest) answer {
		if isReview(r) {
			return answer{text: approves}
		}
		return writes(func(n int, _ string) []answer {
			if n == 2 {
				pushed = git("--git-dir", bare, "for-each-ref", "refs/heads/sentinel")
			}
			return []answer{fileOf("a.txt", fmt.Sprintf("%s\n", []string{"red", "green"}[n-1]))}
		})(r)
	})
	h := open(t, host.Options{Workspace: ws, Dir: filepath.Join(t.TempDir(), ".sentinel"), Set: map[string]string{"tickets.review": "on"}})
	must(t, h, "ticket/create", map[string]any{"id": "T-1", "title": "Make it green", "repo_url": url, "acceptance_criteria": map[string]any{"checks": []any{
		map[string]any{"id": "green", "type": "code_pattern", "verify": map[string]any{"file": "a.txt", "pattern": "green", "should_match": true}},
	}}}, nil)
	f := forge(t, h, ws)
	got := ticketOf(t, h, "T-1").Ticket
	if got.State != "in_review" || f.Worked[0].Attempts != 2 || pushed != "" || git("--git-dir", bare, "show", "sentinel/T-1:a.txt") != "green" {
		t.Fatalf("worked %+v, the ticket %+v, pushed before it passed: %q", f.Worked, got, pushed)
	}
	review(t, h, ws, nil)
	if got := ticketOf(t, h, "T-1").Ticket; got.State != "done" {
		t.Errorf("behind the review: %+v", got)
	}
}
