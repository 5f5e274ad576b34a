package run

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/sentinel-runtime/sentinel/host/cli/app"
)

// verbs are the commands of this package in one invocation.
type verbs struct{ *app.App }

// Commands returns the commands of this package.
func Commands(a *app.App) []*cobra.Command {
	v := verbs{a}
	return slices.Concat(
		app.InGroup(app.GroupRun, v.runCommand(), v.doCommand(), v.startCommand(), v.stopCommand(), v.pauseCommand(), v.resumeCommand(), v.retryCommand(), v.forkCommand(), v.decideCommand()),
		app.InGroup(app.GroupLook, v.logsCommand()),
		app.InGroup(app.GroupMore, v.execCommand()),
	)
}
