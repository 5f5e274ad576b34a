package cli

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sentinel-runtime/sentinel/host/internal/termtext"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
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
			if err := s.Call(cmd.Context(), "sentinel/trace", map[string]any{"run": info.ID}, &raw); err != nil {
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
	var b page
	p := a.paintOut
	b.printf("%s  run %s  %s\n", p.strong(escaped(tr.Run.Sentinel)), tr.Run.ID, statusText(p, tr.Run.Status))
	for _, it := range tr.Iterations {
		b.printf("%s  %s", p.strong(termtext.Sprintf("iteration %d", it.Number)), p.dim(escaped(it.Start.Local().Format("15:04:05"))))
		if it.Revision > 0 {
			b.printf("  revision %d", it.Revision)
		}
		if it.Edit > 0 { // the run's own, which no list of revisions has
			b.printf("  edit %d", it.Edit)
		} else if len(it.Hash) >= 12 {
			b.printf("  definition %s", it.Hash[:12])
		}
		if it.Done {
			b.printf("  %s", duration(millis(it.Millis)))
		}
		if it.Event != nil {
			b.printf("  event %s", it.Event.Name)
		}
		if it.Check != "" {
			b.printf("  %s", p.dim("loop check was "+clip(it.Check, 60)))
		}
		b.add("\n")
		for _, s := range it.Steps {
			a.traceStep(&b, s, "  ")
		}
	}
	return a.out.write(b.text())
}

// traceStep draws a step under its execution path, which tells the passes of a loop
// apart. Attempts get a line when there was more than one.
func (a *app) traceStep(b *page, s *runtime.TraceStep, indent string) {
	p := a.paintOut
	state := escaped(s.State())
	switch state {
	case "ok":
		state = p.good(state)
	case "failed":
		state = p.bad(state)
	default:
		state = p.warn(state)
	}
	b.printf("%s%s %s %s  %s", indent, s.Path, s.Type, p.strong(escaped(s.Name)), state)
	if s.Skipped != "" {
		b.printf(" by %s", s.Skipped)
	}
	if s.Condition != "" {
		b.printf("  %s", p.dim("condition was "+clip(s.Condition, 60)))
	}
	if s.Ended && s.Skipped != "condition" {
		b.printf("  %s", duration(millis(s.Millis)))
	}
	b.add("\n")
	if s.Error != nil {
		b.printf("%s    %s\n", indent, p.bad(clip(s.Error.Message, 200)))
	}
	for _, t := range s.Attempts {
		inner := indent + "    "
		if len(s.Attempts) > 1 {
			b.printf("%s  attempt %d  %s", indent, t.Number, duration(millis(t.Millis)))
			if t.Error != nil && !t.RetryAt.IsZero() {
				b.printf("  %s  %s", p.warn(escaped(t.Category)), clip(t.Error.Message, 120))
			}
			b.add("\n")
		}
		if len(t.Unknown) > 0 {
			b.printf("%s%s\n", inner, p.warn("names without a value: "+escaped(strings.Join(t.Unknown, ", "))))
		}
		if a.flags.verbose && len(t.Fields) > 0 {
			b.printf("%s%s %s\n", inner, p.dim("fields"), clipJSON(t.Fields, 1000))
		}
		for _, c := range t.Calls {
			a.traceCall(b, c, inner)
		}
		for _, nested := range t.Steps {
			a.traceStep(b, nested, inner)
		}
	}
	if a.flags.verbose && len(s.Output) > 0 {
		b.printf("%s    %s %s\n", indent, p.dim("output"), clipJSON(s.Output, 1000))
	}
}

// traceCall draws a host call. What it asked and got may be long and private, so it
// takes -v.
func (a *app) traceCall(b *page, c *runtime.TraceCall, indent string) {
	p := a.paintOut
	name := strings.TrimPrefix(c.Function, "sentinel_")
	b.printf("%s%s", indent, p.dim(termtext.Sprintf("!%d %s", c.Number, name)))
	if c.Label != "" {
		b.printf(" %s", c.Label)
	}
	switch {
	case !c.Ended:
		b.printf("  %s", p.warn("open"))
	case c.Millis > 0:
		b.printf("  %s", p.dim(duration(millis(c.Millis))))
	}
	if c.Usage != nil {
		if s := spent(*c.Usage); s != "" {
			b.printf("  %s", s)
		}
	}
	if c.Child != "" {
		b.printf("  run %s", c.Child)
	}
	if c.Decided != "" {
		b.printf("  %s", p.warn("cut off by a crash, decided: "+escaped(c.Decided)))
	}
	if c.Error != nil {
		b.printf("  %s", p.bad(clip(c.Error.Message, 160)))
	}
	if c.Function == abi.FuncEval {
		if text := evaluated(c.Result); text != "" {
			b.printf("  %s", p.dim(text))
		}
	}
	b.add("\n")
	if a.flags.verbose {
		b.printf("%s   %s %s\n", indent, p.dim("asked"), clipJSON(c.Request, 1000))
		if len(c.Result) > 0 {
			b.printf("%s   %s %s\n", indent, p.dim("got"), clipJSON(c.Result, 1000))
		}
	}
}

// evaluated says what an expression gave and whether that is true: what a text such
// as "false" came to is seen only beside its truth.
func evaluated(result json.RawMessage) termtext.Text {
	var v struct {
		Value  json.RawMessage `json:"value"`
		Truthy bool            `json:"truthy"`
	}
	if len(result) == 0 || json.Unmarshal(result, &v) != nil {
		return ""
	}
	value := termtext.Text("undefined")
	if v.Value != nil {
		value = clipJSON(v.Value, 60)
	}
	return termtext.Sprintf("%s is %t", value, v.Truthy)
}
