package app

import "github.com/spf13/cobra"

// The groups of commands in the help text, in their order.
const (
	GroupWrite = "write"
	GroupRun   = "run"
	GroupLook  = "look"
	GroupMore  = "more"
)

// InGroup puts commands into a group of the help text.
func InGroup(group string, commands ...*cobra.Command) []*cobra.Command {
	for _, c := range commands {
		c.GroupID = group
	}
	return commands
}
