package gitsource_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/internal/gitsource"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
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

// TestNewBranchesHideNothing: the names that tickets get and people give are taken, and those that mean
// something else to git are not.
func TestNewBranchesHideNothing(t *testing.T) {
	id := strings.Repeat("6f71928a", 5)
	for name, ok := range map[string]bool{
		"sentinel/T-1": true, "sentinel/6f71928": true, "sentinel/T-1-a1b2c3d4": true, "work": true, "feature/x": true, "fix/origin/main": true, "ABC-12": true, "T-1-HEADS": true,
		"abc": true, "facade-2": true, "beef/x": true, "original": true, "origins/main": true, "stash/x": true, "tagged": true, "release/1.0": true, "Header": true, "main2": true,
		"origin/main": false, "ORIGIN/main": false, "origin": false, "upstream/x": false, "refs/heads/main": false, "Refs/heads/main": false, "heads/feature": false, "tags/v1": false,
		"remotes/origin/main": false, "worktrees/a/HEAD": false, "main-worktree/HEAD": false, "6f71928": false, "6F71928": false, "beef": false, id: false, id + id[:24]: false,
		"FETCH_HEAD": false, "fetch_head": false, "ORIG_HEAD": false, "MERGE_HEAD": false, "CHERRY_PICK_HEAD": false, "ANY_HEAD": false, "AUTO_MERGE": false, "head": false, "stash": false,
		"sentinel-default": false, "HEAD": false, "HEAD~1": false, "a..b": false, "@{-1}": false, "--upload-pack=x": false, "": false,
	} {
		err := gitsource.CheckNewBranch("branch_name", name)
		if e := abi.As(err); ok != (err == nil) || err != nil && (e == nil || e.Code != abi.BadFields || e.Field != "branch_name" || e.Hint == "") {
			t.Errorf("%q: %v", name, err)
		}
	}
}
