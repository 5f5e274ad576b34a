package gitexec_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/internal/gitexec"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Refusals that users meet have messages of their own, which say what to do next.
func TestRefusals(t *testing.T) {
	for name, tt := range map[string]struct {
		err   string
		code  abi.Code
		words []string // of the message and the hint
	}{
		"owner": {"fatal: detected dubious ownership in repository at '/srv/it's here'\nTo add an exception for this directory, call:\n\n\tgit config --global --add safe.directory /srv/it's here\n",
			abi.Denied, []string{"repository /srv/it's here belongs to another user", `safe.directory '/srv/it'\''s here'`}},
		"lock": {"fatal: Unable to create '/r/.git/index.lock': File exists.\n\nAnother git process seems to be running in this repository\n", abi.Unavailable,
			[]string{"another git is at work and holds /r/.git/index.lock", "remove that file"}},
		"submodule":      {"fatal: Pathspec 'sub/f' is in submodule 'sub'\n", abi.Conflict, []string{"sub is the folder of a submodule", "repository of the submodule"}},
		"repository":     {"error: 'inner/' does not have a commit checked out\nfatal: adding files failed\n", abi.Conflict, []string{"folder inner is a git repository", "rm -rf inner/.git"}},
		"no commit":      {"fatal: your current branch 'main' does not have any commits yet\n", abi.NotFound, []string{"branch main has no commit", "first commit"}},
		"number":         {"fatal: bad numeric config value 'secret' for 'core.compression' in file /h/.gitconfig: invalid unit\n", abi.Denied, []string{"core.compression", "git config --show-origin --get-all core.compression"}},
		"variable":       {"error: invalid color value: secret\nfatal: bad config variable 'color.diff' in file '/h' at line 2\n", abi.Denied, []string{"color.diff"}},
		"style":          {"fatal: unknown style 'secret' given for 'merge.conflictstyle'\n", abi.Denied, []string{"merge.conflictstyle"}},
		"argument":       {"fatal: bad grep.patterntype argument: secret\n", abi.Denied, []string{"grep.patterntype"}},
		"branch":         {"fatal: invalid branch name: init.defaultBranch = \n", abi.Denied, []string{"init.defaultBranch"}},
		"line":           {"fatal: bad config line 7 in file /h/.gitconfig\n", abi.Denied, []string{"line 7", "--show-origin"}},
		"object of LFS":  {"Error downloading object\nerror: external filter 'git-lfs filter-process' failed\nfatal: a b.bin: smudge filter lfs failed\n", abi.Unavailable, []string{"the object of a b.bin in Git LFS", "git lfs fetch"}},
		"another reason": {"fatal: something else\n", "", nil},
	} {
		e := gitexec.Refusal("add", gitexec.Answer{Code: 128, Err: tt.err})
		if e == nil {
			if tt.code != "" {
				t.Errorf("%s is not known", name)
			}
			continue
		}
		if e.Code != tt.code || e.Permanent == (e.Code == abi.Unavailable) || e.Hint == "" || strings.Contains(e.Message+e.Hint, "secret") {
			t.Errorf("%s: %+v", name, e)
		}
		for _, word := range tt.words {
			if !strings.Contains(e.Message+" "+e.Hint, word) {
				t.Errorf("%s: %q, %q: want %q", name, e.Message, e.Hint, word)
			}
		}
	}
}

// A setting is in the list once, with its reason.
func TestSettingsHaveReasons(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range gitexec.Settings {
		key := strings.ToLower(s.Key)
		if seen[key] || s.Why == "" || !strings.Contains(key, ".") {
			t.Errorf("%+v", s)
		}
		seen[key] = true
	}
}

// A shell reads a quoted text as the one word that it was.
func TestQuote(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no shell on this machine")
	}
	for _, text := range []string{"", "plain", "it's", "feature(x)", "a b", "$(id)", "`id`", "a;b", "!x", "~", "*", `back\slash`, "développement", "line\nbreak", "''"} {
		out, err := exec.Command(sh, "-c", "printf %s "+gitexec.Quote(text)).Output()
		if err != nil || string(out) != text {
			t.Errorf("%q: a shell reads %q, %v", text, out, err)
		}
	}
}
