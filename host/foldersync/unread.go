package foldersync

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/sentinels"
)

// reportUnread logs once each file in the folders of definitions and recipes that is not
// one of them by its extension: its author may wait for it to be loaded.
func (r *Syncer) reportUnread() {
	folders := map[string][]string{
		filepath.Join(r.opt.Dir, sentinelsDir): sentinels.FileExtensions(), filepath.Join(r.opt.Dir, recipesDir): {".json"},
	}
	if r.opt.Workspace != "" {
		folders[filepath.Join(r.opt.Workspace, continuumDir)] = sentinels.FileExtensions()
	}
	now := map[string]bool{}
	for dir, extensions := range folders {
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue // it need not be there, and the watcher reports one that cannot be read
		}
		for _, e := range entries {
			path, ext := filepath.Join(dir, e.Name()), filepath.Ext(e.Name())
			if e.IsDir() || hidden(e.Name()) || slices.Contains(extensions, ext) {
				continue
			}
			if now[path] = true; !r.unread[path] {
				r.opt.Logger.Warn("a file in a followed folder is not read", "file", path, "reason", "its name does not end in "+strings.Join(extensions, " or "))
			}
		}
	}
	r.unread = now
}
