package inspect

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sentinel-runtime/sentinel/host/cli/app"
	"github.com/sentinel-runtime/sentinel/host/cli/output"
	"github.com/sentinel-runtime/sentinel/host/internal/termtext"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// traceCommand reads the journal, so it shows what happened and not what was reported;
// iterations that retention took are not there.
func (a verbs) traceCommand() *cobra.Command {
	var iteration int
	c := &cobra.Command{
		Use: "trace RUN|NAME", Short: "Show what a run did: iterations, steps, attempts and host calls",
		Example: "  sentinel trace nightly\n  sentinel trace 3f9a01bc --iteration 2 -v",

		Long: "With -v also fields, requests and results, and longer outputs.",
		Args: app.ExactArgs("RUN or NAME"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			s, err := a.Connect(cmd.Context(), true)
			if err != nil {
				return err
			}
			defer a.CloseSession(s, &err)
			info, err := a.FindRun(cmd.Context(), s, args[0], true)
			if err != nil {
				return err
			}
			params := map[string]any{"run": info.ID}
			if iteration > 0 {
				params["iteration"] = iteration
			}
			tr, err := s.Trace(cmd.Context(), params)
			if err != nil {
				return err
			}
			return a.showTrace(&tr)
		},
	}
	c.Flags().IntVar(&iteration, "iteration", 0, "only this one")
	return c
}

// showTrace draws iterations, the steps in them, and their host calls.
func (a verbs) showTrace(tr *runtime.Trace) error {
	if done, err := app.WriteItems(a.App, tr, tr.Iterations); done {
		return err
	}
	var b output.Page
	p := a.PaintOut
	b.Printf("%s  run %s  %s", p.Strong(output.Escape(tr.Run.Sentinel)), tr.Run.ID, output.Status(p, tr.Run.Status))
	if tr.Run.Reason != "" {
		b.Printf("  reason %s", tr.Run.Reason)
	}
	b.Add("\n")
	if tr.Run.Reason != "" && tr.Run.Error != nil {
		a.traceCause(&b, "  ", p.Bad(output.Clip(tr.Run.Error.Message, maxCause)))
		if tr.Run.Error.Hint != "" {
			a.traceCause(&b, "  ", "hint: "+output.Clip(tr.Run.Error.Hint, maxCause))
		}
	}
	for _, it := range tr.Iterations {
		b.Printf("%s  %s", p.Strong(termtext.Sprintf("iteration %d", it.Number)), p.Dim(output.LocalClock(it.Start)))
		if it.Revision > 0 {
			b.Printf("  revision %d", it.Revision)
		}
		if it.Edit > 0 { // the run's own, which no list of revisions has
			b.Printf("  edit %d", it.Edit)
		} else if len(it.Hash) >= 12 {
			b.Printf("  definition %s", it.Hash[:12])
		}
		if it.Done {
			b.Printf("  %s", output.Duration(output.Millis(it.Millis)))
		}
		if it.Event != nil {
			b.Printf("  event %s", it.Event.Name)
			if len(it.Event.Data) > 0 {
				b.Printf(" %s", output.ClipJSON(it.Event.Data, shownOf(a, 200)))
			}
		}
		if it.Queued > 0 {
			b.Printf("  %s", p.Warn("waited "+output.Duration(output.Millis(it.Queued))+" for its place"))
		}
		if it.Check != "" {
			b.Printf("  %s", p.Dim("loop check was "+output.Clip(it.Check, 60)+readsText(it.Reads)))
		}
		b.Add("\n")
		for _, s := range it.Steps {
			a.traceStep(&b, s, "  ", tr.Run)
		}
	}
	if a.Env.StdoutTerminal && !a.Flags.Verbose {
		return a.Out.Write(output.CutLines(b.Text(), a.Env.Width()))
	}
	return a.Out.Write(b.Text())
}

// traceCause draws the message or hint of an error, which a terminal wraps at words: what says why is not cut.
func (a verbs) traceCause(b *output.Page, indent string, text termtext.Text) {
	lines := []termtext.Text{text}
	if a.Env.StdoutTerminal {
		lines = output.FillText(lines[0], max(leastCause, a.Env.Width()-len(indent)))
	}
	for _, line := range lines {
		b.Printf("%s%s\n", indent, line)
	}
}

// Limits of a message or hint of an error in a trace, and least width of its lines, in characters.
const (
	maxCause   = 700
	leastCause = 20
)

// endedBy is what ended the steps and calls of a run that were under way at its end: the limit that the
// run reached, else an interruption.
func endedBy(r runtime.RunInfo) termtext.Text {
	if limit := app.LimitOf(r); limit != "" {
		return termtext.Sprintf("ended by %s", limit)
	}
	return "interrupted"
}

