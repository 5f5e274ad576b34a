package operations

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/sentinel-runtime/sentinel/host/cli/app"
)

// verbs are the commands of this package in one invocation.
type verbs struct{ *app.App }

// Commands returns the commands of this package. root is the command that a completion
// script is for.
func Commands(a *app.App, root *cobra.Command) []*cobra.Command {
	v := verbs{a}
	return slices.Concat(
		app.InGroup(app.GroupRun, v.serveCommand()),
		app.InGroup(app.GroupMore, v.configCommand(), v.doctorCommand(), v.backupCommand(), v.restoreCommand(), v.recoverCommand(), v.compactCommand(), v.tokenCommand(), v.secretCommand(), v.trustCommand(), v.unitCommand(),
			v.benchCommand(), v.versionCommand(), v.manCommand(root), v.completionCommand(root)),
	)
}
