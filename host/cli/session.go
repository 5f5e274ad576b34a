package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	stdruntime "runtime"
	"slices"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/host/client"
	"github.com/sentinel-runtime/sentinel/host/config"
	"github.com/sentinel-runtime/sentinel/host/control"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/plugin"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A session is whoever answers this invocation: this process with the store
// open, or the one that has it.
type session struct {
	host   *host.Host // nil when another process has the store
	server *control.Server
	client remote         // nil when this one has it
	live   *client.Client // the same with its live feed; nil unless it serves
	info   control.Info   // of the other process
	away   bool           // that was named by a URL: it may not see our files
	state  string         // folder of the store, also for a scratch session
	temp   string         // folder to remove at the end
	door   *door          // of a process that has the store
}

// close lets other processes in before it lets go of the store: they are answered
// that it ends, and the socket goes while the folder is still ours.
func (s *session) close() error {
	var errs []error
	if s.server != nil {
		errs = append(errs, s.server.Close())
	}
	if s.host != nil {
		errs = append(errs, s.host.Close())
	}
	if s.client != nil {
		s.client.Close()
	}
	if s.live != nil {
		s.live.Close()
	}
	if s.temp != "" {
		errs = append(errs, os.RemoveAll(s.temp))
	}
	return errors.Join(errs...)
}

// closing ends a session at the end of a verb, whose error it leaves alone.
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

// call calls a command with params and decodes the answer into result, unless
// that is nil.
func (s *session) call(ctx context.Context, name string, params, result any) error {
	body, err := json.Marshal(params)
	if err != nil {
		return fmt.Errorf("call %q: %w", name, err)
	}
	answer, err := s.raw(ctx, name, body)
	if err != nil || result == nil {
		return err
	}
	if err := json.Unmarshal(answer, result); err != nil {
		return fmt.Errorf("call %q: read the answer: %w", name, err)
	}
	return nil
}

// raw calls a command wherever it is answered.
func (s *session) raw(ctx context.Context, name string, params json.RawMessage) (json.RawMessage, error) {
	if s.client != nil {
		return s.client.Call(ctx, name, params)
	}
	return s.host.Call(ctx, name, params)
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

// patience is how long a verb waits for a store that a process without a run
// has: a verb that is about to end, or one whose plugins are being compiled. It
// is long for a person, but a script that calls verbs side by side on a busy
// machine has them all wait for one another.
const patience = 15 * time.Second

// connect finds the process that has the store, or opens it. A verb that only
// reads makes no store where there is none.
func (a *app) connect(ctx context.Context, reading bool) (*session, error) {
	return a.connectWith(ctx, reading, a.options())
}

// connectWith is connect with options for the case that this process opens it.
func (a *app) connectWith(ctx context.Context, reading bool, opt host.Options) (*session, error) {
	for began := time.Now(); ; {
		if s, err := a.dial(ctx); !errors.Is(err, control.ErrNoOwner) {
			return s, err
		}
		if _, err := os.Stat(filepath.Join(a.state(), "store.db")); reading && errors.Is(err, os.ErrNotExist) {
			return a.scratch(ctx)
		}
		s, err := a.open(ctx, opt)
		if !errors.Is(err, runtime.ErrHeld) {
			return s, err
		}
		if err := a.again(ctx, began); err != nil {
			return nil, err
		}
	}
}

// seize opens the store for a run. A process that carries out runs keeps it, and
// that is said at once.
func (a *app) seize(ctx context.Context, opt host.Options) (*session, error) {
	for began := time.Now(); ; {
		s, err := a.dial(ctx)
		if err == nil {
			busy := len(s.info.Runs) > 0 || s.info.Serves
			err = s.close()
			if busy {
				return nil, a.held(ctx)
			}
		}
		if err != nil && !errors.Is(err, control.ErrNoOwner) {
			return nil, err
		}
		s, err = a.open(ctx, opt)
		if !errors.Is(err, runtime.ErrHeld) {
			return s, err
		}
		if err := a.again(ctx, began); err != nil {
			return nil, err
		}
	}
}

// again says whether to try once more for a store that is held; opening it has
// waited for its lock already.
func (a *app) again(ctx context.Context, began time.Time) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if time.Since(began) > patience {
		return a.held(ctx)
	}
	return nil
}

