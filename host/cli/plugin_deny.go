package cli

import "github.com/spf13/cobra"

// pluginDenyCommand takes back what a plugin may do.
func (a *app) pluginDenyCommand() *cobra.Command {
	return &cobra.Command{
		Use: "deny NAME", Short: "Take back what a plugin may do",
		Long: "Its step types are unknown from now on, and what its steps under way ask of the host is denied.\n" +
			"`sentinel plugin allow NAME` is the way back.",
		Args: exactly("NAME"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			a.aboutPlugins = true
			s, err := a.connect(cmd.Context(), false)
			if err != nil {
				return err
			}
			defer a.closing(s, &err)
			var done allowed
			if err := s.Call(cmd.Context(), "plugin/deny", map[string]any{"name": args[0], "by": a.user()}, &done); err != nil {
				return err
			}
			return a.decided(done)
		},
	}
}
