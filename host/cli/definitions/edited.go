package definitions

import (
	"context"
	"fmt"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/cli/app"
	"github.com/sentinel-runtime/sentinel/host/cli/output"
	"github.com/sentinel-runtime/sentinel/host/internal/termtext"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// edited is the result of every command that edits a definition.
type edited struct {
	SentinelID sentinels.ID    `json:"sentinelId"`
	Run        sentinels.RunID `json:"run,omitempty"` // the one run that was edited
	Name       string          `json:"name,omitempty"`
	Revision   int             `json:"revision"`
	Edit       int             `json:"edit,omitempty"` // of that run
	Hash       string          `json:"hash,omitempty"`
	Steps      int             `json:"steps"`
	Address    string          `json:"address,omitempty"`
	Note       string          `json:"note,omitempty"`
	Warning    string          `json:"warning,omitempty"`

	Problems sentinels.Problems `json:"problems,omitempty"`
	shown    bool               // the problems have been shown
}

// maxDiff is how many lines of a difference are shown after an edit. Who made
// it knows it; this is to see that it is the one that was meant.
const maxDiff = 40

// editing is what verbs that edit have in common: one command that edits what
// target names, and then the result.
//
// Whether the edit is allowed, and on which revision it is made, is for the
// command to decide: another user may edit at the same moment.
func (a verbs) editing(ctx context.Context, target, command string, params map[string]any) (err error) {
	s, err := a.Connect(ctx, false)
	if err != nil {
		return err
	}
	defer a.CloseSession(s, &err)
	if params["sentinelId"], err = a.FindTarget(ctx, s, target); err != nil {
		return err
	}
	return a.edit(ctx, s, command, params)
}

// revising is editing of a sentinel whose name is used as it is, because it may be deleted.
func (a verbs) revising(ctx context.Context, name, command string, params map[string]any) (err error) {
	s, err := a.Connect(ctx, false)
	if err != nil {
		return err
	}
	defer a.CloseSession(s, &err)
	var out edited
	if err := a.CallStored(ctx, s, name, command, params, &out); err != nil {
		return app.Invalid(err)
	}
	return a.showEdit(ctx, s, out)
}

// edit calls a command that edits a definition and shows the result.
func (a verbs) edit(ctx context.Context, s *app.Session, command string, params map[string]any) error {
	var out edited
	if err := s.Call(ctx, command, params, &out); err != nil {
		return app.Invalid(err)
	}
	return a.showEdit(ctx, s, out)
}

// showEdit prints the revision that an edit made, and the change.
func (a verbs) showEdit(ctx context.Context, s *app.Session, e edited) error {
	if e.Warning != "" { // in every form, since it is on standard error
		a.Warn(e.Warning)
	}
	if !e.shown {
		a.ShowProblems(e.Problems)
	}
	if a.Flags.Output != output.FormatTable {
		return a.WriteJSON(e)
	}
	line := termtext.Sprintf("%s  revision %d", e.SentinelID, e.Revision)
	if e.Run != "" {
		line = termtext.Sprintf("%s  run %s  edit %d", e.SentinelID, e.Run, e.Edit)
	}
	if e.Address != "" {
		line += "  step " + output.Escape(e.Address)
	}
	if err := a.Out.Printf("%s\n", line); err != nil {
		return err
	}
	if e.Note != "" {
		a.Info("%s", e.Note)
	}
	if a.Flags.Quiet || e.Note != "" && e.Run == "" { // it was like that already
		return nil
	}
	return a.showChange(ctx, s, e)
}

// showChange shows what an edit changed, shortened. The edit is made: what
// cannot be compared is not an error, as for a run whose definition was never
// stored, or after another edit came at the same moment.
func (a verbs) showChange(ctx context.Context, s *app.Session, e edited) error {
	// The command compares with the revision before, which is what was edited; a
	// run's own edit it compares with the revision that the run came from.
	params := map[string]any{"sentinelId": string(e.SentinelID), "to": e.Revision}
	if e.Run != "" {
		params = map[string]any{"sentinelId": string(e.Run)}
	}
	var d diffed
	switch err := s.Call(ctx, "sentinel/diff", params, &d); abi.CodeOf(err) {
	case abi.BadFields, abi.NotFound:
		return nil
	default:
		if err != nil {
			return err
		}
	}
	lines := strings.Split(strings.TrimRight(d.Text, "\n"), "\n")
	if len(lines) > maxDiff {
		hint := fmt.Sprintf("(and %d more lines; `sentinel diff%s %s` shows them)", len(lines)-maxDiff, a.SameStore(), output.Quote(fmt.Sprint(params["sentinelId"])))
		lines = append(lines[:maxDiff], hint)
	}
	return a.writeDiff(strings.Join(lines, "\n"))
}
