package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
)

// rootCommand has the verbs in groups, in the order in which a newcomer needs them.
// What cobra says of mistakes is said in our words, with a hint.
func (a *app) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "sentinel",
		Short: "Run sentinels: durable loops of steps, written as JSON",
		Long: "A sentinel is a loop of steps in a JSON file. A run of one is durable: end the\n" +
			"process anywhere, and `sentinel run --resume RUN` continues where it was.",
		Example:       "  sentinel init\n  sentinel validate .sentinel/sentinels/build-fix.json\n  sentinel run build-fix",
		SilenceErrors: true, SilenceUsage: true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true, DisableDescriptions: false},
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			e := &usageError{text: fmt.Sprintf("unknown command %q", args[0]), hint: "sentinel --help lists them"}
			if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
				e.hint = fmt.Sprintf("did you mean %q?", near[0])
			}
			return e
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRunE: func(*cobra.Command, []string) error {
			if !slices.Contains([]string{asTable, asJSON, asJSONL}, a.flags.output) {
				return &usageError{fmt.Sprintf("invalid --output %q: want table, json or jsonl", a.flags.output), ""}
			}
			return nil
		},
	}
	root.SuggestionsMinimumDistance = 2
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return &usageError{cmd.CommandPath() + ": " + err.Error(), cmd.CommandPath() + " --help shows its flags"}
	})
	f := root.PersistentFlags()
	f.StringVarP(&a.flags.output, "output", "o", asTable, "form of what goes to standard output: table, json, jsonl")
	f.StringVar(&a.flags.workspace, "workspace", "", "folder that runs and commands work in (default: the current one)")
	f.StringVar(&a.flags.state, "state", "", "folder of the store (default: state in the nearest .sentinel folder upwards)")
	f.StringVar(&a.flags.plugins, "plugins", "", "folder with further *.wasm step plugins")
	f.StringArrayVar(&a.flags.trust, "trust", nil, "obey files at or below this path, whatever their owners and modes; repeatable (default: trust.paths)")
	f.BoolVarP(&a.flags.verbose, "verbose", "v", false, "say more")
	f.BoolVarP(&a.flags.quiet, "quiet", "q", false, "say only what went wrong")
	root.AddGroup(
		&cobra.Group{ID: "write", Title: "Write:"},
		&cobra.Group{ID: "run", Title: "Run:"},
		&cobra.Group{ID: "look", Title: "Look:"},
		&cobra.Group{ID: "more", Title: "More:"},
	)
	add := func(group string, commands ...*cobra.Command) {
		for _, c := range commands {
			c.GroupID = group
			root.AddCommand(c)
		}
	}
	add("write", a.initCommand(), a.validateCommand(), a.schemaCommand(), a.createCommand(), a.updateCommand(), a.deleteCommand(), a.loadCommand(), a.stepCommand(), a.rollbackCommand(),
		a.exportCommand(), a.importCommand(), a.deployCommand())
	add("run", a.serveCommand(), a.runCommand(), a.startCommand(), a.stopCommand(), a.pauseCommand(), a.resumeCommand(), a.retryCommand(), a.forkCommand(), a.decideCommand(), a.emitCommand())
	add("look", a.listCommand(), a.statusCommand(), a.logsCommand(), a.traceCommand(), a.eventsCommand(), a.triggersCommand(), a.showCommand(), a.revisionsCommand(), a.diffCommand())
	add("more", a.execCommand(), a.pluginCommand(), a.configCommand(), a.doctorCommand(), a.recoverCommand(), a.compactCommand(), a.tokenCommand(), a.unitCommand(), a.benchCommand(), a.versionCommand(), a.completionCommand(root))
	root.SetHelpCommandGroupID("more")
	return root
}

// Run carries out one invocation and returns its exit code.
func Run(ctx context.Context, env Env) int {
	env.fill()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	a := &app{env: env, out: printer{env.Stdout}, errs: printer{env.Stderr}}
	a.env.Stdout, a.env.Stderr = nil, nil // from here on there are only the printers
	a.paint = palette(env.StderrTerminal && env.Getenv("NO_COLOR") == "" && env.Getenv("TERM") != "dumb")
	a.paintOut = palette(env.StdoutTerminal && env.Getenv("NO_COLOR") == "" && env.Getenv("TERM") != "dumb")
	defer a.watchInterrupts(cancel)()

	root := a.rootCommand()
	root.SetArgs(asExec(env.Args))
	root.SetIn(env.Stdin)
	root.SetOut(a.out.stream())
	root.SetErr(a.errs.stream())
	err := root.ExecuteContext(ctx)
	if err != nil && errors.Is(context.Cause(ctx), errInterrupted) && !errors.As(err, new(exitError)) {
		err = errInterrupted
	}
	a.report(err)
	return ExitCode(err)
}
