package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// startCommand is what the specification calls start. Without a process that stays,
// nothing can go on in the background, and that is said.
func (a *app) startCommand() *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use: "start NAME|FILE", Short: "Start a run in the server",
		Long: "If another process executes runs, this one starts there and the command returns at once.\n" +
			"Otherwise it is executed here, as `sentinel run` does.",
		Args: exactly("NAME or FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(); err != nil {
				return err
			}
			ctx := cmd.Context()
			if s := a.dialWorker(ctx); s != nil {
				err := a.began(ctx, s, args[0], &f)
				s.close()
				if abi.CodeOf(err) != abi.Unavailable {
					return err
				}
			}
			a.say("no process executes runs, so this one does, as `sentinel run` would")
			return a.startRun(ctx, args[0], &f)
		},
	}
	f.startFlags(c.Flags())
	f.hostFlags(c.Flags())
	return c
}

// dialWorker returns a session with the process that has the store if that
// carries out runs, and so takes another one; nil if not.
func (a *app) dialWorker(ctx context.Context) *session {
	s, err := a.dial(ctx)
	if err != nil {
		return nil
	}
	if len(s.info.Runs) == 0 && !s.info.Serves {
		s.close()
		return nil
	}
	return s
}

// began starts a run in the process that answers, and says how it stands.
func (a *app) began(ctx context.Context, s *session, target string, f *runFlags) error {
	id, err := a.startThere(ctx, s, target, f)
	if err != nil {
		return err
	}
	var info runtime.RunInfo
	if err := s.call(ctx, "sentinel/status", map[string]any{"run": id}, &info); err != nil {
		return err
	}
	return a.changed(info)
}
