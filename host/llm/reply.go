package llm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/llm/texttool"
	"github.com/sentinel-runtime/sentinel/host/llm/wire"
	"github.com/sentinel-runtime/sentinel/internal/lazyregexp"
	"github.com/sentinel-runtime/sentinel/internal/textcut"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// reply reads an answer.
func (m *Models) reply(c chosen, h habits, n names, turn sentinels.Turn, a wire.Answer, report *Report) (sentinels.Reply, error) {
	m.count(c, turn, &a, report)
	if !c.provider.official {
		text, thinking := splitThinking(a.Text)
		a.Plain = a.Plain && text == a.Text
		a.Text, a.Reasoning = text, paragraphs(a.Reasoning, thinking)
	}
	out := sentinels.Reply{
		Text: a.Text, ToolCalls: []sentinels.ToolCall{},
		Finish: a.Finish, Provider: c.Provider, Model: c.Model, Reasoning: a.Reasoning,
	}
	if a.Said != nil && (!a.Plain || slices.ContainsFunc(a.Calls, func(c wire.Call) bool { return !compact(c.Arguments) })) {
		out.Said = &sentinels.Said{Provider: c.Provider, Model: c.Model, Protocol: m.protocol(c), Message: strings.ToValidUTF8(string(a.Said), "\ufffd")}
	}
	out.Usage = m.usage(c, a.Usage)

	// A refusal is an error and not a reply, since a step that goes on with the
	// text of one would take it for the answer. It is permanent: the same words
	// would be refused again.
	if a.Finish == "refused" {
		return spent(out), &abi.Error{
			Code: abi.Denied, Permanent: true,
			Message: fmt.Sprintf("model \"%s/%s\": declined to answer: %s", c.Provider, c.Model, textcut.Mark(strings.TrimSpace(a.Text), 200)),
		}
	}
	for _, call := range a.Calls {
		arguments := readArguments(call.Arguments)
		if a.Finish == "length" && !isObject(arguments) {
			continue // cut off in the middle
		}
		out.ToolCalls = append(out.ToolCalls, sentinels.ToolCall{ID: call.ID, Name: n.back(call.Name), Arguments: arguments})
	}
	if inText := len(turn.Tools) > 0 && (h.textTools || c.provider.Tools == ToolsAuto); inText {
		m.textCalls(&out, a, n, turn)
	}
	giveIDs(out.ToolCalls, turn.Messages)
	out.JSON = readJSON(out.Text, turn.Schema != nil)
	if turn.Schema != nil && len(out.ToolCalls) == 0 {
		out.Problems = m.misfits(turn, out)
	}
	return out, nil
}

// compact reports whether arguments are JSON that records do not change: they have neither blanks
// outside of texts nor <, > and &.
func compact(arguments string) bool {
	text, err := json.Marshal(json.RawMessage(arguments))
	return err == nil && string(text) == arguments
}

// textCalls reads calls out of the text if none came natively, and takes
// repeated ones out of it if some did.
func (m *Models) textCalls(out *sentinels.Reply, a wire.Answer, n names, turn sentinels.Turn) {
	if len(a.Calls) > 0 {
		out.Text = texttool.Strip(out.Text)
		return
	}
	calls, rest := texttool.Parse(out.Text, n.either(turn.Tools))
	if len(calls) == 0 {
		return
	}
	out.Text = rest
	for _, call := range calls {
		out.ToolCalls = append(out.ToolCalls, sentinels.ToolCall{Name: n.back(call.Name), Arguments: readArguments(string(call.Arguments))})
	}
	if out.Finish == "stop" {
		out.Finish = "tools"
	}
}

// misfits says how a reply does not fit the turn's schema. That is a result and
// not an error: the turn is paid for, and the caller may ask the model again in
// the same conversation.
func (m *Models) misfits(turn sentinels.Turn, out sentinels.Reply) []string {
	problem := ""
	switch {
	case out.JSON == nil && out.Finish == "length":
		problem = fmt.Sprintf("the reply was cut off at %d tokens", out.Usage.OutputTokens)
	case out.JSON == nil:
		problem = "the reply is not JSON" + placeOf(strings.TrimSpace(out.Text))
	case m.config.Validate != nil:
		if err := m.config.Validate(turn.Schema, out.JSON); err != nil {
			problem = err.Error()
		}
	}
	if problem == "" {
		return nil
	}
	return []string{problem}
}

// placeOf says where a text that starts as JSON goes wrong; of any other text
// that is of no help.
func placeOf(text string) string {
	if !strings.HasPrefix(text, "{") && !strings.HasPrefix(text, "[") {
		return ""
	}
	if err := strictjson.Check([]byte(text), jsonLimits); err != nil {
		return ": " + err.Error()
	}
	return ""
}

// spent is a reply reduced to what it cost.
func spent(r sentinels.Reply) sentinels.Reply {
	return sentinels.Reply{ToolCalls: []sentinels.ToolCall{}, Usage: r.Usage, Provider: r.Provider, Model: r.Model}
}

// usage prices what was counted. Counts that cannot be are bounded: a server
// must not be able to give a budget money back, or to make its sums overflow.
func (m *Models) usage(c chosen, u wire.Usage) sentinels.Usage {
	u.Input, u.Output = min(max(u.Input, 0), wire.MaxCount), min(max(u.Output, 0), wire.MaxCount) // a plugin may have counted
	u.CacheRead = min(max(u.CacheRead, 0), u.Input)
	u.CacheWrite = min(max(u.CacheWrite, 0), u.Input-u.CacheRead)
	out := sentinels.Usage{InputTokens: u.Input, OutputTokens: u.Output, Calls: 1}
	if row, priced := m.priced(c.provider, c.Model); priced {
		out.CostUSD = row.cost(u)
	}
	return out
}

// inexact is how many tokens an estimate of a short reply may be wrong by, such as one of
// repeated characters.
const inexact = 128

// count corrects what the server counted where that is less than what it has sent: a budget
// would not hold otherwise. Servers leave out the usage, or one half of it, or the thinking.
func (m *Models) count(c chosen, turn sentinels.Turn, a *wire.Answer, report *Report) {
	row, _ := m.row(c.provider, c.Model)
	tokens := textTokens(a.Text, row.CharsPerToken) + textTokens(a.Reasoning, row.CharsPerToken)
	for _, call := range a.Calls {
		tokens += perMessage + textTokens(call.Name+call.Arguments, row.CharsPerToken)
	}
	output := int64(math.Ceil(tokens))
	enough := a.Usage.Output >= output/2 || a.Usage.Output > 0 && output-a.Usage.Output < inexact
	if a.Usage.Input > 0 && enough && (a.Usage.Output > 0 || output == 0) {
		return
	}
	report.Estimated = true
	if a.Usage.Input <= 0 {
		a.Usage.CacheRead, a.Usage.CacheWrite = 0, 0
	}
	switch u := &a.Usage; {
	case u.Input <= 0 && u.Output <= 0:
		report.note("the server counted no tokens; usage is estimated at four characters a token")
		u.Input, u.Output = estimateTurn(turn, row.CharsPerToken), output
	case u.Input <= 0:
		report.note("the server counted no tokens of input; they are estimated at four characters a token")
		u.Input, u.Output = estimateTurn(turn, row.CharsPerToken), max(u.Output, output/2)
	default:
		report.note(fmt.Sprintf("the server counted %d tokens of output, which is less than half of what it sent; "+
			"they are estimated at four characters a token", u.Output))
		u.Output = output
	}
}

// jsonLimits bound JSON that a model wrote. The depth is that of definitions and
// parameters; a guest reads at most 256 levels of a whole reply.
var jsonLimits = strictjson.Limits{Bytes: wire.MaxAnswer, Depth: strictjson.DefaultDepth, Keys: 100_000, StringBytes: wire.MaxAnswer}

// readArguments returns the arguments of a call as JSON. Text that is not a JSON
// object, or that readers disagree about (duplicate keys, lone surrogates),
// becomes a JSON string. The command's registry answers such a call with the
// place of the mistake, so that the model can correct it; as an object it would
// fail the step, whose guest refuses it.
func readArguments(text string) json.RawMessage {
	trimmed := bytes.TrimSpace([]byte(text))
	if len(trimmed) == 0 || string(trimmed) == "null" {
		return json.RawMessage("{}")
	}
	var inner string
	if json.Unmarshal(trimmed, &inner) == nil && isObject([]byte(inner)) {
		return json.RawMessage(inner)
	}
	if isObject(trimmed) {
		return trimmed
	}
	// Everything else is kept word for word.
	quoted, err := json.Marshal(text)
	if err != nil {
		return json.RawMessage(`""`)
	}
	return quoted
}

func isObject(text []byte) bool {
	trimmed := bytes.TrimSpace(text)
	return len(trimmed) > 0 && trimmed[0] == '{' && strictjson.Check(trimmed, jsonLimits) == nil
}

// giveIDs gives every call an id of its own in the conversation. They depend
// on the conversation alone, so a replay gives the same.
func giveIDs(calls []sentinels.ToolCall, before []sentinels.Message) {
	taken := map[string]bool{}
	for _, m := range before {
		for _, call := range m.ToolCalls {
			taken[call.ID] = true
		}
	}
	for i := range calls {
		id := calls[i].ID
		// Servers that number calls from 0 in each answer repeat themselves.
		for try := i + 1; id == "" || taken[id]; try++ {
			id = fmt.Sprintf("call_%d_%d", len(before), try)
		}
		taken[id] = true
		calls[i].ID = id
	}
}

var jsonFence = lazyregexp.New("(?ms)^ {0,3}```[ \\t]*([A-Za-z]*)[ \\t]*\\r?\\n(.*?)^ {0,3}```[ \\t]*\\r?$")

// readJSON reads a reply as JSON: the whole of it, or the one fenced block in
// it that says json, or a fence that is all there is. Nothing is repaired. A
// bare string or number counts only if a schema was given.
func readJSON(text string, schema bool) json.RawMessage {
	text = strings.TrimSpace(text)
	if value := asJSON(text, schema); value != nil {
		return value
	}
	var blocks []string
	for _, match := range jsonFence.FindAllStringSubmatch(text, -1) {
		alone := len(match[0]) == len(text)
		if strings.EqualFold(match[1], "json") || match[1] == "" && alone {
			blocks = append(blocks, match[2])
		}
	}
	if len(blocks) != 1 {
		return nil
	}
	return asJSON(strings.TrimSpace(blocks[0]), schema)
}

func asJSON(text string, scalar bool) json.RawMessage {
	if text == "" || !scalar && text[0] != '{' && text[0] != '[' || strictjson.Check([]byte(text), jsonLimits) != nil {
		return nil
	}
	return json.RawMessage(text)
}
