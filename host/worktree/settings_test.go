package worktree_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/internal/gitexec/gitexectest"
	"github.com/sentinel-runtime/sentinel/host/worktree"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// marker is the end of a conflict, with the name of a commit of this time.
var marker = regexp.MustCompile(">>>>>>> [0-9a-f]+")

// settingsBench is a repository and its remote for one scenario after the other.
type settingsBench struct {
	*bench
	remote string
	base   [3]string // commits of the base: as it begins, moved, and moved so that it conflicts
	n      int
}

func newSettingsBench(t *testing.T) *settingsBench {
	b := &settingsBench{bench: newBench(t), remote: filepath.Join(t.TempDir(), "remote.git")}
	b.first()
	put(t, b.repo, "gone.txt", "to be deleted\n")
	b.git("add", ".")
	b.git("commit", "-q", "-m", "more")
	b.base[0] = b.git("rev-parse", "HEAD")
	b.base[1] = b.change("base.txt", "of the base\n")
	b.base[2] = b.change("a.txt", "one\nTWO\nthree\n")
	b.git("checkout", "-q", "-b", "elsewhere", b.base[0])
	b.git("branch", "-f", "main", b.base[0])
	b.git("clone", "-q", "--bare", b.repo, b.remote)
	b.git("remote", "add", "origin", b.remote)
	return b
}

// plain runs git without the settings.
func (b *settingsBench) plain(args ...string) string {
	b.t.Helper()
	config := os.Getenv("GIT_CONFIG_GLOBAL")
	defer os.Setenv("GIT_CONFIG_GLOBAL", config)
	os.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	local := filepath.Join(b.repo, ".git", "config")
	text, err := os.ReadFile(local)
	if err != nil {
		b.t.Fatal(err)
	}
	own, _, _ := strings.Cut(string(text), "[include]")
	if err := os.WriteFile(local, []byte(own), 0o600); err != nil {
		b.t.Fatal(err)
	}
	defer os.WriteFile(local, text, 0o600)
	return b.git(args...)
}

// scenario is the work on a ticket, from its worktree to a pushed branch. The text has no
// name of a ticket or commit of this time.
func (b *settingsBench) scenario() (out gitexectest.Outcome) {
	b.n++
	id := fmt.Sprint("S-", b.n)
	branch := "sentinel/" + id
	b.claim(id, 1)
	ctx := b.t.Context()
	var text strings.Builder
	fail := func(err error) gitexectest.Outcome {
		code, message := abi.CodeOf(err), err.Error()
		if e := abi.As(err); e != nil {
			message = e.Message + " " + e.Hint
		}
		if code == abi.Internal {
			message = "a fault of the host: " + strings.ReplaceAll(message, ".", "_")
		}
		return gitexectest.Outcome{Text: text.String(), Refusal: message}
	}
	note := func(format string, a ...any) {
		text.WriteString(strings.ReplaceAll(marker.ReplaceAllString(fmt.Sprintf(format, a...), ">>>>>>> COMMIT"), id, "ID") + "\n")
	}
	defer func() { // for the next one
		b.claim(id, 0)
		_, _ = b.s.Discard(ctx, id, 0)
		for ref := range strings.FieldsSeq(b.plain("for-each-ref", "--format=%(refname)", "refs/sentinel", "refs/heads/sentinel")) {
			b.plain("update-ref", "-d", ref)
		}
	}()
	b.plain("branch", "-f", "main", b.base[0])
	w, err := b.s.Add(ctx, worktree.Add{Ticket: id, Base: "main"})
	if err != nil {
		return fail(err)
	}
	put(b.t, w.Path, "a.txt", "one\n2\nthree\n")
	put(b.t, w.Path, "ü b.txt", "neu\n")
	put(b.t, w.Path, "mixed.txt", "unix\nwindows\r\n")
	if err := os.Remove(filepath.Join(w.Path, "gone.txt")); err != nil {
		b.t.Fatal(err)
	}
	diff, err := b.s.Diff(ctx, id, 0)
	if err != nil {
		return fail(err)
	}
	note("%v\n%s", diff.Files, diff.Diff)
	if _, err = b.s.Commit(ctx, id, 0, "fixup! tagesfähig\n\n# no comment\n; nor this\n", ""); err != nil {
		return fail(err)
	}
	put(b.t, w.Path, "c.txt", "more\n")
	c, err := b.s.Commit(ctx, id, 0, "fixup! more", "")
	if err != nil {
		return fail(err)
	}
	note("%v", c.Files)
	b.plain("branch", "-f", "main", b.base[1])
	r, err := b.s.Rebase(ctx, id, 0)
	if err != nil {
		return fail(err)
	}
	note("%v %v %s", r.Moved, r.Conflict, r.Text)
	b.plain("branch", "-f", "main", b.base[2])
	if r, err = b.s.Rebase(ctx, id, 0); err != nil {
		return fail(err)
	}
	note("%v %v %s", r.Conflict, r.Files, r.Text)
	if !r.Conflict {
		return gitexectest.Outcome{Text: text.String()}
	}
	_, err = b.s.Commit(ctx, id, 0, "with markers", "")
	note("%v", err)
	put(b.t, w.Path, "a.txt", "one\nTWO 2\nthree\n")
	if _, err = b.s.Commit(ctx, id, 0, "wählt\n", ""); err != nil {
		return fail(err)
	}
	p, err := b.s.Push(ctx, id, 0, "")
	if err != nil {
		return fail(err)
	}
	note("pushed %v %s", p.Pushed, p.Reason)
	put(b.t, w.Path, "late.txt", "late\n")
	removed, err := b.s.Remove(ctx, id, 0)
	if err != nil {
		return fail(err)
	}
	note("%v %v %v", removed.Saved, removed.LeftOut, removed.Kept)
	note("%s", b.plain("log", "--raw", "--format=%T%n%an%n%e%n%B", "--reverse", b.base[2]+".."+branch))
	return gitexectest.Outcome{Text: text.String()}
}

// TestSettingsOfUsers: no setting of the user's configuration changes what is done for a ticket.
func TestSettingsOfUsers(t *testing.T) {
	b := newSettingsBench(t)
	gitexectest.Settings(t, func(config string) gitexectest.Outcome {
		t.Setenv("GIT_CONFIG_GLOBAL", config)
		return b.scenario()
	})
}

// TestSettingsOfRepositories is the same for the configuration of the user's repository.
func TestSettingsOfRepositories(t *testing.T) {
	b := newSettingsBench(t)
	gitexectest.Settings(t, func(config string) gitexectest.Outcome {
		local := filepath.Join(b.repo, ".git", "config")
		text, _, _ := strings.Cut(read(t, local), "[include]")
		put(t, b.repo, ".git/config", text+"[include]\n\tpath = "+config+"\n")
		return b.scenario()
	})
}
