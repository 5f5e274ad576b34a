package foldersync

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/sentinel-runtime/sentinel/internal/regularfile"
	"github.com/sentinel-runtime/sentinel/runtime/plugin"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// errHidden refuses files that lists of a folder do not show.
var errHidden = errors.New("its name begins with a dot")

// hidden reports whether a plugin's file is one that lists of a folder do not show.
func hidden(name string) bool { return strings.HasPrefix(name, ".") }

// listNonPlugins has the engine list, as refused with the reason, what is called like
// a plugin's file and is none: a folder, a named pipe, a device, a link to nothing.
// The watcher reports regular files only.
func (r *Syncer) listNonPlugins(ctx context.Context) {
	now := r.nonPlugins()
	for name, why := range now {
		if r.others[name] == why.Error() {
			continue
		}
		p := plugin.Source{Name: name, Wasm: func() ([]byte, error) { return nil, why }}
		if _, err := r.opt.Plugins.LoadPlugin(ctx, p); err != nil && ctx.Err() == nil {
			r.opt.Logger.Warn("plugin file is refused", "file", filepath.Join(r.opt.Dir, pluginsDir, name), "reason", err)
		}
	}
	for name := range r.others {
		if _, still := now[name]; still || r.files[filepath.Join(r.opt.Dir, pluginsDir, name)] != nil {
			continue
		}
		if err := r.opt.Plugins.UnloadPlugin(ctx, name); err != nil && abi.CodeOf(err) != abi.NotFound && ctx.Err() == nil {
			r.opt.Logger.Warn("plugin of a file that is gone cannot be unloaded", "file", name, "reason", err)
		}
	}
	r.others = map[string]string{}
	for name, why := range now {
		r.others[name] = why.Error()
	}
}

// nonPlugins returns by name why entries of the folder of plugins are not files.
func (r *Syncer) nonPlugins() map[string]error {
	found := map[string]error{}
	dir := filepath.Join(r.opt.Dir, pluginsDir)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return found // it need not be there
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if filepath.Ext(e.Name()) != ".wasm" || e.Type().IsRegular() {
			continue
		}
		info, err := os.Stat(path)
		if err == nil {
			err = regularfile.Check(path, info)
		}
		var cause *fs.PathError
		if errors.As(err, &cause) {
			err = cause.Err // the name is said by those who list it
		}
		if err != nil && r.files[path] == nil {
			found[e.Name()] = err
		}
	}
	return found
}
