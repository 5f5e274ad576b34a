package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	stdruntime "runtime"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/host/client"
	"github.com/sentinel-runtime/sentinel/host/config"
	"github.com/sentinel-runtime/sentinel/host/control"
	"github.com/sentinel-runtime/sentinel/host/internal/trash"
	"github.com/sentinel-runtime/sentinel/host/internal/trust"
	"github.com/sentinel-runtime/sentinel/host/process"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/plugin"
	"github.com/sentinel-runtime/sentinel/runtime/trace"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// A Session is the way to the engine of one invocation: in this process, or in the
// one that has the store or that SENTINEL_URL names.
type Session struct {
	client.Engine
	Process *process.Process // nil when another process has the store
	Owner   control.Info     // of the other process
	ByURL   bool             // the other process is named by a URL: it does not see our files
	temp    string           // folder to remove at the end
}

// Serves reports whether a server answers, which stays.
func (s *Session) Serves() bool { return s.Owner.Serves }

// close ends the session. A store that this process has open is closed.
func (s *Session) close() error {
	var errs []error
	if s.Process != nil {
		errs = append(errs, s.Process.Close())
	}
	if c, ok := s.Engine.(*client.Client); ok {
		c.Close()
	}
	if s.temp != "" {
		errs = append(errs, trash.Delete(context.Background(), s.temp)) // runs may have written there
	}
	return errors.Join(errs...)
}

// Trace reads all pages of the trace of a run; params are those of sentinel/trace.
func (s *Session) Trace(ctx context.Context, params map[string]any) (tr runtime.Trace, err error) {
	params = maps.Clone(params)
	for {
		var page runtime.Trace
		if err := s.Call(ctx, "sentinel/trace", params, &page); err != nil {
			return tr, err
		}
		tr.Run, tr.Iterations = page.Run, trace.Join(tr.Iterations, page.Iterations)
		if page.Next == "" {
			return tr, nil
		}
		params["after"] = page.Next
	}
}

// CloseSession ends a session at the end of a verb. An error of the verb is kept.
func (a *App) CloseSession(s *Session, err *error) {
	failed := s.close()
	if failed == nil {
		return
	}
	a.ErrorMessage("close: "+failed.Error(), "")
	if *err == nil {
		*err = ExitError(ExitFailed)
	}
}

// HostOptions are what every way of opening a host shares.
func (a *App) HostOptions() host.Options {
	var settings *config.Loaded
	if a.Looks {
		settings, _ = a.Settings() // host.Open reports what is wrong
	}
	return host.Options{
		Set: a.FlagSettings(nil), Settings: settings,
		Dir: a.Dir(), State: a.State(), Workspace: a.Workspace(), Plugins: a.Path(a.Flags.Plugins), AskTrust: true,
		Subreaper: stdruntime.GOOS == "linux", // this program is nothing but a host
		Getenv:    a.Env.Getenv, Logger: a.Logger(),
	}
}

// FlagSettings adds the settings of global flags to those of a verb's own.
func (a *App) FlagSettings(own map[string]string) map[string]string {
	set := map[string]string{}
	maps.Copy(set, own)
	if len(a.Flags.Trust) > 0 {
		var paths []string
		for _, p := range a.Flags.Trust {
			paths = append(paths, a.Path(p))
		}
		set["trust.paths"] = strings.Join(paths, ",")
	}
	return set
}

// ConfigOptions are the options with which verbs load the configuration. own has the
// settings of a verb's own flags by key, and names the names of those flags.
func (a *App) ConfigOptions(own, names map[string]string) config.Options {
	all := map[string]string{"trust.paths": "trust"}
	maps.Copy(all, names)
	return config.Options{Getenv: a.Env.Getenv, Flags: a.FlagSettings(own), FlagNames: all}
}

// Settings loads the configuration as every verb does.
func (a *App) Settings() (*config.Loaded, error) {
	opt := a.ConfigOptions(nil, nil)
	opt.IgnoreUnknown = a.Looks
	l, err := config.Load(opt)
	if err == nil && !a.ignored {
		a.ignored = true
		for _, text := range l.Unknown {
			a.Warn(text + "; this verb ignores it, verbs that execute something refuse it")
		}
	}
	return l, err
}

// Policy returns which files may be obeyed, with their content.
func (a *App) Policy() (*trust.Policy, error) {
	l, err := a.Settings()
	if err != nil {
		return nil, err
	}
	return l.Policy.WithContent(host.Content(a.Dir(), a.Workspace(), l, a.Env.Getenv)), nil
}

// checkTrust returns why a file or folder may not be obeyed.
func (a *App) checkTrust(path string) error {
	p, err := a.Policy()
	if err != nil {
		return err
	}
	return p.Check(path)
}

// Logger returns a logger that shows what concerns the process: trouble always, the rest with -v.
func (a *App) Logger() *slog.Logger {
	level := slog.LevelError
	if a.Flags.Verbose {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(a.Err.Writer, &slog.HandlerOptions{Level: level}))
}

