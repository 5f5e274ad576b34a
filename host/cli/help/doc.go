// Package help has the verbs that explain the format: schema, and the topics of help.
//
// # The folder
//   - schema.go: the JSON Schema, and its parts as text: a step type, a kind of trigger, a
//     command, the event of a trigger.
//   - help.go: sentinel help TOPIC, and all topics as one text, which is llms.txt.
//   - topics/: the texts, as templates. What the program knows, such as step types,
//     triggers and exit codes, is filled in.
package help

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/sentinel-runtime/sentinel/host/cli/app"
)

// verbs are the commands of this package in one invocation.
type verbs struct{ *app.App }

// Commands returns the commands of this package. root is the command line, which help
// describes where there is no topic.
func Commands(a *app.App, root *cobra.Command) []*cobra.Command {
	v := verbs{a}
	return slices.Concat(
		app.InGroup(app.GroupWrite, v.schemaCommand()),
		app.InGroup(app.GroupMore, v.helpCommand(root)),
	)
}
