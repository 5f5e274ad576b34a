package cli

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/host/internal/termtext"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// An outcome is how following a run ended: its result, or what is known of a
// run that a person has to bring on.
type outcome struct {
	runtime.Result
	open   []runtime.RunInfo // what waits, the run itself or children of it
	served bool              // a server carries it out, and goes on with it by itself
}

// resultLine is the last line of "-o jsonl" and all of "-o json".
type resultLine struct {
	runtime.Result
	Waiting []waiting `json:"waiting,omitempty"` // with status waiting or paused
}

// waiting is one thing that a person has to do, with the line to type.
type waiting struct {
	Run     sentinels.RunID `json:"run"`
	Call    string          `json:"call,omitempty"`
	Kind    string          `json:"kind"` // approval, doubt, limit
	Prompt  string          `json:"prompt"`
	Choices []string        `json:"choices,omitempty"`
	Type    string          `json:"type"` // what to type in a shell
}

// waitingFor lists what has to be done, each with a line that can be typed as it
// stands, from the same folder.
func (a *app) waitingFor(out outcome) []waiting {
	var list []waiting
	for _, r := range out.open {
		for _, q := range r.Decisions {
			line := fmt.Sprintf("sentinel decide%s %s %s %s", a.sameStore(), r.ID, quoted(q.Call), strings.Join(q.Choices, "|"))
			if q.Kind == runtime.DecisionQuarantine {
				line += " --comment WHY"
			}
			list = append(list, waiting{r.ID, q.Call, string(q.Kind), q.Prompt, q.Choices, line})
		}
		if r.Status == sentinels.StatusPaused && r.Limit != "" {
			list = append(list, waiting{Run: r.ID, Kind: "limit", Prompt: "the run reached its limit " + r.Limit,
				Type: fmt.Sprintf("sentinel run%s --resume %s%s", a.sameStore(), r.ID, roomFor(r.Limit))})
		}
	}
	return list
}

// roomFor is the flag that gives a run more of what it ran out of.
func roomFor(limit string) string {
	switch limit {
	case "maxIterations":
		return " --max-iterations +N"
	case "timeoutMs":
		return " --timeout +DURATION"
	case "budget.costUsd":
		return " --budget-usd +X"
	case "budget.tokens":
		return " --budget-tokens +N"
	case "budget.calls":
		return " --budget-calls +N"
	}
	return ""
}

// showOutcome ends the talk about a run.
func (a *app) showOutcome(out outcome) error {
	list := a.waitingFor(out)
	line := resultLine{out.Result, list}
	if line.Variables == nil {
		line.Variables = map[string]json.RawMessage{}
	}
	if a.flags.output != asTable {
		if err := a.writeJSON(line); err != nil {
			return err
		}
	} else if err := a.resultTable(out.Result); err != nil {
		return err
	}
	for _, w := range list {
		a.complain(fmt.Sprintf("run %s waits for a person: %s", w.Run, w.Prompt), w.Type)
	}
	if !out.served && slices.ContainsFunc(list, func(w waiting) bool { return w.Call != "" }) {
		a.say("then go on with `sentinel run%s --resume %s`", a.sameStore(), out.Run)
	}
	if len(list) == 0 && out.Error != nil {
		where := ""
		if out.Step != "" {
			where = fmt.Sprintf("step %s: ", out.Step)
		}
		a.complain(where+out.Error.Message, out.Error.Hint)
	}
	return nil
}

// resultTable writes a result for people.
func (a *app) resultTable(r runtime.Result) error {
	p := a.paintOut
	parts := []termtext.Text{p.strong(a.status(p, r.Status)), escaped(r.Sentinel), "run " + escaped(r.Run),
		escaped(plural(r.Iterations, "iteration", "iterations")), duration(time.Duration(r.Millis) * time.Millisecond)}
	if s := spent(r.Usage); s != "" {
		parts = append(parts, s)
	}
	if r.Limit != "" {
		parts = append(parts, "limit "+escaped(r.Limit))
	}
	if err := a.out.printf("%s\n", termtext.Join(parts, "  ")); err != nil {
		return err
	}
	width := 0
	for name := range r.Variables {
		width = max(width, visible(escaped(name)))
	}
	room := math.MaxInt // whoever reads from a pipe wants all of it
	if a.env.StdoutTerminal {
		room = max(20, a.env.Width()-width-4)
	}
	var rows []row
	for _, name := range names(r.Variables) {
		rows = append(rows, row{"  " + p.dim(escaped(name)), cut(gist(r.Variables[name]), room)})
	}
	return a.table(rows)
}

// gist is what a person wants to know of a value: the text of one that has a
// text, such as a model's reply or a program's output, else its JSON. -o json
// has all of it.
func gist(value json.RawMessage) termtext.Text {
	var text string
	var fields struct{ Text, Output string }
	switch {
	case json.Unmarshal(value, &text) == nil:
	case json.Unmarshal(value, &fields) == nil && fields.Text != "":
		text = fields.Text
	case fields.Output != "":
		text = fields.Output
	default:
		return escaped(string(termtext.JSON(value)))
	}
	first, rest, more := strings.Cut(strings.TrimSpace(text), "\n")
	first = strings.Join(strings.Fields(first), " ")
	if more {
		first += fmt.Sprintf("  (and %s)", plural(strings.Count(rest, "\n")+1, "more line", "more lines"))
	}
	return escaped(first)
}

// status is a status in its colour.
func (a *app) status(p palette, s sentinels.Status) termtext.Text {
	switch s {
	case sentinels.StatusCompleted:
		return p.good(escaped(s))
	case sentinels.StatusRunning, "idle":
		return escaped(s)
	case sentinels.StatusPaused, sentinels.StatusWaiting:
		return p.warn(escaped(s))
	}
	return p.bad(escaped(s))
}

// names are the keys in order: output must not depend on the order of a map.
func names[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }
