package app

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// StepFlags select a step and the edit of it. Target, position and revision can all be
// given as flags.
type StepFlags struct {
	sentinelID, Address, hash string
	Step, Params              string
	Index, revision           int
}

// TargetFlags adds the flags of every verb that edits steps.
func (f *StepFlags) TargetFlags(fs *pflag.FlagSet) {
	fs.StringVar(&f.sentinelID, "sentinelId", "", "the sentinel or run, in place of the argument")
	fs.IntVar(&f.Index, "index", -1, "position of the step, from 0")
	fs.StringVar(&f.Address, "address", "", "a nested step, such as 3.then.0, or a step by its id")
	fs.IntVar(&f.revision, "revision", 0, "revision the edit was made on; a newer one is a conflict")
	fs.StringVar(&f.hash, "hash", "", "hash of the definition the edit was made on; a newer one is a conflict")
}

// Arguments returns NAME|RUN from the arguments or flags, and sets ADDRESS. An argument
// beside its flag is an error, because one of them would be ignored.
func (f *StepFlags) Arguments(cmd *cobra.Command, args []string) (target string, err error) {
	if f.sentinelID == "" {
		if len(args) == 0 {
			return "", &UsageError{cmd.CommandPath() + ": NAME or RUN is missing", "usage: " + cmd.UseLine()}
		}
		f.sentinelID, args = args[0], args[1:]
	}
	// The second argument is the position, unless a flag gives it.
	if len(args) > 0 && f.Address == "" && f.Index < 0 {
		f.Address, args = args[0], args[1:]
	}
	if len(args) > 0 {
		return "", &UsageError{fmt.Sprintf("%s: unexpected argument %q", cmd.CommandPath(), args[0]), "usage: " + cmd.UseLine()}
	}
	if cmd.Flags().Changed("index") && f.Index < 0 {
		return "", &UsageError{fmt.Sprintf("--index %d is below 0", f.Index), "positions are counted from 0; --address names nested steps"}
	}
	return f.sentinelID, nil
}

// Parameters returns the parameters of a sentinel/step command. Flags that were not
// given are left out, because 0 and "" would be a position and an address.
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
