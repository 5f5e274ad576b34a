package llmtest

import (
	"fmt"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/llm/wire"
)

// Scenes are the beginnings of conversations, which say what the model does.
const (
	Text     = "text"     // replies with a text
	Tools    = "tools"    // calls a tool, then replies
	Parallel = "parallel" // calls two tools at once, then replies
	Schema   = "schema"   // replies with an object that has the integer n, if it was given a schema
	Long     = "long"     // replies until its limit
)

// What the model says and thinks.
const (
	Hello   = "Hello, wörld <b> & \"you\"."
	Thought = "I should look at <it> & think."
	Done    = "All is done."
	Object  = `{"n":3}`
)

// A reply is what the model says.
type reply struct {
	text, thinking string
	calls          []string // arguments
	length         bool     // cut at the limit
	input, output  int64    // tokens
}

// reply returns what the model says to a request.
func (s *Server) reply(r request) reply {
	out := reply{text: Hello, input: r.tokens}
	if s.Thinking != "" {
		out.thinking = Thought
	}
	scene, _, _ := strings.Cut(r.conversation, " ")
	switch {
	case r.results > 0 || r.replies > 0:
		out.text = Done
	case scene == Schema && r.schema:
		out.text = Object
	case scene == Long:
		out.text, out.length = strings.Repeat("word ", int(r.limit)*4/5), true
	case scene == Tools || scene == Parallel:
		out.calls = []string{`{"path": "a<b>.txt"}`, `{"path":"c.txt"}`}
		if scene == Tools {
			out.calls = out.calls[:1]
		}
		if out.text = ""; !r.tools {
			for _, call := range out.calls {
				out.text += "<tool_call>\n{\"name\": \"code_read\", \"arguments\": " + call + "}\n</tool_call>\n"
			}
			if out.calls = nil; !r.textTools {
				out.text = "There are no tools."
			}
		}
	}
	bytes := len(out.text) + len(out.thinking)
	for _, call := range out.calls {
		bytes += len(call) + len("code_read")
	}
	out.output = int64(bytes/4 + 1)
	return out
}

// A form is one in which thinking comes.
type form struct {
	member []string // of messages
	needs  string   // what a message with calls must have, where it must have the thinking
}

func (s *Server) form() form {
	switch s.Thinking {
	case "reasoning_content", "reasoning":
		return form{[]string{s.Thinking}, `"` + s.Thinking + `":"`}
	case "reasoning_details":
		return form{[]string{"reasoning", s.Thinking}, ""}
	case "call":
		return form{nil, "thought_signature"}
	case "signature":
		return form{nil, `"type":"thinking"`}
	}
	return form{}
}

// finish returns the finish reason of a reply.
func (s *Server) finish(r reply) string {
	kind := "stop"
	switch {
	case r.length:
		kind = "length"
	case len(r.calls) > 0:
		kind = "tools"
	}
	if name := s.Finish[kind]; name != "" {
		return name
	}
	return map[string]map[string]string{
		Chat:      {"stop": "stop", "tools": "tool_calls", "length": "length"},
		Messages:  {"stop": "end_turn", "tools": "tool_use", "length": "max_tokens"},
		Responses: {"stop": "completed", "tools": "completed", "length": "max_output_tokens"},
	}[s.Protocol][kind]
}

// An event is one of a stream.
type event struct{ name, data string }

// Fixtures returns the data of the events of a reply of each scene, and of one that it ends with an
// error, as seeds of fuzz tests.
func (s *Server) Fixtures() (list []string) {
	for _, scene := range []string{Text, Tools, Parallel, Schema} {
		r := s.reply(request{conversation: scene, tools: true, schema: true})
		events, _ := s.render(r, s.finish(r))
		var lines []string
		for _, e := range events {
			lines = append(lines, e.data)
		}
		list = append(list, strings.Join(lines, "\n"))
	}
	if s.Stream.Body != nil {
		list = append(list, string(s.Stream.Body))
	}
	return list
}

// render returns the events of a reply, and the message that has to come back.
func (s *Server) render(r reply, end string) ([]event, string) {
	switch s.Protocol {
	case Responses:
		return s.renderResponses(r, end)
	case Messages:
		return s.renderMessages(r, end)
	}
	return s.renderChat(r, end)
}

// q returns a text as JSON.
func q(text string) string { return string(wire.Quote(text)) }

// pieces splits a text where a stream does, also within a character.
func pieces(text string) []string {
	n := max(len(text)/3, 1)
	if len(text) > 4096 {
		n = 1024
	}
	var list []string
	for len(text) > n {
		list = append(list, text[:n])
		text = text[n:]
	}
	list = append(list, text)
	// Events are JSON, so that a character is not split by them.
	for i := 1; i < len(list); i++ {
		for len(list[i]) > 0 && list[i][0]&0xc0 == 0x80 {
			list[i-1], list[i] = list[i-1]+list[i][:1], list[i][1:]
		}
	}
	return list
}

