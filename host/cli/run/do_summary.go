package run

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/sentinel-runtime/sentinel/host/cli/app"
	"github.com/sentinel-runtime/sentinel/host/cli/output"
	"github.com/sentinel-runtime/sentinel/host/internal/termtext"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Outcomes of a task. Those of the sentinel are done, checks, failed, denied and limit.
const (
	outcomeDone    = "done"
	outcomeChecks  = "checks" // the checks failed as often as they may
	outcomeFailed  = "failed"
	outcomeDenied  = "denied" // calls needed a person, and there was none
	outcomeLimit   = "limit"  // turns, money, time, tokens
	outcomeStopped = "stopped"
	outcomeWaiting = "waiting"
)

// doSummary is the result of a task. The sentinel leaves it in its variable summary; of a
// run that did not get so far it is made from the result of the run.
type doSummary struct {
	Outcome  string      `json:"outcome"`
	Reason   string      `json:"reason,omitempty"`
	Hint     string      `json:"hint,omitempty"`
	Reply    string      `json:"reply,omitempty"`
	Files    []doChange  `json:"files"`
	Added    int         `json:"added"`
	Removed  int         `json:"removed"`
	Verified string      `json:"verified"` // passed, failed, none
	Why      string      `json:"why,omitempty"`
	Checks   []doCheck   `json:"checks"`
	Turns    int         `json:"turns"`
	Model    string      `json:"model,omitempty"`
	Problem  string      `json:"problem,omitempty"` // why there is no end, or no list of files
	Undo     string      `json:"undo,omitempty"`    // the command that reverts the changes
	Continue string      `json:"continue,omitempty"`
	Without  doUncovered `json:"uncovered"`
}

type doChange struct {
	Path    string `json:"path"`
	Change  string `json:"change"`
	Added   int    `json:"added,omitempty"`
	Removed int    `json:"removed,omitempty"`
	Binary  bool   `json:"binary,omitempty"`
	Files   int    `json:"files,omitempty"` // of a folder that is named in place of what is in it
	Ignored bool   `json:"ignored,omitempty"`
	Left    string `json:"left,omitempty"` // why --undo leaves it as it is
}

type doCheck struct {
	Name    string `json:"name"`
	Success bool   `json:"success"`
	Text    string `json:"text,omitempty"`
}

// doUncovered is of what the checkpoints keep no content, only that it exists, as package
// checkpoint counts it.
type doUncovered struct {
	Ignored      int      `json:"ignored,omitempty"`
	Repositories []string `json:"repositories,omitempty"`
	Large        []string `json:"large,omitempty"`
	Unreadable   []string `json:"unreadable,omitempty"`
	More         int      `json:"more,omitempty"`
}

// doSummary returns the result of a run. A run that was stopped or failed before its end gets
// the checkpoint that it lacks, so that what is changed later is not taken for its work.
func (a verbs) doSummary(ctx context.Context, s *app.Session, out outcome) (doSummary, error) {
	sum := doSummary{Files: []doChange{}, Checks: []doCheck{}, Verified: "none"}
	if raw := out.Variables["summary"]; raw != nil {
		if err := json.Unmarshal(raw, &sum); err != nil {
			return sum, fmt.Errorf("read the summary of run %s: %w", out.Run, err)
		}
	}
	if sum.Outcome == "" {
		sum.Outcome, sum.Reason, sum.Hint = outcomeOf(out)
		sum.Why = "the run did not get to its end"
		a.changesOf(ctx, s, out, &sum)
	}
	if len(sum.Files) > 0 {
		sum.Undo = fmt.Sprintf("sentinel do%s --undo %s", a.SameStore(), output.ShortID(out.Run))
	}
	sum.Continue = a.continueLine(out, sum)
	return sum, nil
}

// outcomeOf is the outcome of a run without a summary.
func outcomeOf(out outcome) (name, reason, hint string) {
	if out.Error != nil {
		reason, hint = out.Error.Message, out.Error.Hint
	}
	switch out.Status {
	case sentinels.StatusCompleted: // another sentinel in the place of do
		return outcomeDone, "", ""
	case sentinels.StatusStopped:
		return outcomeStopped, "", ""
	case sentinels.StatusTimedOut:
		return outcomeLimit, "the run reached its limit " + out.Reason, hint
	case sentinels.StatusFailed:
		if out.Error != nil && out.Error.Code == abi.Denied {
			return outcomeDenied, reason, hint
		}
		return outcomeFailed, reason, hint
	}
	for _, r := range out.open {
		if r.Status == sentinels.StatusPaused && r.Limit != "" {
			return outcomeLimit, "the run is paused: it reached its limit " + r.Limit, ""
		}
	}
	return outcomeWaiting, "", ""
}

