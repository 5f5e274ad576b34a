package llmtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/llm/providers"
	"github.com/sentinel-runtime/sentinel/host/llm/wire"
)

// A request is what the model sees of the body of a request.
type request struct {
	conversation string // its first message
	replies      int    // of the model
	results      int    // of tools, behind the last reply
	schema       bool   // it has one, as a parameter or in words
	tools        bool
	textTools    bool // they are in the system text
	limit        int64
	tokens       int64
}

// members of a request, of each protocol.
var known = map[string][]string{
	Chat:      {"model", "messages", "tools", "tool_choice", "response_format", "temperature", "max_tokens", "max_completion_tokens", "stream", "stream_options"},
	Responses: {"model", "instructions", "input", "tools", "tool_choice", "text", "temperature", "max_output_tokens", "stream", "store", "include"},
	Messages:  {"model", "max_tokens", "system", "messages", "tools", "tool_choice", "output_config", "temperature", "stream"},
}

var paths = map[string]string{Chat: "/chat/completions", Responses: "/responses", Messages: "/v1/messages"}

var toolName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// invalid is a refusal for a mistake that no provider accepts.
func invalid(format string, args ...any) *Fault {
	text, _ := json.Marshal(map[string]any{"error": map[string]any{"type": "invalid_request_error", "message": "stand-in: " + fmt.Sprintf(format, args...)}})
	return &Fault{Status: http.StatusBadRequest, Body: text}
}

// check reads a request, and returns the refusal of one that the provider refuses.
func (s *Server) check(r *http.Request, raw []byte) (out request, _ *Fault) {
	key := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	if s.Protocol == Messages {
		if key = r.Header.Get("X-Api-Key"); r.Header.Get("Anthropic-Version") == "" {
			return out, invalid("no anthropic-version")
		}
	}
	switch {
	case !strings.HasSuffix(r.URL.Path, paths[s.Protocol]):
		return out, &Fault{Status: http.StatusNotFound, Body: json.RawMessage(`{"error":{"message":"stand-in: no such path"}}`)}
	case r.URL.RawQuery != s.Query:
		return out, &Fault{Status: http.StatusNotFound, Body: json.RawMessage(`{"error":{"message":"stand-in: the query is not that of the base URL"}}`)}
	case key == "":
		return out, &Fault{Status: http.StatusUnauthorized, Body: json.RawMessage(`{"error":{"message":"stand-in: no key"}}`)}
	}
	o, ok := wire.ReadObject(raw)
	if !ok {
		return out, invalid("the body is not an object")
	}
	for _, m := range o {
		if f, ok := s.Refuses[m.Name]; ok {
			return out, &f
		}
		if !slices.Contains(known[s.Protocol], m.Name) {
			return out, invalid("unknown member %s", m.Name)
		}
	}
	limit := "max_tokens"
	switch {
	case s.Protocol == Responses:
		limit = "max_output_tokens"
	case s.Protocol == Chat && s.row.CompletionTokens:
		if limit = "max_completion_tokens"; o.Get("max_tokens") != nil {
			return out, invalid("Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.")
		}
	}
	out.limit, _ = strconv.ParseInt(string(o.Get(limit)), 10, 64)
	out.tokens = int64(len(raw) / 4)
	switch {
	case string(o.Get("stream")) != "true":
		return out, invalid("stream is not true")
	case out.limit < 1:
		return out, invalid("no %s", limit)
	}
	tools, _ := wire.ReadList(o.Get("tools"))
	out.tools = len(tools) > 0
	for i, raw := range tools {
		tool, _ := wire.ReadObject(raw)
		if s.Protocol == Chat {
			tool, _ = wire.ReadObject(tool.Get("function"))
		}
		schema, ok := wire.ReadObject(either(tool, "parameters", "input_schema"))
		if name, _ := wire.ReadText(tool.Get("name")); !toolName.MatchString(name) || !ok || schema.Get("type") == nil {
			return out, invalid("tool %d: %s", i, raw)
		}
	}
	system := string(either(o, "system", "instructions"))
	var fault *Fault
	switch s.Protocol {
	case Responses:
		fault = s.input(o, &out)
	default:
		fault = s.messages(o, &out, &system)
	}
	if fault != nil {
		return out, fault
	}
	out.schema = strings.Contains(system, "JSON Schema") || either(o, "response_format", "text", "output_config") != nil
	out.textTools = strings.Contains(system, "tool_call")
	return out, s.limits(out)
}

