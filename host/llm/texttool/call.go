package texttool

import (
	"bytes"
	"encoding/json"
)

// readCalls reads one call or a list of them. With names, every call must be
// of one of those tools and have no other keys than a call has.
func readCalls(value json.RawMessage, names map[string]bool) []Call {
	value = bytes.TrimSpace(value)
	if len(value) == 0 {
		return nil
	}
	items := []json.RawMessage{value}
	if value[0] == '[' {
		items = nil
		if json.Unmarshal(value, &items) != nil {
			return nil
		}
	}
	var calls []Call
	for _, item := range items {
		call, ok := readCall(item, names)
		if !ok {
			return nil
		}
		calls = append(calls, call)
	}
	return calls
}

func readCall(item json.RawMessage, names map[string]bool) (Call, bool) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(item, &fields) != nil {
		return Call{}, false
	}
	// The form of the chat protocol itself, which some models were shown:
	// {"type": "function", "function": {"name": ..., "arguments": ...}}
	if nested, ok := fields["function"]; ok && len(nested) > 0 && nested[0] == '{' {
		return readCall(nested, names)
	}
	// Models of different schools name the two parts differently, and some write a
	// command as a step has it. The first name that is there counts; what is left over
	// is what a call has not.
	var call Call
	for _, key := range []string{"tool", "name", "function", "tool_name", "command"} {
		if raw, ok := fields[key]; ok && json.Unmarshal(raw, &call.Name) == nil && call.Name != "" {
			delete(fields, key)
			break
		}
	}
	call.Arguments = json.RawMessage("{}")
	for _, key := range []string{"arguments", "parameters", "params", "input", "args"} {
		raw, ok := fields[key]
		if !ok {
			continue
		}
		delete(fields, key)
		if call.Arguments, ok = object(raw); !ok {
			return Call{}, false
		}
		break
	}
	// A model may number its calls. The host gives ids of its own.
	delete(fields, "id")
	delete(fields, "type")
	if call.Name == "" || names != nil && (!names[call.Name] || len(fields) > 0) {
		return Call{}, false
	}
	return call, true
}

// object returns raw as a JSON object: as it is, out of a string that holds
// one, or empty for null.
func object(raw json.RawMessage) (json.RawMessage, bool) {
	var text string
	if json.Unmarshal(raw, &text) == nil && text != "" {
		raw = json.RawMessage(text)
	}
	raw = bytes.TrimSpace(raw)
	if string(raw) == "null" || string(raw) == `""` {
		return json.RawMessage("{}"), true
	}
	if len(raw) == 0 || raw[0] != '{' || !json.Valid(raw) {
		return nil, false
	}
	return raw, true
}
