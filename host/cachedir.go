package host

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	stdruntime "runtime"

	"github.com/sentinel-runtime/sentinel/host/internal/trash"
	"github.com/sentinel-runtime/sentinel/runtime"
)

// CacheDir returns where compiled plugins are kept: sentinel/plugins in the folder of the user's
// caches, ~/.cache or XDG_CACHE_HOME, which all state folders share. It is empty where the user has no folder that is
// theirs alone, as in a container without a home; why then says what is wrong with it, nil if there is none. Each start
// compiles the plugins then.
//
// It is never in the state folder: compiled code is executed as it is, and a state folder in a project may be of a
// commit, which anybody can have made.
func CacheDir(getenv func(string) string) (dir string, why error) {
	base := userCache(getenv)
	if base == "" {
		return "", nil
	}
	dir = filepath.Join(base, "sentinel", "plugins")
	if err := runtime.CheckCache(dir); err != nil {
		return "", fmt.Errorf("the user's folder for compiled plugins: %w", err)
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

// cacheDir is where this host keeps compiled plugins: a folder of this process alone where the user has none.
func (h *Host) cacheDir() (string, error) {
	if h.opt.CacheDir != "" {
		return h.opt.CacheDir, nil
	}
	dir, why := CacheDir(h.opt.Getenv)
	if dir != "" {
		return dir, nil
	}
	attrs := []any{"hint", "set XDG_CACHE_HOME to a folder that outlives this process"}
	if why != nil {
		attrs = append(attrs, "reason", why)
	}
	h.opt.Logger.Info("plugins are compiled at each start", attrs...)
	var err error
	if h.ownCache, err = os.MkdirTemp("", "sentinel-plugins-"); err != nil {
		return "", fmt.Errorf("make a folder for compiled plugins: %w", err)
	}
	return h.ownCache, nil
}

// removeOldCache removes compiled plugins of earlier versions, which kept them in the state folder.
func (h *Host) removeOldCache(ctx context.Context) {
	if err := trash.Delete(ctx, filepath.Join(h.state, "cache")); err != nil {
		h.opt.Logger.Warn("compiled plugins of an earlier version stay in the state folder; they are not used", "error", err)
	}
}
