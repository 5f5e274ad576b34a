package plugins

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sentinel-runtime/sentinel/host/cli/app"
	"github.com/sentinel-runtime/sentinel/host/cli/output"
	"github.com/sentinel-runtime/sentinel/host/plugin/bundle"
	"github.com/sentinel-runtime/sentinel/host/plugin/bundle/lock"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// pluginLockCommand adds files to the lock, or compares them with it.
func (a verbs) pluginLockCommand() *cobra.Command {
	var check bool
	c := &cobra.Command{
		Use: "lock [FILE]", Short: "Note the digests of plugins that were dropped in by hand, or check them",
		Long: "A plugin in plugins.lock.json is loaded with the digest noted there and with no other. Install\n" +
			"writes the lock; this adds FILE, or every file that is not in it yet, as it is now. A file that is\n" +
			"not what the lock says stays refused: install it again, or unlock it.",
		Example: "  sentinel plugin lock\n  sentinel plugin lock --check   # in CI: exit code 4 if a file was changed",
		Args:    app.RangeArgs(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			folder := lock.Folder{Dir: a.pluginDir()}
			var list []bundle.Status
			var err error
			if check {
				if len(args) > 0 {
					return app.NewUsageError("--check checks all files", "")
				}
				list, err = bundle.Look(folder)
			} else {
				var keys bundle.Options
				if keys.Keys, err = a.trusted(nil); err != nil {
					return err
				}
				if err := a.CheckLink(); err != nil {
					return err
				}
				list, err = bundle.Lock(cmd.Context(), folder, strings.Join(args, ""), keys)
			}
			if err != nil {
				return err
			}
			if err := a.showLocked(list); err != nil {
				return err
			}
			return notAsLocked(list, check || len(args) > 0)
		},
	}
	c.Flags().BoolVar(&check, "check", false, "write nothing; fail if a file is not what the lock says, or is missing")
	return c
}

func (a verbs) showLocked(list []bundle.Status) error {
	if done, err := app.WriteItems(a.App, list, list); done {
		return err
	}
	rows := []output.Row{output.Head(a.PaintOut, "FILE", "STATE", "PLUGIN", "VERSION", "DIGEST", "")}
	for _, s := range list {
		r := output.Row{output.Escape(s.File), output.Escape(s.State), "", "", output.Clip(strings.TrimPrefix(s.Digest, "sha256:"), 13), a.PaintOut.Dim(output.Clip(s.Reason, 80))}
		if s.Entry != nil {
			r[2], r[3] = output.Escape(s.Entry.Name), output.Escape(s.Entry.Version)
			if s.State == bundle.Changed {
				r[5] = a.PaintOut.Bad("the lock says " + output.Clip(strings.TrimPrefix(s.Entry.Digest, "sha256:"), 13))
			}
		}
		rows = append(rows, r)
	}
	return a.Table(rows)
}

// notAsLocked is the error of files that no host would load.
func notAsLocked(list []bundle.Status, strictly bool) error {
	var names []string
	for _, s := range list {
		if s.State == bundle.Changed || strictly && (s.State == bundle.Missing || s.State == bundle.Unusable) {
			names = append(names, fmt.Sprintf("%s is %s", s.File, s.State))
		}
	}
	if len(names) == 0 {
		return nil
	}
	return &abi.Error{Code: abi.Denied, Message: "check lock: " + strings.Join(names, ", "), Hint: "install it again with `sentinel plugin install`, or, if the change is yours, `sentinel plugin unlock FILE`"}
}

// pluginUnlockCommand removes a file from the lock.
func (a verbs) pluginUnlockCommand() *cobra.Command {
	return &cobra.Command{
		Use: "unlock FILE", Short: "Take a file out of the lock: it counts as dropped in by hand",
		Example: "  sentinel plugin unlock shout.wasm",
		Args:    app.ExactArgs("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.CheckLink(); err != nil {
				return err
			}
			e, err := bundle.Unlock(cmd.Context(), lock.Folder{Dir: a.pluginDir()}, args[0])
			if err != nil {
				return err
			}
			a.Info("%s is not locked any more; it was %s %s, %s", args[0], e.Name, e.Version, e.Digest)
			return nil
		},
	}
}