// open opens the store in this process and answers others from now on.
func (a *app) open(ctx context.Context, opt host.Options) (*session, error) {
	_, missing := os.Stat(opt.Record)
	h, err := host.Open(ctx, opt)
	if err != nil {
		if errors.Is(err, runtime.ErrHeld) && opt.Record != "" && missing != nil {
			_ = os.Remove(opt.Record) // begun for nothing, and in the way of the next try
		}
		return nil, err
	}
	a.deadPlugins(h)
	s := &session{host: h, state: h.State(), door: new(door)}
	s.server, err = control.Listen(control.ServerOptions{
		State: h.State(), Version: a.env.Version, Logger: opt.Logger,
		Call:     s.answer,
		Commands: func() []control.Command { return commandsOf(h) },
		Runs:     func() []string { return liveRuns(h) },
	})
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// deadPlugins names the plugins that are not live, and why: a step type that is
// missing because its plugin was refused is a riddle otherwise. Verbs that are about
// plugins say it themselves.
func (a *app) deadPlugins(h *host.Host) {
	if a.aboutPlugins {
		return
	}
	for _, p := range h.Runtime().Plugins() {
		if p.Problem != "" {
			a.note("%s plugin %s is not live: %s\n", a.paint.warn("warning:"), p.Source, block(p.Problem))
			if p.State == plugin.Waiting {
				a.hint("sentinel plugin allow " + p.Name)
			}
		}
	}
}

// scratch opens a host on a store of its own that is gone afterwards, for what
// must leave no trace in the project.
func (a *app) scratch(ctx context.Context) (*session, error) {
	temp, err := os.MkdirTemp("", "sentinel-scratch-")
	if err != nil {
		return nil, err
	}
	opt := a.options()
	opt.State = temp
	// The project's own is not made for what must leave no trace in it.
	if dir := a.cache(); isDir(dir) {
		opt.CacheDir = dir
	}
	h, err := host.Open(ctx, opt)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(temp))
	}
	a.deadPlugins(h)
	return &session{host: h, temp: temp, state: a.state()}, nil
}

// cache is where compiled plugins are found and kept, also those that a scratch
// session uses.
func (a *app) cache() string {
	dir, _ := host.CacheDir(a.env.Getenv, a.state()) // why it is not the user's, the host says itself
	return dir
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// held is the error of a verb that needs the store for itself.
func (a *app) held(ctx context.Context) error {
	e := &heldError{
		text: fmt.Sprintf("another process has the store in %s", a.state()),
		hint: "wait until it ends, or use another store with --state DIR",
	}
	s, err := a.dial(ctx)
	if err != nil {
		return e
	}
	defer s.close()
	switch n := len(s.info.Runs); n {
	case 0:
		e.text = fmt.Sprintf("process %d has the store in %s", s.info.PID, a.state())
		if s.info.Serves {
			e.text = fmt.Sprintf("process %d serves the store in %s", s.info.PID, a.state())
			e.hint = "let it carry this out, end it, or use another store with --state DIR"
		}
	case 1:
		e.text = fmt.Sprintf("process %d has the store in %s and executes run %s", s.info.PID, a.state(), s.info.Runs[0])
		e.hint = fmt.Sprintf("wait for it or end it with `sentinel stop%s %s`, or use another store with --state DIR", a.sameStore(), s.info.Runs[0])
	default:
		e.text = fmt.Sprintf("process %d has the store in %s and executes runs %s", s.info.PID, a.state(), strings.Join(s.info.Runs, ", "))
		e.hint = fmt.Sprintf("wait for them or end them with `sentinel stop%s RUN`, or use another store with --state DIR", a.sameStore())
	}
	return e
}

// commandsOf describes the commands of a host to those who cannot see them.
func commandsOf(h *host.Host) []control.Command {
	var list []control.Command
	for _, c := range h.Commands().List() {
		list = append(list, control.Command{Name: c.Name, Summary: c.Summary, Input: c.Input, Output: c.Output, ReadOnly: c.ReadOnly})
	}
	return list
}

// liveRuns returns the runs that h carries out, without those that a run
// started: naming the root is naming them.
func liveRuns(h *host.Host) []string {
	runs, err := h.Runtime().Runs(runtime.RunFilter{})
	if err != nil {
		return nil
	}
	var ids []string
	for i := len(runs) - 1; i >= 0; i-- {
		if r := runs[i]; r.Live && (r.Parent == "" || !contains(runs, r.Parent)) {
			ids = append(ids, string(r.ID))
		}
	}
	return ids
}

// contains reports whether the run id is among the live ones.
func contains(runs []runtime.RunInfo, id sentinels.RunID) bool {
	return slices.ContainsFunc(runs, func(r runtime.RunInfo) bool { return r.ID == id && r.Live })
}

// notFound makes the error of something that is not there.
func notFound(hint, format string, args ...any) error {
	return &abi.Error{Code: abi.NotFound, Message: fmt.Sprintf(format, args...), Hint: hint}
}
