package llm

import (
	"strconv"

	"github.com/sentinel-runtime/sentinel/sdk"
)

// Limits of tool results in one request, in bytes. A request is limited to 256 KiB,
// including escaping and its other fields.
const (
	maxResult     = 64 << 10  // of one call
	maxAllResults = 128 << 10 // of all calls of a reply
)

// maxArguments limits the arguments of a call in the step's result, in bytes. The
// journal has them in full.
const maxArguments = 4 << 10

// useTools executes the calls of the reply in order and returns the messages for
// the model. When the model repeats a call too often, it executes no further calls
// and returns the name of the command in repeated.
func (t *conversation) useTools() (next []sdk.Message, repeated string, err error) {
	calls := t.reply.ToolCalls
	limit := t.resultLimit(len(calls))
	turns := t.repeats.turn(calls)
	for i, call := range calls {
		times := max(t.repeats.call(call), turns)
		if times > maxRepeats {
			t.addCall(call, false, "not executed: the same call for the third time in a row")
			for _, rest := range calls[i+1:] {
				t.addCall(rest, false, "not executed")
			}
			return nil, call.Name, nil
		}
		if t.callsLeft() == 0 {
			t.addCall(call, false, "not executed: maxToolCalls reached")
			next = append(next, sdk.Message{Role: "tool", ToolCallID: call.ID, Name: call.Name, IsError: true,
				Content: "Error (limit): not executed, because no tool call is left"})
			continue
		}
		t.executed++
		message, err := t.use(call, limit)
		if err != nil {
			return nil, "", err
		}
		for len(t.marks) < len(next) {
			t.marks = append(t.marks, sdk.Message{})
		}
		t.marks = append(t.marks, t.markOf(message, call, len(t.calls)))
		if times == maxRepeats {
			message.Content += "\n\n[Note: this is the same call as the one before. Making it a third time ends the conversation: use the result, or try something else.]"
		}
		next = append(next, message)
	}
	if t.callsLeft() == 0 {
		next[len(next)-1].Content += "\n\n[Note: no tool call is left. Answer now, without tools.]"
	} else if t.turns+1 == t.r.maxTurns {
		next[len(next)-1].Content += "\n\n[Note: one reply is left. Answer now, without tools.]"
	}
	return next, "", nil
}

// callsLeft returns how many tool calls the step may still execute; -1 for any number.
func (t *conversation) callsLeft() int64 {
	if t.r.maxCalls == 0 {
		return -1
	}
	return t.r.maxCalls - t.executed
}

// use executes one call, after a person has approved it if the step says so. An error of
// the call is returned to the model, except cancelled, which ends the step because the run
// is being stopped.
func (t *conversation) use(call sdk.ToolCall, limit int) (sdk.Message, error) {
	m := sdk.Message{Role: "tool", ToolCallID: call.ID, Name: call.Name}
	if call.Size > 0 {
		return t.failed(m, call, tooLarge(call)), nil
	}
	arguments, err := t.confirm(call.Name, argumentsOf(call))
	var result sdk.Value
	if err == nil {
		result, err = t.c.ToolCommand(call.Name, arguments, t.r.tools)
	}
	if err != nil {
		e := sdk.AsError(err)
		if e.Code == sdk.CodeCancelled {
			return m, err
		}
		return t.failed(m, call, e), nil
	}
	success := result.Get("success").BoolOr(true)
	t.addCall(call, success, "")
	m.Content = shorten(resultText(result), limit)
	t.noteCall(call, !success, m.Content)
	return m, nil
}

// failed returns the error of a call for the model.
func (t *conversation) failed(m sdk.Message, call sdk.ToolCall, e *sdk.Error) sdk.Message {
	t.addCall(call, false, e.Message)
	m.IsError = true
	m.Content = "Error (" + string(e.Code) + "): " + e.Message
	if e.Hint != "" {
		m.Content += "\nHint: " + e.Hint
	}
	t.noteCall(call, true, m.Content)
	return m
}

// tooLarge is the error of a call whose arguments the host has left out.
func tooLarge(call sdk.ToolCall) *sdk.Error {
	e := sdk.Fail(sdk.CodeLimit, call.Name+" was not executed: its arguments have "+strconv.FormatInt(call.Size, 10)+" bytes, and all of a reply may have 240,000 at most")
	e.Hint = "make several smaller calls: write a file in parts of at most 100,000 bytes, the first one with code/write and each further one with code/edit, which replaces the last line by itself and the next part"
	return e
}

// resultText returns a result for the model: a string unchanged, others as JSON.
func resultText(v sdk.Value) string {
	if s, ok := v.AsString(); ok {
		return s
	}
	return v.String()
}

// shorten cuts s to limit bytes and reports the number of bytes cut.
func shorten(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	head := sdk.Cut(s, limit)
	return head + "\n[cut: " + strconv.Itoa(len(s)-len(head)) + " more bytes]"
}

// addCall adds a call to the list of calls in the step's result.
func (t *conversation) addCall(call sdk.ToolCall, success bool, problem string) {
	arguments := call.Arguments
	if text := arguments.String(); len(text) > maxArguments {
		arguments = sdk.String(shorten(text, maxArguments))
	}
	t.calls = append(t.calls, sdk.Object(
		sdk.F("name", sdk.String(call.Name)),
		sdk.F("arguments", arguments),
		sdk.F("success", sdk.Bool(success)),
		sdk.F("error", sdk.Text(problem)),
	))
}

// skip adds the calls of the reply to the result as not executed.
func (t *conversation) skip(reason string) {
	for _, call := range t.reply.ToolCalls {
		t.addCall(call, false, reason)
	}
}