// limits returns the refusal of a request that is too large.
func (s *Server) limits(r request) *Fault {
	text := func(n int64) string { return strconv.FormatInt(n, 10) }
	v := values{
		"window": strconv.Itoa(s.Window), "most": strconv.Itoa(s.MaxOutput), "asked": text(r.limit), "tokens": text(r.tokens), "total": text(r.tokens + r.limit),
	}
	long := s.Errors[providers.TooLong]
	switch {
	case r.tokens > int64(s.Window), s.Reserves && r.tokens+r.limit > int64(s.Window):
		return long.with(v)
	case s.MaxOutput > 0 && r.limit > int64(s.MaxOutput) && s.Errors[providers.OutputLimit] != nil:
		return s.Errors[providers.OutputLimit].with(v)
	}
	return nil
}

func either(o wire.Object, names ...string) json.RawMessage {
	for _, name := range names {
		if v := o.Get(name); v != nil {
			return v
		}
	}
	return nil
}

// messages checks those of chat completions and of Anthropic.
func (s *Server) messages(o wire.Object, out *request, system *string) *Fault {
	list, _ := wire.ReadList(o.Get("messages"))
	open, role := map[string]bool{}, ""
	ids := map[string]bool{}
	for i, raw := range list {
		m, ok := wire.ReadObject(raw)
		before := role
		role, _ = wire.ReadText(m.Get("role"))
		content := m.Get("content")
		if !ok || content == nil {
			return invalid("message %d has no content: %s", i, raw)
		}
		if s.Protocol == Messages && role == before {
			return invalid("message %d has the role of the one before it", i)
		}
		if role != "assistant" && role != "tool" && (s.Protocol == Chat || !strings.Contains(string(content), `"tool_result"`)) && len(open) > 0 {
			return invalid("message %d: a call has no result", i)
		}
		switch role {
		case "system":
			*system += string(content)
		case "user":
			if out.conversation == "" {
				out.conversation = textOf(content)
			}
			results, fault := results(content, open, i)
			if fault != nil {
				return fault
			}
			out.results = results
		case "tool":
			id, _ := wire.ReadText(m.Get("tool_call_id"))
			if !open[id] {
				return invalid("message %d is the result of the call %q, which is not open", i, id)
			}
			delete(open, id)
			out.results++
		case "assistant":
			if fault := s.replyAgain(raw, m, i, out); fault != nil {
				return fault
			}
			for _, id := range callsOf(m) {
				switch {
				case ids[id] || id == "":
					return invalid("message %d: the id %q of a call is not its own", i, id)
				case s.CallID != "" && !regexp.MustCompile(s.CallID).MatchString(id):
					return s.BadID.with(values{"member": id})
				}
				ids[id], open[id] = true, true
			}
		default:
			return invalid("message %d has the role %q", i, role)
		}
	}
	if len(open) > 0 || out.conversation == "" || role == "assistant" {
		return invalid("the conversation ends with the role %s, and %d calls without a result", role, len(open))
	}
	return nil
}

// results counts the results of tools in a message of Anthropic.
func results(content json.RawMessage, open map[string]bool, i int) (n int, _ *Fault) {
	blocks, _ := wire.ReadList(content)
	for _, raw := range blocks {
		b, _ := wire.ReadObject(raw)
		if kind, _ := wire.ReadText(b.Get("type")); kind != "tool_result" {
			continue
		}
		id, _ := wire.ReadText(b.Get("tool_use_id"))
		if !open[id] {
			return n, invalid("message %d has the result of the call %q, which is not open", i, id)
		}
		delete(open, id)
		n++
	}
	return n, nil
}

