package cli

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// lines puts what happened into lines for people; most happenings are none.
type lines struct {
	app  *app
	root sentinels.RunID
	head bool // the run's own line has been shown
}

// of returns the lines that p is worth, without line ends. The first are
// preceded by the run's own: what a run tells at once may overtake its start,
// and one that is taken up has no start.
func (l *lines) of(p runtime.Progress) []string {
	out := l.worth(p)
	if !l.head && (len(out) > 0 || p.Event == runtime.OnRunStart) {
		l.head = true
		out = append([]string{l.app.paint.strong(string(p.Sentinel)) + l.app.paint.dim("  run "+string(l.root))}, out...)
	}
	return out
}

// worth is what p is worth by itself. The start of a step is nothing: its end says
// the same and how it went.
func (l *lines) worth(p runtime.Progress) []string {
	paint := l.app.paint
	who := l.who(p)
	switch p.Event {
	case runtime.OnRunStart:
		if p.Run != l.root {
			return []string{who + paint.dim("started as run "+string(p.Run))}
		}
	case runtime.OnRunEnd:
		if p.Run != l.root {
			return l.failure(who+l.app.status(paint, p.Status), p)
		}
	case runtime.OnStepEnd:
		return l.step(who, p)
	case runtime.OnRetry:
		line := fmt.Sprintf("%s%s  %s", who, l.stepName(p), paint.warn(fmt.Sprintf("attempt %d failed", p.Attempt)))
		if wait := p.RetryAt.Sub(p.Time); wait > 0 {
			line += paint.dim(", next in " + duration(wait))
		}
		return l.failure(line, p)
	case runtime.OnStatus:
		return l.statusLine(who, p)
	case runtime.OnLog:
		switch p.Level {
		case "debug", "trace":
			if !l.app.flags.verbose {
				return nil
			}
		}
		return []string{fmt.Sprintf("%s%s  %s", who, l.stepName(p), printable(p.Level+": "+p.Message))}
	case runtime.OnCallEnd:
		if p.ByModel {
			return l.failure(fmt.Sprintf("    %s %s  %s", paint.dim("model:"), printable(p.Label+" "+about(p.Params)), paint.dim(duration(p.Duration))), p)
		}
		if l.app.flags.verbose {
			return l.failure(fmt.Sprintf("%s%s  %s", who, l.stepName(p), paint.dim(strings.TrimPrefix(p.Function, "sentinel_")+" "+printable(p.Label)+" "+duration(p.Duration))), p)
		}
	}
	return nil
}

// step is the line of a step that ended. One whose condition did not hold has no
// time: it took none.
func (l *lines) step(who string, p runtime.Progress) []string {
	paint := l.app.paint
	mark := paint.good("ok")
	switch {
	case p.Skipped == "condition":
		return []string{fmt.Sprintf("%s%s  %s", who, l.stepName(p), paint.dim("not needed"))}
	case p.Skipped != "":
		mark = paint.warn("skipped")
	case p.Error != nil:
		mark = paint.bad("failed")
	}
	line := fmt.Sprintf("%s%s  %s  %s", who, l.stepName(p), mark, paint.dim(duration(p.Duration)))
	if said := saying(p); said != "" {
		line += "  " + paint.dim(clip(said, 72))
	}
	return l.failure(line, p)
}

// saying is the first line of what a step has to say, such as a model's reply or
// the first error of a build that was watched.
func saying(p runtime.Progress) string {
	var out struct{ Text string }
	if p.Error != nil || json.Unmarshal(p.Output, &out) != nil {
		return ""
	}
	first, _, _ := strings.Cut(strings.TrimSpace(out.Text), "\n")
	return printable(first)
}

// failure adds the error of p, if it has one, and its hint.
func (l *lines) failure(line string, p runtime.Progress) []string {
	out := []string{line}
	if p.Error != nil {
		for s := range strings.SplitSeq(strings.TrimRight(printable(p.Error.Message), "\n"), "\n") {
			out = append(out, "    "+s)
		}
		if p.Error.Hint != "" {
			out = append(out, "    "+l.app.paint.dim("hint: "+printable(p.Error.Hint)))
		}
	}
	return out
}

// statusLine tells what a person may have to know; that a run goes on is seen.
func (l *lines) statusLine(who string, p runtime.Progress) []string {
	switch {
	case p.Ask != nil && l.app.canAsk():
		return nil // it is asked below
	case p.Ask != nil:
		return []string{fmt.Sprintf("%s%s  %s", who, l.app.paint.warn("waiting for a person"), printable(p.Ask.Prompt))}
	case p.Status == sentinels.StatusPaused:
		return []string{who + l.app.paint.warn("paused") + "  " + printable(p.Message)}
	}
	return nil
}

// who is the beginning of a line: which pass, and of a child which one.
func (l *lines) who(p runtime.Progress) string {
	s := ""
	if p.Run != l.root {
		s = string(p.Sentinel) + " " + shortID(p.Run) + " "
	}
	if p.Iteration > 0 {
		s += fmt.Sprintf("#%d ", p.Iteration)
	}
	return l.app.paint.dim(s)
}

// stepName is the address of a step, its type and what its author calls it.
func (l *lines) stepName(p runtime.Progress) string {
	s := fmt.Sprintf("%-3s %s", p.Address, p.Type)
	switch {
	case p.Step != "":
		s += " " + l.app.paint.strong(clip(p.Step, 40))
	case p.Label != "" && p.Event != runtime.OnStepStart:
		s += " " + clip(p.Label, 40)
	}
	return s
}

// plainView writes lines as they come, for files, pipes and CI.
type plainView struct{ lines }

func (v *plainView) show(p runtime.Progress) {
	for _, s := range v.of(p) {
		fmt.Fprintln(v.app.env.Stderr, s)
	}
}

func (v *plainView) flush() bool { return false }
func (v *plainView) tick()       {}
func (v *plainView) hold(bool)   {}
func (v *plainView) close()      {}

// about is the parameter that says best what a call is about, for one line.
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
