package run

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sentinel-runtime/sentinel/host/cli/app"
	"github.com/sentinel-runtime/sentinel/host/cli/output"
	"github.com/sentinel-runtime/sentinel/host/client"
	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/process"
	"github.com/sentinel-runtime/sentinel/runtime/plugin"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// execCommand parses its flags itself: behind the command's name they are the
// command's parameters, and those have names of their own, --output or --limit
// among them.
func (a verbs) execCommand() *cobra.Command {
	return &cobra.Command{
		Use: "exec NAME [--PARAMETER=VALUE ...] [--json JSON]", Short: "Call a command, as a step would",
		Long: "`sentinel exec --list` lists the commands, `sentinel exec NAME --help` the parameters of one.\n" +
			"A value is JSON unless the parameter is a string. --json gives all parameters at once.\n" +
			"Flags of sentinel itself (--output, --state, --workspace) stand before NAME.",
		Example: "  sentinel exec code/search --pattern=TODO\n" +
			`  sentinel exec data/list --json '{"collection":"notes"}'`,
		DisableFlagParsing: true, // the parameters are the command's own
		RunE: func(cmd *cobra.Command, args []string) error {
			rest, list, help, err := a.execFlags(cmd, args)
			switch {
			case err != nil:
				return err
			case list:
				return a.execList(cmd.Context())
			case help || len(rest) == 0:
				if len(rest) > 0 {
					return a.execHelp(cmd.Context(), rest[0])
				}
				if help {
					return cmd.Help()
				}
				return app.NewUsageError("exec: the name of a command is missing", "`sentinel exec --list` shows them")
			}
			return a.exec(cmd, rest[0], rest[1:])
		},
	}
}

// execFlags takes our own flags, which stand before the name, and --help, which
// may stand anywhere. The rest is the name and its parameters.
func (a verbs) execFlags(cmd *cobra.Command, args []string) (rest []string, list, help bool, err error) {
	for i, arg := range args {
		if !strings.HasPrefix(arg, "-") {
			rest = args[i:]
			break
		}
		if arg == "--list" {
			list = true
			continue
		}
		if arg == "--help" || arg == "-h" {
			help = true
			continue
		}
		// One flag at a time, with its value if that is an argument of its own.
		if err := cmd.InheritedFlags().Parse(args[i : i+1]); err != nil {
			if i+1 < len(args) && strings.HasPrefix(err.Error(), "flag needs an argument") {
				if err := cmd.InheritedFlags().Parse(args[i : i+2]); err != nil {
					return nil, false, false, app.NewUsageError("exec: "+err.Error(), "")
				}
				more, l, h, err := a.execFlags(cmd, args[i+2:])
				return more, list || l, help || h, err
			}
			return nil, false, false, app.NewUsageError("exec: "+err.Error(), "parameters stand behind the name of the command")
		}
	}
	for _, arg := range rest {
		help = help || arg == "--help" || arg == "-h"
	}
	return rest, list, help, cmd.Root().PersistentPreRunE(cmd, nil)
}

// command finds a command of the process that answers.
func (a verbs) command(ctx context.Context, s *app.Session, name string) (client.Command, error) {
	list, err := s.Commands(ctx)
	if err != nil {
		return client.Command{}, err
	}
	c, err := lookup(list, name)
	if err != nil {
		if absent := unprovided(ctx, s, name); absent != nil {
			return c, absent
		}
	}
	return c, err
}

// unprovided returns why a command of a plugin is not there, nil if no plugin has it.
func unprovided(ctx context.Context, s *app.Session, name string) error {
	var out struct {
		Plugins []plugin.Info `json:"plugins"`
	}
	if s.Call(ctx, "plugin/list", map[string]any{}, &out) != nil {
		return nil // the command is unknown in any case
	}
	for _, p := range out.Plugins {
		for _, r := range p.Roles {
			switch {
			case r.Name != name:
			case p.State == plugin.Refused:
				return app.NotFound("sentinel plugin list", "command %q is provided by plugin %q, which cannot be loaded", name, p.Name)
			case p.State == plugin.Waiting:
				return app.Denied("sentinel plugin allow "+p.Name, "command %q is provided by plugin %q, which waits for approval", name, p.Name)
			default:
				return app.Denied("sentinel plugin allow "+p.Name, "command %q is provided by plugin %q, which is not allowed to provide commands", name, p.Name)
			}
		}
	}
	return nil
}

