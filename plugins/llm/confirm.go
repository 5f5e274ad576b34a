package llm

import "github.com/sentinel-runtime/sentinel/sdk"

// previewCommand shows what a call would do.
const previewCommand = "code/preview"

// A confirmation says which tool calls a person approves.
type confirmation struct {
	commands []string
	mode     string // ask, deny or off
}

func readConfirmation(v sdk.Value) (c confirmation, err error) {
	if !v.Given() {
		return confirmation{mode: "off"}, nil
	}
	var ok bool
	if c.commands, ok = v.Get("commands").AsStrings(); !ok {
		return c, sdk.BadField("confirm.commands", "want a list of commands")
	}
	switch c.mode = v.Get("mode").StringOr("ask"); c.mode {
	case "ask", "deny", "off":
		return c, nil
	}
	return c, sdk.BadField("confirm.mode", "want ask, deny or off, got "+sdk.Quote(c.mode))
}

// covers reports whether calls of a command need an approval.
func (c confirmation) covers(command string) bool {
	if c.mode == "off" {
		return false
	}
	for _, pattern := range c.commands {
		n := len(pattern)
		switch {
		case pattern == command || pattern == "*":
			return true
		case n > 2 && pattern[n-2:] == "/*" && len(command) >= n && command[:n-1] == pattern[:n-1]:
			return true
		}
	}
	return false
}

// approvals are the kinds of calls that a person has approved. They are few, and a list
// makes a smaller guest than a map.
type approvals []string

func (a approvals) has(key string) bool {
	for _, k := range a {
		if k == key {
			return true
		}
	}
	return false
}

// confirm returns the arguments with which a call may be made: those that it has, or, if a
// person was asked, with those that make the call do what was shown or fail. The error of
// a call that may not be made is for the model; cancelled ends the step.
//
// The model decides neither what needs an approval nor what is approved: both are the
// step's and the person's, and the kind of a call is computed from the call itself.
func (t *conversation) confirm(command string, arguments sdk.Value) (sdk.Value, error) {
	if !t.r.confirm.covers(command) {
		return arguments, nil
	}
	k := kindOf(command, arguments)
	if t.approved.has(k.key) {
		return arguments, nil
	}
	if t.r.confirm.mode == "deny" {
		t.denied++
		e := sdk.Fail(sdk.CodeDenied, command+" was not executed: a person has to approve "+k.text+", and this run asks no person")
		e.Hint = "do what is possible without it, and say what is missing; the user can start the run at a terminal and is asked there, or with --yolo"
		return arguments, sdk.Permanent(e)
	}
	preview, err := t.c.Command(previewCommand, sdk.Object(
		sdk.F("command", sdk.String(command)), sdk.F("params", arguments), sdk.F("tools", sdk.Strings(t.r.tools))))
	if err != nil {
		return arguments, err // the call would have the same error
	}
	d, err := t.c.DecideCall(question(command, k, preview), k.covered())
	if err != nil {
		return arguments, err
	}
	if !d.Approved {
		message := command + " was not executed: " + d.By + " rejected it"
		if d.Comment != "" {
			message += ": " + d.Comment
		}
		return arguments, sdk.Permanent(sdk.Fail(sdk.CodeDenied, message))
	}
	t.approved = append(t.approved, k.key)
	for name, value := range preview.Get("pin").Fields() {
		arguments = arguments.With(name, value)
	}
	return arguments, nil
}

// question is what a person decides. All of it but the first line is the preview, which the
// host bounds; the program that shows it escapes it.
func question(command string, k kind, preview sdk.Value) string {
	head := "Allow " + k.text + "?"
	switch path := preview.Get("path").StringOr(""); {
	case k.one:
		head += " It is asked about each other one."
	case command == shellCommand:
		head += " Approved, it may be executed with other options and files until this step ends."
	case path != "":
		head = "Allow " + command + " of " + sdk.Quote(path) + "? Approved, it may change other files too until this step ends."
	default:
		head += " Approved, it may be called again until this step ends."
	}
	return head + "\n" + preview.Get("text").StringOr("")
}

// argumentsOf returns the arguments of a call as the host reads them: an object, also
// where a model has written it as a text.
func argumentsOf(call sdk.ToolCall) sdk.Value {
	v := call.Arguments
	for range 2 {
		text, ok := v.AsString()
		if !ok {
			break
		}
		inner, err := sdk.Parse(text)
		if err != nil {
			break
		}
		v = inner
	}
	if !v.Given() {
		return sdk.Object()
	}
	return v
}
