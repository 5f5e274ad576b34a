package cli

import (
	"context"
	"encoding/json"

	"github.com/spf13/cobra"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// startCommand is what the specification calls start. Without a process that stays,
// nothing can go on in the background, and that is said.
func (a *app) startCommand() *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use: "start NAME", Short: "Start a run of a stored sentinel",
		Long: "Where another process carries out runs, this one starts there and this returns at once.\n" +
			"Else it is carried out here, as `sentinel run` does.",
		Args: exactly("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(); err != nil {
				return err
			}
			ctx := cmd.Context()
			if s := a.dialWorker(ctx); s != nil {
				err := a.startThere(ctx, s, args[0], &f)
				s.close()
				if abi.CodeOf(err) != abi.Unavailable {
					return err
				}
			}
			a.say("no process carries out runs, so this one does, as `sentinel run` would")
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

// startThere has the process that has the store start a run.
func (a *app) startThere(ctx context.Context, s *session, name string, f *runFlags) error {
	if f.record != "" || f.replay != "" || f.model != "" || f.onInterrupt != "" {
		return &usageError{"another process carries the run out: --model, --record, --replay and --on-interrupt are for one that runs here", ""}
	}
	var shown struct {
		Definition json.RawMessage `json:"definition"`
	}
	if err := s.call(ctx, "sentinel/export", map[string]any{"sentinelId": name}, &shown); err != nil {
		return err
	}
	def, problems := sentinels.Decode(shown.Definition, sentinels.DecodeOptions{File: name})
	if err := problems.Err(); err != nil {
		return err
	}
	g, err := a.values(def, f)
	if err != nil {
		return err
	}
	if len(g.variables) > 0 {
		return &usageError{"another process carries the run out and takes inputs only", "declare the variable under inputs of the sentinel"}
	}
	params := map[string]any{"sentinelId": name, "inputs": g.inputs, "workspace": a.workspace(), "pinned": f.pinned}
	if g.event != nil {
		params["event"] = g.event.Data
	}
	var out struct {
		Run sentinels.RunID `json:"run"`
	}
	if err := s.call(ctx, "sentinel/start", params, &out); err != nil {
		return err
	}
	var info runtime.RunInfo
	if err := s.call(ctx, "sentinel/status", map[string]any{"run": out.Run}, &info); err != nil {
		return err
	}
	return a.changed(info)
}