const signature = `"extra_content":{"google":{"thought_signature":"AbC+/=="}}`

// id returns the id of a call. That of a second conversation is another one.
func (s *Server) id(r reply, i int) string {
	switch {
	case s.NoIDs:
		return ""
	case s.CallID != "":
		return fmt.Sprintf("aB3dEf%03d", i)
	case s.Protocol == Messages:
		return fmt.Sprintf("toolu_%02d", i)
	}
	return fmt.Sprintf("call_%d_of_%d", i, len(r.calls))
}

func (s *Server) renderChat(r reply, end string) (events []event, message string) {
	add := func(data string) { events = append(events, event{data: data}) }
	begin := `{"id":"c1","object":"chat.completion.chunk","created":1,"model":"stand-in-2026-01-01","choices":[{"index":0,"delta":`
	delta := func(d string) { add(begin + d + `,"finish_reason":null}]}`) }
	if s.First != nil {
		add(string(s.First))
	}
	content, said, members := r.text, q(r.text), ""
	delta(`{"role":"assistant","content":""}`)
	switch s.Thinking {
	case "reasoning_content", "reasoning":
		members = `,"` + s.Thinking + `":` + q(r.thinking)
		for _, p := range pieces(r.thinking) {
			delta(`{"content":null,"` + s.Thinking + `":` + q(p) + `}`)
		}
	case "reasoning_details":
		detail := func(text, rest string) string {
			return `[{"type":"reasoning.text","text":` + q(text) + `,"format":"f","index":0` + rest + `}]`
		}
		members = `,"reasoning":` + q(r.thinking) + `,"reasoning_details":` + detail(r.thinking, `,"signature":"sig=="`)
		for _, p := range pieces(r.thinking) {
			delta(`{"content":"","reasoning":` + q(p) + `,"reasoning_details":` + detail(p, "") + `}`)
		}
		delta(`{"content":"","reasoning_details":[{"type":"reasoning.text","signature":"sig==","format":"f","index":0}]}`)
	case "parts":
		said = `[{"type":"thinking","thinking":[{"type":"text","text":` + q(r.thinking) + `}]}`
		for _, p := range pieces(r.thinking) {
			delta(`{"content":[{"type":"thinking","thinking":[{"type":"text","text":` + q(p) + `}]}]}`)
		}
		if r.text != "" {
			said += `,{"type":"text","text":` + q(r.text) + `}`
		}
		said += `]`
	case "tags":
		content = "<think>\n" + r.thinking + "\n</think>\n\n" + r.text
		said = q(content)
	}
	if content != "" {
		for _, p := range pieces(content) {
			delta(`{"content":` + q(p) + `}`)
		}
	} else if len(r.calls) > 0 && s.Thinking != "parts" {
		said = "null"
	}
	var calls []string
	for i, arguments := range r.calls {
		rest, id := "", s.id(r, i)
		if s.Thinking == "call" && i == 0 {
			rest = "," + signature
		}
		index := fmt.Sprintf(`"index":%d,`, i)
		call := func(arguments string) string {
			return `"id":` + q(id) + `,"type":"function","function":{"name":"code_read","arguments":` + q(arguments) + `}` + rest
		}
		if s.Whole {
			delta(`{"tool_calls":[{` + index + call(arguments) + `}]}`)
		} else {
			delta(`{"tool_calls":[{` + index + call("") + `}]}`)
			for _, p := range pieces(arguments) {
				delta(`{"tool_calls":[{` + index + `"function":{"arguments":` + q(p) + `}}]}`)
			}
		}
		if id == "" { // the client gives it one, which is that of the place in the conversation
			id = fmt.Sprintf("call_1_%d", i+1)
		}
		calls = append(calls, `{`+call(arguments)+`}`)
	}
	message = `{"role":"assistant","content":` + said + members
	if len(calls) > 0 {
		message += `,"tool_calls":[` + strings.Join(calls, ",") + `]`
	}
	message += `}`
	counted := r.output
	if s.Outside {
		counted -= int64(len(r.thinking) / 4)
	}
	usage := fmt.Sprintf(`{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d,"completion_tokens_details":{"reasoning_tokens":%d}}`, r.input, counted, r.input+r.output, len(r.thinking)/4)
	last, behind := "", ""
	switch s.Usage {
	case "choice":
		last = `,"usage":` + usage
	case "last":
		behind = `,"usage":` + usage
	case "x_groq":
		behind = `,"x_groq":{"id":"req_1","usage":` + usage + `}`
	}
	add(begin + `{},"finish_reason":` + q(end) + last + `}]` + behind + `}`)
	if s.Usage == "" {
		add(`{"id":"c1","object":"chat.completion.chunk","created":1,"model":"stand-in-2026-01-01","choices":[],"usage":` + usage + `}`)
	}
	add("[DONE]")
	return events, message
}