// callsOf returns the ids of the calls of a message.
func callsOf(m wire.Object) (ids []string) {
	calls, _ := wire.ReadList(m.Get("tool_calls"))
	blocks, _ := wire.ReadList(m.Get("content"))
	for _, raw := range slices.Concat(calls, blocks) {
		call, _ := wire.ReadObject(raw)
		kind, _ := wire.ReadText(call.Get("type"))
		if kind == "function" || kind == "tool_use" {
			id, _ := wire.ReadText(call.Get("id"))
			ids = append(ids, id)
		}
	}
	return ids
}

// foreign begins the text of messages that another model has said.
const foreign = "from another model"

// replyAgain checks a message of the model.
func (s *Server) replyAgain(raw json.RawMessage, m wire.Object, i int, out *request) *Fault {
	out.results = 0
	allowed := append([]string{"role", "content", "tool_calls"}, s.form().member...)
	for _, member := range m {
		v := values{"index": strconv.Itoa(i), "member": member.Name}
		if slices.Contains(s.row.Omit, member.Name) {
			return invalid("'messages.%d': property '%s' is unsupported", i, member.Name)
		}
		if s.Unknown != nil && !slices.Contains(allowed, member.Name) {
			return s.Unknown.with(v)
		}
	}
	calls := len(callsOf(m)) > 0
	if s.Needs != nil && calls && !strings.Contains(string(raw), s.form().needs) {
		return s.Needs.with(values{"index": strconv.Itoa(i)})
	}
	if strings.Contains(textOf(m.Get("content")), foreign) {
		return nil
	}
	return s.same(string(m.Without(s.row.Omit...).JSON()), i, out)
}

// same checks that a message of the model is the one that it has sent.
func (s *Server) same(got string, i int, out *request) *Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	said := s.said[out.conversation]
	if out.replies >= len(said) {
		return invalid("message %d was not said: %s", i, got)
	}
	if want := said[out.replies]; want != got {
		return invalid("message %d is not the one that was said\ngot  %s\nwant %s", i, got, want)
	}
	out.replies++
	return nil
}

// input checks the items of Responses.
func (s *Server) input(o wire.Object, out *request) *Fault {
	list, _ := wire.ReadList(o.Get("input"))
	if string(o.Get("store")) != "false" {
		return invalid("store is not false")
	}
	open := map[string]bool{}
	var said []string
	flush := func(i int) *Fault {
		if len(said) == 0 {
			return nil
		}
		items := strings.Join(said, ",")
		if said = nil; strings.Contains(items, foreign) {
			return nil
		}
		return s.same(items, i, out)
	}
	for i, raw := range list {
		item, _ := wire.ReadObject(raw)
		kind, _ := wire.ReadText(item.Get("type"))
		role, _ := wire.ReadText(item.Get("role"))
		if kind == "function_call_output" || role == "user" {
			if fault := flush(i); fault != nil {
				return fault
			}
		}
		id, _ := wire.ReadText(item.Get("call_id"))
		switch {
		case kind == "function_call_output":
			if !open[id] {
				return invalid("item %d is the result of the call %q, which is not open", i, id)
			}
			delete(open, id)
			out.results++
			continue
		case role == "user":
			if out.results = 0; out.conversation == "" {
				out.conversation = textOf(item.Get("content"))
			}
			continue
		case kind == "function_call":
			open[id] = true
		case kind != "message" && kind != "reasoning":
			return invalid("item %d has the type %q", i, kind)
		}
		out.results = 0
		said = append(said, string(raw))
	}
	if fault := flush(len(list)); fault != nil || len(open) == 0 && out.conversation != "" {
		return fault
	}
	return invalid("the conversation has %d calls without a result", len(open))
}

// textOf returns the text of a content.
func textOf(content json.RawMessage) string {
	if text, ok := wire.ReadText(content); ok {
		return text
	}
	blocks, _ := wire.ReadList(content)
	for _, raw := range blocks {
		b, _ := wire.ReadObject(raw)
		if text, ok := wire.ReadText(b.Get("text")); ok {
			return text
		}
	}
	return ""
}
