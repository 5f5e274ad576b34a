package cli

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// versionCommand names what a report of a fault needs: the release, the plugin ABI,
// and what the program was built with and for.
func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Show the version", Args: exactly(),
		RunE: func(*cobra.Command, []string) error {
			if a.flags.output != asTable {
				return a.writeJSON(map[string]any{
					"version": a.env.Version, "abi": abi.Version, "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH,
				})
			}
			_, err := fmt.Fprintf(a.env.Stdout, "sentinel %s  plugin ABI %v  %s  %s/%s\n", a.env.Version, abi.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}

// benchCommand runs the measurements that the program was built with: [Main]
// names them, so that a test can do with others.
func (a *app) benchCommand() *cobra.Command {
	return &cobra.Command{
		Use: "bench", Short: "Measure the engine on this machine", Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if a.env.Bench == nil {
				return &abi.Error{Code: abi.Unavailable, Message: "bench: this program was built without its measurements"}
			}
			return a.env.Bench(cmd.Context(), a.env.Stdout, a.flags.output)
		},
	}
}

// completionCommand stands in place of cobra's own, whose help does not speak as
// the other verbs do.
func (a *app) completionCommand(root *cobra.Command) *cobra.Command {
	shells := map[string]func() error{
		"bash":       func() error { return root.GenBashCompletionV2(a.env.Stdout, true) },
		"zsh":        func() error { return root.GenZshCompletion(a.env.Stdout) },
		"fish":       func() error { return root.GenFishCompletion(a.env.Stdout, true) },
		"powershell": func() error { return root.GenPowerShellCompletionWithDesc(a.env.Stdout) },
	}
	return &cobra.Command{
		Use: "completion bash|zsh|fish|powershell", Short: "Write the completion script of a shell",
		Example: "  source <(sentinel completion bash)",
		Args:    exactly("the shell"), ValidArgs: names(shells),
		RunE: func(_ *cobra.Command, args []string) error {
			write, ok := shells[args[0]]
			if !ok {
				return &usageError{fmt.Sprintf("completion: %q is no shell we know", args[0]), "there are bash, zsh, fish and powershell"}
			}
			return write()
		},
	}
}
