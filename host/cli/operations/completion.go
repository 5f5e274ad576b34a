package operations

import (
	_ "embed"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/sentinel-runtime/sentinel/host/cli/app"
	"github.com/sentinel-runtime/sentinel/host/cli/output"
)

// bashWords goes before the script for bash: cobra's calls a function of the package bash-completion.
//
//go:embed completion.bash
var bashWords string

// completionCommand replaces cobra's own, whose help differs in style from
// the other verbs do.
func (a verbs) completionCommand(root *cobra.Command) *cobra.Command {
	shells := map[string]func() error{
		"bash": func() error {
			if _, err := io.WriteString(a.Out.Stream(), bashWords); err != nil {
				return err
			}
			return root.GenBashCompletionV2(a.Out.Stream(), true)
		},
		"zsh":        func() error { return root.GenZshCompletion(a.Out.Stream()) },
		"fish":       func() error { return root.GenFishCompletion(a.Out.Stream(), true) },
		"powershell": func() error { return root.GenPowerShellCompletionWithDesc(a.Out.Stream()) },
	}
	return &cobra.Command{
		Use: "completion bash|zsh|fish|powershell", Short: "Write the completion script of a shell",
		Long: "Completes commands, flags, runs, sentinels, tickets, plugins and topics of help. It asks the server or\n" +
			"reads the store, and offers nothing of it after 2 s, or the time in " + CompletionTimeout + ", such as 5s.",
		Example: "  source <(sentinel completion bash)",
		Args:    app.ExactArgs("the shell"), ValidArgs: output.SortedKeys(shells),
		RunE: func(_ *cobra.Command, args []string) error {
			write, ok := shells[args[0]]
			if !ok {
				return app.NewUsageError(fmt.Sprintf("completion: unknown shell %q", args[0]), "there are bash, zsh, fish and powershell")
			}
			return write()
		},
	}
}
