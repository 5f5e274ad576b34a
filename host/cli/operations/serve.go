package operations

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/lmittmann/tint"
	"github.com/spf13/cobra"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/host/cli/app"
	"github.com/sentinel-runtime/sentinel/host/config"
	"github.com/sentinel-runtime/sentinel/host/internal/sdnotify"
	"github.com/sentinel-runtime/sentinel/host/internal/termtext"
	"github.com/sentinel-runtime/sentinel/host/logfile"
	"github.com/sentinel-runtime/sentinel/host/ops/doctor"
	"github.com/sentinel-runtime/sentinel/host/serve"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// serveFlags are settings that have flags of their own; package config has them
// all, with the variables of the environment.
var serveFlags = []struct{ name, key, doc string }{
	{"listen", "serve.listen", "address of the API, HOST:PORT; none for the socket alone"},
	{"tls-cert", "serve.tlsCert", "file with the certificate for TLS"},
	{"tls-key", "serve.tlsKey", "file with its key"},
	{"drain", "serve.drain", "how long steps may go on when the process is asked to end"},
	{"log-level", "logs.level", "debug, info, warn, error"},
	{"log-format", "logs.format", "text, json"},
	{"log-file", "logs.file", "file for the log, rotated"},
}

// serveCommand is the host process. It differs from other verbs in that it
// stays, so it logs rather than talks.
func (a verbs) serveCommand() *cobra.Command {
	values := map[string]*string{}
	var hosts []string
	var noAuth, elsewhere bool
	var opt host.Options
	c := &cobra.Command{
		Use: "serve [DIR]", Short: "Serve a folder: triggers, live edits, API, recovery",
		Long: "Loads DIR/sentinels/*.json, DIR/recipes and DIR/plugins and follows what changes in them,\n" +
			"resumes every run that has not ended, fires triggers, and serves the API. DIR is the\n" +
			"nearest .sentinel folder if it is not given. Ctrl-C or SIGTERM lets steps under way end,\n" +
			"a second one ends at once; nothing that was acknowledged is lost either way.",
		Example: "  sentinel serve\n  sentinel serve /srv/ci/.sentinel --listen 127.0.0.1:9000",
		Args:    app.RangeArgs(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			set := map[string]string{}
			for _, f := range serveFlags {
				if cmd.Flags().Changed(f.name) {
					set[f.key] = strings.TrimPrefix(*values[f.name], "none")
				}
			}
			if noAuth {
				set["serve.noAuth"] = "true"
			}
			if elsewhere {
				set["serve.tlsElsewhere"] = "true"
			}
			if len(hosts) > 0 {
				set["serve.hosts"] = strings.Join(hosts, ",")
			}
			if len(args) > 0 {
				a.ServedDir = app.ProjectDir(a.Path(args[0]))
			}
			opt.Set = set
			if err := a.AskTrust(cmd.Context()); err != nil {
				return err
			}
			return a.serve(cmd.Context(), opt)
		},
	}
	for _, f := range serveFlags {
		values[f.name] = c.Flags().String(f.name, "", f.doc)
	}
	c.Flags().StringSliceVar(&hosts, "host", nil, "further name under which the API may be asked; repeatable")
	c.Flags().BoolVar(&elsewhere, "tls-elsewhere", false, "a proxy on another machine speaks TLS for a public address")
	c.Flags().BoolVar(&noAuth, "no-auth", false, "ask no token; only on a loopback address")
	c.Flags().StringVar(&opt.Model, "model", "", "model for steps that name none, provider/name")
	c.Flags().StringVar(&opt.Replay, "replay", "", "answer from this cassette file in place of models")
	c.Flags().StringVar(&opt.Record, "record", "", "write what models answer to this new cassette file")
	return c
}

// refused names the process that has the store, if that is the error.
func (a verbs) refused(ctx context.Context, err error) error {
	if errors.Is(err, runtime.ErrHeld) {
		return a.StoreLocked(ctx)
	}
	return err
}

