package app

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// StepFlags name the step that is meant and what becomes of it. Target, place
// and revision can all be given as flags, as the specification writes them.
type StepFlags struct {
	sentinelID, Address, hash string
	Step, Params              string
	Index, revision           int
}

// TargetFlags are those of every verb that edits steps.
func (f *StepFlags) TargetFlags(fs *pflag.FlagSet) {
	fs.StringVar(&f.sentinelID, "sentinelId", "", "the sentinel or run, in place of the argument")
	fs.IntVar(&f.Index, "index", -1, "place of the step, from 0")
	fs.StringVar(&f.Address, "address", "", "a nested step, such as 3.then.0, or a step by its id")
	fs.IntVar(&f.revision, "revision", 0, "revision the edit was made on; another one by now is refused")
	fs.StringVar(&f.hash, "hash", "", "hash of the definition the edit was made on; another one by now is refused")
}

// Arguments takes NAME|RUN and ADDRESS from where they were given. An argument
// that is there although its flag is too would be ignored in silence, so it is
// refused.
func (f *StepFlags) Arguments(cmd *cobra.Command, args []string) (target string, err error) {
	if f.sentinelID == "" {
		if len(args) == 0 {
			return "", &UsageError{cmd.CommandPath() + ": NAME or RUN is missing", "usage: " + cmd.UseLine()}
		}
		f.sentinelID, args = args[0], args[1:]
	}
	// The second argument is the place, but only where no flag is.
	if len(args) > 0 && f.Address == "" && f.Index < 0 {
		f.Address, args = args[0], args[1:]
	}
	if len(args) > 0 {
		return "", &UsageError{fmt.Sprintf("%s: %q is one argument too many", cmd.CommandPath(), args[0]), "usage: " + cmd.UseLine()}
	}
	if cmd.Flags().Changed("index") && f.Index < 0 {
		return "", &UsageError{fmt.Sprintf("--index %d is below 0", f.Index), "places are counted from 0; --address names nested steps"}
	}
	return f.sentinelID, nil
}

// Parameters are those of a sentinel/step command. What was not given is left
// out: there, 0 and "" would be a place and an empty address.
func (f *StepFlags) Parameters(a *App) (map[string]any, error) {
	out := map[string]any{}
	if f.Index >= 0 {
		out["index"] = f.Index
	}
	if f.Address != "" {
		out["address"] = f.Address
	}
	if f.revision > 0 {
		out["revision"] = f.revision
	}
	if f.hash != "" {
		out["hash"] = f.hash
	}
	for name, text := range map[string]string{"step": f.Step, "params": f.Params} {
		raw, err := a.JSONFlag("--"+name, text)
		if err != nil {
			return nil, err
		}
		if raw != nil {
			out[name] = raw
		}
	}
	return out, nil
}
