package cli

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// runFlags are those of the verbs that carry out a run here.
type runFlags struct {
	vars, inputs []string
	inputsFile   string
	event        string
	resume       string
	onInterrupt  string
	model        string
	record       string
	replay       string
	dryRun       bool
	pinned       bool
	comment      string
	limits       roomFlags
}

// hostFlags are those that say how a run is carried out, whatever run it is.
func (f *runFlags) hostFlags(fs *pflag.FlagSet) {
	fs.StringVar(&f.onInterrupt, "on-interrupt", "", "for calls that a crash cut off: retry, fail, ask")
	fs.StringVar(&f.model, "model", "", "model for steps that name none, provider/name")
	fs.StringVar(&f.record, "record", "", "write what models answer to this new cassette file")
	fs.StringVar(&f.replay, "replay", "", "answer from this cassette file in place of models, and report what differed")
	fs.StringVar(&f.limits.iterations, "max-iterations", "", "with a resume: this many more iterations, +N")
	fs.StringVar(&f.limits.timeout, "timeout", "", "with a resume: this much more time, +DURATION")
	fs.StringVar(&f.limits.usd, "budget-usd", "", "with a resume: this much more money, +X")
	fs.StringVar(&f.limits.tokens, "budget-tokens", "", "with a resume: this many more tokens, +N")
	fs.StringVar(&f.limits.calls, "budget-calls", "", "with a resume: this many more model calls, +N")
	fs.StringVar(&f.comment, "comment", "", "with a resume: why; a quarantined run goes on only with a reason")
}

// startFlags are those that say what a new run begins with.
func (f *runFlags) startFlags(fs *pflag.FlagSet) {
	fs.StringArrayVar(&f.vars, "var", nil, "NAME=VALUE: an input where the sentinel declares it, else a variable; repeatable")
	fs.StringArrayVar(&f.inputs, "input", nil, "NAME=VALUE: an input; repeatable")
	fs.StringVar(&f.inputsFile, "inputs", "", "file with a JSON object of inputs")
	fs.StringVar(&f.event, "event", "", "what $event is: JSON, or @FILE")
	fs.BoolVar(&f.pinned, "pinned", false, "stay on this revision when the stored sentinel is edited")
}

// runCommand is the verb that most people use. --resume takes the place of the
// argument, because a run knows its definition.
func (a *app) runCommand() *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use:   "run FILE|NAME",
		Short: "Run a sentinel here and show it live",
		Long: "Runs the sentinel of a file, of standard input (-), or of a name: that of a file in\n" +
			"the project's sentinels folder, or of a stored sentinel. Its trigger does not matter.",
		Example: "  sentinel run build-fix.json --var build='go build ./...'\n" +
			"  sentinel run build-fix.json --dry-run\n" +
			"  sentinel run --resume 3f9a01bc --max-iterations +5",
		Args: func(cmd *cobra.Command, args []string) error {
			if f.resume != "" {
				return exactly()(cmd, args)
			}
			return exactly("FILE or NAME")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(); err != nil {
				return err
			}
			switch {
			case f.resume != "":
				return a.resumeRun(cmd.Context(), &f)
			case f.dryRun:
				return a.dryRun(cmd.Context(), args[0], &f)
			}
			return a.startRun(cmd.Context(), args[0], &f)
		},
	}
	f.startFlags(c.Flags())
	f.hostFlags(c.Flags())
	c.Flags().StringVar(&f.resume, "resume", "", "take up this run where it was")
	c.Flags().BoolVar(&f.dryRun, "dry-run", false, "show what the run would be made of, and do nothing")
	return c
}

// check refuses flags that mean nothing together.
func (f *runFlags) check() error {
	switch f.onInterrupt {
	case "", "retry", "fail", "ask":
	default:
		return &usageError{fmt.Sprintf("--on-interrupt %q is no choice", f.onInterrupt), "the choices are retry, fail and ask"}
	}
	if f.record != "" && f.replay != "" {
		return &usageError{"--record and --replay exclude each other", ""}
	}
	room, err := f.limits.room()
	if err != nil {
		return err
	}
	if f.resume == "" && f.comment != "" {
		return &usageError{"--comment goes with --resume RUN", ""}
	}
	if f.resume == "" && room != (runtime.LimitExtension{}) {
		return &usageError{"more room for a run needs --resume RUN", "the limits of a new run are in its definition, under safety and budget"}
	}
	if f.resume != "" && (f.dryRun || f.pinned || f.event != "" || f.inputsFile != "" || len(f.vars)+len(f.inputs) > 0) {
		return &usageError{"--resume takes a run up as it is: no inputs, variables, event, --pinned or --dry-run", ""}
	}
	return nil
}

