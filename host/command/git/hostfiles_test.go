package git_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/command/git"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// TestModelsCommitNothingHidden: a model or an agent stages and commits no file that it does not see, as those of the
// state with the person's token, and gets git to change no definition.
func TestModelsCommitNothingHidden(t *testing.T) {
	for _, by := range []command.By{command.ByModel, command.ByAgent} {
		t.Run(string(by), func(t *testing.T) {
			b := newBench(t)
			b.repo()
			opt := git.Options{Rules: command.FileRules{Host: command.HostFiles{
				Closed: []string{filepath.Join(b.dir, ".sentinel", "state")}, Fixed: []string{filepath.Join(b.dir, ".sentinel", "sentinels")},
			}}}
			ok := func(p params) string {
				t.Helper()
				answer, err := b.as(by, opt, p)
				if err != nil {
					t.Fatalf("%v: %v", p, err)
				}
				return answer
			}
			denied := func(p params, name string) {
				t.Helper()
				if _, err := b.as(by, opt, p); abi.CodeOf(err) != abi.Denied || !strings.Contains(err.Error(), name) {
					t.Errorf("%v: %v", p, err)
				}
			}
			b.put("a.txt", "a\n")
			b.put(".sentinel/sentinels/deploy.json", "asks nothing\n")
			b.do(params{"operation": "add", "paths": []string{"."}})
			b.do(params{"operation": "commit", "message": "first"})
			first := strings.TrimSpace(b.raw(b.dir, "rev-parse", "HEAD"))

			b.put(".sentinel/state/token", "secret\n")
			b.put(".env", "KEY=secret\n")
			b.put("a.txt", "b\n")
			if answer := ok(params{"operation": "add", "paths": []string{"."}}); !strings.Contains(answer, `"hidden":[".env",".sentinel/state/token"]`) {
				t.Errorf("add: %s", answer)
			}
			ok(params{"operation": "add", "paths": []string{".sentinel/state/token"}})
			if staged := b.raw(b.dir, "diff", "--cached", "--name-only"); staged != "a.txt" {
				t.Errorf("staged: %q", staged)
			}
			b.raw(b.dir, "add", ".env") // by a person
			denied(params{"operation": "commit", "message": "m"}, ".env")
			denied(params{"operation": "commit", "message": "m", "all": true}, ".env")
			ok(params{"operation": "commit", "message": "second", "paths": []string{"a.txt"}})
			if staged := b.raw(b.dir, "diff", "--cached", "--name-only"); staged != ".env" {
				t.Errorf("left: %q", staged)
			}
			b.raw(b.dir, "reset", "-q")

			b.put(".sentinel/sentinels/deploy.json", "asks a person\n")
			b.do(params{"operation": "add", "paths": []string{".sentinel/sentinels"}})
			b.do(params{"operation": "commit", "message": "third"})
			denied(params{"operation": "checkout", "branch": first}, "deploy.json")
			denied(params{"operation": "checkout", "branch": "work/x", "create": true, "base": first}, "deploy.json")
			denied(params{"operation": "checkout", "base": first, "paths": []string{"."}}, "deploy.json")
			for _, p := range []params{{"operation": "branch", "branch": "refs/remotes/origin/HEAD"}, {"operation": "checkout", "branch": "origin/main", "create": true}} {
				if _, err := b.as(by, opt, p); abi.CodeOf(err) != abi.BadFields || !strings.Contains(err.Error(), "would hide") {
					t.Errorf("%v: %v", p, err)
				}
			}
			ok(params{"operation": "checkout", "branch": "work/x", "create": true})
			ok(params{"operation": "checkout", "base": first, "paths": []string{"a.txt"}})
			if text, err := os.ReadFile(filepath.Join(b.dir, ".sentinel/sentinels/deploy.json")); err != nil || string(text) != "asks a person\n" {
				t.Errorf("%q %v", text, err)
			}

			// A person committed .env once, and took it out of the index: git has it replaced without an error.
			b.raw(b.dir, "add", "-f", ".env")
			b.raw(b.dir, "commit", "-qm", "old", ".env")
			old := strings.TrimSpace(b.raw(b.dir, "rev-parse", "HEAD"))
			b.put(".env", "KEY=newer\n")
			denied(params{"operation": "checkout", "paths": []string{"."}}, ".env")
			b.raw(b.dir, "rm", "-q", "--cached", ".env")
			b.raw(b.dir, "commit", "-qm", "new")
			denied(params{"operation": "checkout", "base": old, "paths": []string{".env"}}, ".env")
			denied(params{"operation": "checkout", "branch": old}, ".env")
			if text, err := os.ReadFile(filepath.Join(b.dir, ".env")); err != nil || string(text) != "KEY=newer\n" {
				t.Errorf(".env: %q %v", text, err)
			}
		})
	}
}

