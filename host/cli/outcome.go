package cli

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/host/internal/termtext"
	"github.com/sentinel-runtime/sentinel/runtime"
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

// showOutcome ends the talk about a run.
func (a *app) showOutcome(out outcome) error {
	list := a.waitingFor(out.open)
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
	parts := []termtext.Text{p.strong(statusText(p, r.Status)), escaped(r.Sentinel), "run " + escaped(r.Run),
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
