package plugins

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"

	"github.com/spf13/cobra"

	"github.com/sentinel-runtime/sentinel/host/cli/app"
	"github.com/sentinel-runtime/sentinel/host/cli/output"
	"github.com/sentinel-runtime/sentinel/host/internal/termtext"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sdk/sdktest"
)

// pluginTestCommand executes the cases of a project.
func (a verbs) pluginTestCommand() *cobra.Command {
	var cases, only string
	var clauses bool
	c := &cobra.Command{
		Use: "test [DIR|FILE]", Short: "Test a plugin with the cases in tests/cases.json",
		Long: "Builds the project in DIR, or takes the module FILE, and executes each case in the sandbox: a step, the\n" +
			"host calls it must make with their answers, and how it must end. The step is then executed again from its\n" +
			"record, and from each of its checkpoints on a fresh instance, as a host does after a crash. It must make\n" +
			"the same calls and end the same way, or the case fails: such a step cannot be made durable (sdk/ABI.md A6.17).",
		Example: "  sentinel plugin test\n  sentinel plugin test shout --run 'too many'\n" +
			"  a case: {\"name\": \"loud\", \"step\": {\"type\": \"shout\", \"fields\": {\"text\": \"hey\"}}, \"output\": {\"text\": \"HEY!\"}}",
		Args: app.RangeArgs(0, 1, "the project"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			wanted, err := regexp.Compile(only)
			if err != nil {
				return app.NewUsageError("plugin test: --run: "+err.Error(), "")
			}
			ctx := cmd.Context()
			src, err := a.moduleOf(ctx, argument(args))
			if err != nil {
				return err
			}
			list, err := a.casesOf(src, cases, clauses)
			if err != nil {
				return err
			}
			var results []sdktest.Result
			if clauses {
				if results, err = a.kit(ctx, src.module); err != nil {
					return err
				}
			}
			p, done, err := a.openPlugin(ctx, src.module)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, done()) }()
			for _, c := range list {
				if wanted.MatchString(c.Name) && ctx.Err() == nil {
					r := sdktest.Try(ctx, p, c)
					results = append(results, r)
					if err := a.showResult(r); err != nil {
						return err
					}
				}
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return a.showResults(results)
		},
	}
	c.Flags().StringVar(&cases, "cases", "", "file with the cases (default: tests/cases.json beside the module or in DIR)")
	c.Flags().BoolVar(&clauses, "abi", false, "hold the plugin to the clauses of sdk/ABI.md first; then it needs no cases")
	c.Flags().StringVar(&only, "run", "", "only cases whose name this regular expression finds")
	return c
}

// casesOf reads the cases of a module. Where other checks are made, there need be
// none.
func (a verbs) casesOf(src moduleSource, file string, optional bool) ([]sdktest.Case, error) {
	if file = a.Path(file); file == "" {
		file = filepath.Join(src.dir, filepath.FromSlash(sdktest.CasesFile))
	} else {
		optional = false
	}
	text, err := app.ReadFile(file, app.MaxFile)
	if errors.Is(err, fs.ErrNotExist) && optional {
		return nil, nil
	}
	if err != nil {
		return nil, &abi.Error{Code: abi.NotFound, Message: fmt.Sprintf("plugin test: %v", err), Hint: "`sentinel plugin test --help` shows a case; --cases names another file"}
	}
	return sdktest.ReadCases(text)
}

// showResult prints the result of a case as soon as it is over.
func (a verbs) showResult(r sdktest.Result) error {
	if a.Flags.Output != output.FormatTable || a.Flags.Quiet && r.OK {
		return nil
	}
	var b output.Page
	mark := a.PaintOut.Good("ok  ")
	switch {
	case !r.OK:
		mark = a.PaintOut.Bad("FAIL")
	case r.Skipped != "":
		mark = a.PaintOut.Warn("skip")
	}
	b.Printf("%s %s  %s\n", mark, r.Name, a.PaintOut.Dim(output.Duration(output.Millis(r.DurationMs))+resumed(r)))
	for _, p := range append(r.Problems, r.Skipped) {
		if p != "" {
			b.Printf("     %s\n", termtext.Block(p, "     "))
		}
	}
	return a.Out.Write(b.Text())
}

// resumed says from how many checkpoints a case was executed again.
func resumed(r sdktest.Result) termtext.Text {
	switch {
	case r.Checkpoints == 0:
		return ""
	case r.Resumed < r.Checkpoints:
		return termtext.Sprintf(", resumed from %d of %d checkpoints", r.Resumed, r.Checkpoints)
	}
	return termtext.Sprintf(", resumed from %s", output.Plural(r.Resumed, "checkpoint", "checkpoints"))
}

func (a verbs) showResults(results []sdktest.Result) error {
	failed, skipped := 0, 0
	for _, r := range results {
		switch {
		case !r.OK:
			failed++
		case r.Skipped != "":
			skipped++
		}
	}
	if results == nil {
		results = []sdktest.Result{}
	}
	also := ""
	if skipped > 0 {
		also = fmt.Sprintf(", %d not made", skipped)
	}
	if done, err := app.WriteItems(a.App, results, results); err != nil {
		return err
	} else if !done {
		a.Info("%d passed, %d failed%s", len(results)-failed-skipped, failed, also)
	}
	switch {
	case failed > 0:
		return app.ExitError(app.ExitFailed)
	case len(results) == 0:
		return &abi.Error{Code: abi.NotFound, Message: "plugin test: there is no case to run"}
	}
	return nil
}
