package plan

import "github.com/sentinel-runtime/sentinel/sdk"

// decode finds the plan in a value: an object with steps, a list of steps, the output of
// a step of type llm, or a text with one of them, alone, in a code fence or within prose.
func decode(v sdk.Value) (plan sdk.Value, problem string) {
	switch v.Kind() {
	case sdk.KindObject:
		if v.Get("steps").Exists() { // the output of a step has other fields besides
			return sdk.Object(sdk.F("steps", v.Get("steps")), sdk.F("reasoning", v.Get("reasoning"))), ""
		}
		if json := v.Get("json"); json.Get("steps").Exists() || json.Kind() == sdk.KindList {
			return decode(json)
		}
		if text, ok := v.Get("text").AsString(); ok {
			return decodeText(text)
		}
		if e := v.Get("error"); e.Given() {
			return sdk.Value{}, "the planner failed: " + e.Get("message").StringOr("unknown error")
		}
		return sdk.Value{}, "the plan has no steps"
	case sdk.KindList:
		return sdk.Object(sdk.F("steps", v)), ""
	case sdk.KindString:
		return decodeText(v.StringOr(""))
	}
	return sdk.Value{}, "want a plan as JSON, got " + v.Kind().String()
}

// decodeText reads the first JSON text with steps: the whole text, what is in a fence, or
// what is between the first and the last brace.
func decodeText(text string) (sdk.Value, string) {
	if text == "" {
		return sdk.Value{}, "the reply is empty"
	}
	reason := "the reply has no JSON"
	for _, part := range [...]string{text, fenced(text), braced(text)} {
		if part == "" {
			continue
		}
		v, err := sdk.Parse(part)
		switch {
		case err != nil:
			if index(part, "{") >= 0 {
				reason = "the reply is not JSON: " + err.Error()
			}
		case v.Kind() == sdk.KindList || v.Get("steps").Exists():
			return decode(v)
		default:
			reason = "the plan has no steps"
		}
	}
	return sdk.Value{}, reason
}

// fenced returns the content of the first code fence, without its language.
func fenced(text string) string {
	const fence = "```"
	from := index(text, fence)
	if from < 0 {
		return ""
	}
	text = text[from+len(fence):]
	if line := index(text, "\n"); line >= 0 {
		text = text[line+1:]
	}
	if end := index(text, fence); end >= 0 {
		return text[:end]
	}
	return text
}

// braced returns what is between the first and the last brace.
func braced(text string) string {
	from, to := index(text, "{"), -1
	for i := len(text) - 1; i >= 0 && to < 0; i-- {
		if text[i] == '}' {
			to = i
		}
	}
	if from < 0 || to < from {
		if from >= 0 {
			return text[from:]
		}
		return ""
	}
	return text[from : to+1]
}

// index returns the position of part in s, -1 if s does not contain it. Package strings
// would make the guest larger.
func index(s, part string) int {
	for i := 0; i+len(part) <= len(s); i++ {
		if s[i:i+len(part)] == part {
			return i
		}
	}
	return -1
}
