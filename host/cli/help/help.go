package help

import "github.com/spf13/cobra"

func (a verbs) helpCommand(root *cobra.Command) *cobra.Command { return nil }
