package host_test

import (
	"os"
	"path/filepath"
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