// traceStep draws a step under its execution path, which distinguishes the iterations of a loop
// apart. Attempts get a line when there was more than one.
func (a verbs) traceStep(b *output.Page, s *runtime.TraceStep, indent string, of runtime.RunInfo) {
	p, over := a.PaintOut, of.Status.Final()
	logs := termtext.Sprintf("sentinel logs %s --step %s", output.ShortID(of.ID), s.Path)
	state := output.Escape(s.State())
	switch {
	case state == "ok":
		result := output.ReadStepResult(s.Output)
		state = result.Mark(p, s.Type)
	case state == "failed":
		state = p.Bad(state)
	case s.StoppedBy != "" && state == "stopped":
		state = p.Warn(termtext.Sprintf("stopped by step %s", s.StoppedBy))
	case state == "stopped":
		state = p.Warn(termtext.Sprintf("ended the run as %s", s.Ends))
	case state == "running" && over:
		state = p.Warn(endedBy(of))
	default:
		state = p.Warn(state)
	}
	b.Printf("%s%s %s %s  %s", indent, s.Path, s.Type, p.Strong(output.Escape(strings.TrimSpace(s.ID+" "+s.Name))), state)
	if s.Skipped != "" {
		b.Printf(" by %s", s.Skipped)
	}
	if s.Condition != "" {
		b.Printf("  %s", p.Dim("condition was "+output.Clip(s.Condition, 60)+readsText(s.Reads)))
	}
	if s.Ended && s.Skipped != "condition" {
		b.Printf("  %s", output.Duration(output.Millis(s.Millis)))
	}
	b.Add("\n")
	if s.Error != nil {
		a.traceCause(b, indent+"    ", p.Bad(output.Clip(s.Error.Message, maxCause)))
	}
	open := "open"
	switch {
	case s.StoppedBy != "" && s.State() == "stopped":
		open = "stopped"
	case over:
		open = string(endedBy(of))
	}
	for _, t := range s.Attempts {
		inner := indent + "    "
		if len(s.Attempts) > 1 {
			b.Printf("%s  attempt %d  %s", indent, t.Number, output.Duration(output.Millis(t.Millis)))
			if t.Error != nil && !t.RetryAt.IsZero() {
				b.Printf("  %s  %s", p.Warn(output.Escape(t.Category)), output.Clip(t.Error.Message, 120))
			}
			b.Add("\n")
		}
		if len(t.Unknown) > 0 {
			b.Printf("%s%s\n", inner, p.Warn("left as written: "+output.Escape(strings.Join(t.Unknown, ", "))))
		}
		if len(t.Unset) > 0 {
			b.Printf("%s%s\n", inner, p.Warn("no value yet: "+output.Escape(strings.Join(t.Unset, ", "))))
		}
		if line := shellLine(s, t); line != "" {
			b.Printf("%s%s %s\n", inner, p.Dim("$"), output.Clip(line, shownOf(a, 300)))
		}
		if a.Flags.Verbose && len(t.Fields) > 0 {
			b.Printf("%s%s %s\n", inner, p.Dim("fields"), output.ClipJSON(t.Fields, 1000))
		}
		items, shown := sideBySide(s, t)
		if items != "" {
			b.Printf("%s%s\n", inner, items)
		}
		for _, c := range t.Calls {
			if items == "" || a.Flags.Verbose || c.Function != abi.FuncBlock && c.Function != abi.FuncCheckpoint {
				a.traceCall(b, c, inner, open, logs)
			}
		}
		if a.Flags.Verbose {
			shown = t.Steps
		}
		for _, nested := range shown {
			a.traceStep(b, nested, inner, of)
		}
	}
	if len(s.Output) > 0 && string(s.Output) != "null" {
		name := termtext.Text("output")
		if s.OutputTo != "" {
			name = output.Escape("$" + s.OutputTo)
		}
		if a.Flags.Verbose && a.printed(b, name, s.Output, indent+"    ", logs) {
			return
		}
		if a.Flags.Verbose {
			b.Printf("%s    %s %s\n", indent, p.Dim(name), output.ClipJSON(withoutPrinted(s.Output), shownOf(a, 300)))
			return
		}
		field, shown := output.Gist(s.Output)
		b.Printf("%s    %s %s\n", indent, p.Dim(name+output.Escape(field)), output.Cut(shown, shownOf(a, 300)))
	}
}

// maxFailedItems is how many failed items of a loop a trace shows with their steps.
const maxFailedItems = 3