// serve runs the host process until it is asked to end.
func (a verbs) serve(ctx context.Context, more host.Options) (err error) {
	opt := a.HostOptions()
	opt.Model, opt.Replay, opt.Record = more.Model, a.Path(more.Replay), a.Path(more.Record)
	names := map[string]string{"serve.noAuth": "no-auth", "serve.tlsElsewhere": "tls-elsewhere", "serve.hosts": "host"}
	for _, f := range serveFlags {
		names[f.key] = f.name
	}
	settled, err := config.Load(a.ConfigOptions(more.Set, names))
	if err != nil {
		return err
	}
	opt.Settings = settled
	log, place, closeLog, err := a.serveLog(settled.Logs)
	if err != nil {
		return err
	}
	defer closeLog()
	opt.Logger = log
	if a.Env.Exposed != nil && !errors.Is(a.Env.Exposed, errors.ErrUnsupported) {
		log.Warn("other processes of this user can read the variables of this process", "error", a.Env.Exposed)
	}
	if err := doctor.LocalZone(); err != nil {
		log.Warn("schedules without a time zone follow UTC", "error", err)
	}
	log.Info("opening", "dir", a.Dir())
	s, err := serve.Open(ctx, serve.Options{
		Host: opt, Version: a.Env.Version, Logger: log, LogPlace: place,
		Ready: func(start serve.Start) {
			a.serving(log, start)
			a.notifyManager(log, sdnotify.Ready, sdnotify.Status(fmt.Sprintf("serving %s", a.Dir())))
		},
		Stopping: func() {
			a.notifyManager(log, sdnotify.Stopping)
			log.Info("stopping: steps under way may end, a second signal ends at once", "drain", settled.Serve.Drain.String())
		},
	})
	if errors.Is(err, app.ErrInterrupted) { // a signal to a server is not a failure, also before it serves
		log.Info("stopped before it served")
		return nil
	}
	if err != nil {
		return a.refused(ctx, err)
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	a.SetInterrupt(stop)
	defer a.SetInterrupt(nil)
	if err := s.Run(ctx); err != nil {
		return err
	}
	log.Info("stopped")
	return nil
}

// notifyManager sends the state of this process to the service manager, if there is one.
// Without it the manager may assume that the process hangs, so a failure is logged.
func (a verbs) notifyManager(log *slog.Logger, states ...string) {
	if err := sdnotify.Send(a.Env.Getenv, states...); err != nil {
		log.Warn("the service manager cannot be notified", "error", err)
	}
}

// serving logs what was found and where the API is.
func (a verbs) serving(log *slog.Logger, start serve.Start) {
	r := start.Recovery
	log.Info("serving", "dir", a.Dir(), "url", start.URL, "definitions", start.Files, "problems", start.Problems, "took", start.Took.Round(time.Millisecond))
	if start.Verifier != "" {
		log.Info("verifying on a port of its own", "url", start.Verifier)
	}
	if start.Unclean {
		log.Warn("the process before this one did not end by itself", "resumed", r.Resumed, "inDoubt", len(r.InDoubt), "quarantined", len(r.Quarantined))
	} else if r.Resumed > 0 {
		log.Info("runs go on", "resumed", r.Resumed, "waiting", r.Waiting, "paused", r.Paused)
	}
	recovered(log, r)
	if a.Env.StderrTerminal {
		a.Info("sentinels go into %s; look with `sentinel list`, ask the API with the token of `sentinel token`", filepath.Join(a.Dir(), "sentinels"))
	}
}

// recovered logs what is left to decide after a crash: one line for all calls
// that were cut off and one for all quarantined runs, since there may be
// thousands. At level debug each has a line of its own.
func recovered(log *slog.Logger, r runtime.Recovery) {
	runs, asks := map[sentinels.RunID]bool{}, 0
	for _, d := range r.InDoubt {
		runs[d.Run] = true
		if d.Choice == sentinels.InterruptAsk {
			asks++
		}
		log.Debug("a call was cut off", "run", d.Run, "step", d.Step, "what", d.What, "choice", d.Choice,
			"decide", fmt.Sprintf("sentinel decide %s %s retry|skip|fail", d.Run, d.Call))
	}
	if len(r.InDoubt) > 0 {
		log.Warn("calls were cut off", "calls", len(r.InDoubt), "runs", len(runs), "ask", asks,
			"look", "sentinel list --status waiting names the runs that wait for a decision; --log-level debug names every call")
	}
	for _, q := range r.Quarantined {
		log.Debug("a run is quarantined", "run", q.Run, "step", q.Step, "crashes", q.Crashes)
	}
	if len(r.Quarantined) > 0 {
		log.Error("runs are quarantined: a step of each was executing at too many crashes", "runs", len(r.Quarantined),
			"look", "sentinel list --status quarantined; sentinel resume RUN --comment WHY lets one go on")
	}
}

// serveLog makes the log of the process.
func (a verbs) serveLog(l config.Logs) (*slog.Logger, logfile.Place, func(), error) {
	to := a.Err.Writer // the handlers below escape
	done := func() {}
	place := a.stderrPlace()
	if l.File != "" {
		w, err := logfile.Open(a.Path(l.File), logfile.Options{Size: int64(l.Size), Keep: l.Keep, Age: l.Age.Std()})
		switch {
		case runtime.IsDiskFull(err): // no reason not to serve
			a.ErrorMessage(err.Error(), "this process logs here; make space on the disk and start it again")
			l.File = ""
		case err != nil:
			return nil, place, nil, err
		default:
			place = logfile.Place{File: a.Path(l.File)}
			to, done = w, func() {
				if err := w.Close(); err != nil {
					a.ErrorMessage("close log: "+err.Error(), "")
				}
			}
		}
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(l.Level)); err != nil {
		return nil, place, nil, err
	}
	if a.Flags.Verbose {
		level = slog.LevelDebug
	}
	opt := &slog.HandlerOptions{Level: level}
	if l.Format == "json" {
		return slog.New(slog.NewJSONHandler(termtext.NewJSONWriter(to), opt)), place, done, nil
	}
	if l.File == "" && a.Env.StderrTerminal {
		return slog.New(termtext.NewHandler(tint.NewTextHandler(to, &tint.Options{Level: level, TimeFormat: time.TimeOnly, NoColor: !bool(a.Paint)}))), place, done, nil
	}
	return slog.New(slog.NewTextHandler(to, opt)), place, done, nil
}

// stderrPlace returns where standard error goes: a file that a shell has redirected it to, or the journal of
// systemd. It is found on Linux alone.
func (a verbs) stderrPlace() (p logfile.Place) {
	f, ok := a.Err.Writer.(*os.File)
	if !ok {
		return p
	}
	target, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
	if err != nil {
		return p
	}
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
		return logfile.Place{File: target}
	}
	// The variable is inherited by programs whose standard error is something else, so its inode counts.
	_, inode, ok := strings.Cut(a.Env.Getenv("JOURNAL_STREAM"), ":")
	if !ok || target != "socket:["+inode+"]" {
		return p
	}
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return p
	}
	return unitOf(string(groups))
}

// unitOf returns the journal of the service of systemd that a process with these control groups belongs to.
func unitOf(groups string) (p logfile.Place) {
	for line := range strings.Lines(groups) {
		parts := strings.Split(strings.TrimSpace(line), "/")
		for _, part := range parts {
			if strings.HasSuffix(part, ".service") {
				p.User = p.User || strings.HasPrefix(part, "user@")
				p.Unit = part // the innermost one
			}
		}
		if p.Unit != "" {
			return p
		}
	}
	return p
}