// changesOf adds what a run has changed. Of a run that has ended the present state is kept
// as its end.
func (a verbs) changesOf(ctx context.Context, s *app.Session, out outcome, sum *doSummary) {
	var made struct {
		Checkpoints []struct {
			Label     string
			Uncovered doUncovered
		}
	}
	err := s.Call(ctx, "checkpoint/list", map[string]any{"run": out.Run}, &made)
	if err != nil || len(made.Checkpoints) == 0 {
		return // it failed before its begin, or it is of another sentinel
	}
	sum.Without = made.Checkpoints[0].Uncovered
	if out.Status.Final() && made.Checkpoints[len(made.Checkpoints)-1].Label == "begin" {
		err = s.Call(ctx, "checkpoint/create", map[string]any{"run": out.Run, "label": "end"}, nil)
	}
	var diff struct {
		Files          []doChange
		Added, Removed int
	}
	if err == nil {
		err = s.Call(ctx, "checkpoint/diff", map[string]any{"run": out.Run}, &diff)
	}
	if err != nil {
		sum.Problem = err.Error()
		return
	}
	sum.Files, sum.Added, sum.Removed = diff.Files, diff.Added, diff.Removed
}

// continueLine is the command that continues a task.
func (a verbs) continueLine(out outcome, sum doSummary) string {
	line := "sentinel do" + a.SameStore() + " --continue"
	if out.Status.Final() {
		return line + " 'NEXT TASK'"
	}
	for _, r := range out.open {
		switch r.Limit {
		case "budget.costUsd":
			return line + " --max-usd X"
		case "timeoutMs":
			return line + " --timeout DURATION"
		case "":
		default:
			return fmt.Sprintf("sentinel run%s --resume %s%s", a.SameStore(), r.ID, app.ExtensionFlag(r.Limit))
		}
	}
	return line
}

// code is the exit code of an outcome.
func (d doSummary) code(out outcome) error {
	switch d.Outcome {
	case outcomeDone:
		return nil
	case outcomeDenied:
		return app.ExitError(app.ExitDenied)
	case outcomeLimit:
		return app.ExitError(app.ExitTimedOut)
	case outcomeWaiting:
		return app.ExitError(app.ExitWaiting)
	}
	return app.ExitError(app.ExitFailed)
}

// checked is the result of the checks in words.
func (d doSummary) checked() string {
	switch d.Verified {
	case "passed":
		return "passed"
	case "failed":
		return "failed"
	}
	return "not verified: " + d.Why
}

// doEnded shows the result of a run and returns the exit code for it.
func (a verbs) doEnded(ctx context.Context, s *app.Session, out outcome) error {
	out.served = s.Serves()
	sum, err := a.doSummary(ctx, s, out)
	if err != nil {
		return err
	}
	waiting := a.PendingActions(out.open)
	if a.Flags.Output != output.FormatTable {
		line := struct {
			resultLine
			Do doSummary `json:"do"`
		}{resultLine{out.Result, waiting}, sum}
		if line.Variables == nil {
			line.Variables = map[string]json.RawMessage{}
		}
		err = a.WriteJSON(line)
	} else {
		err = a.showSummary(out, sum)
	}
	if err != nil {
		return err
	}
	for _, w := range waiting {
		if w.Call != "" {
			a.ErrorMessage(fmt.Sprintf("run %s waits for a person: %s", w.Run, w.Question()), w.Type)
		}
	}
	if p := s.Process; p != nil && p.Host().Replaying() {
		if err := p.Host().WriteDivergences(a.Err.Stream()); err != nil {
			return err
		}
	}
	return sum.code(out)
}

