package llm

import (
	"strconv"

	"github.com/sentinel-runtime/sentinel/sdk"
)

// output returns the step's result. A reply that is a JSON array is the result itself,
// so that it can be counted, indexed and repeated over; what else there is to know of
// it is in the step's host calls.
//
// Any other result is an object. The fields of a reply that is a JSON object are
// top-level fields of the result, so that a condition can read $findings.complete;
// json has the whole reply. The step's own fields take precedence. success is false
// if that of the reply is.
func (t *conversation) output(stopReason, note string) sdk.Value {
	reply := t.reply.JSON
	if stopReason == "stop" && t.isList() {
		return reply
	}
	if n := t.reply.MaxTokens; n > 0 && note == "" {
		note = "The budget left " + strconv.FormatInt(n, 10) + " tokens for the reply."
	}
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
	if t.denied > 0 {
		own = append(own, sdk.F("denied", sdk.Int(t.denied)))
	}
	if t.shortened > 0 {
		own = append(own, sdk.F("shortened", sdk.Int(t.shortened)))
	}
	if t.checkRuns > 0 {
		own = append(own, sdk.F("check", t.check), sdk.F("checkRuns", sdk.Int(t.checkRuns)))
	}
	all := own
	for name, value := range reply.Fields() {
		all = append(all, sdk.F(name, value))
	}
	return sdk.Object(append(all, own...)...) // of a repeated name the last value counts
}

// isList reports whether the reply is a JSON array, alone or in a code fence. An array
// within prose is not the reply, unless the step asks for JSON by a schema.
func (t *conversation) isList() bool {
	if t.reply.JSON.Kind() != sdk.KindList {
		return false
	}
	text := trim(t.reply.Text)
	return t.r.schema.Exists() || text != "" && text[0] == '[' || len(text) > 6 && text[:3] == "```" && text[len(text)-3:] == "```"
}

// trim cuts white space from both ends of a text. Package strings would make the guest
// larger.
func trim(s string) string {
	space := func(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }
	for s != "" && space(s[0]) {
		s = s[1:]
	}
	for s != "" && space(s[len(s)-1]) {
		s = s[:len(s)-1]
	}
	return s
}
