package host

import (
	"fmt"
	"os"
	"path/filepath"
	stdruntime "runtime"

	"github.com/sentinel-runtime/sentinel/runtime"
)

// CacheDir returns where the compiled plugins of a state folder are kept: in its
// own folder cache if there is one, else in the user's, which all state folders
// share, sentinel/plugins below ~/.cache. Where the user has no folder that is
// theirs alone, as in a container without a home, it is the state folder's own;
// why then says what is wrong with the user's, nil if there is none.
func CacheDir(getenv func(string) string, state string) (dir string, why error) {
	own := filepath.Join(state, "cache")
	if info, err := os.Stat(own); err == nil && info.IsDir() {
		return own, nil
	}
	base := userCache(getenv)
	if base == "" {
		return own, nil
	}
	dir = filepath.Join(base, "sentinel", "plugins")
	if err := runtime.CheckCache(dir); err != nil {
		return own, fmt.Errorf("the user's folder for compiled plugins: %w", err)
	}
	return dir, nil
}

// userCache is what os.UserCacheDir returns, of an environment that is given; ""
// if that names no folder.
func userCache(getenv func(string) string) string {
	name, below := "HOME", ".cache"
	switch stdruntime.GOOS {
	case "windows":
		name, below = "LocalAppData", ""
	case "darwin", "ios":
		below = filepath.Join("Library", "Caches")
	default:
		if dir := getenv("XDG_CACHE_HOME"); filepath.IsAbs(dir) {
			return dir
		}
	}
	if home := getenv(name); filepath.IsAbs(home) {
		return filepath.Join(home, below)
	}
	return ""
}

// cacheDir is where this host keeps compiled plugins.
func (h *Host) cacheDir() string {
	if h.opt.CacheDir != "" {
		return h.opt.CacheDir
	}
	dir, why := CacheDir(h.opt.Getenv, h.state)
	if why != nil {
		h.opt.Logger.Info("compiled plugins are kept with the state", "reason", why)
	}
	return dir
}
