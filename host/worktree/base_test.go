package worktree_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/worktree"
)

// V12: "the base is that of the repository": each branch has a file of its own, so a
// worktree shows which branch it began from and is rebased onto. Branch main is there and
// is never the base.
func TestV12Base(t *testing.T) {
	for _, c := range []struct {
		name, checkedOut, ticket, call, want string
	}{
		{"current branch of the repository", "trunk", "", "", "trunk"},
		{"base of the ticket, another branch is checked out", "trunk", "release", "", "release"},
		{"base of the ticket, main is checked out", "main", "release", "", "release"},
		{"base of the call, the ticket has another", "main", "trunk", "release", "release"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			b.first()
			for _, branch := range []string{"trunk", "release"} {
				b.git("checkout", "-q", "-b", branch, "main")
				b.change(branch+".txt", branch+"\n")
			}
			b.git("checkout", "-q", c.checkedOut)
			b.tickets["T-1"] = worktree.Ticket{ID: "T-1", RepoURL: b.repo, Token: 1, Base: c.ticket}
			w := b.add(worktree.Add{Base: c.call})
			if w.Base != c.want || w.BaseCommit != b.git("rev-parse", c.want) {
				t.Errorf("the base is %s at %s, want %s at %s", w.Base, w.BaseCommit, c.want, b.git("rev-parse", c.want))
			}
			for _, branch := range []string{"trunk", "release"} {
				if _, err := os.Stat(filepath.Join(w.Path, branch+".txt")); (err == nil) != (branch == c.want) {
					t.Errorf("%s.txt in the worktree: %v", branch, err)
				}
			}
			put(t, w.Path, "work.txt", "work\n")
			b.commit("work", "")
			for _, branch := range []string{"main", "trunk", "release"} { // all move
				b.git("checkout", "-q", branch)
				b.change("later-"+branch+".txt", branch+"\n")
			}
			r, err := b.s.Rebase(t.Context(), "T-1", 1)
			if err != nil || !r.Moved || r.BaseCommit != b.git("rev-parse", c.want) || b.git("rev-parse", "sentinel/T-1~1") != r.BaseCommit {
				t.Errorf("rebase: %+v, %v; want the base %s", r, err, b.git("rev-parse", c.want))
			}
			d, err := b.s.Diff(t.Context(), "T-1", 1)
			if err != nil || len(d.Files) != 1 || d.Files[0].Path != "work.txt" {
				t.Errorf("diff: %+v, %v; want work.txt alone", d, err)
			}
		})
	}
}
