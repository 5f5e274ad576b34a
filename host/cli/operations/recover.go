package operations

import (
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/sentinel-runtime/sentinel/host/cli/app"
	"github.com/sentinel-runtime/sentinel/host/cli/output"
	"github.com/sentinel-runtime/sentinel/host/ops/repair"
	"github.com/sentinel-runtime/sentinel/runtime"
)

// recoverCommand gets a damaged store back. It works on the file alone: nothing
// of a store that may be damaged is opened in this process.
func (a verbs) recoverCommand() *cobra.Command {
	var from string
	var dry bool
	c := &cobra.Command{
		Use: "recover", Short: "Rebuild a damaged store, or go back to a snapshot",
		Long: "Reads what can be read of a damaged store, fills in what is lost from its newest sound\n" +
			"snapshot, and says what came from where and what is missing. The damaged file is kept\n" +
			"beside the new one. Runs that may have lost records are paused: to resume them is yours\n" +
			"to decide. With --from a snapshot takes the store's place, whatever the store still holds.",
		Example: "  sentinel recover --dry-run\n  sentinel recover\n  sentinel recover --from 20260102T030405.000Z-hourly-9f86d081884c7d65.db",
		Args:    app.ExactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			// The state folder is not made, nor a host opened: this must work where
			// nothing else does.
			r, err := repair.Recover(cmd.Context(), repair.Options{State: a.State(), From: a.snapshot(from), DryRun: dry})
			if err != nil {
				return a.refused(cmd.Context(), err)
			}
			if a.Flags.Output != output.FormatTable {
				// The names of all runs are in this form; the text stops after some.
				return a.WriteJSON(r)
			}
			return r.WriteText(a.Out.Stream())
		},
	}
	c.Flags().StringVar(&from, "from", "", "snapshot to go back to: a file, or its name in the state folder's snapshots")
	c.Flags().BoolVar(&dry, "dry-run", false, "say what would come of it and replace nothing")
	c.AddCommand(&cobra.Command{
		Use: "list", Short: "List the snapshots there are",
		Example: "  sentinel recover list",
		Args:    app.ExactArgs(),
		RunE:    func(*cobra.Command, []string) error { return a.listSnapshots() },
	})
	return c
}

// snapshot leaves bare names alone: those are looked for among the snapshots.
func (a verbs) snapshot(name string) string {
	if name == "" || name == filepath.Base(name) {
		return name
	}
	return a.Path(name)
}

func (a verbs) listSnapshots() error {
	// Also beside a server: it only reads names.
	list, err := runtime.Snapshots(a.State())
	if err != nil {
		return err
	}
	if done, err := app.WriteItems(a.App, list, list); done {
		return err
	}
	if len(list) == 0 {
		a.Info("no snapshot in %s", a.Relative(a.State()))
		return nil
	}
	rows := []output.Row{output.Head(a.PaintOut, "SNAPSHOT", "TAKEN", "WHY", "BYTES")}
	for _, s := range list {
		// The bare name is what --from takes.
		rows = append(rows, output.Row{output.Escape(filepath.Base(s.Path)), output.LocalTime(s.Taken), output.Escape(s.Why), output.Grouped(s.Bytes)})
	}
	return a.Table(rows)
}

// compactCommand makes the store's file small again. A server does that by
// itself when it starts and more than half of the file is free.
func (a verbs) compactCommand() *cobra.Command {
	return &cobra.Command{
		Use: "compact", Short: "Make the store as small as its content", Example: "  sentinel compact",
		Long: "Copies what the store holds to a new file that takes its place. No process may have the\n" +
			"store open meanwhile, and the disk needs space for both.",
		Args: app.ExactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			// Beside a server this is refused at once with its process: it would copy a
			// file that changes meanwhile.
			done, err := repair.Compact(cmd.Context(), a.State())
			if err != nil {
				return a.refused(cmd.Context(), err)
			}
			if a.Flags.Output != output.FormatTable {
				return a.WriteJSON(map[string]int64{"before": done.Before, "after": done.After})
			}
			a.Info("the store had %s bytes and has %s", output.Grouped(done.Before), output.Grouped(done.After))
			return nil
		},
	}
}
