package run

import (
	"context"
	"fmt"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/cli/app"
	"github.com/sentinel-runtime/sentinel/host/cli/output"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// restored is the result of checkpoint/restore.
type restored struct {
	Success   bool       `json:"success"`
	Of        string     `json:"of"`
	Files     []doChange `json:"files"`
	Conflicts []conflict `json:"conflicts,omitempty"`
	Refused   []conflict `json:"refused,omitempty"`
	Open      bool       `json:"open,omitempty"`
	Undo      string     `json:"undo,omitempty"`
}

// conflict is why a path is not restored.
type conflict struct {
	Path   string `json:"path,omitempty"`
	Reason string `json:"reason"`
}

// undo reverts what a run changed, or an earlier undo.
func (a verbs) undo(ctx context.Context, word string, force bool) (err error) {
	s, err := a.Connect(ctx, true)
	if err != nil {
		return err
	}
	defer a.CloseSession(s, &err)
	of := word
	if !strings.HasPrefix(word, "undo-") {
		info, err := a.doRun(ctx, s, word)
		if err != nil {
			return err
		}
		of = string(info.ID)
	}
	var out restored
	if err := s.Call(ctx, "checkpoint/restore", map[string]any{"run": of, "force": force}, &out); err != nil {
		return err
	}
	if !out.Success && out.Open && a.CanAsk() {
		yes, err := a.confirmUndo(out)
		if err != nil {
			return err
		}
		if yes {
			if err := s.Call(ctx, "checkpoint/restore", map[string]any{"run": of, "force": true}, &out); err != nil {
				return err
			}
		}
	}
	return a.showRestored(out)
}

// confirmUndo asks about a run that has no end, whose changes look like later ones.
func (a verbs) confirmUndo(out restored) (bool, error) {
	var b output.Page
	a.pageFiles(&b, doSummary{Files: out.Files})
	a.PrintErr("%s\nThe run did not get to its end, so these are all changes since it began.\nGive %s the state of before? [y/N] ",
		b.Text(), output.Plural(len(out.Files), "this file", "these files"))
	line, ok := <-a.TypedLines()
	if !ok {
		a.StdinClosed = true
		a.PrintErr("\n")
		return false, nil
	}
	word := strings.ToLower(strings.TrimSpace(line))
	return word == "y" || word == "yes", nil
}

// shortScope shortens the id of a run, and leaves that of an undo as it is.
func shortScope(of string) string {
	if strings.HasPrefix(of, "undo-") {
		return of
	}
	return string(output.ShortID(sentinels.RunID(of)))
}

// showRestored shows the files, or the conflicts.
func (a verbs) showRestored(out restored) error {
	if a.Flags.Output != output.FormatTable {
		if err := a.WriteJSON(out); err != nil {
			return err
		}
	} else {
		var b output.Page
		if out.Success && len(out.Files) == 0 {
			b.Add("there is nothing to undo\n")
		}
		if out.Success {
			a.pageFiles(&b, doSummary{Files: out.Files})
		}
		if out.Undo != "" {
			b.Printf("\n%s%s\n", a.PaintOut.Dim("revert this: "), fmt.Sprintf("sentinel do%s --undo %s", a.SameStore(), out.Undo))
		}
		if err := a.Out.Write(b.Text()); err != nil {
			return err
		}
	}
	for _, c := range append(out.Conflicts, out.Refused...) {
		text := c.Reason
		if c.Path != "" {
			text = c.Path + ": " + c.Reason
		}
		a.PrintErr("%s\n", output.Escape(text))
	}
	switch {
	case len(out.Refused) > 0:
		a.ErrorMessage("these paths were not restored; the others were", "remove the cause and repeat the undo; nothing was lost")
		return app.ExitError(app.ExitFailed)
	case out.Success:
		return nil
	}
	a.ErrorMessage("nothing was changed", fmt.Sprintf("sentinel do%s --undo %s --force reverts it anyway; the present files are kept in a checkpoint", a.SameStore(), shortScope(out.Of)))
	return app.ExitError(app.ExitFailed)
}
