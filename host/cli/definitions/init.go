package definitions

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sentinel-runtime/sentinel/host/cli/app"
	"github.com/sentinel-runtime/sentinel/host/cli/output"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// initCommand writes into the folder that `run NAME` looks in, so that the first
// sentinel can be run by its name at once.
func (a verbs) initCommand() *cobra.Command {
	var name, template string
	long := "Writes DIR/.sentinel/sentinels/NAME.json; DIR is the current folder if it is left out. NAME is\n" +
		"that of the template. A file that is there is never overwritten. The templates:\n"
	for _, t := range templates {
		long += fmt.Sprintf("\n  %-12s %s", t.name, t.summary)
	}
	c := &cobra.Command{
		Use: "init [DIR]", Short: "Write a first sentinel with comments, from a template", Long: long,
		Example: "  sentinel init\n  sentinel run hello\n  sentinel init --template review",
		Args:    app.RangeArgs(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := a.Workspace()
			if len(args) > 0 {
				dir = a.Path(args[0])
			}
			if !slices.Contains(templateNames(), template) {
				hint := "one of " + strings.Join(templateNames(), ", ")
				if near := sentinels.Suggest(template, templateNames()); len(near) > 0 {
					hint = fmt.Sprintf("did you mean %q?", near[0])
				}
				return app.NewUsageError(fmt.Sprintf("sentinel init: unknown template %q", template), hint)
			}
			if !cmd.Flags().Changed("name") {
				name = template
			}
			return a.init(cmd.Context(), dir, template, name)
		},
	}
	c.Flags().StringVar(&template, "template", templates[0].name, "what to write: "+strings.Join(templateNames(), ", "))
	c.Flags().StringVar(&name, "name", "", "name of the sentinel (default: that of the template)")
	return c
}

// init writes the starter. O_EXCL and no look before it: nothing that is there is
// ever lost, also if another process writes at the same time.
func (a verbs) init(ctx context.Context, dir, template, name string) error {
	text, err := fromTemplate(template, name)
	if err != nil {
		return app.NewUsageError("sentinel init: "+err.Error(), "")
	}
	file, err := a.writeSentinel(dir, string(sentinels.Slug(name)), text, "take another name with --name")
	if err != nil {
		return err
	}
	if a.Flags.Output != output.FormatTable {
		return a.WriteJSON(map[string]string{"file": file, "sentinel": string(sentinels.Slug(name))})
	}
	if err := a.Out.Printf("%s\n", a.Relative(file)); err != nil {
		return err
	}
	a.Info("next: sentinel run %s", sentinels.Slug(name))
	return a.showMissing(ctx, file)
}

// writeSentinel writes the file of a new sentinel of a project. hint says what to do if there
// is one already.
func (a verbs) writeSentinel(dir, id string, text []byte, hint string) (file string, err error) {
	folder := filepath.Join(dir, ".sentinel", "sentinels")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", fmt.Errorf("write a sentinel: %w", err)
	}
	file = filepath.Join(folder, id+".json")
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return "", &abi.Error{Code: abi.Conflict, Message: fmt.Sprintf("%s is there already and stays as it is", a.Relative(file)), Hint: hint}
	}
	if err != nil {
		return "", fmt.Errorf("write a sentinel: %w", err)
	}
	_, err = f.Write(text)
	if err := errors.Join(err, f.Close()); err != nil {
		return "", fmt.Errorf("write a sentinel: %w", err)
	}
	return file, nil
}

// showMissing shows the warnings of a new definition: that it needs a model, and none is
// configured.
func (a verbs) showMissing(ctx context.Context, file string) (err error) {
	src, err := a.ReadSource(file)
	if err != nil {
		return err
	}
	s, err := a.Scratch(ctx)
	if err != nil {
		return err
	}
	defer a.CloseSession(s, &err)
	out, err := a.Validation(ctx, s, src)
	if err != nil {
		return err
	}
	a.ShowProblems(out.Problems)
	return nil
}
