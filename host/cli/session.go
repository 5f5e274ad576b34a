package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	stdruntime "runtime"
	"strconv"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/host/client"
	"github.com/sentinel-runtime/sentinel/host/config"
	"github.com/sentinel-runtime/sentinel/host/control"
	"github.com/sentinel-runtime/sentinel/host/process"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/plugin"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// A session is the way to the engine of one invocation: in this process, or in the
// one that has the store or that SENTINEL_URL names.
type session struct {
	client.Engine
	process *process.Process // nil when another process has the store
	owner   control.Info     // of the other process
	url     bool             // the other process is named by a URL: it does not see our files
	temp    string           // folder to remove at the end
}

// serves reports whether a server answers, which stays.
func (s *session) serves() bool { return s.owner.Serves }

// close ends the session. A store that this process has open is closed.
func (s *session) close() error {
	var errs []error
	if s.process != nil {
		errs = append(errs, s.process.Close())
	}
	if c, ok := s.Engine.(*client.Client); ok {
		c.Close()
	}
	if s.temp != "" {
		errs = append(errs, os.RemoveAll(s.temp))
	}
	return errors.Join(errs...)
}

// closing ends a session at the end of a verb. An error of the verb is kept.
func (a *app) closing(s *session, err *error) {
	failed := s.close()
	if failed == nil {
		return
	}
	a.complain("close: "+failed.Error(), "")
	if *err == nil {
		*err = exitError(ExitFailed)
	}
}

// options are what every way of opening a host shares.
func (a *app) options() host.Options {
	return host.Options{
		Set: a.set(nil),
		Dir: a.dir(), State: a.state(), Workspace: a.workspace(), Plugins: a.path(a.flags.plugins),
		Subreaper: stdruntime.GOOS == "linux", // this program is nothing but a host
		Getenv:    a.env.Getenv, Logger: a.logger(),
	}
}

// set adds the settings of global flags to those of a verb's own.
func (a *app) set(own map[string]string) map[string]string {
	set := map[string]string{}
	maps.Copy(set, own)
	if len(a.flags.trust) > 0 {
		var paths []string
		for _, p := range a.flags.trust {
			paths = append(paths, a.path(p))
		}
		set["trust.paths"] = strings.Join(paths, ",")
	}
	return set
}

// settings loads the configuration as every verb does.
func (a *app) settings() (*config.Loaded, error) {
	return config.Load(config.Options{Getenv: a.env.Getenv, Flags: a.set(nil)})
}

// checkTrust returns why a file or folder may not be obeyed.
func (a *app) checkTrust(path string) error {
	l, err := a.settings()
	if err != nil {
		return err
	}
	return l.Policy.Check(path)
}

// logger shows what concerns the process: trouble always, the rest with -v.
func (a *app) logger() *slog.Logger {
	level := slog.LevelError
	if a.flags.verbose {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(a.errs.to, &slog.HandlerOptions{Level: level}))
}

// lockTimeout is how long a verb waits for a store that a process without runs has:
// another verb, or one whose plugins are being compiled. It is long for a person, but
// on a busy machine the verbs of a script that run side by side wait for each other.
const lockTimeout = 15 * time.Second

// connect returns a session with the process that has the store, or opens the store.
// A verb that only reads creates no store.
func (a *app) connect(ctx context.Context, reading bool) (*session, error) {
	for began := time.Now(); ; {
		if s, err := a.dial(ctx); !errors.Is(err, control.ErrNoOwner) {
			return s, err
		}
		if _, err := os.Stat(filepath.Join(a.state(), "store.db")); reading && errors.Is(err, os.ErrNotExist) {
			return a.scratch(ctx)
		}
		s, err := a.open(ctx, a.options())
		if !errors.Is(err, runtime.ErrHeld) {
			return s, err
		}
		if err := a.waitForStore(ctx, began); err != nil {
			return nil, err
		}
	}
}

