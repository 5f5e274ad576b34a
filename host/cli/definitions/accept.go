package definitions

import (
	"github.com/spf13/cobra"

	"github.com/sentinel-runtime/sentinel/host/cli/app"
)

// acceptCommand names the revision that the user has seen, so that an edit which came
// meanwhile is not accepted with it.
func (a verbs) acceptCommand() *cobra.Command {
	var note string
	c := &cobra.Command{
		Use: "accept NAME REVISION", Short: "Let a sentinel that a model or an agent made call all that it names",
		Example: "  sentinel accept nightly 3",

		Long: "Runs of a definition that a model or an agent made, or edited, call no command that its author may not call.\n" +
			"`sentinel inbox` lists those that name more, with what was changed. To accept one makes a revision of yours of it.",
		Args: app.ExactArgs("NAME", "REVISION"),
		RunE: func(cmd *cobra.Command, args []string) error {
			n, err := revisionNumber(args[1])
			if err != nil {
				return err
			}
			params := map[string]any{"revision": n}
			if note != "" {
				params["note"] = note
			}
			return a.revising(cmd.Context(), args[0], "sentinel/accept", params)
		},
	}
	c.Flags().StringVar(&note, "note", "", "why, for the history")
	return c
}
