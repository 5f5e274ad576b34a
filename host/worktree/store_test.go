package worktree_test

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/worktree"
)

// A worktree of a store whose state folder was deleted is moved aside with its files, and
// the ticket with the same id of the next store has another worktree and another branch.
func TestWorktreeOfAnotherStore(t *testing.T) {
	for name, again := range map[string]bool{"state deleted": false, "cloned again": true} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.first()
			b.s = b.open(worktree.Options{Store: "aaaaaaaaaaaaaaaa"})
			old := b.add(worktree.Add{})
			put(t, old.Path, "committed.txt", "of the old store\n")
			b.commit("old work", "")
			put(t, old.Path, "secret.txt", "not committed\n")
			tip := b.git("rev-parse", "sentinel/T-1")
			if again {
				if err := os.RemoveAll(b.repo); err != nil {
					t.Fatal(err)
				}
				b.first()
			}

			var log bytes.Buffer
			b.s = b.open(worktree.Options{Store: "bbbbbbbbbbbbbbbb", Logger: slog.New(slog.NewTextHandler(&log, nil))})
			if list, err := b.s.List(); err != nil || len(list) > 0 {
				t.Errorf("list: %+v, %v", list, err)
			}
			w := b.add(worktree.Add{})
			for _, file := range []string{"committed.txt", "secret.txt"} {
				if _, err := os.Stat(filepath.Join(w.Path, file)); err == nil {
					t.Errorf("the worktree has %s of another store", file)
				}
			}
			kept := b.kept()
			if w.Existed || w.Path == old.Path || len(kept) != 1 || read(t, filepath.Join(b.dir, "kept", kept[0], "tree", "secret.txt")) != "not committed\n" {
				t.Errorf("%+v, kept %v", w, kept)
			}
			if !strings.Contains(log.String(), "belongs to another store") || !strings.Contains(log.String(), kept[0]) {
				t.Errorf("log: %s", &log)
			}
			put(t, w.Path, "new.txt", "new\n")
			c := b.commit("new work", "")
			if len(c.Files) != 1 || b.git("rev-parse", w.Branch) != c.Commit {
				t.Errorf("commit: %+v", c)
			}
			if again {
				return
			}
			if w.Branch != "sentinel/T-1-bbbbbbbbbbbbbbbb" || b.git("rev-parse", "sentinel/T-1") != tip {
				t.Errorf("branch %s; the old one was at %s", w.Branch, tip)
			}
			b.claim("T-1", 2)
			if next := b.add(worktree.Add{Continue: true}); next.Branch != w.Branch || next.Commit != c.Commit {
				t.Errorf("the next claim: %+v", next)
			}
		})
	}
}
