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
