package run

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sentinel-runtime/sentinel/host/cli/app"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// runFlags are the flags of the verbs that execute a run.
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
	force        bool
	comment      string
	movesTo      string // folder that a resumed run works in from now on
	limits       extensionFlags
}

// hostFlags adds the flags for how any run is executed.
func (f *runFlags) hostFlags(fs *pflag.FlagSet) {
	fs.StringVar(&f.onInterrupt, "on-interrupt", "", "for calls that a crash interrupted: retry, fail, ask")
	fs.StringVar(&f.model, "model", "", "model for steps that name none, provider/name")
	fs.StringVar(&f.record, "record", "", "write what models answer to this new cassette file")
	fs.StringVar(&f.replay, "replay", "", "answer from this cassette file in place of models, and report what differed")
	fs.StringVar(&f.limits.iterations, "max-iterations", "", "with a resume: this many more iterations, +N")
	fs.StringVar(&f.limits.timeout, "timeout", "", "with a resume: this much more time, +DURATION")
	fs.StringVar(&f.limits.usd, "budget-usd", "", "with a resume: this much more money, +X")
	fs.StringVar(&f.limits.tokens, "budget-tokens", "", "with a resume: this many more tokens, +N")
	fs.StringVar(&f.limits.calls, "budget-calls", "", "with a resume: this many more model calls, +N")
	fs.StringVar(&f.comment, "comment", "", "with a resume: why; a quarantined run needs a reason")
}

// startFlags adds the flags for what a new run begins with.
func (f *runFlags) startFlags(fs *pflag.FlagSet) {
	fs.StringArrayVar(&f.vars, "var", nil, "NAME=VALUE: an input where the sentinel declares it, else a variable; VALUE as with --input; repeatable")
	fs.StringArrayVar(&f.inputs, "input", nil, "NAME=VALUE: an input; @FILE is the content of a file, @- standard input, @@ a text that begins with @; repeatable")
	fs.StringVar(&f.inputsFile, "inputs", "", "file with a JSON object of inputs")
	fs.StringVar(&f.event, "event", "", "data of $event: JSON, @FILE or @-; {\"ok\": 7} is $event.data.ok, and $event.ok too")
	fs.BoolVar(&f.pinned, "pinned", false, "stay on this revision when the stored sentinel is edited")
	f.forceFlag(fs)
}

func (f *runFlags) forceFlag(fs *pflag.FlagSet) {
	fs.BoolVar(&f.force, "force", false, "start beside active runs, whatever concurrency of the definition says")
}

// runCommand is the verb that most people use. --resume takes the place of the
// argument, because a run knows its definition.
func (a verbs) runCommand() *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use:   "run FILE|NAME",
		Short: "Run a sentinel here and show it live",
		Long: "Runs the sentinel of a file, of standard input (-), or of a name: that of a file in\n" +
			"the project's sentinels folder, or of a stored sentinel. Its triggers do not matter.",
		Example: "  sentinel run build-fix.json --var build='go build ./...'\n" +
			"  sentinel run build-fix.json --dry-run\n" +
			"  sentinel run --resume 3f9a01bc --max-iterations +5",
		Args: func(cmd *cobra.Command, args []string) error {
			if f.resume != "" {
				return app.ExactArgs()(cmd, args)
			}
			return app.ExactArgs("FILE or NAME")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(); err != nil {
				return err
			}
			if err := a.AskTrust(cmd.Context()); err != nil {
				return err
			}
			switch {
			case f.resume != "":
				return a.resumeRun(cmd.Context(), &f)
			case f.dryRun:
				return a.dryRun(cmd.Context(), args[0], &f)
			}
			start, err := a.starter(args[0], &f)
			if err != nil {
				return err
			}
			return a.execute(cmd.Context(), &f, func(s *app.Session) (sentinels.RunID, error) { return start(cmd.Context(), s) })
		},
	}
	f.startFlags(c.Flags())
	f.hostFlags(c.Flags())
	c.Flags().StringVar(&f.resume, "resume", "", "continue this run where it was")
	c.Flags().BoolVar(&f.dryRun, "dry-run", false, "show the plan of the run, and execute nothing")
	return c
}

// check rejects combinations of flags without a meaning.
func (f *runFlags) check() error {
	switch f.onInterrupt {
	case "", "retry", "fail", "ask":
	default:
		return app.NewUsageError(fmt.Sprintf("invalid --on-interrupt %q", f.onInterrupt), "the choices are retry, fail and ask")
	}
	if f.record != "" && f.replay != "" {
		return app.NewUsageError("--record and --replay exclude each other", "")
	}
	more, err := f.limits.extension()
	if err != nil {
		return err
	}
	if f.resume == "" && f.comment != "" {
		return app.NewUsageError("--comment needs --resume RUN", "")
	}
	if f.resume == "" && more != (runtime.LimitExtension{}) {
		return app.NewUsageError("a limit extension needs --resume RUN", "the limits of a new run are in its definition, under safety and budget")
	}
	if f.resume != "" && (f.dryRun || f.pinned || f.force || f.event != "" || f.inputsFile != "" || len(f.vars)+len(f.inputs) > 0) {
		return app.NewUsageError("--resume continues a run as it is: no inputs, variables, event, --pinned, --force or --dry-run", "")
	}
	return nil
}

// base is the folder that a run's workspace is relative to: for a relative one in a
// file or a stored definition of one, the folder of that file.
func (a verbs) base(src *app.Source, def *sentinels.Definition) string {
	if def.Workspace != "" && !filepath.IsAbs(def.Workspace) {
		return a.WorkspaceBase(src)
	}
	return a.Workspace()
}
