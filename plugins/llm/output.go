package llm

import "github.com/sentinel-runtime/sentinel/sdk"

// output is the step's result. The fields of a reply that is a JSON object are
// at its top, so that a condition reads $findings.complete; a name of ours
// wins over one of theirs, and json holds the reply whole. Of the two
// successes, ours and the reply's own, both must be true.
func (t *talk) output(finish, note string) sdk.Value {
	reply := t.reply.JSON
	success := finish == "stop" || finish == finishTools
	ours := []sdk.Field{
		sdk.F("text", sdk.String(t.reply.Text)),
		sdk.F("success", sdk.Bool(success && reply.Get("success").BoolOr(true))),
		sdk.F("finish", sdk.String(finish)),
		sdk.F("note", sdk.Text(note)),
		sdk.F("model", sdk.String(t.reply.Model)),
		sdk.F("provider", sdk.String(t.reply.Provider)),
		sdk.F("usage", t.usage.Value()),
		sdk.F("turns", sdk.Int(t.turns)),
		sdk.F("toolCalls", sdk.List(t.calls...)),
		sdk.F("json", reply),
	}
	all := ours
	for name, value := range reply.Fields() {
		all = append(all, sdk.F(name, value))
	}
	return sdk.Object(append(all, ours...)...) // of a name that comes twice the later one counts
}
