package host_test

import (
	"os"
	"path/filepath"
	stdruntime "runtime"
	"testing"

	"github.com/sentinel-runtime/sentinel/host"
)

func TestCacheDir(t *testing.T) {
	if stdruntime.GOOS != "linux" {
		t.Skip("the places are those of Linux; run it there")
	}
	temp := t.TempDir()
	file := filepath.Join(temp, "file")
	loose := filepath.Join(temp, "loose", "sentinel", "plugins")
	if err := os.MkdirAll(loose, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, f := range []string{file, filepath.Join(loose, "something")} {
		if err := os.WriteFile(f, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(loose, 0o777); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		env  map[string]string
		want string
		why  bool
	}{
		{"the user's", map[string]string{"HOME": filepath.Join(temp, "home")}, filepath.Join(temp, "home", ".cache", "sentinel", "plugins"), false},
		{"by XDG", map[string]string{"HOME": temp, "XDG_CACHE_HOME": filepath.Join(temp, "xdg")}, filepath.Join(temp, "xdg", "sentinel", "plugins"), false},
		{"XDG that is relative", map[string]string{"HOME": temp, "XDG_CACHE_HOME": "xdg"}, filepath.Join(temp, ".cache", "sentinel", "plugins"), false},
		{"no home", nil, "", false},
		{"a home that is a file", map[string]string{"HOME": file}, "", true},
		{"others may write", map[string]string{"XDG_CACHE_HOME": filepath.Join(temp, "loose")}, "", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, why := host.CacheDir(func(name string) string { return c.env[name] })
			if got != c.want || (why != nil) != c.why {
				t.Errorf("CacheDir: %s, %v, want %s", got, why, c.want)
			}
		})
	}
}

// Compiled code in a state folder, which may have come with a project, is neither executed nor kept; without a folder of
// the user plugins are compiled in one of the process alone.
func TestNoCodeFromTheStateFolder(t *testing.T) {
	dir := t.TempDir()
	planted := filepath.Join(dir, ".sentinel", "state", "cache", "x")
	temp := filepath.Join(dir, "tmp")
	for _, d := range []string{planted, temp} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("TMPDIR", temp)
	h, err := host.Open(t.Context(), host.Options{
		Dir: filepath.Join(dir, ".sentinel"), Workspace: dir,
		Getenv: func(name string) string { return map[string]string{"SENTINEL_TRUST_ROOTS": dir}[name] },
	})
	if err != nil {
		t.Fatal(err)
	}
	made, err := filepath.Glob(filepath.Join(temp, "sentinel-plugins-*"))
	if err != nil || len(made) != 1 {
		t.Errorf("folders of this process: %v, %v", made, err)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	for _, gone := range append(made, filepath.Dir(planted)) {
		if _, err := os.Lstat(gone); !os.IsNotExist(err) {
			t.Errorf("%s stays: %v", gone, err)
		}
	}
}
