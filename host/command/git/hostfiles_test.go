package git_test

import (
	"os"
	"path/filepath"
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
			denied(params{"operation": "checkout", "branch": "work", "create": true, "base": first}, "deploy.json")
			denied(params{"operation": "checkout", "base": first, "paths": []string{"."}}, "deploy.json")
			for _, p := range []params{{"operation": "branch", "branch": "refs/remotes/origin/HEAD"}, {"operation": "checkout", "branch": "origin/main", "create": true}} {
				if _, err := b.as(by, opt, p); abi.CodeOf(err) != abi.BadFields || !strings.Contains(err.Error(), "would hide") {
					t.Errorf("%v: %v", p, err)
				}
			}
			ok(params{"operation": "checkout", "branch": "work", "create": true})
			ok(params{"operation": "checkout", "base": first, "paths": []string{"a.txt"}})
			if text, err := os.ReadFile(filepath.Join(b.dir, ".sentinel/sentinels/deploy.json")); err != nil || string(text) != "asks a person\n" {
				t.Errorf("%q %v", text, err)
			}
		})
	}
}
