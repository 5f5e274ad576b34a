package run

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/sentinel-runtime/sentinel/host/cli/app"
	"github.com/sentinel-runtime/sentinel/host/cli/output"
	"github.com/sentinel-runtime/sentinel/host/internal/termtext"
	"github.com/sentinel-runtime/sentinel/runtime"
)

// An outcome is the end of following a run: its result, or the state of a run that
// waits for a person.
type outcome struct {
	runtime.Result
	open   []runtime.RunInfo // what waits, the run itself or children of it
	served bool              // a server executes it, and continues by itself
}

// resultLine is the last line of "-o jsonl" and all of "-o json".
type resultLine struct {
	runtime.Result
	Waiting []app.Pending `json:"waiting,omitempty"` // with status waiting or paused
}

// showOutcome shows how a run ended.
func (a verbs) showOutcome(out outcome) error {
	list := a.PendingActions(out.open)
	line := resultLine{out.Result, list}
	if line.Variables == nil {
		line.Variables = map[string]json.RawMessage{}
	}
	if a.Flags.Output != output.FormatTable {
		if err := a.WriteJSON(line); err != nil {
			return err
		}
	} else if err := a.resultTable(out.Result); err != nil {
		return err
	}
	for _, w := range list {
		a.ErrorMessage(fmt.Sprintf("run %s waits for a person: %s", w.Run, w.Question()), w.Type)
	}
	if !out.served && slices.ContainsFunc(list, func(w app.Pending) bool { return w.Call != "" }) {
		a.Info("then continue with `sentinel run%s --resume %s`", a.SameStore(), out.Run)
	}
	if len(list) == 0 && out.Error != nil {
		where := ""
		if out.Step != "" {
			where = fmt.Sprintf("step %s: ", out.Step)
		}
		a.ErrorMessage(where+out.Error.Message, out.Error.Hint)
	}
	return nil
}

// maxShownValue is how much of a variable is shown at the end of a run, in characters. -o json
// has all of it.
const maxShownValue = 2000

// resultTable writes a result for people.
func (a verbs) resultTable(r runtime.Result) error {
	p := a.PaintOut
	parts := []termtext.Text{p.Strong(output.Status(p, r.Status)), output.Escape(r.Sentinel), "run " + output.Escape(r.Run),
		output.Escape(output.Plural(r.Iterations, "iteration", "iterations")), output.Duration(time.Duration(r.Millis) * time.Millisecond)}
	if s := output.Spent(r.Usage); s != "" {
		parts = append(parts, s)
	}
	if r.Reason != "" {
		parts = append(parts, "reason "+output.Escape(r.Reason))
	}
	if err := a.Out.Printf("%s\n", termtext.Join(parts, "  ")); err != nil {
		return err
	}
	type shown struct{ reference, value termtext.Text }
	var list []shown
	width := 0
	for _, name := range output.SortedKeys(r.Variables) {
		field, value := output.Gist(r.Variables[name])
		list = append(list, shown{output.Escape("$" + name + field), value})
		width = max(width, output.Width(list[len(list)-1].reference))
	}
	limit := maxShownValue
	if a.Env.StdoutTerminal {
		limit = max(20, a.Env.Width()-width-4)
	}
	var rows []output.Row
	for _, v := range list {
		rows = append(rows, output.Row{"  " + p.Dim(v.reference), output.Cut(v.value, limit)})
	}
	return a.Pairs(rows)
}
