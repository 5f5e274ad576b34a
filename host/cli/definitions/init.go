package definitions

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/sentinel-runtime/sentinel/host/cli/app"
	"github.com/sentinel-runtime/sentinel/host/cli/output"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// initCommand writes into the folder that `run NAME` looks in, so that the first
// sentinel can be run by its name at once.
func (a verbs) initCommand() *cobra.Command {
	var name string
	c := &cobra.Command{
		Use: "init [DIR]", Short: "Write a first sentinel with comments",
		Long: "Writes DIR/.sentinel/sentinels/NAME.json; DIR is the current folder if it is left out.\n" +
			"A file that is there is never overwritten.",
		Args: app.RangeArgs(0, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			dir := a.Workspace()
			if len(args) > 0 {
				dir = a.Path(args[0])
			}
			return a.init(dir, name)
		},
	}
	c.Flags().StringVar(&name, "name", "build-fix", "name of the sentinel")
	return c
}

// init writes the starter. O_EXCL and no look before it: nothing that is there is
// ever lost, also if another process writes at the same time.
func (a verbs) init(dir, name string) error {
	text, err := sentinels.Template(name)
	if err != nil {
		return app.NewUsageError(err.Error(), "")
	}
	folder := filepath.Join(dir, ".sentinel", "sentinels")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("init: %w", err)
	}
	file := filepath.Join(folder, string(sentinels.Slug(name))+".json")
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return &abi.Error{Code: abi.Conflict, Message: fmt.Sprintf("%s is there already and stays as it is", a.Relative(file)),
			Hint: "take another name with --name"}
	}
	if err != nil {
		return fmt.Errorf("init: %w", err)
	}
	if _, err := f.Write(text); err != nil {
		return errors.Join(fmt.Errorf("init: %w", err), f.Close())
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("init: %w", err)
	}
	if a.Flags.Output != output.FormatTable {
		return a.WriteJSON(map[string]string{"file": file, "sentinel": string(sentinels.Slug(name))})
	}
	if err := a.Out.Printf("%s\n", a.Relative(file)); err != nil {
		return err
	}
	a.Info("next: sentinel validate %s, then sentinel run %s", output.Quote(a.Relative(file)), sentinels.Slug(name))
	return nil
}
