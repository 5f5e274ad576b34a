package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sentinel-runtime/sentinel/host/cli/app"
	"github.com/sentinel-runtime/sentinel/host/cli/definitions"
	"github.com/sentinel-runtime/sentinel/host/cli/help"
	"github.com/sentinel-runtime/sentinel/host/cli/inspect"
	"github.com/sentinel-runtime/sentinel/host/cli/operations"
	"github.com/sentinel-runtime/sentinel/host/cli/output"
	"github.com/sentinel-runtime/sentinel/host/cli/plugins"
	"github.com/sentinel-runtime/sentinel/host/cli/run"
	"github.com/sentinel-runtime/sentinel/host/cli/tickets"
	"github.com/sentinel-runtime/sentinel/host/principal"
)

// rootCommand has the verbs in groups, in the order in which a newcomer needs them.
// Errors of cobra get a hint.
func rootCommand(a *app.App) *cobra.Command {
	root := &cobra.Command{
		Use:   "sentinel",
		Short: "Run sentinels: durable loops of steps, written as JSON",
		Long: "A sentinel is a loop of steps in a JSON file. A run of one is durable: end the\n" +
			"process anywhere, and `sentinel run --resume RUN` continues where it was.",
		Example:       "  sentinel init           # writes .sentinel/sentinels/hello.jsonc\n  sentinel run hello\n  sentinel help format    # what a sentinel can contain",
		SilenceErrors: true, SilenceUsage: true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true, DisableDescriptions: false},
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			e := &app.UsageError{Text: fmt.Sprintf("unknown command %q", args[0]), Hint: "sentinel --help lists them"}
			if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
				e.Hint = fmt.Sprintf("did you mean %q?", near[0])
			}
			return e
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if !slices.Contains([]string{output.FormatTable, output.FormatJSON, output.FormatJSONL}, a.Flags.Output) {
				return app.NewUsageError(fmt.Sprintf("invalid --output %q: want table, json or jsonl", a.Flags.Output), "")
			}
			a.Looks = looks(cmd)
			p, err := a.Principal()
			if err != nil {
				return err
			}
			cmd.SetContext(principal.With(cmd.Context(), p))
			return nil
		},
	}
	root.SuggestionsMinimumDistance = 2
	root.Version = operations.VersionLine(a.Env.Version)
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return app.NewUsageError(cmd.CommandPath()+": "+app.FlagErrorText(err), cmd.CommandPath()+" --help shows its flags")
	})
	f := root.PersistentFlags()
	f.StringVarP(&a.Flags.Output, "output", "o", output.FormatTable, "format of standard output: table, json, jsonl")
	f.StringVar(&a.Flags.Workspace, "workspace", "", "folder that runs and commands work in (default: the current one)")
	f.StringVar(&a.Flags.State, "state", "", "folder of the store (default: state in the nearest .sentinel folder upwards)")
	f.StringVar(&a.Flags.Plugins, "plugins", "", "folder with further *.wasm step plugins")
	f.StringArrayVar(&a.Flags.Trust, "trust", nil, "trust files at or below this path, whatever their owners and modes; repeatable (default: trust.paths)")
	f.BoolVar(&a.Flags.Untrusted, "untrusted", false, "do not ask about a project that is not trusted, and use nothing of it but what you name")
	f.StringVar(&a.Flags.As, "as", "", "name (persona) that calls are made under, and that runs and their child runs have; agent:NAME gives up decisions")
	f.BoolVarP(&a.Flags.Verbose, "verbose", "v", false, "print more")
	f.BoolVarP(&a.Flags.Quiet, "quiet", "q", false, "print only errors")
	root.AddGroup(
		&cobra.Group{ID: app.GroupWrite, Title: "Write:"},
		&cobra.Group{ID: app.GroupRun, Title: "Run:"},
		&cobra.Group{ID: app.GroupLook, Title: "Look:"},
		&cobra.Group{ID: app.GroupMore, Title: "More:"},
	)
	root.AddCommand(definitions.Commands(a)...)
	root.AddCommand(run.Commands(a)...)
	root.AddCommand(inspect.Commands(a)...)
	root.AddCommand(tickets.Commands(a)...)
	root.AddCommand(plugins.Commands(a)...)
	root.AddCommand(operations.Commands(a, root)...)
	root.AddCommand(help.Commands(a, root)...)
	root.SetHelpCommandGroupID(app.GroupMore)
	setHelp(a, root)
	complete(a, root)
	return root
}

// helpTemplate is cobra's, but each help begins with what the command does, also that of a command
// with a longer text, and the first page has the topics.
var helpTemplate = `{{.Short}}.{{with .Long}}

{{. | trimTrailingWhitespaces}}{{end}}

{{if or .Runnable .HasSubCommands}}{{.UsageString}}{{end}}{{if not .HasParent}}
Topics of "sentinel help TOPIC":
  ` + strings.Join(help.Topics, ", ") + `
{{end}}`

// setHelp sets how help is shown: on a terminal within its width.
func setHelp(a *app.App, root *cobra.Command) {
	root.SetHelpTemplate(helpTemplate)
	show := root.HelpFunc()
	root.SetHelpFunc(func(c *cobra.Command, args []string) {
		if !a.Env.StdoutTerminal {
			show(c, args)
			return
		}
		to := c.OutOrStdout()
		var page bytes.Buffer
		c.SetOut(&page)
		show(c, args)
		c.SetOut(to)
		_, _ = io.WriteString(to, output.Wrap(page.String(), a.Env.Width())) // there is no other stream to report it on
	})
}

// Run executes one invocation and returns its exit code.
func Run(ctx context.Context, env app.Env) int {
	env.SetDefaults()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	a := &app.App{Env: env, Out: output.Printer{Writer: env.Stdout}, Err: output.Printer{Writer: env.Stderr}}
	a.Env.Stdout, a.Env.Stderr = nil, nil // from here on there are only the printers
	a.Paint = output.Palette(env.StderrTerminal && env.Getenv("NO_COLOR") == "" && env.Getenv("TERM") != "dumb")
	a.PaintOut = output.Palette(env.StdoutTerminal && env.Getenv("NO_COLOR") == "" && env.Getenv("TERM") != "dumb")
	defer a.WatchInterrupts(cancel)()

	root := rootCommand(a)
	root.SetArgs(asExec(env.Args))
	root.SetIn(env.Stdin)
	root.SetOut(a.Out.Stream())
	root.SetErr(a.Err.Stream())
	err := root.ExecuteContext(ctx)
	if err != nil && errors.Is(context.Cause(ctx), app.ErrInterrupted) && !errors.As(err, new(app.ExitError)) {
		err = app.ErrInterrupted
	}
	a.Report(err)
	return app.ExitCode(err)
}

// looks reports whether a command executes and changes nothing. A backup copies the configuration as it is, whatever it says.
func looks(cmd *cobra.Command) bool {
	top := cmd
	for top.HasParent() && top.Parent().HasParent() {
		top = top.Parent()
	}
	_, path, _ := strings.Cut(cmd.CommandPath(), " ")
	return top.GroupID == app.GroupLook || slices.Contains([]string{"backup", "config show", "doctor", "inbox", "plugin list", "ticket list", "ticket show", "validate"}, path)
}