// lockTimeout is how long a verb waits for a store that a process without runs has:
// another verb, or one whose plugins are being compiled. It is long for a person, but
// on a busy machine the verbs of a script that run side by side wait for each other.
const lockTimeout = 15 * time.Second

// Connect returns a session with the process that has the store, or opens the store.
// A verb that only reads creates no store.
func (a *App) Connect(ctx context.Context, reading bool) (*Session, error) {
	for began := time.Now(); ; {
		if s, err := a.dial(ctx); !errors.Is(err, control.ErrNoOwner) {
			return s, err
		}
		if _, err := os.Stat(filepath.Join(a.State(), "store.db")); reading && errors.Is(err, os.ErrNotExist) {
			return a.Scratch(ctx)
		}
		s, err := a.open(ctx, a.HostOptions())
		if !errors.Is(err, runtime.ErrHeld) {
			return s, err
		}
		if err := a.waitForStore(ctx, began); err != nil {
			return nil, err
		}
	}
}

// ConnectForRun returns a session with the process that has the store if that accepts
// runs, or opens the store with opt.
func (a *App) ConnectForRun(ctx context.Context, opt host.Options) (*Session, error) {
	for began := time.Now(); ; {
		s, err := a.dial(ctx)
		switch {
		case err == nil && (s.Owner.Serves || s.Owner.AcceptsRuns):
			return s, nil
		case err == nil: // a verb that is about to end
			err = s.close()
		case errors.Is(err, control.ErrNoOwner):
			if s, err = a.open(ctx, opt); !errors.Is(err, runtime.ErrHeld) {
				return s, err
			}
			err = nil
		}
		if err == nil {
			err = a.waitForStore(ctx, began)
		}
		if err != nil {
			return nil, err
		}
	}
}

// storePoll is the time between two looks at a store that is locked.
const storePoll = 20 * time.Millisecond

