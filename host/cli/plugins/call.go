package plugins

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sentinel-runtime/sentinel/host/cli/app"
	"github.com/sentinel-runtime/sentinel/host/cli/output"
	"github.com/sentinel-runtime/sentinel/host/internal/termtext"
	"github.com/sentinel-runtime/sentinel/sdk/sdktest"
)

// trialFlags select the step of a plugin that is tried.
type trialFlags struct{ step, input, fake string }

func (f *trialFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.step, "type", "", "step type (default: the plugin's only one)")
	c.Flags().StringVar(&f.input, "input", "{}", "fields of the step, or a whole run input: JSON, @FILE, or - for standard input")
	c.Flags().StringVar(&f.fake, "fake", "", "file with answers to host calls: [{\"function\", \"request\"?, \"ok\"|\"error\"}]")
}

// trial reads the module, the answers to its calls and the step's input.
func (a verbs) trial(ctx context.Context, module string, f trialFlags) (src moduleSource, fakes []sdktest.Fake, input []byte, err error) {
	if src, err = a.moduleOf(ctx, module); err != nil {
		return src, nil, nil, err
	}
	if fakes, err = a.fakes(f.fake); err != nil {
		return src, nil, nil, err
	}
	input, err = a.text("--input", f.input)
	return src, fakes, input, err
}

// callCommand executes one step outside a run.
func (a verbs) pluginCallCommand() *cobra.Command {
	var f trialFlags
	c := &cobra.Command{
		Use: "call FILE|DIR|NAME", Short: "Execute one step of a plugin, with scripted answers",
		Long: "Runs a step in the sandbox and prints its output. Host calls reach nothing: they get the answers of\n" +
			"--fake, and where there is none they are denied, and the line that would answer them is shown.",
		Example: "  sentinel plugin call shout.wasm --input '{\"text\": \"hey\"}'\n" +
			"  sentinel plugin call . --type slack_message --input @step.json --fake answers.json -v",
		Args: app.ExactArgs("the module"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			ctx := cmd.Context()
			src, fakes, text, err := a.trial(ctx, args[0], f)
			if err != nil {
				return err
			}
			p, done, err := a.openPlugin(ctx, src.module)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, done()) }()
			in, err := p.ReadInput(text, f.step)
			if err != nil {
				return err
			}
			out, err := sdktest.Execute(ctx, p, in, sdktest.Answers(fakes))
			if err != nil {
				return err
			}
			return a.showTrial(out)
		},
	}
	f.add(c)
	return c
}

// showTrial writes the output to standard output and all else to standard
// error; a step that failed is the verb's error.
func (a verbs) showTrial(out sdktest.Outcome) error {
	if a.Flags.Output != output.FormatTable {
		if err := a.WriteJSON(out); err != nil {
			return err
		}
		if out.Error != nil {
			return app.ExitError(app.ExitCode(out.Error))
		}
		return nil
	}
	for _, l := range out.Logs {
		a.Info("%s %s", a.Paint.Dim(output.Escape(l.Level)+":"), app.Block(l.Message))
	}
	if text := strings.TrimSpace(out.Stderr); text != "" {
		a.Info("%s %s", a.Paint.Dim("stderr:"), app.Block(text))
	}
	for i, call := range out.Calls {
		if a.Flags.Verbose || !call.Faked {
			a.Info("%s %s %s", a.Paint.Dim(termtext.Sprintf("call %d:", i+1)), call.Function, output.JSONText(call.Request))
		}
		if a.Flags.Verbose && call.Faked {
			a.Info("  %s", output.JSONText(call.Answer))
		}
		if !call.Faked {
			a.Info("  denied: no answer is scripted; add this to the list in --fake FILE, with the answer that you want:")
			a.Info("  %s", output.JSONText([]byte(sdktest.Sample(call))))
		}
	}
	if a.Flags.Verbose {
		a.Info("%.1f ms with instance and describe, %s of memory", out.DurationMs, megabytes(out.MemoryBytes))
	}
	if out.Error != nil {
		e := *out.Error
		e.Message = fmt.Sprintf("the step ended with %s: %s", e.Code, e.Message)
		return &e
	}
	return a.WriteJSON(out.Output)
}