// TestModelsReplaceNoFolderOfHost: no commit puts a link or a file in the place of a folder that files of the host are in, or
// replaces a link by which they are found. Git would remove such a folder with all that it ignores in it.
func TestModelsReplaceNoFolderOfHost(t *testing.T) {
	b := newBench(t)
	b.repo()
	conf := filepath.Join(b.dir, "tools", "conf")
	opt := git.Options{Rules: command.FileRules{Host: command.HostFiles{
		Closed: []string{filepath.Join(conf, "state")}, Fixed: []string{filepath.Join(conf, "sentinels"), filepath.Join(b.dir, "served", "recipes")},
	}}}
	commit := func(branch string) {
		t.Helper()
		b.raw(b.dir, "add", "-A")
		b.raw(b.dir, "commit", "-q", "-m", branch)
		b.raw(b.dir, "branch", branch)
	}
	b.put(".gitignore", "tools/\n")
	shared := t.TempDir()
	if err := os.Symlink(shared, filepath.Join(b.dir, "served")); err != nil {
		t.Skipf("no links here: %v", err)
	}
	commit("good")
	if err := os.Symlink("evil", filepath.Join(b.dir, "tools")); err != nil {
		t.Fatal(err)
	}
	b.raw(b.dir, "add", "-f", "tools")
	commit("link")
	b.raw(b.dir, "reset", "-q", "--hard", "good")
	b.put("tools", "a file\n")
	b.raw(b.dir, "add", "-f", "tools")
	commit("file")
	b.raw(b.dir, "reset", "-q", "--hard", "good")
	if err := os.Remove(filepath.Join(b.dir, "served")); err != nil {
		t.Fatal(err)
	}
	b.put("served/recipes/x.json", "evil\n")
	commit("found")
	b.raw(b.dir, "reset", "-q", "--hard", "good")
	b.put("tools/conf/sentinels/x.json", "asks a person\n")
	for branch, paths := range map[string][]string{"link": {"tools"}, "file": {"."}, "found": {"served"}} {
		for _, p := range []params{
			{"operation": "checkout", "branch": branch}, {"operation": "checkout", "branch": "work/new", "create": true, "base": branch},
			{"operation": "checkout", "base": branch, "paths": paths},
		} {
			if _, err := b.as(command.ByAgent, opt, p); abi.CodeOf(err) != abi.Denied || !strings.Contains(err.Error(), "of the host itself") {
				t.Errorf("%v: %v", p, err)
			}
		}
	}
	if text, err := os.ReadFile(filepath.Join(conf, "sentinels", "x.json")); err != nil || string(text) != "asks a person\n" {
		t.Errorf("%q %v", text, err)
	}
	if to, err := os.Readlink(filepath.Join(b.dir, "served")); err != nil || to != shared {
		t.Errorf("%q %v", to, err)
	}
}

// TestCheckoutOfANameThatIsTwo: a checkout takes the branch where a tag has its name, and its files are looked at.
func TestCheckoutOfANameThatIsTwo(t *testing.T) {
	b := newBench(t)
	b.repo()
	opt := git.Options{Rules: command.FileRules{Host: command.HostFiles{Fixed: []string{filepath.Join(b.dir, ".sentinel", "sentinels")}}}}
	b.put(".sentinel/sentinels/deploy.json", "asks nothing\n")
	b.raw(b.dir, "add", "-A")
	b.raw(b.dir, "commit", "-q", "-m", "earlier")
	b.raw(b.dir, "branch", "v1.0")
	earlier := b.raw(b.dir, "rev-parse", "HEAD")
	b.put(".sentinel/sentinels/deploy.json", "asks a person\n")
	b.raw(b.dir, "commit", "-q", "-a", "-m", "later")
	b.raw(b.dir, "tag", "v1.0")
	if _, err := b.as(command.ByAgent, opt, params{"operation": "checkout", "branch": "v1.0"}); abi.CodeOf(err) != abi.Denied || !strings.Contains(err.Error(), "deploy.json") {
		t.Errorf("an agent: %v", err)
	}
	other := filepath.Join(t.TempDir(), "other")
	b.raw(b.dir, "worktree", "add", "-q", other, "refs/heads/v1.0")
	b.raw(other, "symbolic-ref", "HEAD", "refs/heads/v1.0")
	if _, err := b.try(params{"operation": "checkout", "branch": "v1.0"}); abi.CodeOf(err) != abi.Conflict || !strings.Contains(err.Error(), "checked out") {
		t.Errorf("a branch of another work tree: %v", err)
	}
	b.raw(b.dir, "worktree", "remove", other)
	if r := b.do(params{"operation": "checkout", "branch": "v1.0"}); r.Branch != "v1.0" || r.Hash != earlier || b.raw(b.dir, "symbolic-ref", "HEAD") != "refs/heads/v1.0" {
		t.Errorf("a person: %+v", r)
	}
	if changed := b.raw(b.dir, "status", "--porcelain"); changed != "" {
		t.Errorf("changed: %s", changed)
	}
	b.do(params{"operation": "checkout", "branch": "v1.0"}) // where it is already
	if r := b.do(params{"operation": "checkout", "branch": "main"}); r.Branch != "main" || b.raw(b.dir, "rev-parse", "--abbrev-ref", "@{-1}") == "" {
		t.Errorf("back: %+v", r)
	}
}

