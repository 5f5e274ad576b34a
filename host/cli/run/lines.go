package run

import (
	"encoding/json"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/cli/output"
	"github.com/sentinel-runtime/sentinel/host/internal/termtext"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// lines renders progress as lines for people; most progress has none.
type lines struct {
	app    verbs
	paint  output.Palette
	root   sentinels.RunID
	head   bool   // the run's own line has been shown
	task   bool   // the run is a task: see taskLines
	prints bool   // what commands print is shown: no live line does that
	said   string // of a task: what the model has said in its present reply

	checked int // of a task: results of checks that were shown

	failed string          // the error that was shown last, "" once a step did not fail
	later  []termtext.Text // lines of that error that are not shown yet: the end of the run may have them

	items  map[string]*itemLines // of loops with many items, by run and path
	totals map[string]int64      // items of the loops under way, by run and path
}

// of returns the lines for p, without line ends. The first are preceded by the run's
// own line: some progress may be reported before the start, and a resumed run has no
// start.
func (l *lines) of(p runtime.Progress) []termtext.Text {
	out := l.linesFor(p)
	switch {
	case p.Event == runtime.OnRunEnd && p.Run == l.root && p.Error != nil && p.Error.Message == l.failed:
		l.later, l.failed = nil, "" // it is shown with the end of the run
	case p.Event != runtime.OnStepEnd && p.Event != runtime.OnCallEnd && p.Event != runtime.OnIterationEnd || len(out) > 0 && p.Error == nil:
		out, l.later = append(l.later, out...), nil
	}
	if !l.head && (len(out) > 0 || p.Event == runtime.OnRunStart) {
		l.head = true
		out = append([]termtext.Text{l.paint.Strong(output.Escape(p.Sentinel)) + l.paint.Dim("  run "+output.Escape(l.root))}, out...)
	}
	return out
}

// linesFor returns the lines for p alone. There is none for the start of a step: its
// end has the same and the result.
func (l *lines) linesFor(p runtime.Progress) []termtext.Text {
	paint := l.paint
	if l.task {
		if list, ok := l.taskLines(p); ok {
			return list
		}
	}
	who := l.who(p)
	l.countItems(p)
	if p.Event == runtime.OnItems {
		return l.itemsOf(who, p)
	}
	if l.withinItems(p) {
		return nil
	}
	switch p.Event {
	case runtime.OnRunStart:
		if p.Run != l.root {
			return append([]termtext.Text{who + paint.Dim("started as run "+output.Escape(p.Run))}, l.statusLine(who, p)...)
		}
		return l.statusLine(who, p)
	case runtime.OnRunEnd:
		if p.Run != l.root {
			return l.failure(who+output.Status(paint, p.Status), p)
		}
	case runtime.OnStepEnd:
		return l.step(who, p)
	case runtime.OnRetry:
		line := termtext.Sprintf("%s%s  %s", who, l.stepName(p), paint.Warn(termtext.Sprintf("attempt %d failed", p.Attempt)))
		if p.Duration > 0 {
			line += paint.Dim(", next in " + output.Delay(p.Duration))
		}
		return l.failure(line, p)
	case runtime.OnStatus:
		return l.statusLine(who, p)
	case runtime.OnLog:
		switch p.Level {
		case "debug", "trace":
			if !l.app.Flags.Verbose {
				return nil
			}
		}
		return indented(termtext.Sprintf("%s%s  %s: ", who, l.stepName(p), p.Level), p.Message)
	case runtime.OnOutput:
		if l.app.Flags.Verbose || l.prints && !l.task {
			return l.printed(who, p)
		}
	case runtime.OnCallEnd:
		if p.ByModel {
			return l.failure(termtext.Sprintf("    %s %s %s  %s", paint.Dim("model:"), p.Label, about(p.Params), paint.Dim(output.Duration(p.Duration))), p)
		}
		if l.app.Flags.Verbose {
			return l.failure(termtext.Sprintf("%s%s  %s", who, l.stepName(p), paint.Dim(termtext.Sprintf("%s %s %s", strings.TrimPrefix(p.Function, "sentinel_"), p.Label, output.Duration(p.Duration)))), p)
		}
	}
	return nil
}

// printed returns what a command prints, each line behind the step that it is of.
func (l *lines) printed(who termtext.Text, p runtime.Progress) (out []termtext.Text) {
	address := sentinels.PathAddress(p.Path)
	head := who + output.Escape(address)
	if p.Step != "" {
		head += " " + output.Clip(p.Step, 40)
	}
	if item := l.itemOf(p); item != "" {
		head += " " + item
	}
	head += " | "
	for line := range strings.SplitSeq(strings.TrimSuffix(p.Message, "\n"), "\n") {
		out = append(out, l.paint.Dim(head)+termtext.Printed(line, bool(l.paint)))
	}
	return out
}

// step is the line of a step that ended. One whose condition did not hold has no
// time: it took none.
func (l *lines) step(who termtext.Text, p runtime.Progress) []termtext.Text {
	paint := l.paint
	var result output.StepResult
	if p.Error == nil {
		result = output.ReadStepResult(p.Output)
	}
	mark := result.Mark(paint, p.Type)
	switch {
	case p.Skipped == "condition":
		return []termtext.Text{termtext.Sprintf("%s%s  %s", who, l.stepName(p), paint.Dim("not needed"))}
	case p.Skipped != "":
		mark = paint.Warn("skipped")
	case p.Status != "":
		mark = paint.Warn(termtext.Sprintf("ended the run as %s", p.Status))
	case p.Error != nil:
		mark = paint.Bad("failed")
	}
	line := termtext.Sprintf("%s%s  %s  %s", who, l.stepName(p), mark, paint.Dim(output.Duration(p.Duration)))
	if text := result.Line(); text != "" {
		line += "  " + paint.Dim(output.Clip(text, 72))
	}
	out := l.failure(line, p)
	if p.Skipped == "" && p.Error != nil && len(out) > 1 {
		out, l.later = append(l.later, out[0]), out[1:]
	}
	return out
}

// failure adds the error of p, if it has one, and its hint. That of a step is not repeated if it was
// just shown: a step fails with the error of the step in it, and of its last attempt.
func (l *lines) failure(line termtext.Text, p runtime.Progress) []termtext.Text {
	out := []termtext.Text{line}
	switch {
	case p.Error == nil && p.Event == runtime.OnStepEnd:
		l.failed = ""
	case p.Error != nil && (l.failed != p.Error.Message || p.Event == runtime.OnCallEnd):
		out = append(out, indented("    ", p.Error.Message)...)
		if p.Error.Hint != "" {
			out = append(out, indented("    "+l.paint.Dim("hint:")+" ", p.Error.Hint)...)
		}
		if p.Event != runtime.OnCallEnd {
			l.failed = p.Error.Message
		}
	}
	return out
}

// indented returns the lines of foreign text: the first behind head, the others
// indented, so that none looks like a line of a run.
func indented(head termtext.Text, message string) []termtext.Text {
	var out []termtext.Text
	for part := range strings.SplitSeq(string(termtext.Block(message, "    ")), "\n") {
		out, head = append(out, head+termtext.Text(part)), ""
	}
	return out
}

// statusLine returns the lines for a run that waits. That a run continues is visible.
func (l *lines) statusLine(who termtext.Text, p runtime.Progress) []termtext.Text {
	switch {
	case p.Decision != nil && l.app.CanAsk():
		return nil // the question follows
	case p.Decision != nil:
		return indented(who+l.paint.Warn("waiting for a person")+"  ", p.Decision.Prompt)
	case p.Status == sentinels.StatusPaused, p.Status == sentinels.StatusQueued:
		return indented(who+output.Status(l.paint, p.Status)+"  ", p.Message)
	}
	return nil
}

// who is the beginning of a line: the iteration, and for a child its name.
func (l *lines) who(p runtime.Progress) termtext.Text {
	var s termtext.Text
	if p.Run != l.root {
		s = output.Escape(p.Sentinel) + " " + output.ShortID(p.Run) + " "
	}
	if p.Iteration > 0 {
		s += termtext.Sprintf("#%d ", p.Iteration)
	}
	return l.paint.Dim(s)
}

// stepName is the address of a step, its type, what its author calls it, and the item that it is executed for.
func (l *lines) stepName(p runtime.Progress) termtext.Text {
	s := termtext.Sprintf("%-3s %s", p.Address, p.Type)
	switch {
	case p.Step != "":
		s += " " + l.paint.Strong(output.Clip(p.Step, 40))
	case p.Label != "" && p.Event != runtime.OnStepStart:
		s += " " + output.Clip(p.Label, 40)
	}
	if item := l.itemOf(p); item != "" {
		s += " " + l.paint.Dim(item)
	}
	return s
}

// plainView writes lines as they come, for files, pipes and CI.
type plainView struct{ lines }

func (v *plainView) show(p runtime.Progress) {
	for _, s := range v.of(p) {
		v.app.PrintErr("%s\n", s)
	}
}

func (v *plainView) flush() bool { return false }
func (v *plainView) tick()       {}
func (v *plainView) hold(bool)   {}
func (v *plainView) close()      {}

// about returns the parameter that describes a call best, for one line.
func about(params json.RawMessage) string {
	var fields map[string]any
	if json.Unmarshal(params, &fields) != nil {
		return ""
	}
	for _, name := range []string{"path", "pattern", "query", "command", "operation", "room", "collection", "name"} {
		if s, ok := fields[name].(string); ok {
			return s
		}
	}
	return ""
}