// sideBySide describes the items of a loop that were executed side by side, which are one entry because there may be
// thousands. It returns the steps that are shown beside: those of the first items that failed, and those that belong to
// no item. The text is "" for other attempts, whose steps are all shown.
func sideBySide(s *runtime.TraceStep, t *runtime.TraceAttempt) (text termtext.Text, shown []*runtime.TraceStep) {
	total, next, items := 0, 0, map[string]bool{} // by number of the block; whether it has failed
	for _, c := range t.Calls {
		var request struct {
			Blocks   []json.RawMessage
			Isolated bool
			Total    int
		}
		if c.Function != abi.FuncBlock || json.Unmarshal(c.Request, &request) != nil {
			continue
		}
		if request.Isolated {
			total = request.Total
			for i := range request.Blocks {
				items[strconv.Itoa(next+i)] = false
			}
		}
		next += len(request.Blocks)
	}
	if len(items) == 0 {
		return "", t.Steps
	}
	begun, open := map[string]bool{}, map[string]bool{}
	for _, nested := range t.Steps {
		number, _, _ := strings.Cut(strings.TrimPrefix(nested.Path, s.Path+"#"), ".")
		if _, item := items[number]; !item {
			continue
		}
		begun[number] = true
		open[number] = open[number] || !nested.Ended
		items[number] = items[number] || nested.Error != nil && nested.Skipped == ""
	}
	failed, listed := 0, map[string]bool{}
	for _, nested := range t.Steps {
		number, _, _ := strings.Cut(strings.TrimPrefix(nested.Path, s.Path+"#"), ".")
		isFailed, item := items[number]
		if isFailed && !listed[number] {
			failed++
			listed[number] = true
		}
		if !item || isFailed && failed <= maxFailedItems {
			shown = append(shown, nested)
		}
	}
	ended := len(begun)
	for _, still := range open {
		if still {
			ended--
		}
	}
	text = termtext.Sprintf("items %d of %d", ended, total)
	if failed > 0 {
		text += termtext.Sprintf(", %d failed", failed)
	}
	return text, shown
}

// maxPrinted is how many lines of the output of a command a trace shows, the last ones.
const maxPrinted = 20

// printed draws the result of a command that was executed with its output as text, of which the command
// logs shows all. It reports false for another result.
func (a verbs) printed(b *output.Page, name termtext.Text, result json.RawMessage, indent string, logs termtext.Text) bool {
	var members map[string]json.RawMessage
	var text string
	if json.Unmarshal(result, &members) != nil || members["executionId"] == nil || json.Unmarshal(members["output"], &text) != nil {
		return false
	}
	p := a.PaintOut
	b.Printf("%s%s %s\n", indent, p.Dim(name), output.ClipJSON(withoutPrinted(result), 1000))
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if n := len(lines) - maxPrinted; n > 0 {
		// The result has a part of a long output, so its lines are no number of those before.
		b.Printf("%s  %s\n", indent, p.Dim(termtext.Sprintf("[the last %d lines; %s shows all]", maxPrinted, logs)))
		lines = lines[n:]
	}
	if text != "" {
		for _, line := range lines {
			b.Printf("%s  %s\n", indent, termtext.Printed(line, bool(p)))
		}
	}
	return true
}

// withoutPrinted removes what commands printed from their results, at any depth: the step of each shows it as text.
func withoutPrinted(result json.RawMessage) json.RawMessage {
	d := json.NewDecoder(bytes.NewReader(result))
	d.UseNumber()
	var value any
	if d.Decode(&value) != nil || !removePrinted(value) {
		return result
	}
	rest, err := json.Marshal(value)
	if err != nil {
		return result
	}
	return rest
}

// removePrinted does so in a decoded value, and reports whether there was any.
func removePrinted(value any) (found bool) {
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			found = removePrinted(item) || found
		}
	case map[string]any:
		_, printed := v["output"].(string)
		if printed = printed && v["executionId"] != nil; printed {
			for _, copied := range []string{"output", "stdout", "stderr", "text", "json", "lines"} {
				delete(v, copied)
			}
		}
		for _, member := range v {
			found = removePrinted(member) || found
		}
		found = found || printed
	}
	return found
}

