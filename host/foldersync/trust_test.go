//go:build unix

package foldersync_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/foldersync"
	"github.com/sentinel-runtime/sentinel/host/internal/trust"
)

// TestFilesOfOthersAreRefused: a definition or plugin that another user could have
// written is not read, at the start and each time it changes; what it said before
// stays live, and a mended mode counts without another change.
func TestFilesOfOthersAreRefused(t *testing.T) {
	s := newScene(t)
	s.write("sentinels/start.json", definition("start", "1"))
	s.must(os.Chmod(s.path("sentinels/start.json"), 0o666))
	s.write("recipes/r.json", `["x"]`)
	s.must(os.Chmod(s.path("recipes/r.json"), 0o622))
	s.writePlugin("count.wasm", other(t))
	s.must(os.Chmod(s.path("plugins/count.wasm"), 0o646))
	s.begin()
	for _, name := range []string{"sentinels/start.json", "recipes/r.json", "plugins/count.wasm"} {
		s.invalid(name, "is not trusted: its mode is")
		if hint := s.info(name).Problems[0].Hint; !strings.Contains(hint, "chmod go-w "+s.path(name)) {
			t.Errorf("%s: the hint is %q", name, hint)
		}
	}
	if s.revision("start") != 0 || len(s.rt.Plugins()) != 1 {
		t.Error("a file was obeyed")
	}
	s.must(os.Chmod(s.path("sentinels/start.json"), 0o644))
	s.live("sentinels/start.json", "start", 1)
	s.must(os.Chmod(s.path("plugins/count.wasm"), 0o644))
	s.eventually("the plugin is live", func() bool { return s.info("plugins/count.wasm").State == foldersync.Live })

	s.must(os.Chmod(s.path("sentinels/start.json"), 0o666))
	s.write("sentinels/start.json", definition("start", "2"))
	s.invalid("sentinels/start.json", "is not trusted")
	if s.revision("start") != 1 {
		t.Error("what another user may have written is live")
	}
	stored, err := s.rt.Definition("start")
	s.must(err)
	if err := s.r.WriteBack(t.Context(), stored); err != nil {
		t.Errorf("nothing to write back: %v", err)
	}
	s.must(os.Chmod(s.path("sentinels/start.json"), 0o644))
	s.live("sentinels/start.json", "start", 2)
}

// TestFolderOpenToOthers: a user who may write to a folder decides what is in it.
func TestFolderOpenToOthers(t *testing.T) {
	s := newScene(t)
	s.write("sentinels/a.json", definition("a", "1"))
	s.must(os.Chmod(s.path("sentinels"), 0o777))
	s.begin()
	s.invalid("sentinels/a.json", "because of")
	s.write("sentinels/dropped.json", definition("dropped", "1"))
	s.invalid("sentinels/dropped.json", "every user may write to it")
	s.must(os.Chmod(s.path("sentinels"), 0o755))
	s.live("sentinels/a.json", "a", 1)
	s.live("sentinels/dropped.json", "dropped", 1)
}

// TestFilesOfAnotherUser: the owner may change a file at any time, whatever its mode.
func TestFilesOfAnotherUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can give files to other users")
	}
	s := newScene(t).begin()
	s.write("sentinels/a.json", definition("a", "1"))
	s.live("sentinels/a.json", "a", 1)
	s.must(os.Chown(s.path("sentinels/a.json"), 54321, -1))
	s.write("sentinels/a.json", definition("a", "2"))
	s.invalid("sentinels/a.json", "belongs to user 54321")
	if s.revision("a") != 1 {
		t.Error("a file of another user is live")
	}
	// A new file belongs to its writer.
	s.must(os.Remove(s.path("sentinels/a.json")))
	s.write("sentinels/a.json", definition("a", "3"))
	s.live("sentinels/a.json", "a", 2)
}

// TestTrustedPath: a mount whose owners and modes say nothing.
func TestTrustedPath(t *testing.T) {
	s := newScene(t)
	s.write("sentinels/a.json", definition("a", "1"))
	s.must(os.Chmod(s.path("sentinels"), 0o777))
	s.must(os.Chmod(s.path("sentinels/a.json"), 0o777))
	policy, err := trust.New(trust.Options{Paths: []string{filepath.Join(s.dir, "sentinels")}})
	s.must(err)
	s.beginWith(foldersync.Options{Trust: policy})
	s.live("sentinels/a.json", "a", 1)
}
