package runtime

import (
	"log/slog"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/history"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/runtime/plugin"
	"github.com/sentinel-runtime/sentinel/runtime/run"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers"
)

// Limits bound what runs may use, see package run.
type Limits = run.Limits

// Options configure a [Runtime]. The zero value works: it keeps its state in
// memory, has no step types and reaches nothing outside.
type Options struct {
	// Dir is the state folder; it is made with mode 0700. Empty keeps all
	// state in memory, lost at Close. Default empty.
	Dir string
	// Version names this program in the store: a program that cannot read the store's
	// format shows it to its user. Default "devel".
	Version string
	// CacheDir holds compiled plugins; state folders and processes of one user
	// may share it. It is code: one that others may write to is refused. What no
	// process used for 30 days is deleted. Default Dir/cache, or none without a Dir.
	CacheDir string
	// Plugins provide the step types. Where two provide the same type, the
	// first wins and the other is a problem of that plugin. Default none.
	Plugins []plugin.Source
	// Grants returns what plugins that are not trusted may do. Default nil: those
	// that ask for nothing are live, all others are refused.
	Grants plugin.Grants
	// CheckPermission returns why a name that a plugin asks for could never be compared with
	// what it uses, such as a host that is none; it refuses the plugin. Default nil: of
	// hosts all names are taken.
	CheckPermission func(use abi.Use, name string) error
	// CheckRole returns why a role of a plugin's step type cannot be used here, such as a
	// command of a family that is part of the program; it refuses the plugin. Default nil:
	// all roles are taken.
	CheckRole func(p plugin.Provided) error
	// Commands, Models, Executions, Contexts, HTTP and Folders are the outside
	// world. Default nil: what needs one fails with code unavailable.
	Commands   Commands
	Models     Models
	Executions Executions
	Contexts   Contexts
	HTTP       HTTP
	Folders    Folders
	// OwnEvents are names of events that only [DocumentTx.Emit] emits. Steps
	// and callers of [Runtime.Emit] get the error bad_fields. Default nil.
	OwnEvents []string
	// Checks know what definitions can name beside step types. Default nil: commands,
	// tools, models and stored sentinels are not checked before a step uses them.
	Checks Checks
	// Child is the command of the processes that evaluate slow conditions and
	// compile plugins that are not trusted. Default: this program again, if its main or
	// TestMain began with [ServeChild]; else what needs a child is refused.
	Child Child
	// OnInterrupt decides about calls in doubt where neither the step nor the
	// definition does. Default empty: the call's own kind decides.
	OnInterrupt sentinels.Interrupt
	// Limits bound what runs may use. Zero fields take their defaults.
	Limits Limits
	// CheckWorkspace decides whether the triggers of a definition with a bound may look at a workspace
	// in [Options.Workspace]. Default nil: they may.
	CheckWorkspace func(dir string, within []string) error
	// Triggers are the kinds that definitions may name; see [Runtime.Arm].
	// Default none: definitions may name any, unchecked, and none fires.
	Triggers triggers.Set
	// Secret returns the value of a secret that a trigger names. Default nil:
	// there is none.
	Secret func(name string) (value string, ok bool)
	// Workspace is the folder that triggered runs work in; a relative folder of
	// the definition is below it. Default: the current folder.
	Workspace string
	// Project is the absolute path of the folder that is moved and copied together with the state
	// folder: workspaces of runs in it are stored relative to it. Default empty: all are stored as
	// absolute paths.
	Project string
	// WorkspaceExists reports whether there is a folder at the path of a workspace. A run whose
	// workspace is gone is not resumed, unless into another one. Default nil: it is not looked.
	WorkspaceExists func(workspace string) bool
	// MinFree is how many bytes of the state folder's disk stay free: with less
	// the runtime is read-only, see [Runtime.Health]. Default 64 MiB or 1 % of
	// the disk, whichever is less; negative does not look.
	MinFree int64
	// SnapshotEvery is how often the store is copied to the folder snapshots of
	// the state folder when it has changed. Default one hour; negative never.
	SnapshotEvery time.Duration
	// KeepSnapshots is how many snapshots of each reason are kept, the newest; one
	// is as large as the store. Default 3.
	KeepSnapshots int
	// Redact removes secrets from a JSON value: from results of host calls before
	// guests see them, from outputs of steps, and from all that is kept or observed.
	// Redacting twice is the same as once. Default nil.
	Redact func([]byte) []byte
	// Observer receives what happens. Default: none.
	Observer Observer
	// Indexes order the documents that the embedder keeps. One that the store does not
	// have in its version is built by Open.
	Indexes []*DocumentIndex

	// Logger takes what concerns the host rather than a run. Default discards.
	Logger *slog.Logger

	store store.Store      // of engine tests, in place of Dir
	now   func() time.Time // likewise, the wall clock
	// applied, for tests, is called behind each record that a live run applies to
	// its state. It must not keep or change the state.
	applied       func(sentinels.RunID, *history.State)
	sweepInterval time.Duration // of tests, between two sweeps of blobs
}
