package files

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers"
)

// Kind is the trigger kind "file". Its triggers share one [Watcher] for each
// workspace, which runs while any of them runs.
//
// # Concurrency
//
// Safe for concurrent use.
type Kind struct {
	opt Options

	mu     sync.Mutex
	shared map[string]*shared // by workspace
}

// shared is the watcher of one workspace, with a count of its users.
type shared struct {
	watcher *Watcher
	users   int
	cancel  context.CancelFunc
	done    chan struct{}
}

// New returns the trigger kind. Root and Confined of opt are ignored: each
// trigger watches its sentinel's workspace, confined.
func New(opt Options) *Kind {
	return &Kind{opt: opt, shared: map[string]*shared{}}
}

// Describe describes the kind "file".
func (*Kind) Describe() triggers.Description {
	return triggers.Description{
		Name: "file", Fires: "when files of the workspace change", Options: fields{},
		Event: "name file; data {paths: [changed paths]; changes: [{path, op: created, modified or deleted}], at most 1,000; more: number of further changes; offline: true for changes while the host was down}",
		Data:  []string{"paths", "changes", "more", "offline"},
		Detail: func(t sentinels.Trigger) string {
			f, _ := readFields(t) // a problem is what Check reports
			return strings.Join(f.Paths, " ")
		},
	}
}

// fields are the options of a file trigger, clause T7.
type fields struct {
	Paths  []string `json:"paths" doc:"globs relative to the workspace, such as src/**/*.go; a folder is all below it; at most 100 with ignore" required:"true"` // globs relative to the workspace; at least one
	Ignore []string `json:"ignore,omitempty" doc:"globs of files and folders to leave out" default:"none"`                                                       // globs of files and folders
	On     []Op     `json:"on,omitempty" doc:"which changes fire" default:"all three" enum:"created,modified,deleted"`                                           // default all three
	// IgnoreOwn ends a series of firings for changes that the sentinel's own runs make, T7.4.
	IgnoreOwn *bool  `json:"ignoreOwn,omitempty" doc:"changes during runs of the sentinel itself: the first starts a run, further ones in a row wait, from the fifth on they are ignored (leave files out by ignore); false: each starts a run, up to 16 in a row" default:"true"`
	SettleMs  *int64 `json:"settleMs,omitempty" doc:"how long files must be quiet before changes fire, 0 to 3600000 ms" default:"300"` // how long files must be quiet; nil is the default
}

// Default and limit of settleMs.
const (
	defaultSettle = 300 * time.Millisecond
	maxSettle     = time.Hour
)

var operations = []Op{Created, Modified, Deleted}

func readFields(t sentinels.Trigger) (fields, error) {
	var f fields
	if err := triggers.ReadOptions(t, &f); err != nil {
		return f, err
	}
	if len(f.Paths) == 0 {
		return f, fmt.Errorf(`trigger "file": missing paths: want globs relative to the workspace, such as "src/**/*.go"`)
	}
	if err := (Query{Patterns: f.Paths, Ignore: f.Ignore}).Check(); err != nil {
		return f, fmt.Errorf(`trigger "file": %w`, err)
	}
	for i, op := range f.On {
		if !slices.Contains(operations, op) {
			return f, fmt.Errorf(`trigger "file": invalid on[%d] %q: want created, modified or deleted`, i, op)
		}
	}
	if len(f.On) == 0 {
		f.On = operations
	}
	if f.SettleMs != nil && (*f.SettleMs < 0 || *f.SettleMs > maxSettle.Milliseconds()) {
		return f, fmt.Errorf(`trigger "file": invalid settleMs %d: want 0 to %d`, *f.SettleMs, maxSettle.Milliseconds())
	}
	return f, nil
}

func (f fields) ignoreOwn() bool { return f.IgnoreOwn == nil || *f.IgnoreOwn }

func (f fields) settle() time.Duration {
	if f.SettleMs == nil {
		return defaultSettle
	}
	return time.Duration(*f.SettleMs) * time.Millisecond
}

// Check reports problems of the options of t.
func (*Kind) Check(t sentinels.Trigger) error {
	_, err := readFields(t)
	return err
}

// Arm prepares a trigger. It watches files only while Run runs.
func (k *Kind) Arm(t sentinels.Trigger, env triggers.Env) (triggers.Armed, error) {
	f, err := readFields(t)
	if err != nil {
		return nil, err
	}
	if env.Logger == nil {
		env.Logger = slog.New(slog.DiscardHandler)
	}
	if env.Now == nil {
		env.Now = time.Now
	}
	last, err := readState(env.State)
	if err != nil {
		return nil, err
	}
	return &armed{kind: k, fields: f, env: env, last: last}, nil
}

// acquire returns the watcher of a workspace and starts it for the first user.
// The release of the last user stops the watcher and waits until it has ended.
func (k *Kind) acquire(workspace string, logger *slog.Logger) (w *Watcher, release func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.shared[workspace]
	if s == nil {
		opt := k.opt
		opt.Root, opt.Confined = workspace, true
		if opt.Logger == nil {
			opt.Logger = logger
		}
		ctx, cancel := context.WithCancel(context.Background())
		s = &shared{watcher: NewWatcher(opt), cancel: cancel, done: make(chan struct{})}
		k.shared[workspace] = s
		go func() {
			defer close(s.done)
			if err := s.watcher.Run(ctx); err != nil {
				opt.Logger.Error("file watcher failed", "folder", workspace, "error", err)
			}
		}()
	}
	s.users++
	// The entry is deleted before the watcher has ended, so that a new user gets a
	// new watcher with its own source, not one that is about to end.
	return s.watcher, func() {
		k.mu.Lock()
		s.users--
		last := s.users == 0
		if last {
			delete(k.shared, workspace)
		}
		k.mu.Unlock()
		if last {
			s.cancel()
			<-s.done
		}
	}
}

var _ triggers.Kind = (*Kind)(nil)
