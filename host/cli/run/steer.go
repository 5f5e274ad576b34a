package run

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sentinel-runtime/sentinel/host/cli/app"
	"github.com/sentinel-runtime/sentinel/host/cli/output"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// steer finds the run that word means and calls a command on it.
func (a verbs) steer(ctx context.Context, word, name string, params map[string]any) (err error) {
	s, err := a.Connect(ctx, true)
	if err != nil {
		return err
	}
	defer a.CloseSession(s, &err)
	if params == nil {
		params = map[string]any{}
	}
	info, err := a.FindRun(ctx, s, word, false)
	switch {
	case err == nil:
		params["run"] = info.ID
	case abi.CodeOf(err) == abi.NotFound && holdsTriggers[name] && a.Stored(ctx, s, word):
		params["sentinelId"] = word
	default:
		return err
	}
	if err := s.Call(ctx, name, params, &info); err != nil {
		return err
	}
	return a.ShowChanged(info)
}

// holdsTriggers are the commands that mean a sentinel's triggers where it has no
// run.
var holdsTriggers = map[string]bool{"sentinel/pause": true, "sentinel/resume": true}

// stopCommand returns when everything the run had started has ended.
func (a verbs) stopCommand() *cobra.Command {
	return &cobra.Command{
		Use: "stop RUN|NAME", Short: "Stop a run and everything it started", Args: app.ExactArgs("RUN or NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.steer(cmd.Context(), args[0], "sentinel/stop", nil)
		},
	}
}

// pauseCommand returns when the pause is durable; the step under way goes on.
func (a verbs) pauseCommand() *cobra.Command {
	return &cobra.Command{
		Use: "pause RUN|NAME", Short: "Hold a run back at its next step; of a sentinel without one, its triggers", Args: app.ExactArgs("RUN or NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.steer(cmd.Context(), args[0], "sentinel/pause", nil)
		},
	}
}

// resumeCommand has run's flags, since it may come to the same thing.
func (a verbs) resumeCommand() *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use: "resume RUN|NAME", Short: "Let a paused run or paused triggers go on, or take up a run whose process ended",
		Long: "A run that another process executes continues there. Any other is continued here,\n" +
			"as `sentinel run --resume` does.",
		Args: app.ExactArgs("RUN or NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.resume = args[0]
			if err := f.check(); err != nil {
				return err
			}
			return a.resume(cmd.Context(), args[0], &f)
		},
	}
	f.hostFlags(c.Flags())
	return c
}

// resume resumes a run in the process that executes runs, or here, or the triggers of a
// sentinel that has no run.
func (a verbs) resume(ctx context.Context, word string, f *runFlags) error {
	return a.inRunProcess(ctx, f, func(s *app.Session) error {
		info, err := a.FindRun(ctx, s, word, false)
		if abi.CodeOf(err) == abi.NotFound && a.Stored(ctx, s, word) {
			return a.resumeTriggers(ctx, s, word)
		}
		if err != nil {
			return err
		}
		if s.Process != nil {
			a.Info("no process executes runs, so this one continues it")
			return a.resumeHere(ctx, s, info, f)
		}
		params, _, err := f.resumption(info.ID, a.User())
		if err != nil {
			return err
		}
		if err := s.Call(ctx, "sentinel/resume", params, &info); err != nil {
			return err
		}
		return a.ShowChanged(info)
	})
}

// resumeTriggers lets the triggers of a sentinel fire again. That they are paused
// is in the store, so it needs no server.
func (a verbs) resumeTriggers(ctx context.Context, s *app.Session, name string) error {
	var info runtime.RunInfo
	if err := s.Call(ctx, "sentinel/resume", map[string]any{"sentinelId": name}, &info); err != nil {
		return err
	}
	return a.ShowChanged(info)
}

// resumption returns the parameters of sentinel/resume, and whether they change
// anything of the run. user is who resumes it.
func (f *runFlags) resumption(id sentinels.RunID, user string) (params map[string]any, changes bool, err error) {
	more, err := f.limits.extension()
	if err != nil {
		return nil, false, err
	}
	params = map[string]any{"run": id, "by": user}
	for name, v := range map[string]any{
		"maxIterations": more.Iterations, "timeoutMs": more.TimeoutMs, "budgetUsd": more.CostUSD,
		"budgetTokens": more.Tokens, "budgetCalls": more.Calls, "onInterrupt": f.onInterrupt, "comment": f.comment,
	} {
		if fmt.Sprint(v) != "0" && v != "" {
			params[name], changes = v, true
		}
	}
	return params, changes, nil
}

// decideCommand checks the words before it looks for a process, so that a mistyped
// verdict is told even when nobody answers.
func (a verbs) decideCommand() *cobra.Command {
	var result, comment, by string
	verdicts := []string{"retry", "skip", "fail", "approve", "reject"}
	c := &cobra.Command{
		Use: "decide RUN [CALL] retry|skip|fail|approve|reject", Short: "Answer what a run waits for",
		Long: "CALL may be left out when only one decision is pending.",
		Args: app.RangeArgs(2, 3, "RUN", "the verdict"),
		RunE: func(cmd *cobra.Command, args []string) error {
			params := map[string]any{"verdict": args[len(args)-1], "by": by}
			if len(args) == 3 {
				params["call"] = args[1]
			}
			if by == "" {
				params["by"] = a.User()
			}
			if !slices.Contains(verdicts, args[len(args)-1]) {
				return app.NewUsageError(fmt.Sprintf("%q is no verdict", args[len(args)-1]), "the verdicts are "+strings.Join(verdicts, ", "))
			}
			if comment != "" {
				params["comment"] = comment
			}
			raw, err := a.JSONFlag("--result", result)
			if err != nil {
				return err
			}
			if raw != nil {
				if args[len(args)-1] != "skip" {
					return app.NewUsageError("--result goes with skip: it is what the call is taken to have answered", "")
				}
				params["result"] = raw
			}
			return a.decide(cmd.Context(), args[0], params)
		},
	}
	c.Flags().StringVar(&result, "result", "", "with skip: what the call is taken to have answered, JSON or @FILE")
	c.Flags().StringVar(&comment, "comment", "", "why, for the record")
	c.Flags().StringVar(&by, "by", "", "who decides (default: your user name)")
	return c
}

// decide leaves the answer with whoever carries the run out, else in its journal,
// where a resume finds it.
func (a verbs) decide(ctx context.Context, word string, params map[string]any) (err error) {
	s, err := a.Connect(ctx, true)
	if err != nil {
		return err
	}
	defer a.CloseSession(s, &err)
	info, err := a.FindRun(ctx, s, word, false)
	if err != nil {
		return err
	}
	params["run"] = info.ID
	if err := s.Call(ctx, "sentinel/decide", params, &info); err != nil {
		return err
	}
	if a.Flags.Output != output.FormatTable {
		return a.WriteJSON(info)
	}
	if !info.Live {
		a.Info("decided; `sentinel run%s --resume %s` goes on with it", a.SameStore(), rootOf(info))
	} else {
		a.Info("decided; run %s goes on", info.ID)
	}
	return nil
}

// rootOf is the run to take up so that info goes on too.
func rootOf(info runtime.RunInfo) string {
	if info.Root != "" {
		return string(info.Root)
	}
	return string(info.ID)
}