// TestBranchesOfAgentsHideNothing: the branches that a model or an agent makes are named as those for tickets. They hide neither
// a tag nor what a remote has, and are in the way of none.
func TestBranchesOfAgentsHideNothing(t *testing.T) {
	b := newBench(t)
	b.repo()
	b.raw(b.dir, "remote", "add", "work/fork", "https://example.invalid/x.git")
	b.raw(b.dir, "tag", "work/v1")
	b.raw(b.dir, "branch", "work/there")
	for _, by := range []command.By{command.ByModel, command.ByAgent} {
		for name, want := range map[string]abi.Code{
			"release": abi.Denied, "feature/x": abi.Denied, "workshop": abi.Denied, "origin/main": abi.BadFields,
			"work/v1": abi.BadFields, "work/fork/main": abi.BadFields, "work/Fork": abi.BadFields, "work/new": "",
		} {
			for _, p := range []params{{"operation": "branch", "branch": name}, {"operation": "checkout", "branch": name, "create": true}} {
				_, err := b.as(by, git.Options{}, p)
				if want == "" {
					if err != nil {
						t.Errorf("%v: %v", p, err)
					}
					b.raw(b.dir, "checkout", "-q", "main")
					b.raw(b.dir, "branch", "-q", "-D", name)
				} else if e := abi.As(err); e == nil || e.Code != want || e.Field != "branch" || !strings.Contains(e.Hint, "work/") {
					t.Errorf("%v: %v", p, err)
				}
			}
		}
		if _, err := b.as(by, git.Options{}, params{"operation": "branch", "branch": "work/there"}); err == nil || !strings.Contains(err.Error(), "exists") {
			t.Errorf("a branch that is there: %v", err)
		}
	}
	b.do(params{"operation": "branch", "branch": "release"}) // of a person
}