// traceCall draws a host call. Its request and result may be long and private, so it
// takes -v. open is said of a call that has not ended.
func (a verbs) traceCall(b *output.Page, c *runtime.TraceCall, indent, open string, logs termtext.Text) {
	p := a.PaintOut
	name := strings.TrimPrefix(c.Function, "sentinel_")
	b.Printf("%s%s", indent, p.Dim(termtext.Sprintf("!%d %s", c.Number, name)))
	if c.Label != "" {
		b.Printf(" %s", c.Label)
	}
	if c.Label == sentinels.RequestCommand {
		b.Printf("  %s", output.Clip(requestLine(c), shownOf(a, 300)))
	}
	switch {
	case !c.Ended:
		b.Printf("  %s", p.Warn(output.Escape(open)))
	case c.Millis > 0:
		b.Printf("  %s", p.Dim(output.Duration(output.Millis(c.Millis))))
	}
	if c.Queued > 0 {
		b.Printf("  %s", p.Warn("waited "+output.Duration(output.Millis(c.Queued))+": "+output.Escape(c.Queue)))
	}
	if c.Usage != nil {
		if s := output.Spent(*c.Usage); s != "" {
			b.Printf("  %s", s)
		}
	}
	if c.Child != "" {
		b.Printf("  run %s", c.Child)
	}
	if len(c.Reads) > 0 {
		b.Printf("  %s", p.Dim(readsText(c.Reads)[2:]))
	}
	if c.Function == abi.FuncLLM {
		if text := shortened(c.Request); text != "" {
			b.Printf("  %s", p.Warn(text))
		}
	}
	if c.Decided != "" {
		b.Printf("  %s", p.Warn("cut off by a crash, decided: "+output.Escape(c.Decided)))
	}
	if c.Error != nil {
		b.Printf("  %s", p.Bad(output.Clip(c.Error.Message, 160)))
	}
	if c.Function == abi.FuncEval {
		if text := evaluated(c.Result); text != "" {
			b.Printf("  %s", p.Dim(text))
		}
	}
	b.Add("\n")
	if a.Flags.Verbose {
		b.Printf("%s   %s %s\n", indent, p.Dim("asked"), output.ClipJSON(withoutPrinted(c.Request), 1000))
		if len(c.Result) > 0 && !a.printed(b, "got", c.Result, indent+"   ", logs) {
			b.Printf("%s   %s %s\n", indent, p.Dim("got"), output.ClipJSON(withoutPrinted(c.Result), 1000))
		}
	}
}

// shortened describes what a turn of a model changed in its conversation, so that that fits into
// the window of the model: which messages, counted from 0, were replaced.
func shortened(request json.RawMessage) termtext.Text {
	var turn struct {
		Replace []struct{ From, To int }
		Aside   bool
	}
	if json.Unmarshal(request, &turn) != nil {
		return ""
	}
	if turn.Aside {
		return "a summary, beside the conversation"
	}
	if len(turn.Replace) == 0 {
		return ""
	}
	var places []string
	for i, r := range turn.Replace {
		switch {
		case i == 10:
			places = append(places, "…")
		case i > 10:
		case r.To-r.From == 1:
			places = append(places, strconv.Itoa(r.From))
		default:
			places = append(places, fmt.Sprintf("%d to %d", r.From, r.To-1))
		}
	}
	return termtext.Sprintf("shortened: messages %s replaced", strings.Join(places, ", "))
}

// evaluated describes the value of an expression and whether it is true: a text such
// as "false" is true.
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
		value = output.ClipJSON(v.Value, 60)
	}
	return termtext.Sprintf("%s is %t", value, v.Truthy)
}

// readsText returns what a condition read, as a part of a line; "" if it read nothing.
func readsText(reads map[string]string) termtext.Text {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(reads)) {
		parts = append(parts, name+" "+string(output.Clip(reads[name], 60)))
	}
	if len(parts) == 0 {
		return ""
	}
	return "; read " + output.Escape(strings.Join(parts, ", "))
}

// shownOf returns how much of a text is shown: n, with -v 1000.
func shownOf(a verbs, n int) int {
	if a.Flags.Verbose {
		return 1000
	}
	return n
}

// requestLine describes a request over HTTP and the status of its answer, if there is one.
func requestLine(c *runtime.TraceCall) string {
	var asked struct {
		Params struct{ Method, URL json.RawMessage }
	}
	var got struct {
		Status int
		URL    string
	}
	if json.Unmarshal(c.Request, &asked) != nil {
		return ""
	}
	line := output.RequestLine(asked.Params.Method, asked.Params.URL)
	if json.Unmarshal(c.Result, &got) == nil && got.Status > 0 {
		line += ": " + strconv.Itoa(got.Status)
	}
	return line
}

// shellLine returns the shell line of an attempt with the values of its references, "" of a
// step without one. The values are in place of the variables, so where they have quotes
// or blanks it is not what the shell was given.
func shellLine(s *runtime.TraceStep, t *runtime.TraceAttempt) string {
	var fields struct {
		Command string
		Argv    []string
		Params  struct{ Command string }
	}
	if json.Unmarshal(t.Fields, &fields) != nil {
		return ""
	}
	line := ""
	switch {
	case s.Type == "shell" && len(fields.Argv) > 0:
		line = strings.Join(fields.Argv, " ")
	case s.Type == "shell":
		line = fields.Command
	case strings.HasPrefix(fields.Command, "code/shell/"):
		line = fields.Params.Command
	}
	var pairs []string
	for name, value := range t.Env {
		pairs = append(pairs, "${"+name+"}", value)
	}
	return strings.NewReplacer(pairs...).Replace(line)
}