// waitForStore waits a moment for a store that is locked, and returns an error when
// ctx or the time is over.
func (a *App) waitForStore(ctx context.Context, began time.Time) error {
	if time.Since(began) > lockTimeout {
		return a.StoreLocked(ctx)
	}
	select {
	case <-time.After(storePoll):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// ByURL reports whether the environment names a server, which does not see our files.
func (a *App) ByURL() bool { return a.Env.Getenv(client.EnvURL) != "" }

// dial returns a session with the server that SENTINEL_URL names, else with the
// process that has the store. The error is [control.ErrNoOwner] if there is neither.
// --state overrides the environment.
func (a *App) dial(ctx context.Context) (*Session, error) {
	if a.Env.Engine != nil {
		return &Session{Engine: a.Env.Engine, Owner: control.Info{Serves: true, AcceptsRuns: true}}, nil
	}
	if a.Flags.State == "" {
		// An invalid URL is an error: the store of this folder would be the wrong place.
		c, named, err := client.FromEnv(a.Env.Getenv)
		if err != nil {
			return nil, err
		}
		if named {
			a.reportThrough("through the server at " + c.URL())
			return &Session{Engine: c, Owner: control.Info{Serves: true, AcceptsRuns: true}, ByURL: true}, nil
		}
	}
	// A user who could have created the socket there would receive every request.
	if err := a.checkTrust(a.State()); err != nil {
		return nil, err
	}
	info, err := control.Owner(ctx, a.State())
	if err != nil {
		return nil, err
	}
	if info.Serves {
		a.reportThrough(fmt.Sprintf("through the server, process %d", info.PID))
	} else {
		a.reportThrough(fmt.Sprintf("process %d has the store and answers", info.PID))
	}
	return &Session{Engine: client.Local(a.State()), Owner: info}, nil
}

// Server describes the server of this project. Its field Serves is false if no server has the store.
func (a *App) Server(ctx context.Context) (control.Info, error) {
	if a.Flags.State == "" && a.ByURL() {
		return control.Info{}, NotFound("look on the machine of the server", "%s names a server, whose log is not served", client.EnvURL)
	}
	if err := a.checkTrust(a.State()); err != nil {
		return control.Info{}, err
	}
	info, err := control.Owner(ctx, a.State())
	if errors.Is(err, control.ErrNoOwner) {
		err = nil
	}
	return info, err
}

// reportThrough reports with -v, once, that another process answers. Without -v it would
// be a line beside every command of a user who has a server.
func (a *App) reportThrough(text string) {
	if !a.Flags.Verbose || a.through {
		return
	}
	a.through = true
	a.Info("%s", text)
}

// open opens the store in this process.
func (a *App) open(ctx context.Context, opt host.Options) (*Session, error) {
	_, missing := os.Stat(opt.Record)
	p, err := process.Open(ctx, process.Options{Host: opt, Version: a.Env.Version})
	if err != nil {
		if errors.Is(err, runtime.ErrHeld) && opt.Record != "" && missing != nil {
			_ = os.Remove(opt.Record) // created by this attempt, and in the way of the next one
		}
		return nil, err
	}
	if m := p.Host().Runtime().Migration(); m != nil {
		a.Info("the store was migrated from format %d to %d; before that it was copied to %s", m.From, m.To, a.Relative(m.Snapshot))
	}
	a.deadPlugins(p)
	return &Session{Engine: p, Process: p}, nil
}

// Scratch opens an engine on a temporary store, for verbs that must not change the
// project.
func (a *App) Scratch(ctx context.Context) (*Session, error) {
	return a.scratch(ctx, a.HostOptions())
}

// ScratchAnyway is Scratch for a verb that has work to do also if the configuration is
// invalid: then it opens the engine with the defaults, and returns why in config.
func (a *App) ScratchAnyway(ctx context.Context) (s *Session, config, err error) {
	s, config = a.Scratch(ctx)
	if config == nil {
		return s, nil, nil
	}
	opt := a.HostOptions()
	if opt.Settings, err = defaultSettings(opt.Set); err != nil {
		return nil, nil, config
	}
	opt.AnyModel = true
	if s, err = a.scratch(ctx, opt); err != nil {
		return nil, nil, config // it was not the configuration
	}
	return s, config, nil
}

// defaultSettings are those without a file and an environment, and with the flags unless
// they are invalid.
func defaultSettings(flags map[string]string) (*config.Loaded, error) {
	opt := config.Options{File: filepath.Join(os.TempDir(), "no-such-folder", "config.json"), Getenv: func(string) string { return "" }, Flags: flags}
	l, err := config.Load(opt)
	if err != nil {
		opt.Flags = nil
		l, err = config.Load(opt)
	}
	return l, err
}

func (a *App) scratch(ctx context.Context, opt host.Options) (*Session, error) {
	temp, err := os.MkdirTemp("", "sentinel-scratch-")
	if err != nil {
		return nil, err
	}
	opt.State = temp
	p, err := process.Open(ctx, process.Options{Host: opt, Version: a.Env.Version, Private: true})
	if err != nil {
		return nil, errors.Join(err, trash.Delete(context.Background(), temp))
	}
	a.deadPlugins(p)
	return &Session{Engine: p, Process: p, temp: temp}, nil
}

// deadPlugins names the plugins that are not live, with the reason: otherwise a step
// type would be unknown without an explanation. Verbs about plugins do it themselves.
func (a *App) deadPlugins(p *process.Process) {
	if a.ReportsPlugins {
		return
	}
	for _, p := range p.Host().Runtime().Plugins() {
		if p.Problem != "" {
			a.PrintErr("%s plugin %s is not live: %s\n", a.Paint.Warn("warning:"), p.Source, Block(p.Problem))
			if p.State == plugin.Waiting {
				a.Hint("sentinel plugin allow " + p.Name)
			}
		}
	}
}

// CacheDir is the folder of compiled plugins; "" if the user has none.
func (a *App) CacheDir() string {
	dir, _ := host.CacheDir(a.Env.Getenv) // the host itself reports why there is none
	return dir
}

func IsDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// StoreLocked returns the error of a verb that needs the store for itself.
func (a *App) StoreLocked(ctx context.Context) error {
	e := &heldError{
		text: fmt.Sprintf("another process has the store in %s", a.State()),
		hint: "wait until it ends, or use another store with --state DIR",
	}
	owner, err := control.Owner(ctx, a.State())
	if err != nil {
		return e
	}
	switch n := len(owner.Runs); {
	case owner.Serves:
		e.text = fmt.Sprintf("process %d serves the store in %s", owner.PID, a.State())
		e.hint = "end it, or use another store with --state DIR"
	case n == 0:
		e.text = fmt.Sprintf("process %d has the store in %s", owner.PID, a.State())
	case n == 1:
		e.text = fmt.Sprintf("process %d has the store in %s and executes run %s", owner.PID, a.State(), owner.Runs[0])
		e.hint = fmt.Sprintf("wait for it or end it with `sentinel stop%s %s`, or use another store with --state DIR", a.SameStore(), owner.Runs[0])
	default:
		e.text = fmt.Sprintf("process %d has the store in %s and executes runs %s", owner.PID, a.State(), strings.Join(owner.Runs, ", "))
		e.hint = fmt.Sprintf("wait for them or end them with `sentinel stop%s RUN`, or use another store with --state DIR", a.SameStore())
	}
	return e
}

// NotFound returns the error of something that does not exist.
func NotFound(hint, format string, args ...any) error {
	return &abi.Error{Code: abi.NotFound, Message: fmt.Sprintf(format, args...), Hint: hint}
}

// Denied is the error of something that is not allowed, with a hint.
func Denied(hint, format string, args ...any) error {
	return &abi.Error{Code: abi.Denied, Message: fmt.Sprintf(format, args...), Hint: hint}
}

// reconnectTimeout is how long the process that executes a followed run may be
// unreachable. A server may be restarted meanwhile and has the default of package
// client; any other process that has ended does not return.
const reconnectTimeout = time.Second

// WatchOptions are those of a watch of topics.
func (s *Session) WatchOptions(cursor string, topics ...string) client.WatchOptions {
	opt := client.WatchOptions{Topics: topics, Cursor: cursor}
	if !s.Serves() {
		opt.Patience = reconnectTimeout
	}
	return opt
}
