package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"github.com/spf13/cobra"

	"github.com/sentinel-runtime/sentinel/host/plugintest"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// pluginTestCommand carries out a project's cases.
func (a *app) pluginTestCommand() *cobra.Command {
	var cases, only string
	c := &cobra.Command{
		Use: "test [DIR|FILE]", Short: "Test a plugin with the cases in tests/cases.json",
		Long: "Builds the project in DIR, or takes the module FILE, and carries out each case in the sandbox: a step,\n" +
			"the host calls it is to make with their answers, and how it is to end. Each is done a second time from\n" +
			"its record, and from each checkpoint, as a host does after a crash; a step that then asks for something\n" +
			"else fails, for it could not be made durable.",
		Example: "  sentinel plugin test\n  sentinel plugin test shout --run 'too many'\n" +
			"  a case: {\"name\": \"loud\", \"step\": {\"type\": \"shout\", \"fields\": {\"text\": \"hey\"}}, \"output\": {\"text\": \"HEY!\"}}",
		Args: between(0, 1, "the project"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			wanted, err := regexp.Compile(only)
			if err != nil {
				return &usageError{"plugin test: --run: " + err.Error(), ""}
			}
			ctx := cmd.Context()
			src, err := a.moduleOf(ctx, argument(args))
			if err != nil {
				return err
			}
			file := filepath.Join(src.dir, filepath.FromSlash(plugintest.CasesFile))
			if cases != "" {
				file = a.path(cases)
			}
			text, err := os.ReadFile(file)
			if err != nil {
				return &abi.Error{Code: abi.NotFound, Message: fmt.Sprintf("plugin test: %v", err), Hint: "`sentinel plugin test --help` shows a case; --cases names another file"}
			}
			list, err := plugintest.ReadCases(text)
			if err != nil {
				return err
			}
			p, done, err := a.openPlugin(ctx, src.module)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, done()) }()
			var results []plugintest.Result
			for _, c := range list {
				if wanted.MatchString(c.Name) && ctx.Err() == nil {
					r := p.Try(ctx, c)
					results = append(results, r)
					a.showResult(r)
				}
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return a.showResults(results)
		},
	}
	c.Flags().StringVar(&cases, "cases", "", "file with the cases (default: tests/cases.json beside the module or in DIR)")
	c.Flags().StringVar(&only, "run", "", "only cases whose name this regular expression finds")
	return c
}

// showResult tells a case as soon as it is over.
func (a *app) showResult(r plugintest.Result) {
	if a.flags.output != asTable || a.flags.quiet && r.OK {
		return
	}
	mark := a.paintOut.good("ok  ")
	if !r.OK {
		mark = a.paintOut.bad("FAIL")
	}
	fmt.Fprintf(a.env.Stdout, "%s %s  %s\n", mark, printable(r.Name), a.paintOut.dim(duration(millis(r.DurationMs))))
	for _, p := range r.Problems {
		fmt.Fprintf(a.env.Stdout, "     %s\n", printable(p))
	}
}

func (a *app) showResults(results []plugintest.Result) error {
	failed := 0
	for _, r := range results {
		if !r.OK {
			failed++
		}
	}
	if results == nil {
		results = []plugintest.Result{}
	}
	if done, err := writeItems(a, results, results); err != nil {
		return err
	} else if !done {
		a.say("%d passed, %d failed", len(results)-failed, failed)
	}
	switch {
	case failed > 0:
		return exitError(ExitFailed)
	case len(results) == 0:
		return &abi.Error{Code: abi.NotFound, Message: "plugin test: there is no case to carry out"}
	}
	return nil
}