// execList lists the commands of the process that answers, which may be of another
// release.
func (a verbs) execList(ctx context.Context) (err error) {
	s, err := a.Connect(ctx, true)
	if err != nil {
		return err
	}
	defer a.CloseSession(s, &err)
	list, err := s.Commands(ctx)
	if err != nil {
		return err
	}
	if done, err := app.WriteItems(a.App, list, list); done {
		return err
	}
	rows := []output.Row{output.Head(a.PaintOut, "COMMAND", "", "WHAT IT DOES")}
	for _, c := range list {
		rows = append(rows, output.Row{output.Escape(c.Name), output.Escape(c.Effect), output.Escape(c.Summary)})
	}
	return a.Table(rows)
}

// execHelp shows a command.
func (a verbs) execHelp(ctx context.Context, name string) (err error) {
	s, err := a.Connect(ctx, true)
	if err != nil {
		return err
	}
	defer a.CloseSession(s, &err)
	c, err := a.command(ctx, s, name)
	if err != nil {
		return err
	}
	return a.DescribeCommand(c)
}

// lookup finds a command by its whole name; a near one is only a hint, because a
// misread name must not change anything.
func lookup(list []client.Command, name string) (client.Command, error) {
	var all []string
	for _, c := range list {
		if c.Name == name {
			return c, nil
		}
		all = append(all, c.Name)
	}
	return client.Command{}, app.NotFound(command.UnknownHint(name, all, command.ProgramHint), "unknown command %q", name)
}

// exec calls a command and writes its result, which is JSON in every format: its shape
// is the command's. A run that a command begins in this process is executed here until
// it ends.
func (a verbs) exec(cmd *cobra.Command, name string, args []string) (err error) {
	ctx, own := cmd.Context(), cmd.InheritedFlags()
	if process.ExecutesRun(name) {
		return a.inRunProcess(ctx, &runFlags{}, func(s *app.Session) error { return a.execRun(ctx, s, name, own, args) })
	}
	s, err := a.Connect(ctx, false)
	if err != nil {
		return err
	}
	defer a.CloseSession(s, &err)
	_, err = a.callAndPrint(ctx, s, name, own, args)
	return err
}

// callAndPrint calls a command with the parameters of the command line.
func (a verbs) callAndPrint(ctx context.Context, s *app.Session, name string, own *pflag.FlagSet, args []string) (out json.RawMessage, err error) {
	c, err := a.command(ctx, s, name)
	if err != nil {
		return nil, err
	}
	params, err := a.params(c, own, args)
	if err != nil {
		return nil, err
	}
	if err := s.Call(ctx, name, params, &out); err != nil {
		return nil, err
	}
	return out, a.WriteJSON(out)
}

// execRun calls a command that begins a run.
func (a verbs) execRun(ctx context.Context, s *app.Session, name string, own *pflag.FlagSet, args []string) error {
	if s.Process == nil {
		_, err := a.callAndPrint(ctx, s, name, own, args)
		return err
	}
	out, err := a.follow(ctx, s, func() (sentinels.RunID, error) {
		out, err := a.callAndPrint(ctx, s, name, own, args)
		id := process.RunOf(out)
		if err == nil {
			a.Info("run %s is executed here until it ends", id)
			a.Flags.Output = output.FormatTable // the data is the result of the command, and is written
		}
		return id, err
	})
	if err != nil {
		return err
	}
	code := app.StatusCode(out.Status)
	if code == app.ExitOK {
		return nil
	}
	a.Info("run %s is %s", out.Run, out.Status)
	for _, w := range a.PendingActions(out.open) {
		a.ErrorMessage(w.Question(), w.Type)
	}
	return app.ExitError(code)
}
