package llm

import (
	"strconv"

	"github.com/sentinel-runtime/sentinel/sdk"
)

// Room for tool results in one request, whose limit is 256 KiB: what escaping
// and the rest of the request take must fit too.
const (
	roomOfOne = 64 << 10
	roomOfAll = 128 << 10
)

// roomOfArguments is how much of a call's arguments the step's result repeats;
// whole files that were written stay in the record of the call itself.
const roomOfArguments = 4 << 10

// useTools carries out the calls of the reply in their order and returns what
// to tell the model. Repeated is the name of the command when the model is
// stuck on one call and the talk is over; that call is not carried out.
func (t *talk) useTools() (next []sdk.Message, repeated string, err error) {
	calls := t.reply.ToolCalls
	room := min(roomOfOne, roomOfAll/len(calls))
	turns := t.seen.turn(calls)
	for i, call := range calls {
		times := max(t.seen.call(call), turns)
		if times > mostRepeats {
			t.note(call, false, "not carried out: the same call for the third time in a row")
			for _, rest := range calls[i+1:] {
				t.note(rest, false, "not carried out")
			}
			return nil, call.Name, nil
		}
		message, err := t.use(call, room)
		if err != nil {
			return nil, "", err
		}
		if times == mostRepeats {
			message.Content += "\n\n[Note: this is the same call as the one before. Making it a third time ends the conversation: use the result, or try something else.]"
		}
		next = append(next, message)
	}
	if t.turns+1 == t.r.maxTurns {
		next[len(next)-1].Content += "\n\n[Note: one reply is left. Answer now, without tools.]"
	}
	return next, "", nil
}

// use carries out one call. Its error is the model's to handle, except that a
// run which is being stopped stops.
func (t *talk) use(call sdk.ToolCall, room int) (sdk.Message, error) {
	m := sdk.Message{Role: "tool", ToolCallID: call.ID, Name: call.Name}
	arguments := call.Arguments
	if !arguments.Given() {
		arguments = sdk.Object()
	}
	result, err := t.c.ToolCommand(call.Name, arguments, t.r.tools)
	if err != nil {
		e := sdk.AsError(err)
		if e.Code == sdk.CodeCancelled {
			return m, err
		}
		t.note(call, false, e.Message)
		m.IsError = true
		m.Content = "Error (" + string(e.Code) + "): " + e.Message
		if e.Hint != "" {
			m.Content += "\nHint: " + e.Hint
		}
		return m, nil
	}
	t.note(call, result.Get("success").BoolOr(true), "")
	m.Content = shorten(shown(result), room)
	return m, nil
}

// shown is a result as a model reads it: a text as it is, all else as JSON.
func shown(v sdk.Value) string {
	if s, ok := v.AsString(); ok {
		return s
	}
	return v.String()
}

func shorten(s string, room int) string {
	if len(s) <= room {
		return s
	}
	head := sdk.Cut(s, room)
	return head + "\n[cut: " + strconv.Itoa(len(s)-len(head)) + " more bytes]"
}

// note adds a call to the result's list.
func (t *talk) note(call sdk.ToolCall, success bool, problem string) {
	arguments := call.Arguments
	if text := arguments.String(); len(text) > roomOfArguments {
		arguments = sdk.String(shorten(text, roomOfArguments))
	}
	t.calls = append(t.calls, sdk.Object(
		sdk.F("name", sdk.String(call.Name)),
		sdk.F("arguments", arguments),
		sdk.F("success", sdk.Bool(success)),
		sdk.F("error", sdk.Text(problem)),
	))
}

// skip notes the calls of the reply as not carried out.
func (t *talk) skip(why string) {
	for _, call := range t.reply.ToolCalls {
		t.note(call, false, why)
	}
}
