package llm

import "github.com/sentinel-runtime/sentinel/sdk"

// runChecks executes the checks of a reply. It returns the reason to end, or the message
// with which the model continues because they failed.
func (t *conversation) runChecks() (next []sdk.Message, end string, err error) {
	if t.check, err = t.c.Block("checks", sdk.Value{}); err != nil {
		return nil, "", err
	}
	t.checkRuns++
	if t.check.Get("success").BoolOr(true) {
		return nil, t.reply.Finish, nil
	}
	if t.checkRuns >= t.r.maxRuns {
		return nil, stopChecks, nil
	}
	if t.turns >= t.r.maxTurns {
		return nil, stopLimit, nil
	}
	text := t.check.Get("text").StringOr("")
	if text == "" {
		text = t.check.String()
	}
	return []sdk.Message{{Role: "user", Content: "The work was checked and is not accepted:\n\n" + shorten(text, maxResult) + "\n\nRepair it, then reply again."}}, "", nil
}
