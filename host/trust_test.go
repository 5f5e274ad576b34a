package host_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/host/config"
	"github.com/sentinel-runtime/sentinel/host/internal/trust"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// TestOpenRefusesFoldersOfOthers: a user who can write to one of a host's folders acts
// with the rights of the host.
func TestOpenRefusesFoldersOfOthers(t *testing.T) {
	if !trust.Supported {
		t.Skip("files have no owners and modes here")
	}
	workspace := t.TempDir()
	dir := filepath.Join(workspace, host.DirName)
	for _, name := range []string{"sentinels", "recipes", "plugins", "state"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	planted := filepath.Join(dir, "state", "token")
	if err := os.WriteFile(planted, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	try := func(settings *config.Loaded) error {
		t.Helper()
		h, err := host.Open(t.Context(), host.Options{Workspace: workspace, Settings: settings, Getenv: func(name string) string {
			return map[string]string{"XDG_CONFIG_HOME": home, "HOME": home, "PATH": os.Getenv("PATH")}[name]
		}})
		if err == nil {
			err = h.Close()
		}
		return err
	}
	check := func(what, path string) {
		t.Helper()
		err := try(nil)
		e := abi.As(err)
		if e == nil || e.Code != abi.Denied || !strings.Contains(e.Message, path) || !strings.Contains(e.Hint, path) {
			t.Errorf("%s: got %v, want a refusal that names %s", what, err, path)
		}
		policy, err := trust.New(trust.Options{Paths: []string{path}})
		if err != nil {
			t.Fatal(err)
		}
		if err := try(&config.Loaded{Config: config.Default(), Policy: policy}); err != nil {
			t.Errorf("%s: trusted: %v", what, err)
		}
	}
	for _, path := range []string{filepath.Join(dir, "state"), filepath.Join(dir, "sentinels"), filepath.Join(dir, "recipes"), filepath.Join(dir, "plugins"), dir, workspace, planted} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, info.Mode().Perm()|0o022); err != nil {
			t.Fatal(err)
		}
		check("every user may write to it", path)
		if err := os.Chmod(path, info.Mode().Perm()); err != nil {
			t.Fatal(err)
		}
	}
	if os.Getuid() == 0 {
		for _, path := range []string{filepath.Join(dir, "state"), planted, dir} {
			if err := os.Chown(path, 54321, -1); err != nil {
				t.Fatal(err)
			}
			check("it belongs to another user", path)
			if err := os.Chown(path, 0, -1); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := try(nil); err != nil {
		t.Errorf("mended: %v", err)
	}
}
