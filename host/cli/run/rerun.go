package run

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sentinel-runtime/sentinel/host/cli/app"
	"github.com/sentinel-runtime/sentinel/host/process"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// modelFlags adds the flags for models, for a run in this process.
func (f *runFlags) modelFlags(fs *pflag.FlagSet) {
	fs.StringVar(&f.model, "model", "", "model for steps that name none, provider/name")
	fs.StringVar(&f.record, "record", "", "write what models answer to this new cassette file")
	fs.StringVar(&f.replay, "replay", "", "answer from this cassette file instead of models, and report differences")
}

// retryCommand starts a new run of an old one's work. The old run is unchanged, and the
// new one refers to it. The exit code is that of `run`.
func (a verbs) retryCommand() *cobra.Command {
	var f runFlags
	var from, revision string
	var iteration int
	c := &cobra.Command{
		Use: "retry RUN|NAME", Short: "Retry a run in a new run, from its start or from a step",
		Long: "With --from, the results of the steps before it are copied from the run.\n" +
			"NAME is the sentinel's newest run. The run is executed in the server if there is one, otherwise here.",
		Example: "  sentinel retry 3f9a01bc --from fix --with-revision latest",
		Args:    app.ExactArgs("RUN or NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			params := map[string]any{}
			if cmd.Flags().Changed("iteration") {
				if iteration < 1 {
					return app.NewUsageError(fmt.Sprintf("--iteration %d is below 1", iteration), "")
				}
				params["iteration"] = iteration
			}
			if from != "" {
				params["from"] = from
			}
			if revision != "" { // differences write it as NAME@3
				params["withRevision"] = strings.TrimPrefix(revision, "@")
			}
			return a.rerun(cmd.Context(), args[0], "sentinel/retry", params, &f)
		},
	}
	c.Flags().StringVar(&from, "from", "", "first step to execute: its address, id or name")
	c.Flags().IntVar(&iteration, "iteration", 0, "iteration to begin with (default: the last with --from, else the first)")
	c.Flags().StringVar(&revision, "with-revision", "", "latest, or the number of a revision (default: the definition that the run had)")
	c.Flags().StringArrayVar(&f.inputs, "input", nil, "NAME=VALUE: in place of the run's input; repeatable")
	f.forceFlag(c.Flags())
	f.modelFlags(c.Flags())
	return c
}

// forkCommand is retry with one step changed. The iteration is required: a fork from the
// beginning would be a new run.
func (a verbs) forkCommand() *cobra.Command {
	var f runFlags
	var at app.StepFlags
	var from string
	var iteration int
	c := &cobra.Command{
		Use: "fork RUN|NAME --iteration N", Short: "Repeat an iteration of a run in a new run, optionally with a step changed",
		Long: "The new run has the state that the other one had at that iteration. Neither the sentinel nor\n" +
			"the other run changes. With --workspace DIR the new run works in that folder.",
		Example: `  sentinel fork 3f9a01bc --iteration 4 --address fix --params '{"command":"go vet ./..."}'`,
		Args:    app.ExactArgs("RUN or NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if iteration < 1 {
				return app.NewUsageError("fork: --iteration is missing: want a number from 1", "`sentinel trace RUN` shows a run's iterations")
			}
			params, err := at.Parameters(a.App)
			if err != nil {
				return err
			}
			params["iteration"] = iteration
			if from != "" {
				params["from"] = from
			}
			return a.rerun(cmd.Context(), args[0], "sentinel/fork", params, &f)
		},
	}
	fs := c.Flags()
	fs.IntVar(&iteration, "iteration", 0, "iteration to begin with")
	fs.StringVar(&from, "from", "", "first step to execute in it: its address, id or name")
	fs.IntVar(&at.Index, "index", -1, "place of the step to change, from 0")
	fs.StringVar(&at.Address, "address", "", "the step to change where it is nested, such as 3.then.0, or by its id")
	fs.StringVar(&at.Step, "step", "", "takes the step's place as a whole, JSON or @FILE")
	fs.StringVar(&at.Params, "params", "", "what changes in it, a JSON object or @FILE")
	fs.StringArrayVar(&f.inputs, "input", nil, "NAME=VALUE: in place of the run's input; repeatable")
	f.forceFlag(fs)
	f.modelFlags(fs)
	return c
}

// rerun starts a new run from another one and follows it.
func (a verbs) rerun(ctx context.Context, word, command string, params map[string]any, f *runFlags) (err error) {
	if err := f.check(); err != nil {
		return err
	}
	if err := replacedInputs(params, f.inputs); err != nil {
		return err
	}
	if dir := a.MovesTo(); dir != "" {
		params["workspace"] = dir
	}
	if f.force {
		params["force"] = true
	}
	return a.execute(ctx, f, func(s *app.Session) (sentinels.RunID, error) {
		old, err := a.FindRun(ctx, s, word, true)
		if err != nil {
			return "", err
		}
		params["run"] = old.ID
		var out json.RawMessage
		err = s.Call(ctx, command, params, &out)
		return process.RunOf(out), err
	})
}

// replacedInputs puts inputs into the parameters. Their types are the
// definition's, which only the engine has, so valid JSON is used as JSON.
func replacedInputs(params map[string]any, pairs []string) error {
	inputs := map[string]json.RawMessage{}
	for _, pair := range pairs {
		name, text, ok := strings.Cut(pair, "=")
		if !ok || name == "" {
			return app.NewUsageError(fmt.Sprintf("--input %q is not NAME=VALUE", pair), "")
		}
		value, err := app.ValueOf(text, "")
		if err != nil {
			return app.NewUsageError(fmt.Sprintf("--input %s: %v", name, err), "")
		}
		inputs[name] = value
	}
	if len(inputs) > 0 {
		params["inputs"] = inputs
	}
	return nil
}
