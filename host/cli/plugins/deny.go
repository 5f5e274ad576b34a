package plugins

import (
	"github.com/spf13/cobra"

	"github.com/sentinel-runtime/sentinel/host/cli/app"
)

// pluginDenyCommand takes back what a plugin may do.
func (a verbs) pluginDenyCommand() *cobra.Command {
	return &cobra.Command{
		Use: "deny NAME", Short: "Take back what a plugin may do",
		Example: "  sentinel plugin deny jsonlint",

		Long: "Its step types are unknown from now on, and what its steps under way ask of the host is denied.\n" +
			"`sentinel plugin allow NAME` is the way back.",
		Args: app.ExactArgs("NAME"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			a.ReportsPlugins = true
			s, err := a.Connect(cmd.Context(), false)
			if err != nil {
				return err
			}
			defer a.CloseSession(s, &err)
			var done allowed
			if err := s.Call(cmd.Context(), "plugin/deny", map[string]any{"name": args[0], "by": a.User()}, &done); err != nil {
				return err
			}
			return a.decided(done)
		},
	}
}