// TestModelsSeeNoKeys: a file with a private key in it is neither staged, committed nor shown to models, agents and viewers,
// whatever its name is. A line that only mentions one hides nothing.
func TestModelsSeeNoKeys(t *testing.T) {
	const begin, end = "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----"
	lines := strings.Split(strings.Repeat("SECRETBYTES,", 40), ",")
	pem := begin + "\n" + strings.Join(lines, "\n") + "\n" + end + "\n"
	b := newBench(t)
	b.repo()
	b.put("sub/mention.txt", "grep '"+begin+"' x\n")
	see := func(by command.By, p params, hidden ...string) {
		t.Helper()
		answer, err := b.as(by, git.Options{}, p)
		if err != nil {
			t.Errorf("%s %v: %v", by, p, err)
		}
		var r git.Result
		if err := json.Unmarshal([]byte(answer), &r); err != nil || strings.Contains(answer, "SECRETBYTES") || !slices.Equal(r.Hidden, hidden) {
			t.Errorf("%s %v: hidden %q, want %q: %s", by, p, r.Hidden, hidden, answer)
		}
	}
	const viewer = command.ByAgent // as which a viewer calls
	b.put("notes.txt", pem)
	b.put("ü\tdos.txt", strings.ReplaceAll(pem, "\n", "\r\n"))
	b.put("sub/config.json", `{"key": "`+strings.ReplaceAll(pem, "\n", `\n`)+`"}`)
	b.put("sub/key_test.go", `const key = "`+strings.ReplaceAll(strings.ReplaceAll(pem, "SECRETBYTES", "x"), "\n", `\n`)+`"`)
	secret := []string{"notes.txt", "sub/config.json", "ü\tdos.txt"}
	see(command.ByAgent, params{"operation": "add", "paths": []string{"."}}, secret...)
	see(command.ByModel, params{"operation": "add", "paths": []string{"notes.txt"}}, "notes.txt")
	if staged := b.raw(b.dir, "-c", "core.quotePath=false", "diff", "--cached", "--name-only"); staged != "sub/key_test.go\nsub/mention.txt" {
		t.Errorf("staged: %q", staged)
	}
	see(command.ByAgent, params{"operation": "commit", "message": "harmless"})
	b.raw(b.dir, "add", ".") // by a person
	for _, by := range []command.By{command.ByModel, viewer} {
		see(by, params{"operation": "diff", "staged": true}, secret...)
		see(by, params{"operation": "diff"}, secret...)
	}
	for _, p := range []params{{"operation": "commit", "message": "m"}, {"operation": "commit", "message": "m", "all": true}, {"operation": "commit", "message": "m", "paths": []string{"notes.txt"}}} {
		if _, err := b.as(command.ByAgent, git.Options{}, p); abi.CodeOf(err) != abi.Denied || !strings.Contains(err.Error(), "which models do not see") {
			t.Errorf("%v: %v", p, err)
		}
	}
	b.raw(b.dir, "commit", "-q", "-m", "keys")
	see(viewer, params{"operation": "show"}, secret...)
	b.put("notes.txt", strings.Replace(pem, "SECRETBYTES\nSECRETBYTES\n", "SECRETBYTES\nplain\nSECRETBYTES\n", 20)) // no line of the patch names a key
	see(viewer, params{"operation": "diff"}, "notes.txt")
	b.put("notes.txt", "gone\n")
	see(viewer, params{"operation": "diff"}, "notes.txt")
	see(command.ByAgent, params{"operation": "commit", "message": "without the key", "all": true})
	see(viewer, params{"operation": "show"}, "notes.txt")
	b.raw(b.dir, "mv", "sub/config.json", "moved.json")
	b.put("moved.json", "{}")
	see(viewer, params{"operation": "diff"}, "sub/config.json")
	if r := b.do(params{"operation": "show", "ref": "HEAD~1"}); !strings.Contains(r.Diff, "SECRETBYTES") || len(r.Hidden) > 0 {
		t.Errorf("a person: %+v", r)
	}
}

// TestModelsReplaceNothingUnknown: git replaces files that it ignores without a question, in the place of a folder or of a
// file of the commit: a model or an agent would take what no commit has.
func TestModelsReplaceNothingUnknown(t *testing.T) {
	b := newBench(t)
	b.repo()
	commit := func(branch string) {
		t.Helper()
		b.raw(b.dir, "add", "-f", "-A")
		b.raw(b.dir, "commit", "-q", "-m", branch)
		b.raw(b.dir, "branch", branch)
	}
	b.put(".gitignore", ".env\nkey\nfile\n")
	commit("good")
	b.put("sub", "a file\n")
	commit("file")
	b.raw(b.dir, "reset", "-q", "--hard", "good")
	b.put("key", "junk\n")
	commit("same")
	b.raw(b.dir, "reset", "-q", "--hard", "good")
	b.put("file/below/name", "a folder\n")
	commit("folder")
	b.raw(b.dir, "reset", "-q", "--hard", "good")
	mine := map[string]string{"sub/.env": "SECRET=1\n", "key": "a key\n", "file": "a file\n"}
	for name, text := range mine {
		b.put(name, text)
	}
	for branch, c := range map[string]struct{ path, unknown string }{"file": {"sub", "sub/.env"}, "same": {"key", "key"}, "folder": {"file", "file"}} {
		for _, p := range []params{
			{"operation": "checkout", "branch": branch}, {"operation": "checkout", "branch": "work/new", "create": true, "base": branch},
			{"operation": "checkout", "base": branch, "paths": []string{c.path}},
		} {
			if _, err := b.as(command.ByAgent, git.Options{}, p); abi.CodeOf(err) != abi.Denied || !strings.Contains(err.Error(), c.unknown) {
				t.Errorf("%v: %v", p, err)
			}
		}
	}
	for name, text := range mine {
		if got, err := os.ReadFile(filepath.Join(b.dir, name)); err != nil || string(got) != text {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if _, err := b.as(command.ByAgent, git.Options{}, params{"operation": "checkout", "branch": "good"}); err != nil {
		t.Errorf("a checkout that replaces none of them: %v", err)
	}
}
