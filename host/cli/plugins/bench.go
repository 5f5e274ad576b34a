package plugins

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/sentinel-runtime/sentinel/host/cli/app"
	"github.com/sentinel-runtime/sentinel/host/cli/output"
	"github.com/sentinel-runtime/sentinel/host/internal/termtext"
	"github.com/sentinel-runtime/sentinel/host/plugin/author"
	"github.com/sentinel-runtime/sentinel/host/plugin/plugintest"
	"github.com/sentinel-runtime/sentinel/sdk/sdktest"
)

// pluginBenchCommand measures a plugin.
func (a verbs) pluginBenchCommand() *cobra.Command {
	var f trialFlags
	var n int
	c := &cobra.Command{
		Use: "bench FILE|DIR|NAME", Short: "Measure a plugin: load, instance, step, memory",
		Long: "Executes one step many times, on fresh instances and, if the plugin says that it is stateless, on\n" +
			"reused ones. Host calls are answered at once by --fake, so what is measured is plugin and sandbox.",
		Example: "  sentinel plugin bench shout.wasm --input '{\"text\": \"hey\"}'\n  sentinel plugin bench . --n 1000 -o json",
		Args:    app.ExactArgs("the module"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if n < 1 {
				return app.NewUsageError(fmt.Sprintf("--n %d is below 1", n), "")
			}
			src, fakes, text, err := a.trial(cmd.Context(), args[0], f)
			if err != nil {
				return err
			}
			input := func(p *plugintest.Plugin) (sdktest.Input, error) { return p.ReadInput(text, f.step) }
			figures, err := author.Bench(cmd.Context(), src.module, input, fakes, n)
			if err != nil {
				return err
			}
			if done, err := app.WriteItems(a.App, figures, figures); done || err != nil {
				return err
			}
			rows := []output.Row{output.Head(a.PaintOut, "WHAT", "MEDIAN", "95 %", "N", "")}
			for _, fig := range figures {
				rows = append(rows, figureRow(fig))
			}
			return a.Table(rows)
		},
	}
	f.add(c)
	c.Flags().IntVar(&n, "n", 100, "how many steps of each kind")
	return c
}

func figureRow(f author.Figure) output.Row {
	r := output.Row{output.Escape(f.What), "", "", "", output.Escape(f.Note)}
	switch {
	case f.Bytes > 0:
		r[1] = output.Escape(megabytes(f.Bytes))
	case f.N > 0:
		r[1], r[3] = termtext.Sprintf("%.3f ms", f.Millis), output.Number(f.N)
	}
	if f.Worst > 0 {
		r[2] = termtext.Sprintf("%.3f ms", f.Worst)
	}
	return r
}
