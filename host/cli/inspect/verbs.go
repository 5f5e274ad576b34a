package inspect

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
		app.InGroup(app.GroupLook, v.listCommand(), v.statusCommand(), v.traceCommand(), v.eventsCommand(), v.auditCommand(), v.triggersCommand()),
		app.InGroup(app.GroupRun, v.emitCommand()),
	)
}