// openRun opens the store for a run that this process carries out.
func (a *app) openRun(ctx context.Context, f *runFlags) (*session, *feed, error) {
	told := newFeed()
	opt := a.options()
	opt.Model, opt.Record, opt.Replay = f.model, a.path(f.record), a.path(f.replay)
	opt.Append = f.resume != ""
	opt.OnInterrupt = sentinels.Interrupt(f.onInterrupt)
	opt.Observer = runtime.Observer{Progress: told.put}
	s, err := a.seize(ctx, opt)
	return s, told, err
}

// startRun reads the file before it opens the store: a typing error must not cost a
// second, nor make a folder.
func (a *app) startRun(ctx context.Context, target string, f *runFlags) (err error) {
	there, err := a.dialServer(ctx)
	if err != nil {
		return err
	}
	if there != nil {
		defer a.closing(there, &err)
		return a.carryThere(ctx, there, func() (sentinels.RunID, error) { return a.startThere(ctx, there, target, f) })
	}
	src, err := a.readSource(target)
	if err != nil {
		return err
	}
	s, told, err := a.openRun(ctx, f)
	if err != nil {
		return err
	}
	defer a.closing(s, &err)
	rt := s.host.Runtime()
	found, err := a.find(rt, target, src)
	if err != nil {
		return err
	}
	g, err := a.values(found.def, f)
	if err != nil {
		return err
	}
	a.problems(a.warnings(rt, found, names(g.variables)...))
	begin := func() (sentinels.RunID, error) {
		return rt.Start(ctx, found.def, runtime.StartOptions{
			Inputs: g.inputs, Variables: g.variables, Event: g.event, Workspace: a.base(found),
			Revision: found.revision, Pinned: f.pinned, OnInterrupt: sentinels.Interrupt(f.onInterrupt),
		})
	}
	return a.carryOut(ctx, s, told, begin)
}

// base is the folder that a run's workspace starts from: a relative one in a
// file is relative to that file.
func (a *app) base(f found) string {
	if a.flags.workspace == "" && f.def.Workspace != "" && !filepath.IsAbs(f.def.Workspace) {
		return f.source.base
	}
	return a.workspace()
}

// resumeRun takes a run up from its journal, with more room if that is given. The
// engine says what is missing.
func (a *app) resumeRun(ctx context.Context, f *runFlags) (err error) {
	there, err := a.dialServer(ctx)
	if err != nil {
		return err
	}
	if there != nil {
		defer a.closing(there, &err)
		return a.resumeServed(ctx, there, f.resume, f)
	}
	room, err := f.limits.room()
	if err != nil {
		return err
	}
	s, told, err := a.openRun(ctx, f)
	if err != nil {
		return err
	}
	defer a.closing(s, &err)
	id, err := a.runID(ctx, s, f.resume)
	if err != nil {
		return err
	}
	if info, err := s.host.Runtime().Status(id); err == nil && info.Status.Final() {
		return a.over(ctx, s, info)
	}
	begin := func() (sentinels.RunID, error) {
		return id, s.host.Runtime().Resume(ctx, id, runtime.ResumeOptions{
			Extension: room, OnInterrupt: sentinels.Interrupt(f.onInterrupt), By: a.user(), Comment: f.comment,
		})
	}
	return a.carryOut(ctx, s, told, begin)
}

// over shows how a run ended that there is nothing to resume of: it may have
// ended just before its process did, and who asks wants to know how.
func (a *app) over(ctx context.Context, s *session, info runtime.RunInfo) error {
	a.say("run %s is over: %s", info.ID, info.Status)
	res, err := s.host.Runtime().Wait(ctx, info.ID)
	if err != nil {
		return err
	}
	return a.ended(outcome{Result: res})
}

// user is who sits at this terminal.
func (a *app) user() string {
	for _, name := range []string{"USER", "LOGNAME"} {
		if v := a.env.Getenv(name); v != "" {
			return v
		}
	}
	return "user"
}
