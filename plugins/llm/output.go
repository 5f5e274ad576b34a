package llm

import "github.com/sentinel-runtime/sentinel/sdk"

// output returns the step's result. The fields of a reply that is a JSON object are
// top-level fields of the result, so that a condition can read $findings.complete;
// json has the whole reply. The step's own fields take precedence. success is false
// if that of the reply is.
func (t *conversation) output(stopReason, note string) sdk.Value {
	reply := t.reply.JSON
	success := stopReason == "stop" || stopReason == stopTools
	own := []sdk.Field{
		sdk.F("text", sdk.String(t.reply.Text)),
		sdk.F("success", sdk.Bool(success && reply.Get("success").BoolOr(true))),
		sdk.F("stopReason", sdk.String(stopReason)),
		sdk.F("note", sdk.Text(note)),
		sdk.F("model", sdk.String(t.reply.Model)),
		sdk.F("provider", sdk.String(t.reply.Provider)),
		sdk.F("usage", t.usage.Value()),
		sdk.F("turns", sdk.Int(t.turns)),
		sdk.F("toolCalls", sdk.List(t.calls...)),
		sdk.F("json", reply),
	}
	all := own
	for name, value := range reply.Fields() {
		all = append(all, sdk.F(name, value))
	}
	return sdk.Object(append(all, own...)...) // of a repeated name the last value counts
}