// connectForRun returns a session with the process that has the store if that accepts
// runs, or opens the store with opt.
func (a *app) connectForRun(ctx context.Context, opt host.Options) (*session, error) {
	for began := time.Now(); ; {
		s, err := a.dial(ctx)
		switch {
		case err == nil && (s.owner.Serves || s.owner.AcceptsRuns):
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
func (a *app) waitForStore(ctx context.Context, began time.Time) error {
	if time.Since(began) > lockTimeout {
		return a.held(ctx)
	}
	select {
	case <-time.After(storePoll):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// dial returns a session with the server that SENTINEL_URL names, else with the
// process that has the store. The error is [control.ErrNoOwner] if there is neither.
// --state overrides the environment.
func (a *app) dial(ctx context.Context) (*session, error) {
	if a.flags.state == "" {
		// An invalid URL is an error: the store of this folder would be the wrong place.
		c, named, err := client.FromEnv(a.env.Getenv)
		if err != nil {
			return nil, err
		}
		if named {
			a.sayThrough("through the server at " + c.URL())
			return &session{Engine: c, owner: control.Info{Serves: true, AcceptsRuns: true}, url: true}, nil
		}
	}
	// A user who could have created the socket there would receive every request.
	if err := a.checkTrust(a.state()); err != nil {
		return nil, err
	}
	info, err := control.Owner(ctx, a.state())
	if err != nil {
		return nil, err
	}
	switch {
	case info.Serves:
		a.sayThrough("through the server, process " + strconv.Itoa(info.PID))
	case a.flags.verbose:
		a.say("process %d has the store and answers", info.PID)
	}
	return &session{Engine: client.Local(a.state()), owner: info}, nil
}

// sayThrough reports once that another process answers: otherwise a user who forgot
// the server would not understand the output.
func (a *app) sayThrough(text string) {
	if a.through || a.flags.quiet || a.flags.output != asTable {
		return
	}
	a.through = true
	a.note("%s\n", a.paint.dim(escaped(text)))
}

// open opens the store in this process.
func (a *app) open(ctx context.Context, opt host.Options) (*session, error) {
	_, missing := os.Stat(opt.Record)
	p, err := process.Open(ctx, process.Options{Host: opt, Version: a.env.Version})
	if err != nil {
		if errors.Is(err, runtime.ErrHeld) && opt.Record != "" && missing != nil {
			_ = os.Remove(opt.Record) // created by this attempt, and in the way of the next one
		}
		return nil, err
	}
	a.deadPlugins(p)
	return &session{Engine: p, process: p}, nil
}

// scratch opens an engine on a temporary store, for verbs that must not change the
// project.
func (a *app) scratch(ctx context.Context) (*session, error) {
	temp, err := os.MkdirTemp("", "sentinel-scratch-")
	if err != nil {
		return nil, err
	}
	opt := a.options()
	opt.State = temp
	// The cache of the project is used, but not created.
	if dir := a.cache(); isDir(dir) {
		opt.CacheDir = dir
	}
	p, err := process.Open(ctx, process.Options{Host: opt, Version: a.env.Version, Private: true})
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(temp))
	}
	a.deadPlugins(p)
	return &session{Engine: p, process: p, temp: temp}, nil
}

// deadPlugins names the plugins that are not live, with the reason: otherwise a step
// type would be unknown without an explanation. Verbs about plugins do it themselves.
func (a *app) deadPlugins(p *process.Process) {
	if a.aboutPlugins {
		return
	}
	for _, p := range p.Host().Runtime().Plugins() {
		if p.Problem != "" {
			a.note("%s plugin %s is not live: %s\n", a.paint.warn("warning:"), p.Source, block(p.Problem))
			if p.State == plugin.Waiting {
				a.hint("sentinel plugin allow " + p.Name)
			}
		}
	}
}

// cache is the folder of compiled plugins, also for a scratch session.
func (a *app) cache() string {
	dir, _ := host.CacheDir(a.env.Getenv, a.state()) // the host itself reports why it is not the user's
	return dir
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// held returns the error of a verb that needs the store for itself.
func (a *app) held(ctx context.Context) error {
	e := &heldError{
		text: fmt.Sprintf("another process has the store in %s", a.state()),
		hint: "wait until it ends, or use another store with --state DIR",
	}
	owner, err := control.Owner(ctx, a.state())
	if err != nil {
		return e
	}
	switch n := len(owner.Runs); n {
	case 0:
		e.text = fmt.Sprintf("process %d has the store in %s", owner.PID, a.state())
		if owner.Serves {
			e.text = fmt.Sprintf("process %d serves the store in %s", owner.PID, a.state())
			e.hint = "end it, or use another store with --state DIR"
		}
	case 1:
		e.text = fmt.Sprintf("process %d has the store in %s and executes run %s", owner.PID, a.state(), owner.Runs[0])
		e.hint = fmt.Sprintf("wait for it or end it with `sentinel stop%s %s`, or use another store with --state DIR", a.sameStore(), owner.Runs[0])
	default:
		e.text = fmt.Sprintf("process %d has the store in %s and executes runs %s", owner.PID, a.state(), strings.Join(owner.Runs, ", "))
		e.hint = fmt.Sprintf("wait for them or end them with `sentinel stop%s RUN`, or use another store with --state DIR", a.sameStore())
	}
	return e
}

// notFound returns the error of something that does not exist.
func notFound(hint, format string, args ...any) error {
	return &abi.Error{Code: abi.NotFound, Message: fmt.Sprintf(format, args...), Hint: hint}
}

// reconnectTimeout is how long the process that executes a followed run may be
// unreachable. A server may be restarted meanwhile and has the default of package
// client; any other process that is gone does not come back.
const reconnectTimeout = time.Second

// watchOptions are those of a watch of topics.
func (s *session) watchOptions(cursor string, topics ...string) client.WatchOptions {
	opt := client.WatchOptions{Topics: topics, Cursor: cursor}
	if !s.serves() {
		opt.Patience = reconnectTimeout
	}
	return opt
}
