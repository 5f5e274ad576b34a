package plugins

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/sentinel-runtime/sentinel/host/cli/app"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// pluginCommand is what there is to do with step plugins: for the operator, who
// decides what they may do, and for those who write them.
func (a verbs) pluginCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "plugin", Short: "Step plugins: what they may do, and how to write one",
		Long: "A step plugin is a .wasm file in the folder plugins of the project. One that asks for nothing\n" +
			"works at once; one that asks for something waits until you allow it.",
		Example: "  sentinel plugin list\n  sentinel plugin allow slack_message",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			e := &app.UsageError{Text: fmt.Sprintf("plugin: unknown command %q", args[0]), Hint: "sentinel plugin --help lists them"}
			var names []string
			for _, verb := range cmd.Commands() {
				names = append(names, verb.Name())
			}
			if near := sentinels.Suggest(args[0], names); len(near) > 0 {
				e.Hint = fmt.Sprintf("did you mean %q?", near[0])
			}
			return e
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddGroup(
		&cobra.Group{ID: "operate", Title: "Operate:"},
		&cobra.Group{ID: "author", Title: "Write:"},
		&cobra.Group{ID: "travel", Title: "Install and publish:"},
	)
	add := func(group string, verbs ...*cobra.Command) {
		for _, v := range verbs {
			v.GroupID = group
			c.AddCommand(v)
		}
	}
	// One line a group: a new verb goes into the line of its group.
	add("operate", a.pluginListCommand(), a.pluginAllowCommand(), a.pluginDenyCommand())
	add("author", a.pluginNewCommand(), a.pluginBuildCommand(), a.pluginTestCommand(), a.pluginCallCommand(), a.pluginInspectCommand(), a.pluginBenchCommand())
	add("travel", a.pluginInstallCommand(), a.pluginUninstallCommand(), a.pluginLockCommand(), a.pluginUnlockCommand(), a.pluginPackCommand(), a.pluginPushCommand(),
		a.pluginKeygenCommand(), a.pluginSignCommand(), a.pluginVerifyCommand(), a.pluginTrustCommand())
	return c
}
