package host_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/host/config"
	"github.com/sentinel-runtime/sentinel/host/confine"
)

// beginConfined opens a host that confines the commands of agents.
func beginConfined(t *testing.T, files map[string]string) (*host.Host, string) {
	t.Helper()
	for _, g := range confine.Gaps() {
		if g.Wall == confine.WallNamespaces {
			t.Skip(g)
		}
	}
	work := t.TempDir()
	filesOf(t, work, files)
	h, err := host.Open(t.Context(), host.Options{Workspace: work, Set: map[string]string{"shell.confine": config.Agents}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	return h, work
}

// TestConfinedRepositoriesAtAnyDepth: neither the depth of a tree nor the mode of a folder keeps a
// repository that a confined command has made from being renamed, and the next command starts.
func TestConfinedRepositoriesAtAnyDepth(t *testing.T) {
	for name, line := range map[string]string{
		"beside deep folders": `mkdir -p a/.git b/.git z; cd z; i=0; while [ $i -lt 205 ]; do mkdir d; cd d; i=$((i+1)); done; mkdir .git`,
		"read-only folder":    `mkdir -p a/.git; chmod 555 a`,
		"folder without mode": `mkdir -p a/b/.git; chmod 0 a/b a`,
		"workspace":           `mkdir .git; chmod 555 .`,
		"inside of others":    `mkdir -p .git/sub/.git x/.sentinel/y/.git`,
	} {
		t.Run(name, func(t *testing.T) {
			h, work := beginConfined(t, map[string]string{"file": "x"})
			t.Cleanup(func() { _ = os.Chmod(work, 0o755) })
			out, err := confined(t, h, work, line)
			if err != nil || !strings.Contains(out, `"exitCode":126`) || !strings.Contains(out, "renamed to names with .refused-1") {
				t.Errorf("%s %v", out, err)
			}
			_ = os.Chmod(filepath.Join(work, "a"), 0o755)
			_ = os.Chmod(filepath.Join(work, "a/b"), 0o755)
			if found := gitNames(t, work); len(found) > 0 {
				t.Errorf("repositories: %q", found)
			}
			if out, err := confined(t, h, work, "echo next"); err != nil || !strings.Contains(out, `"exitCode":0`) {
				t.Errorf("the next command: %s %v", out, err)
			}
		})
	}
}

// TestConfinedShellAndOtherHosts: a confined command reads no token of another host that serves a
// folder below the workspace, writes none of its definitions, and makes no folder that one obeys.
func TestConfinedShellAndOtherHosts(t *testing.T) {
	h, work := beginConfined(t, map[string]string{
		"a/one/.sentinel/state/token": "the token", "a/one/.sentinel/sentinels/x.json": "{}", "a/one/.continuum/sentinels/x.json": "{}", "two/file": "x",
	})
	out, err := confined(t, h, work, `cat a/one/.sentinel/state/token; for f in a/one/.sentinel/sentinels/y.json a/one/.continuum/sentinels/y.json a/one/.sentinel/recipes; do echo '{}' > $f && echo wrote; done
		mv a/one/.sentinel a/one/x && echo moved; mv a/one a/two && echo moved; cat a/one/.sentinel/sentinels/x.json && echo done`)
	if err != nil || strings.Contains(out, "the token") || strings.Contains(out, "wrote") || strings.Contains(out, "moved") || !strings.Contains(out, "done") {
		t.Errorf("%s %v", out, err)
	}
	out, err = confined(t, h, work, `mkdir -p two/.sentinel/sentinels two/.continuum/sentinels; echo done`)
	if err != nil || !strings.Contains(out, `"exitCode":126`) || !strings.Contains(out, "two/.sentinel") || !strings.Contains(out, "two/.continuum") {
		t.Errorf("%s %v", out, err)
	}
	for _, name := range []string{".sentinel", ".continuum"} {
		if _, err := os.Lstat(filepath.Join(work, "two", name)); err == nil {
			t.Errorf("%s is there", name)
		}
		if _, err := os.Lstat(filepath.Join(work, "two", name+".refused-1")); err != nil {
			t.Error(err)
		}
	}
	entries, err := os.ReadDir(filepath.Join(work, "a/one/.sentinel/sentinels"))
	if err != nil || !slices.ContainsFunc(entries, func(e os.DirEntry) bool { return e.Name() == "x.json" }) || len(entries) != 1 {
		t.Errorf("%v %v", entries, err)
	}
}
