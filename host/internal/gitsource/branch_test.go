package gitsource_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/internal/gitsource"
)

// branches are names as people and attackers have them.
var branches = []string{
	"main", "feature/x", "développement", "feature(x)", "it's", "a,b", "релиз/2024", "分支", "a&b", "a;b", "a|b", "$x", "`x`", "a\"b",
	"#12", "!x", "%x", "{x}", "a=b", "a+b", "<x>", "a@b", "x@", "@x", "1", "_", "a-", "~",
	"", "-", "-x", "--upload-pack=x", "HEAD", "@{-1}", "a@{1}", "a..b", "a b", "a\tb", "x\n", "x\x7f", "a:b", "a^", "a~1", "a?", "a*",
	"a[", "a]", "a\\b", "/x", "x/", "a//b", ".x", "a/.b", "x.", "a./b", "x.lock", "a.lock/b", "x.lockx",
	"refs/heads/main", "heads/x", "../x", "refs/../x", "HEAD/x", "x/HEAD", "\u00a0", "a\u2028b", "\u202ex",
}

// TestBranchesAreThoseOfGit compares the rules with those of git.
func TestBranchesAreThoseOfGit(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("no git on this machine")
	}
	for _, name := range branches {
		cmd := exec.Command(git, "check-ref-format", "--branch", name)
		cmd.Dir = t.TempDir()
		out, err := cmd.Output()
		want := err == nil && strings.TrimSuffix(string(out), "\n") == name
		if got := gitsource.ValidBranch(name); got != want {
			t.Errorf("%q: %v, and git says %v", name, got, want)
		}
	}
	// Git has a branch @, but the word stands for HEAD wherever a commit is named.
	if gitsource.ValidBranch("@") || gitsource.ValidBranch(strings.Repeat("x", 300)) || gitsource.ValidBranch("\xff") {
		t.Error("a name that means something else, or that no file or no JSON can have, is valid")
	}
}
