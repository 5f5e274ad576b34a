package definitions

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
		app.InGroup(app.GroupWrite, v.initCommand(), v.validateCommand(), v.createCommand(), v.updateCommand(), v.deleteCommand(), v.loadCommand(), v.stepCommand(), v.rollbackCommand(), v.acceptCommand(), v.exportCommand(), v.importCommand(), v.deployCommand()),
		app.InGroup(app.GroupLook, v.showCommand(), v.revisionsCommand(), v.diffCommand()),
	)
}
