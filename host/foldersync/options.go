package foldersync

import (
	"context"
	"log/slog"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/host/internal/trust"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/plugin"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers/files"
)

// Definitions are the stored sentinels. [*runtime.Runtime] is one.
type Definitions interface {
	DecodeEdit(src []byte, file string) (def *sentinels.Definition, problems, older sentinels.Problems)
	DecodeOptions(file string) sentinels.DecodeOptions
	Decoded(s runtime.Stored) (*sentinels.Definition, error)
	SaveWith(ctx context.Context, def *sentinels.Definition, opt runtime.SaveOptions) (runtime.Stored, error)
	DeleteWith(ctx context.Context, id sentinels.ID, opt runtime.SaveOptions) (runtime.Stored, error)
	Definition(id sentinels.ID) (runtime.Stored, error)
	Definitions() ([]runtime.Stored, error)
	Revisions(id sentinels.ID) ([]runtime.Stored, error)
}

// Plugins are the step plugins. [*runtime.Runtime] is one.
type Plugins interface {
	PreparePlugin(ctx context.Context, module []byte) (plugin.Prepared, error)
	CheckPluginTotals(count int, size int64) error
	LoadPlugin(ctx context.Context, p plugin.Source) (plugin.Info, error)
	UnloadPlugin(ctx context.Context, source string) error
	Regrant(ctx context.Context) error
	Plugins() []plugin.Info
}

// A Lock decides which contents of plugin files may be loaded.
type Lock interface {
	// Check returns why a file with this name, below the folder of the plugins, and
	// this digest, SHA-256 in hex, must not be loaded; nil if it may. It may read a
	// disk.
	Check(file, digest string) error
}

var (
	_ Definitions = (*runtime.Runtime)(nil)
	_ Plugins     = (*runtime.Runtime)(nil)
)

// Options configure a [Syncer]. Dir, Definitions and Plugins are needed, the
// rest has a default.
type Options struct {
	// Dir is the host's folder: sentinels/*.json and *.jsonc, recipes/*.json and
	// plugins/*.wasm in it are watched. Links may lead out of it.
	Dir string
	// Workspace is a project whose .continuum/sentinels/*.json and *.jsonc are watched too.
	// Its content is not trusted: links that lead out of it are not followed.
	// Default none.
	Workspace string
	// Marks is the file of marks. It belongs to the store and is of no use without
	// it. Default none: all files are read at each start and count as newer than
	// the store.
	Marks string

	// Trust decides which files are loaded, each time one is read. Default: those that
	// only the user or root may write, with the folders above.
	Trust *trust.Policy

	Definitions Definitions
	Plugins     Plugins
	// Lock is asked before a plugin's file is loaded, and again about those that
	// it refused when its own file, plugins/plugins.lock.json, changes. Default:
	// every file may be loaded.
	Lock Lock

	// Rewrite changes the text of a file to that of def. Default:
	// [sentinels.Rewrite], which keeps comments and order.
	Rewrite func(src []byte, def *sentinels.Definition) ([]byte, error)
	// Grace is how long a file may be missing before its definition is deleted.
	// Default 1 s.
	Grace time.Duration
	// Retry is the time until something that failed for no fault of a file, such
	// as a full disk, is tried again. Default 5 s.
	Retry time.Duration
	// StartWait is how long a start waits for plugins that are being compiled: the
	// definitions are checked against their step types. What is not ready by then is
	// loaded later. Default 2 min, which is what one compile may take.
	StartWait time.Duration
	// Changed is called with every file whose state has changed. The lock is held:
	// it must not block, nor call the Syncer. Default none.
	Changed func(FileInfo)
	// Watch are options of the watchers, for tests. Root and Confined are set here.
	Watch files.Options
	// Logger logs problems. Default discards.
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	if o.Grace == 0 {
		o.Grace = time.Second
	}
	if o.Retry == 0 {
		o.Retry = 5 * time.Second
	}
	if o.StartWait == 0 {
		o.StartWait = 2 * time.Minute
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Rewrite == nil {
		o.Rewrite = func(src []byte, def *sentinels.Definition) ([]byte, error) {
			return sentinels.Rewrite(src, def, o.Definitions.DecodeOptions(""))
		}
	}
	if o.Watch.HashLimit == 0 {
		o.Watch.HashLimit = maxPlugin
	}
	if o.Watch.Logger == nil {
		o.Watch.Logger = o.Logger
	}
	return o
}

// maxPlugin bounds a plugin's file in bytes; the engine's own limit is lower.
const maxPlugin = 64 << 20

// The places of files below Dir and below Workspace.
const (
	sentinelsDir = "sentinels"
	recipesDir   = "recipes"
	pluginsDir   = "plugins"
	continuumDir = ".continuum/sentinels"
	lockFile     = pluginsDir + "/plugins.lock.json"
	grantsFile   = pluginsDir + "/grants.json" // what plugins are allowed; see package grant
)

// patterns are those of the watched files below Dir and below Workspace.
func patterns() (dir, workspace []string) {
	return []string{sentinelsDir + "/*.{json,jsonc}", recipesDir + "/*.json", pluginsDir + "/*.wasm", grantsFile}, []string{continuumDir + "/*.{json,jsonc}"}
}

// Folders returns the folders directly in dir and in workspace that have all files which a
// [Syncer] with those [Options] watches. What writes there decides what the host executes.
func Folders(dir, workspace string) (list []string) {
	add := func(base string, patterns []string) {
		for _, p := range patterns {
			first, _, _ := strings.Cut(p, "/")
			if path := filepath.Join(base, first); base != "" && !slices.Contains(list, path) {
				list = append(list, path)
			}
		}
	}
	below, project := patterns()
	add(dir, below)
	add(workspace, project)
	return list
}

// roots returns the watched folders, in the order that decides between files with
// the same id. Each Syncer needs its own, since a watcher runs once.
func (o Options) roots() []*root {
	below, project := patterns()
	watch := o.Watch
	watch.Root = o.Dir
	list := []*root{{dir: o.Dir, watcher: files.NewWatcher(watch), patterns: below}}
	if o.Workspace != "" {
		watch.Root, watch.Confined = o.Workspace, true
		list = append(list, &root{
			dir: filepath.Clean(o.Workspace), confined: true, rank: 1, watcher: files.NewWatcher(watch),
			patterns: project,
		})
	}
	return list
}

// hidden are the patterns of hidden files of definitions, which are not loaded: locks and backups of
// editors and file systems, and what a user wants to switch off.
func (r *root) hidden() []string {
	var list []string
	for _, p := range r.patterns {
		if dir := path.Dir(p); dir != pluginsDir { // a plugin of such a name is listed with the reason
			list = append(list, dir+"/.*")
		}
	}
	return list
}

// A root is one folder with its watcher.
type root struct {
	dir      string
	rank     int      // in the order that decides between files with the same id
	confined bool     // links that lead out are not followed, and not written through
	patterns []string // one folder each, so that a path says which kind of file it is
	watcher  *files.Watcher
	sub      *files.Subscription // set by Run
}
