package texttool

import (
	"encoding/json"
	"sort"
	"strings"

	"github.com/sentinel-runtime/sentinel/internal/lazyregexp"
)

// maxCalls bounds the calls of one reply. A text with more is cut there: no
// honest model asks for so many at once.
const maxCalls = 64

// A text is read for calls only up to maxText bytes, and maxTries openings that
// turn out to be none: each may cost a pass over the rest of the text.
const (
	maxText  = 1 << 20
	maxTries = 64
)

// A Call is one call found in a text. Arguments is a JSON object.
type Call struct {
	Name      string
	Arguments json.RawMessage
}

// Parse returns the calls in text and the text without them, trimmed. offered
// are the names of the tools the model received; without any, nothing is
// parsed.
func Parse(text string, offered []string) (calls []Call, rest string) {
	if len(offered) == 0 || len(text) > maxText {
		return nil, text
	}
	names := map[string]bool{}
	for _, name := range offered {
		names[name] = true
	}
	// A reply that is JSON through and through is a call or it is data.
	if whole := strings.TrimSpace(text); strings.HasPrefix(whole, "{") || strings.HasPrefix(whole, "[") {
		if calls := readCalls([]byte(whole), names); calls != nil {
			return cut(calls), ""
		}
		if json.Valid([]byte(whole)) {
			return nil, text
		}
	}
	found := append(fences(text, names), tags(text)...)
	sort.SliceStable(found, func(i, j int) bool { return found[i].from < found[j].from })
	// A tag may stand inside a fence and be found twice; the outer one counts.
	var out strings.Builder
	end := 0
	for _, f := range found {
		if f.from < end {
			continue // inside one already read
		}
		out.WriteString(text[end:f.from])
		end = f.to
		calls = append(calls, f.calls...)
	}
	if len(calls) == 0 {
		return nil, text
	}
	out.WriteString(text[end:])
	return cut(calls), tidy(out.String())
}

// Strip removes what is marked as a call from text, for a reply whose calls
// came natively and were repeated in its text.
func Strip(text string) string {
	if len(text) > maxText {
		return text
	}
	found := tags(text)
	if len(found) == 0 {
		return text
	}
	var out strings.Builder
	end := 0
	for _, f := range found {
		if f.from < end {
			continue
		}
		out.WriteString(text[end:f.from])
		end = f.to
	}
	out.WriteString(text[end:])
	return tidy(out.String())
}

func cut(calls []Call) []Call { return calls[:min(len(calls), maxCalls)] }

// part is a stretch of text that holds calls.
type part struct {
	from, to int
	calls    []Call
}

var (
	fence    = lazyregexp.New("(?m)^ {0,3}```[ \\t]*([A-Za-z_]*)[ \\t]*\\r?\\n")
	fenceEnd = lazyregexp.New("(?m)^ {0,3}```[ \\t]*\\r?$")
	leftover = lazyregexp.New(`</?(?:tool_call|tool_calls|function)>`)
	blank    = lazyregexp.New(`\n{3,}`)
)

// fences returns the fenced blocks that are calls. A last block may lack its
// end: models stop early.
func fences(text string, names map[string]bool) []part {
	var found []part
	for at := 0; at < len(text); {
		open := fence.FindStringSubmatchIndex(text[at:])
		if open == nil {
			break
		}
		from, body := at+open[0], at+open[1]
		info := text[at+open[2] : at+open[3]]
		to, end := len(text), len(text)
		if stop := fenceEnd.FindStringIndex(text[body:]); stop != nil {
			end, to = body+stop[0], body+stop[1]
		}
		content := []byte(strings.TrimSpace(text[body:end]))
		var calls []Call
		// Any other language is an example the model shows, not a call.
		switch info {
		case "tool_call", "tool_calls", "tool":
			calls = readCalls(content, nil)
		case "json", "":
			calls = readCalls(content, names)
		}
		if calls != nil {
			found = append(found, part{from, to, calls})
		}
		at = max(to, body)
	}
	return found
}

var opening = lazyregexp.New(`<tool_call>|<function=([^>\s]{1,128})>`)

// tags returns the marked calls. The end tag may be missing; what follows the
// JSON is then text again.
func tags(text string) []part {
	var found []part
	tries := 0
	for at := 0; at < len(text) && tries < maxTries; {
		open := opening.FindStringSubmatchIndex(text[at:])
		if open == nil {
			break
		}
		from, body := at+open[0], at+open[1]
		at = body
		name := ""
		if open[2] >= 0 {
			name = text[from+open[2]-open[0] : from+open[3]-open[0]]
		}
		to, calls := body, []Call(nil)
		// After <function=name> come its arguments; after <tool_call> the call.
		if value, length := leadingJSON(text[body:]); length > 0 {
			to = body + length
			if name != "" {
				if arguments, ok := object(value); ok {
					calls = []Call{{name, arguments}}
				}
			} else {
				calls = readCalls(value, nil)
			}
		} else if name != "" {
			var arguments json.RawMessage
			if arguments, to = parameters(text, body); arguments != nil {
				calls = []Call{{name, arguments}}
			}
		}
		if calls == nil {
			tries++
			continue
		}
		to = skipEnd(text, to)
		found = append(found, part{from, to, calls})
		at = to
	}
	return found
}

var ending = lazyregexp.New(`^\s*</(?:tool_call|function)>`)

// skipEnd steps over the end tags that follow a call.
func skipEnd(text string, at int) int {
	for {
		end := ending.FindStringIndex(text[at:])
		if end == nil {
			return at
		}
		at += end[1]
	}
}

var parameter = lazyregexp.New(`^\s*<parameter=([^>\s]{1,128})>\n?`)

// parameters reads <parameter=name>value</parameter> lists, whose values are
// plain text. It returns nil if there is none and the function's end tag does
// not follow either.
func parameters(text string, at int) (json.RawMessage, int) {
	fields := map[string]string{}
	for {
		open := parameter.FindStringSubmatchIndex(text[at:])
		if open == nil {
			break
		}
		name := text[at+open[2] : at+open[3]]
		body := at + open[1]
		length := strings.Index(text[body:], "</parameter>")
		if length < 0 {
			return nil, at
		}
		fields[name] = strings.TrimSuffix(text[body:body+length], "\n")
		at = body + length + len("</parameter>")
	}
	if len(fields) == 0 && !ending.MatchString(text[at:]) {
		return nil, at
	}
	raw, err := json.Marshal(fields)
	if err != nil {
		return nil, at
	}
	return raw, at
}

// leadingJSON returns the JSON value at the start of text, spaces aside, and
// the bytes it takes. length is 0 if there is none.
func leadingJSON(text string) (value json.RawMessage, length int) {
	trimmed := strings.TrimLeft(text, " \t\r\n")
	if trimmed == "" || trimmed[0] != '{' && trimmed[0] != '[' {
		return nil, 0
	}
	decoder := json.NewDecoder(strings.NewReader(trimmed))
	if decoder.Decode(&value) != nil {
		return nil, 0
	}
	return value, len(text) - len(trimmed) + int(decoder.InputOffset())
}

// tidy cleans the text that is left around calls.
func tidy(text string) string {
	text = leftover.ReplaceAllString(text, "")
	return strings.TrimSpace(blank.ReplaceAllString(text, "\n\n"))
}
