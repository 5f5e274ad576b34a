package run

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/sentinel-runtime/sentinel/host/cli/app"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// startCommand starts a run without waiting for it. Without another process there is no
// background, so the run is executed here, and the command reports that.
func (a verbs) startCommand() *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use: "start NAME|FILE", Short: "Start a run in the server",
		Example: "  sentinel start nightly\n  sentinel start build.json --input branch=main",

		Long: "If another process executes runs, this one starts there and the command returns at once.\n" +
			"Otherwise it is executed here, as `sentinel run` does.",
		Args: app.ExactArgs("NAME or FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(); err != nil {
				return err
			}
			if err := a.AskTrust(cmd.Context()); err != nil {
				return err
			}
			return a.startInBackground(cmd.Context(), args[0], &f)
		},
	}
	f.startFlags(c.Flags())
	f.hostFlags(c.Flags())
	return c
}

// startInBackground starts a run in another process and shows its state. Without such
// a process the run is executed and followed here.
func (a verbs) startInBackground(ctx context.Context, target string, f *runFlags) error {
	start, err := a.starter(target, f)
	if err != nil {
		return err
	}
	return a.inRunProcess(ctx, f, func(s *app.Session) error {
		if s.Process != nil {
			a.Info("no process executes runs, so this one does, as `sentinel run` would")
			out, err := a.follow(ctx, s, func() (sentinels.RunID, error) { return start(ctx, s) })
			if err != nil {
				return err
			}
			return a.ended(s, out)
		}
		id, err := start(ctx, s)
		if err != nil {
			return err
		}
		info, err := s.RunInfo(ctx, id)
		if err != nil {
			return err
		}
		return a.ShowChanged(info)
	})
}
