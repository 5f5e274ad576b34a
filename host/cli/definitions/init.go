package definitions

import (
	"context"
	"encoding/json"
	"fmt"
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
	long := "Writes DIR/.sentinel/sentinels/NAME.jsonc; DIR is the current folder if it is left out. NAME is\n" +
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
			all := templates[slices.Index(templateNames(), template)].all
			switch named := cmd.Flags().Changed("name"); {
			case len(all) == 0 && !named:
				name = template
			case len(all) > 0 && named:
				return app.NewUsageError("sentinel init: --name: the template "+template+" writes several sentinels under their own names: "+strings.Join(all, ", "), "write one of them with --template and --name")
			}
			starters := []starter{{template, name}}
			if len(all) > 0 {
				starters = nil
			}
			for _, one := range all {
				starters = append(starters, starter{one, one})
			}
			return a.init(cmd.Context(), dir, starters)
		},
	}
	c.Flags().StringVar(&template, "template", templates[0].name, "what to write: "+strings.Join(templateNames(), ", "))
	_ = c.RegisterFlagCompletionFunc("template", cobra.FixedCompletions(templateNames(), cobra.ShellCompDirectiveNoFileComp)) // the flag exists
	c.Flags().StringVar(&name, "name", "", "name of the sentinel (default: that of the template)")
	return c
}

// A starter is a template with the name of the sentinel that is made of it.
type starter struct{ template, name string }

// init writes starters. O_EXCL and no look before it: nothing that is there is
// ever lost, also if another process writes at the same time.
func (a verbs) init(ctx context.Context, dir string, starters []starter) error {
	written := []map[string]string{}
	hint := "take another name with --name"
	if len(starters) > 1 {
		hint = "write each of the others with --template"
	}
	for _, s := range starters {
		text, err := fromTemplate(s.template, s.name)
		if err != nil {
			return app.NewUsageError("sentinel init: "+err.Error(), "")
		}
		id := string(sentinels.Slug(s.name))
		file, err := a.writeSentinel(dir, id, text, hint)
		if err != nil {
			return err
		}
		written = append(written, map[string]string{"file": file, "sentinel": id})
		if a.Flags.Output == output.FormatTable {
			if err := a.Out.Printf("%s\n", a.Relative(file)); err != nil {
				return err
			}
		}
	}
	if a.Flags.Output != output.FormatTable {
		if len(written) == 1 {
			return a.WriteJSON(written[0])
		}
		return a.WriteJSON(written)
	}
	if len(written) > 1 { // triggers start them
		a.Info("next: sentinel serve")
	} else {
		a.Info("next: sentinel run %s", written[0]["sentinel"])
	}
	for _, w := range written {
		if err := a.showMissing(ctx, w["file"]); err != nil {
			return err
		}
	}
	return nil
}

// writeSentinel writes the file of a new sentinel of a project. hint says what to do if there
// is one already.
func (a verbs) writeSentinel(dir, id string, text []byte, hint string) (file string, err error) {
	folder := filepath.Join(dir, ".sentinel", "sentinels")
	for _, ext := range sentinels.FileExtensions() {
		other := filepath.Join(folder, id+ext)
		if _, err := os.Lstat(other); err == nil {
			return "", &abi.Error{Code: abi.Conflict, Message: fmt.Sprintf("%s is there already and stays as it is", a.Relative(other)), Hint: hint}
		}
	}
	file = filepath.Join(folder, id+extension(text))
	err = a.WriteProjectFile(folder, func() (string, error) {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return "", err
		}
		return filepath.Base(file), createFile(file, file, text)
	})
	if err != nil {
		return "", fmt.Errorf("write a sentinel: %w", err)
	}
	return file, nil
}

// extension returns that of a file with the text: editors take comments for mistakes in .json.
func extension(text []byte) string {
	if json.Valid(text) {
		return ".json"
	}
	return ".jsonc"
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