func (s *Server) renderMessages(r reply, end string) (events []event, message string) {
	add := func(name, rest string) {
		events = append(events, event{name, `{"type":"` + name + `"` + rest + `}`})
	}
	start, last := fmt.Sprintf(`,"usage":{"input_tokens":%d,"output_tokens":1}`, r.input), fmt.Sprintf(`,"usage":{"output_tokens":%d}`, r.output)
	if s.Usage == "last" {
		start, last = `,"usage":{"input_tokens":0,"output_tokens":0}`, fmt.Sprintf(`,"usage":{"input_tokens":%d,"output_tokens":%d}`, r.input, r.output)
	}
	add("message_start", `,"message":{"id":"m1","type":"message","role":"assistant","model":"stand-in-2026-01-01","content":[],"stop_reason":null`+start+`}`)
	add("ping", "")
	var blocks []string
	block := func(begin, whole string, deltas ...string) {
		i := fmt.Sprintf(`,"index":%d`, len(blocks))
		add("content_block_start", i+`,"content_block":`+begin)
		for _, d := range deltas {
			add("content_block_delta", i+`,"delta":`+d)
		}
		add("content_block_stop", i)
		blocks = append(blocks, whole)
	}
	deltas := func(kind, member, text string) (list []string) {
		for _, p := range pieces(text) {
			list = append(list, `{"type":"`+kind+`","`+member+`":`+q(p)+`}`)
		}
		return list
	}
	if r.thinking != "" {
		block(`{"type":"thinking","thinking":"","signature":""}`, `{"type":"thinking","thinking":`+q(r.thinking)+`,"signature":"EqQB=="}`,
			append(deltas("thinking_delta", "thinking", r.thinking), `{"type":"signature_delta","signature":"EqQB=="}`)...)
	}
	if r.text != "" {
		block(`{"type":"text","text":""}`, `{"type":"text","text":`+q(r.text)+`}`, deltas("text_delta", "text", r.text)...)
	}
	for i, arguments := range r.calls {
		call := `{"type":"tool_use","id":` + q(s.id(r, i)) + `,"name":"code_read","input":`
		compact, _ := wire.ReadObject([]byte(arguments))
		block(call+`{}}`, call+string(compact.JSON())+`}`, deltas("input_json_delta", "partial_json", arguments)...)
	}
	add("message_delta", `,"delta":{"stop_reason":`+q(end)+`,"stop_sequence":null}`+last)
	add("message_stop", "")
	return events, `{"role":"assistant","content":[` + strings.Join(blocks, ",") + `]}`
}

func (s *Server) renderResponses(r reply, end string) (events []event, message string) {
	add := func(name, rest string) {
		events = append(events, event{name, `{"type":"` + name + `","sequence_number":1` + rest + `}`})
	}
	add("response.created", `,"response":{"id":"r1","object":"response","status":"in_progress","model":"stand-in","output":[]}`)
	var items []string
	item := func(text string) {
		add("response.output_item.done", fmt.Sprintf(`,"output_index":%d,"item":%s`, len(items), text))
		items = append(items, text)
	}
	switch s.Thinking {
	case "encrypted":
		item(`{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":` + q(r.thinking) + `}],"encrypted_content":"gAAA+/=="}`)
	case "shown":
		item(`{"id":"rs_1","type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":` + q(r.thinking) + `}]}`)
	}
	if r.text != "" {
		for _, p := range pieces(r.text) {
			add("response.output_text.delta", fmt.Sprintf(`,"output_index":%d,"content_index":0,"delta":%s`, len(items), q(p)))
		}
		item(`{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":` + q(r.text) + `,"annotations":[]}]}`)
	}
	for i, arguments := range r.calls {
		for _, p := range pieces(arguments) {
			add("response.function_call_arguments.delta", fmt.Sprintf(`,"output_index":%d,"delta":%s`, len(items), q(p)))
		}
		item(fmt.Sprintf(`{"id":"fc_%d","type":"function_call","status":"completed","call_id":%s,"name":"code_read","arguments":%s}`, i, q(s.id(r, i)), q(arguments)))
	}
	status, why := "completed", "null"
	if end != "completed" {
		status, why = "incomplete", `{"reason":`+q(end)+`}`
	}
	usage := fmt.Sprintf(`{"input_tokens":%d,"output_tokens":%d,"total_tokens":%d,"output_tokens_details":{"reasoning_tokens":%d}}`, r.input, r.output, r.input+r.output, len(r.thinking)/4)
	add("response."+status, `,"response":{"id":"r1","object":"response","status":"`+status+`","model":"stand-in-2026-01-01","incomplete_details":`+why+
		`,"error":null,"output":[`+strings.Join(items, ",")+`],"usage":`+usage+`}`)
	return events, strings.Join(items, ",")
}
