package git_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/command/git"
	"github.com/sentinel-runtime/sentinel/host/internal/gitexec/gitexectest"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// names are the names of commits, and the times of commits of this time.
var names = regexp.MustCompile(`\b[0-9a-f]{7,40}\b|[0-9]{4}-[0-9]{2}-[0-9]{2}[T0-9:+-]*|Date: .*`)

// TestSettingsOfUsers: no setting of the user's configuration changes what the operations do
// and answer.
func TestSettingsOfUsers(t *testing.T) {
	b := newBench(t)
	base := t.TempDir()
	b.dir = filepath.Join(base, "work")
	if err := os.Mkdir(b.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	b.repo()
	b.raw(b.dir, "init", "-q", "--bare", filepath.Join(base, "bare.git"))
	b.raw(b.dir, "remote", "add", "origin", "../bare.git")
	b.raw(b.dir, "push", "-q", "-u", "origin", "main")
	b.put("late.txt", "ahead of the remote\n")
	b.raw(b.dir, "add", ".")
	b.raw(b.dir, "commit", "-q", "-m", "ahead")
	gitexectest.Settings(t, func(config string) (out gitexectest.Outcome) {
		dir := filepath.Join(t.TempDir(), "copy")
		if err := os.CopyFS(dir, os.DirFS(base)); err != nil {
			t.Fatal(err)
		}
		t.Setenv("GIT_CONFIG_GLOBAL", config)
		t.Setenv("GIT_AUTHOR_NAME", "t")
		t.Setenv("GIT_AUTHOR_EMAIL", "t@t")
		t.Setenv("GIT_COMMITTER_NAME", "t")
		t.Setenv("GIT_COMMITTER_EMAIL", "t@t")
		b.dir = filepath.Join(dir, "work")
		b.put("a.txt", "first\nchanged\n")
		b.put("ü.txt", "new\n")
		var text strings.Builder
		for _, p := range []params{
			{"operation": "status"}, {"operation": "diff"}, {"operation": "add", "paths": []string{"."}}, {"operation": "diff", "staged": true},
			{"operation": "commit", "message": "tagesfähig\n\n# no comment\n"},
			{"operation": "log"}, {"operation": "log", "format": "medium"},
			{"operation": "log", "paths": []string{"a.txt"}}, {"operation": "show"},
			{"operation": "show", "ref": "HEAD~2"}, {"operation": "status"},
			{"operation": "push"}, {"operation": "fetch"}, {"operation": "pull"}, {"operation": "branch", "branch": "made"},
			{"operation": "checkout", "branch": "made"}, {"operation": "checkout", "branch": "new", "create": true},
		} {
			r, err := b.try(p)
			if err != nil {
				e := abi.As(err)
				if e == nil || e.Code == abi.Internal {
					return gitexectest.Outcome{Text: text.String(), Refusal: "a fault of the host: " + strings.ReplaceAll(err.Error(), ".", "_")}
				}
				return gitexectest.Outcome{Text: text.String(), Refusal: e.Message + " " + e.Hint}
			}
			fmt.Fprintf(&text, "%v: %s\n%s\n%s\n%v %v\n", p, describe(r), r.Output, r.Diff, r.Files, r.Branches)
		}
		fmt.Fprintf(&text, "%q", func() string {
			t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
			return b.raw(b.dir, "cat-file", "commit", "HEAD")
		}())
		out.Text = names.ReplaceAllString(strings.ReplaceAll(text.String(), dir, "DIR"), "NAME")
		out.Text = regexp.MustCompile(`t@t> [0-9]+`).ReplaceAllString(out.Text, "t@t> TIME")
		return out
	})
}

func describe(r git.Result) string {
	return fmt.Sprint(r.Success, r.ExitCode, r.Branch, r.Upstream, r.Ahead, r.Behind, len(r.Commits), r.Author, r.Truncated)
}
