package cli

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// stepFlags name the step that is meant and what becomes of it. Target, place
// and revision can all be given as flags, as the specification writes them.
type stepFlags struct {
	sentinelID, address, hash string
	step, params              string
	index, revision           int
}

// targetFlags are those of every verb that edits steps.
func (f *stepFlags) targetFlags(fs *pflag.FlagSet) {
	fs.StringVar(&f.sentinelID, "sentinelId", "", "the sentinel or run, in place of the argument")
	fs.IntVar(&f.index, "index", -1, "place of the step, from 0")
	fs.StringVar(&f.address, "address", "", "a nested step, such as 3.then.0, or a step by its id")
	fs.IntVar(&f.revision, "revision", 0, "revision the edit was made on; another one by now is refused")
	fs.StringVar(&f.hash, "hash", "", "hash of the definition the edit was made on; another one by now is refused")
}

// arguments takes NAME|RUN and ADDRESS from where they were given. An argument
// that is there although its flag is too would be ignored in silence, so it is
// refused.
func (f *stepFlags) arguments(cmd *cobra.Command, args []string) (target string, err error) {
	if f.sentinelID == "" {
		if len(args) == 0 {
			return "", &usageError{cmd.CommandPath() + ": NAME or RUN is missing", "usage: " + cmd.UseLine()}
		}
		f.sentinelID, args = args[0], args[1:]
	}
	// The second argument is the place, but only where no flag is.
	if len(args) > 0 && f.address == "" && f.index < 0 {
		f.address, args = args[0], args[1:]
	}
	if len(args) > 0 {
		return "", &usageError{fmt.Sprintf("%s: %q is one argument too many", cmd.CommandPath(), args[0]), "usage: " + cmd.UseLine()}
	}
	if cmd.Flags().Changed("index") && f.index < 0 {
		return "", &usageError{fmt.Sprintf("--index %d is below 0", f.index), "places are counted from 0; --address names nested steps"}
	}
	return f.sentinelID, nil
}

// parameters are those of a sentinel/step command. What was not given is left
// out: there, 0 and "" would be a place and an empty address.
func (f *stepFlags) parameters(a *app) (map[string]any, error) {
	out := map[string]any{}
	if f.index >= 0 {
		out["index"] = f.index
	}
	if f.address != "" {
		out["address"] = f.address
	}
	if f.revision > 0 {
		out["revision"] = f.revision
	}
	if f.hash != "" {
		out["hash"] = f.hash
	}
	for name, text := range map[string]string{"step": f.step, "params": f.params} {
		raw, err := a.jsonFlag("--"+name, text)
		if err != nil {
			return nil, err
		}
		if raw != nil {
			out[name] = raw
		}
	}
	return out, nil
}

// edit carries a verb out: what it needs beside a place is checked by need, so
// that a slip is told before the store is opened.
func (f *stepFlags) edit(a *app, cmd *cobra.Command, args []string, command string, need func(map[string]any) error) error {
	target, err := f.arguments(cmd, args)
	if err != nil {
		return err
	}
	params, err := f.parameters(a)
	if err == nil {
		err = need(params)
	}
	if err != nil {
		return err
	}
	return a.editing(cmd.Context(), target, command, params)
}

// stepAddCommand appends unless it is told a place. The place may be one in a
// nested list, such as 3.then.0; one behind the last of that list appends to it.
func (a *app) stepAddCommand() *cobra.Command {
	var f stepFlags
	c := &cobra.Command{
		Use: "add NAME|RUN [ADDRESS] --step JSON", Short: "Add a step, at a place or behind the last one",
		Long: "What stands at the place moves back by one. Runs use the step from their next iteration on.\n" +
			"Of a RUN: that run alone gets it.",
		Example: `  sentinel step add build-fix --index 2 --step '{"command":"code/verify","outputTo":"result"}'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.edit(a, cmd, args, "sentinel/step/add", func(params map[string]any) error {
				if params["step"] == nil {
					return &usageError{"step add: --step is missing", "the step itself, JSON or @FILE"}
				}
				return nil
			})
		},
	}
	f.targetFlags(c.Flags())
	c.Flags().StringVar(&f.step, "step", "", "the step, JSON or @FILE")
	return c
}

// stepUpdateCommand changes a step in part or as a whole. Which of the two is said
// by the flag: a part that looks like a whole would delete what it leaves out.
func (a *app) stepUpdateCommand() *cobra.Command {
	var f stepFlags
	c := &cobra.Command{
		Use: "update NAME|RUN ADDRESS (--params JSON | --step JSON)", Short: "Change a step",
		Long: "--params is merged into the params of a command step, into the fields of any other; null takes\n" +
			"a field away. --step takes the whole step's place. Runs use it from their next iteration on.",
		Example: `  sentinel step update build-fix --index 1 --params '{"command":"cargo test"}'` + "\n" +
			`  sentinel step update build-fix 3.then.0 --step @step.json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.edit(a, cmd, args, "sentinel/step/update", func(params map[string]any) error {
				if err := placed(cmd, params); err != nil {
					return err
				}
				if (params["step"] == nil) == (params["params"] == nil) {
					return &usageError{"step update: give either --params or --step", "usage: " + cmd.UseLine()}
				}
				return nil
			})
		},
	}
	f.targetFlags(c.Flags())
	c.Flags().StringVar(&f.params, "params", "", "what changes, a JSON object or @FILE")
	c.Flags().StringVar(&f.step, "step", "", "the whole step, JSON or @FILE")
	return c
}

// stepRemoveCommand takes a step out, with all that is nested in it.
func (a *app) stepRemoveCommand() *cobra.Command {
	var f stepFlags
	c := &cobra.Command{
		Use: "remove NAME|RUN ADDRESS", Short: "Remove a step", Aliases: []string{"rm"},
		Long:    "What stands behind it moves up by one. Runs do without it from their next iteration on.",
		Example: "  sentinel step remove build-fix --index 3",
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.edit(a, cmd, args, "sentinel/step/remove", func(params map[string]any) error { return placed(cmd, params) })
		},
	}
	f.targetFlags(c.Flags())
	return c
}

// placed refuses a verb that was not told which step is meant.
func placed(cmd *cobra.Command, params map[string]any) error {
	if params["index"] == nil && params["address"] == nil {
		return &usageError{cmd.CommandPath() + ": no step is named", "give --index N, or its address as in `sentinel step list`"}
	}
	return nil
}
