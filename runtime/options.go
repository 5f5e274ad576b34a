package runtime

import (
	"log/slog"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/history"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/runtime/plugin"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers"
)

// Options configure a [Runtime]. The zero value works: it keeps its state in
// memory, has no step types and reaches nothing outside.
type Options struct {
	// Dir is the state folder; it is made with mode 0700. Empty keeps all
	// state in memory, lost at Close. Default empty.
	Dir string
	// CacheDir holds compiled plugins; state folders and processes of one user
	// may share it. It is code: one that others may write to is refused. What no
	// process used for 30 days is deleted. Default Dir/cache, or none without a Dir.
	CacheDir string
	// Plugins provide the step types. Where two provide the same type, the
	// first wins and the other is a problem of that plugin. Default none.
	Plugins []plugin.Source
	// Grants says what plugins that are not trusted may do. Default nil: those
	// that ask for nothing are live, all others are refused.
	Grants plugin.Grants
	// CheckPermission returns why a name that a plugin asks for could never be compared with
	// what it uses, such as a host that is none; it refuses the plugin. Default nil: of
	// hosts all names are taken.
	CheckPermission func(use abi.Use, name string) error
	// Commands, Models, Executions, Contexts, HTTP and Folders are the outside
	// world. Default nil: what needs one fails with code unavailable.
	Commands   Commands
	Models     Models
	Executions Executions
	Contexts   Contexts
	HTTP       HTTP
	Folders    Folders
	// Child says how to start the processes that evaluate slow conditions and
	// compile plugins of others. Default: this program again, if its main or
	// TestMain began with [ServeChild]; else what needs a child is refused.
	Child Child
	// OnInterrupt decides about calls in doubt where neither the step nor the
	// definition does. Default empty: the call's own kind decides.
	OnInterrupt sentinels.Interrupt
	// Limits bound what runs may use. Zero fields take their defaults.
	Limits Limits
	// Triggers are the kinds that definitions may name; see [Runtime.Arm].
	// Default none: definitions may name any, unchecked, and none fires.
	Triggers triggers.Set
	// Secret returns the value of a secret that a trigger names. Default nil:
	// there is none.
	Secret func(name string) (value string, ok bool)
	// Workspace is the folder that triggered runs work in; a relative folder of
	// the definition is below it. Default: the current folder.
	Workspace string
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
	// Logger takes what concerns the host rather than a run. Default discards.
	Logger *slog.Logger

	store store.Store      // of engine tests, in place of Dir
	now   func() time.Time // likewise, the wall clock
	// applied, for tests, is called behind each record that a live run applies to
	// its state. It must not keep or change the state.
	applied       func(sentinels.RunID, *history.State)
	sweepInterval time.Duration // of tests, between two sweeps of blobs
}

// Limits bound what runs may use; each is named in the error that it causes.
type Limits struct {
	Runs           int           // runs executing at once; waiting ones do not count. Default 200
	Children       int           // active child runs of a run, with those that its ended children started. Default 50
	Depth          int           // nesting depth of child sentinels. Default 8
	Steps          int           // step executions an iteration. Default 10,000
	Hops           int           // runs that a chain of events may pass through. Default 16
	EventBytes     int64         // names and data of the events that an iteration emits. Default 16 MiB
	Calls          int           // host calls of an attempt since its checkpoint. Default 10,000
	CallBytes      int64         // and the bytes of their requests and results. Default 256 MiB
	LogLines       int           // of an attempt; the others are dropped. Default 10,000
	LogBytes       int64         // of an attempt's log lines; the others are dropped. Default 256 KiB
	StoredBytes    int64         // that an attempt may set in variables and checkpoints. Default 256 MiB
	StepTimeout    time.Duration // of a step that names none, waiting not counted. Default 30 minutes
	Memory         int64         // bytes of variables, guests and processes of a run without maxMemoryMb. Default 1 GiB
	GuestMemory    int64         // bytes of linear memory of a guest whose plugin was granted no other bound, within Memory; at most [plugin.MaxMemory]. Default 64 MiB
	Resident       int           // waiting guests kept in memory; negative keeps none. Default 64
	ResidentBytes  int64         // and their memory in all. Default 256 MiB
	ResidentFor    time.Duration // how long each is kept; one that will wait longer is not kept at all. Default 30 s
	KeepIterations int           // whose records are kept for the trace. Default 100
	KeepBytes      int64         // of a run's journal. Default 64 MiB
	KeepRevisions  int           // of a definition. Default 50
	KeepEvents     int           // in the log of events. Default 10,000
	KeepEventBytes int64         // of the log of events, as stored; the newest event is always kept. Default 64 MiB
	Plugins        int           // that are not trusted and live; each takes 0.3 MB and what its file does. Default 256
	PluginBytes    int64         // of their files together; their machine code is up to four times as large. Default 256 MiB
	Crashes        int           // crashes in the same step until it is quarantined; after one less it executes only alone among such steps. Default 3
}

func (l Limits) withDefaults() Limits {
	def := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	def64 := func(v *int64, d int64) {
		if *v == 0 {
			*v = d
		}
	}
	def(&l.Runs, 200)
	def(&l.Children, 50)
	def(&l.Depth, 8)
	def(&l.Steps, 10_000)
	def(&l.Hops, 16)
	def64(&l.EventBytes, 16<<20)
	def(&l.Calls, 10_000)
	def64(&l.CallBytes, 256<<20)
	def(&l.LogLines, 10_000)
	def64(&l.LogBytes, 256<<10)
	def64(&l.StoredBytes, 256<<20)
	if l.StepTimeout == 0 {
		l.StepTimeout = 30 * time.Minute
	}
	def64(&l.Memory, 1<<30)
	def64(&l.GuestMemory, 64<<20)
	def(&l.Resident, 64)
	def64(&l.ResidentBytes, 256<<20)
	if l.ResidentFor == 0 {
		l.ResidentFor = 30 * time.Second
	}
	def(&l.KeepIterations, 100)
	def64(&l.KeepBytes, 64<<20)
	def(&l.KeepRevisions, 50)
	def(&l.KeepEvents, 10_000)
	def64(&l.KeepEventBytes, 64<<20)
	def(&l.Plugins, 256)
	def64(&l.PluginBytes, 256<<20)
	def(&l.Crashes, 3)
	return l
}
