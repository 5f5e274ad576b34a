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
	state := filepath.Join(temp, "state")
	withOwn := filepath.Join(temp, "older")
	file := filepath.Join(temp, "file")
	loose := filepath.Join(temp, "loose", "sentinel", "plugins")
	for _, dir := range []string{state, filepath.Join(withOwn, "cache"), loose} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []string{file, filepath.Join(loose, "something")} {
		if err := os.WriteFile(f, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(loose, 0o777); err != nil {
		t.Fatal(err)
	}
	own := filepath.Join(state, "cache")
	for _, c := range []struct {
		name  string
		env   map[string]string
		state string
		want  string
		why   bool
	}{
		{"the user's", map[string]string{"HOME": filepath.Join(temp, "home")}, state, filepath.Join(temp, "home", ".cache", "sentinel", "plugins"), false},
		{"by XDG", map[string]string{"HOME": temp, "XDG_CACHE_HOME": filepath.Join(temp, "xdg")}, state, filepath.Join(temp, "xdg", "sentinel", "plugins"), false},
		{"XDG that is relative", map[string]string{"HOME": temp, "XDG_CACHE_HOME": "xdg"}, state, filepath.Join(temp, ".cache", "sentinel", "plugins"), false},
		{"no home", nil, state, own, false},
		{"a home that is a file", map[string]string{"HOME": file}, state, own, true},
		{"others may write", map[string]string{"XDG_CACHE_HOME": filepath.Join(temp, "loose")}, state, own, true},
		{"the state's own", map[string]string{"HOME": temp}, withOwn, filepath.Join(withOwn, "cache"), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, why := host.CacheDir(func(name string) string { return c.env[name] }, c.state)
			if got != c.want || (why != nil) != c.why {
				t.Errorf("CacheDir: %s, %v, want %s", got, why, c.want)
			}
		})
	}
}