// showSummary writes a summary for people: what the model says, what changed, what was
// checked, what it cost, and what to type next.
func (a verbs) showSummary(out outcome, sum doSummary) error {
	var b output.Page
	p := a.PaintOut
	if sum.Reply != "" {
		b.Printf("\n%s\n", app.Block(sum.Reply))
	}
	a.pageFiles(&b, sum)
	for _, c := range sum.Checks {
		mark := p.Good("passed")
		if !c.Success {
			mark = p.Bad("failed")
		}
		b.Printf("check %s  %s\n", output.Clip(c.Name, 100), mark)
	}
	word := map[string]termtext.Text{
		"passed": p.Good("verified"), "failed": p.Bad("checks failed"), "none": p.Warn("not verified"),
	}[sum.Verified]
	if sum.Verified == "none" && sum.Why != "" {
		word += p.Dim(": " + output.Clip(sum.Why, 200))
	}
	parts := []termtext.Text{doneWord(p, sum.Outcome), word, output.Duration(time.Duration(out.Millis) * time.Millisecond)}
	if s := output.Spent(out.Usage); s != "" {
		parts = append(parts, s)
	}
	if sum.Model != "" {
		parts = append(parts, output.Clip(sum.Model, 60))
	}
	b.Printf("\n%s  %s\n", termtext.Join(parts, "  "), p.Dim("run "+output.Escape(output.ShortID(out.Run))))
	if sum.Undo != "" {
		b.Printf("%s\n", p.Dim("undo:     ")+output.Escape(sum.Undo))
	}
	if sum.Outcome != outcomeWaiting {
		b.Printf("%s\n", p.Dim("continue: ")+output.Escape(sum.Continue))
	}
	if err := a.Out.Write(b.Text()); err != nil {
		return err
	}
	if sum.Reason != "" && sum.Outcome != outcomeDone {
		a.ErrorMessage(sum.Reason, sum.Hint)
	} else {
		a.Hint(sum.Hint)
	}
	if sum.Problem != "" {
		a.Warn("the files at the end of the run are not kept: " + sum.Problem)
	}
	if text := sum.Without.text(); text != "" {
		a.Info("%s", "only their existence is covered by --undo, not their content: "+text)
	}
	return nil
}

// doneWord is an outcome for people.
func doneWord(p output.Palette, name string) termtext.Text {
	switch name {
	case outcomeDone:
		return p.Strong(p.Good("done"))
	case outcomeChecks:
		return p.Strong(p.Bad("not accepted"))
	case outcomeLimit, outcomeWaiting, outcomeStopped, outcomeDenied:
		return p.Strong(p.Warn(output.Escape(name)))
	}
	return p.Strong(p.Bad(output.Escape(name)))
}

// pageFiles lists the files that were changed.
func (a verbs) pageFiles(b *output.Page, sum doSummary) {
	l := lines{paint: a.PaintOut}
	const most = 40
	if len(sum.Files) > 0 {
		b.Add("\n")
	}
	for i, c := range sum.Files {
		if i == most {
			b.Printf("and %s\n", output.Plural(len(sum.Files)-most, "more file", "more files"))
			break
		}
		counts := l.counts(c.Added, c.Removed)
		switch {
		case c.Binary:
			counts = "binary"
		case c.Change == "mode" || c.Change == "type":
			counts = output.Escape(c.Change)
		case c.Files > 0:
			counts = output.Escape(output.Plural(c.Files, "path", "paths"))
		}
		if c.Left != "" {
			counts = a.PaintOut.Warn(output.Escape("not covered by --undo: " + c.Left))
		}
		b.Printf("%-8s %s  %s\n", c.Change, output.Clip(c.Path, 120), counts)
	}
}

// text says in one line of what no content is kept; "" if that is only what git ignores.
func (u doUncovered) text() string {
	if len(u.Repositories)+len(u.Large)+len(u.Unreadable) == 0 {
		return ""
	}
	text := ""
	for _, part := range []struct {
		n         int
		one, many string
	}{
		{len(u.Repositories), "nested repository", "nested repositories"}, {len(u.Large), "large file", "large files"},
		{len(u.Unreadable), "unreadable file", "unreadable files"}, {u.More, "more", "more"}, {u.Ignored, "ignored file or folder", "ignored files and folders"},
	} {
		if part.n > 0 {
			if text != "" {
				text += ", "
			}
			text += output.Plural(part.n, part.one, part.many)
		}
	}
	return text
}
