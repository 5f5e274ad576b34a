package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sentinel-runtime/sentinel/runtime"
)

// traceCommand reads the journal, so it shows what happened and not what was told;
// iterations that retention took are not there.
func (a *app) traceCommand() *cobra.Command {
	var iteration int
	c := &cobra.Command{
		Use: "trace RUN|NAME", Short: "Show what a run did: iterations, steps, attempts and host calls",
		Long: "With -v also what was asked and answered.",
		Args: exactly("RUN or NAME"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			s, err := a.connect(cmd.Context(), true)
			if err != nil {
				return err
			}
			defer a.closing(s, &err)
			info, err := a.target(cmd.Context(), s, args[0], true)
			if err != nil {
				return err
			}
			var raw json.RawMessage
			if err := s.call(cmd.Context(), "sentinel/trace", map[string]any{"run": info.ID}, &raw); err != nil {
				return err
			}
			var tr runtime.Trace
			if err := json.Unmarshal(raw, &tr); err != nil {
				return fmt.Errorf("read trace: %w", err)
			}
			if iteration > 0 {
				if err := only(&tr, iteration); err != nil {
					return err
				}
			}
			return a.showTrace(&tr)
		},
	}
	c.Flags().IntVar(&iteration, "iteration", 0, "only this one")
	return c
}

// only keeps one iteration of a trace.
func only(tr *runtime.Trace, n int) error {
	for _, it := range tr.Iterations {
		if it.Number == n {
			tr.Iterations = []runtime.TraceIteration{it}
			return nil
		}
	}
	hint := "its journal has no iteration any more"
	if len(tr.Iterations) > 0 {
		hint = fmt.Sprintf("its journal has %d to %d", tr.Iterations[0].Number, tr.Iterations[len(tr.Iterations)-1].Number)
	}
	return notFound(hint, "run %s has no iteration %d", tr.Run.ID, n)
}

// showTrace draws iterations, the steps in them, and their host calls.
func (a *app) showTrace(tr *runtime.Trace) error {
	if done, err := writeItems(a, tr, tr.Iterations); done {
		return err
	}
	var b strings.Builder
	p := a.paintOut
	fmt.Fprintf(&b, "%s  run %s  %s\n", p.strong(string(tr.Run.Sentinel)), tr.Run.ID, a.status(p, tr.Run.Status))
	for _, it := range tr.Iterations {
		fmt.Fprintf(&b, "%s  %s", p.strong(fmt.Sprintf("iteration %d", it.Number)), p.dim(it.Start.Local().Format("15:04:05")))
		if it.Revision > 0 {
			fmt.Fprintf(&b, "  revision %d", it.Revision)
		}
		if it.Edit > 0 { // the run's own, which no list of revisions has
			fmt.Fprintf(&b, "  edit %d", it.Edit)
		} else if len(it.Hash) >= 12 {
			fmt.Fprintf(&b, "  definition %s", it.Hash[:12])
		}
		if it.Done {
			fmt.Fprintf(&b, "  %s", duration(millis(it.Millis)))
		}
		if it.Event != nil {
			fmt.Fprintf(&b, "  event %s", printable(it.Event.Name))
		}
		b.WriteByte('\n')
		for _, s := range it.Steps {
			a.traceStep(&b, s, "  ")
		}
	}
	_, err := io.WriteString(a.env.Stdout, b.String())
	return err
}

// traceStep draws a step under its execution path, which tells the passes of a loop
// apart. Attempts get a line when there was more than one.
func (a *app) traceStep(b *strings.Builder, s *runtime.TraceStep, indent string) {
	p := a.paintOut
	state := s.State()
	switch state {
	case "ok":
		state = p.good(state)
	case "failed":
		state = p.bad(state)
	default:
		state = p.warn(state)
	}
	fmt.Fprintf(b, "%s%s %s %s  %s", indent, s.Path, s.Type, p.strong(printable(s.Name)), state)
	if s.Skipped != "" {
		fmt.Fprintf(b, " by %s", s.Skipped)
	}
	if s.Ended && s.Skipped != "condition" {
		fmt.Fprintf(b, "  %s", duration(millis(s.Millis)))
	}
	b.WriteByte('\n')
	if s.Error != nil {
		fmt.Fprintf(b, "%s    %s\n", indent, p.bad(clip(s.Error.Message, 200)))
	}
	for _, t := range s.Attempts {
		inner := indent + "    "
		if len(s.Attempts) > 1 {
			fmt.Fprintf(b, "%s  attempt %d  %s", indent, t.Number, duration(millis(t.Millis)))
			if t.Error != nil && !t.RetryAt.IsZero() {
				fmt.Fprintf(b, "  %s  %s", p.warn(t.Category), clip(t.Error.Message, 120))
			}
			b.WriteByte('\n')
		}
		if len(t.Unknown) > 0 {
			fmt.Fprintf(b, "%s%s\n", inner, p.warn("names without a value: "+strings.Join(t.Unknown, ", ")))
		}
		if a.flags.verbose && len(t.Fields) > 0 {
			fmt.Fprintf(b, "%s%s %s\n", inner, p.dim("fields"), clip(string(t.Fields), 1000))
		}
		for _, c := range t.Calls {
			a.traceCall(b, c, inner)
		}
		for _, nested := range t.Steps {
			a.traceStep(b, nested, inner)
		}
	}
	if a.flags.verbose && len(s.Output) > 0 {
		fmt.Fprintf(b, "%s    %s %s\n", indent, p.dim("output"), clip(string(s.Output), 1000))
	}
}

// traceCall draws a host call. What it asked and got may be long and private, so it
// takes -v.
func (a *app) traceCall(b *strings.Builder, c *runtime.TraceCall, indent string) {
	p := a.paintOut
	name := strings.TrimPrefix(c.Function, "sentinel_")
	fmt.Fprintf(b, "%s%s", indent, p.dim(fmt.Sprintf("!%d %s", c.Number, name)))
	if c.Label != "" {
		fmt.Fprintf(b, " %s", printable(c.Label))
	}
	switch {
	case !c.Ended:
		fmt.Fprintf(b, "  %s", p.warn("open"))
	case c.Millis > 0:
		fmt.Fprintf(b, "  %s", p.dim(duration(millis(c.Millis))))
	}
	if c.Usage != nil {
		if s := spent(*c.Usage); s != "" {
			fmt.Fprintf(b, "  %s", s)
		}
	}
	if c.Child != "" {
		fmt.Fprintf(b, "  run %s", c.Child)
	}
	if c.Decided != "" {
		fmt.Fprintf(b, "  %s", p.warn("cut off by a crash, decided: "+c.Decided))
	}
	if c.Error != nil {
		fmt.Fprintf(b, "  %s", p.bad(clip(c.Error.Message, 160)))
	}
	b.WriteByte('\n')
	if a.flags.verbose {
		fmt.Fprintf(b, "%s   %s %s\n", indent, p.dim("asked"), clip(string(c.Request), 1000))
		if len(c.Result) > 0 {
			fmt.Fprintf(b, "%s   %s %s\n", indent, p.dim("got"), clip(string(c.Result), 1000))
		}
	}
}
