package definitions

import (
	"github.com/spf13/cobra"

	"github.com/sentinel-runtime/sentinel/host/cli/app"
)

// editStep executes a verb that edits a step. need checks the parameters before the
// store is opened.
func (a verbs) editStep(f *app.StepFlags, cmd *cobra.Command, args []string, command string, need func(map[string]any) error) error {
	target, err := f.Arguments(cmd, args)
	if err != nil {
		return err
	}
	params, err := f.Parameters(a.App)
	if err == nil {
		err = need(params)
	}
	if err != nil {
		return err
	}
	return a.editing(cmd.Context(), target, command, params)
}

// stepAddCommand appends unless a position is given. The position may be in a
// nested list, such as 3.then.0; a position after the last one of that list appends to it.
func (a verbs) stepAddCommand() *cobra.Command {
	var f app.StepFlags
	c := &cobra.Command{
		Use: "add NAME|RUN [ADDRESS] --step JSON", Short: "Add a step, at a position or after the last one",
		Long: "The steps from that position on move by one. Runs use the step from their next iteration on.\n" +
			"Of a RUN: that run alone gets it.",
		Example: `  sentinel step add build-fix --index 2 --step '{"command":"code/verify","outputTo":"result"}'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.editStep(&f, cmd, args, "sentinel/step/add", func(params map[string]any) error {
				if params["step"] == nil {
					return app.NewUsageError("step add: --step is missing", "the step itself, JSON or @FILE")
				}
				return nil
			})
		},
	}
	f.TargetFlags(c.Flags())
	c.Flags().StringVar(&f.Step, "step", "", "the step, JSON or @FILE")
	return c
}

// stepUpdateCommand changes a step in part or as a whole. The flag decides which, because a
// part that was taken for a whole step would delete the other fields.
func (a verbs) stepUpdateCommand() *cobra.Command {
	var f app.StepFlags
	c := &cobra.Command{
		Use: "update NAME|RUN ADDRESS (--params JSON | --step JSON)", Short: "Change a step",
		Long: "--params is merged into the params of a command step, into the fields of any other; null takes\n" +
			"a field away. --step takes the whole step's place. Runs use it from their next iteration on.",
		Example: `  sentinel step update build-fix --index 1 --params '{"command":"cargo test"}'` + "\n" +
			`  sentinel step update build-fix 3.then.0 --step @step.json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.editStep(&f, cmd, args, "sentinel/step/update", func(params map[string]any) error {
				if err := placed(cmd, params); err != nil {
					return err
				}
				if (params["step"] == nil) == (params["params"] == nil) {
					return app.NewUsageError("step update: give either --params or --step", "usage: "+cmd.UseLine())
				}
				return nil
			})
		},
	}
	f.TargetFlags(c.Flags())
	c.Flags().StringVar(&f.Params, "params", "", "what changes, a JSON object or @FILE")
	c.Flags().StringVar(&f.Step, "step", "", "the whole step, JSON or @FILE")
	return c
}

// stepRemoveCommand takes a step out, with all that is nested in it.
func (a verbs) stepRemoveCommand() *cobra.Command {
	var f app.StepFlags
	c := &cobra.Command{
		Use: "remove NAME|RUN ADDRESS", Short: "Remove a step", Aliases: []string{"rm"},
		Long:    "The steps after it move by one. Runs omit it from their next iteration on.",
		Example: "  sentinel step remove build-fix --index 3",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.editStep(&f, cmd, args, "sentinel/step/remove", func(params map[string]any) error { return placed(cmd, params) })
		},
	}
	f.TargetFlags(c.Flags())
	return c
}

// placed returns an error if no step was named.
func placed(cmd *cobra.Command, params map[string]any) error {
	if params["index"] == nil && params["address"] == nil {
		return app.NewUsageError(cmd.CommandPath()+": no step is named", "give --index N, or its address as in `sentinel step list`")
	}
	return nil
}
