package operations

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/sentinel-runtime/sentinel/host/cli/app"
	"github.com/sentinel-runtime/sentinel/host/cli/output"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// versionCommand names what a report of a fault needs: the release, the plugin ABI,
// and what the program was built with and for.
func (a verbs) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Show the version, and with -v what it was built from",
		Example: "  sentinel version -v",
		Args:    app.ExactArgs(),
		RunE: func(*cobra.Command, []string) error {
			built := buildSettings()
			if a.Flags.Output != output.FormatTable {
				about := map[string]any{
					"version": a.Env.Version, "abi": abi.Version, "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH,
				}
				for _, s := range built {
					about[s.name] = s.value
				}
				return a.WriteJSON(about)
			}
			err := a.Out.Printf("%s\n", VersionLine(a.Env.Version))
			if !a.Flags.Verbose || err != nil {
				return err
			}
			var rows []output.Row
			for _, s := range built {
				rows = append(rows, output.Row{a.PaintOut.Dim(output.Escape(s.name)), output.Escape(s.value)})
			}
			return a.Pairs(rows)
		},
	}
}

// VersionLine is the version in one line, as `sentinel --version` prints it too.
func VersionLine(version string) string {
	return fmt.Sprintf("sentinel %s  plugin ABI %v  %s  %s/%s", version, abi.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// A buildSetting is one thing that the Go tool noted when it built the program.
type buildSetting struct{ name, value string }

// buildSettings are those that explain why two programs of one release differ.
func buildSettings() []buildSetting {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return nil
	}
	var out []buildSetting
	for _, s := range info.Settings {
		// All others are the same in every build of a release.
		name := map[string]string{"vcs.revision": "revision", "vcs.time": "committed", "vcs.modified": "modified", "CGO_ENABLED": "cgo", "-tags": "tags"}[s.Key]
		if name != "" && s.Value != "" {
			out = append(out, buildSetting{name, s.Value})
		}
	}
	return out
}

// benchCommand runs the measurements that the program was built with: [Main]
// names them, so that a test can do with others.
func (a verbs) benchCommand() *cobra.Command {
	return &cobra.Command{
		Use: "bench", Short: "Measure the engine on this machine",
		Example: "  sentinel bench\n  sentinel bench -o json > before.json",
		Args:    app.ExactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if a.Env.Bench == nil {
				return &abi.Error{Code: abi.Unavailable, Message: "bench: this program was built without its measurements"}
			}
			return a.Env.Bench(cmd.Context(), a.Out.Stream(), a.Flags.Output)
		},
	}
}

// CompletionTimeout is the variable with the longest time that a completion takes.
const CompletionTimeout = "SENTINEL_COMPLETION_TIMEOUT"
