package step

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/sentinel-runtime/sentinel/internal/modeldata"
	"github.com/sentinel-runtime/sentinel/internal/textcut"
	"github.com/sentinel-runtime/sentinel/runtime/external"
	"github.com/sentinel-runtime/sentinel/runtime/internal/failure"
	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/runtime/run"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/sentinels/reference"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

type llmRequest struct {
	Conversation string              `json:"conversation"`
	Append       []sentinels.Message `json:"append"`
	System       string              `json:"system"`
	Model        string              `json:"model"`
	Temperature  *float64            `json:"temperature"`
	MaxTokens    int64               `json:"maxTokens"`
	Tools        []string            `json:"tools"`
	Schema       json.RawMessage     `json:"schema"`
	Context      bool                `json:"context"`
	Sources      bool                `json:"sources"`
	Replace      []replacement       `json:"replace"`
	Aside        bool                `json:"aside"`
}

// A replacement puts other messages in the place of those from From up to To, so that a
// conversation stays within the window of its model.
type replacement struct {
	From int                 `json:"from"`
	To   int                 `json:"to"`
	With []sentinels.Message `json:"with"`
}

// A conversation is the messages of an exchange with a model. It exists as long as the
// attempt and is rebuilt from the attempt's records.
type conversation struct {
	id       string
	system   string
	data     string // what the host puts before the first message
	messages []sentinels.Message
}

// startLLM begins a call of ABI clause A6.4: one turn of a model. Its worst case is
// reserved before it starts; its actual usage is charged when it has ended.
func (a *attempt) startLLM(ctx context.Context, c *call) error {
	var req llmRequest
	if e := parse(c, &req); e != nil {
		a.complete(c, callEnd{err: e})
		return nil
	}
	if a.svc.Models == nil {
		a.complete(c, callEnd{err: &abi.Error{Code: abi.Unavailable, Permanent: true, Message: "this host provides no models"}})
		return nil
	}
	added := ""
	if req.Conversation == "" && (req.Context || req.Sources) {
		added = a.contextText(req)
	}
	quote, fitting, err := fitContext(added, func(added string) (external.ModelQuote, error) {
		conv, e := a.extendConversation(c, req, added)
		if e != nil {
			return external.ModelQuote{}, e
		}
		return a.svc.Models.Quote(ctx, a.turn(conv, req))
	})
	if err != nil {
		a.complete(c, callEnd{err: failure.From(err, abi.Unavailable)})
		return nil
	}
	if fitting != added {
		a.log("warn", fmt.Sprintf("the context was cut from %d to %d bytes, because the window of the model has no room for it", len(added), len(fitting)))
		added = fitting
	}
	if e := a.deniedModel(req.Model, quote); e != nil {
		a.complete(c, callEnd{err: e})
		return nil
	}
	quote.Worst.Calls = 1
	granted, err := a.run.Reserve(ctx, quote)
	if err != nil {
		if e := abi.As(err); e != nil {
			a.complete(c, callEnd{err: e})
			return nil
		}
		return err
	}
	body := journal.CallStartBody{Effect: true, Safe: true, Label: quote.Provider + "/" + quote.Model, Reserved: &granted}
	if body.Lowered = granted.OutputTokens < quote.Worst.OutputTokens; body.Lowered {
		a.log("warn", LoweredText(quote, granted.OutputTokens))
	}
	if added != "" {
		text, _ := json.Marshal(added)
		if body.Added, err = a.svc.Values.Redacted(text); err != nil {
			return err
		}
	}
	return a.beginCall(ctx, c, body)
}

// contextCut is the end of a context that does not fit into the window of the model.
const contextCut = "\n[The rest of the context was left out: the window of the model has no room for it.]"

// fitContext returns the quote of a turn, with as much of the text that the host puts before
// its first message as the window of the model has room for, as far as that is known.
func fitContext(added string, quote func(added string) (external.ModelQuote, error)) (external.ModelQuote, string, error) {
	for {
		q, err := quote(added)
		e := abi.As(err)
		small := e != nil && e.Code == abi.Limit && e.Field == "append" // no candidate has a window for it
		if added == "" || added == contextCut || err == nil && q.Excess == 0 || err != nil && !small {
			return q, added, err
		}
		const bytesPerToken = 4 // of text in English; of others less is left out at a time
		text := strings.TrimSuffix(added, contextCut)
		n := len(text) / 2
		if !small {
			n = len(text) - int(min(q.Excess*bytesPerToken+int64(len(contextCut)), int64(len(text))))
		}
		added = contextCut
		if n > 2*len(contextCut) {
			added = strings.ToValidUTF8(text[:n], "") + contextCut
		}
	}
}

// resumeLLM charges the reservation of a turn that a crash interrupted. If the turn is
// made again, doLLM reserves again.
func (a *attempt) resumeLLM(c *call) {
	a.run.Charge(*c.start.Reserved)
	c.reservationSpent = true
}

// doLLM makes the turn.
func (a *attempt) doLLM(ctx context.Context, c *call) (end callEnd, err error) {
	var req llmRequest
	if e := parse(c, &req); e != nil {
		return callEnd{err: e}, nil
	}
	worst := *c.start.Reserved
	lowered := int64(0)
	if c.start.Lowered {
		// The model is that of the quote: another one may have another price.
		lowered = worst.OutputTokens
		req.Model, req.MaxTokens = c.start.Label, lowered
	}
	if c.reservationSpent {
		a.run.ReserveAgain(worst)
	}
	spent := sentinels.Usage{}
	defer func() { a.run.Settle(worst, spent) }()
	added, err := a.addedText(c)
	if err != nil {
		return callEnd{}, err
	}
	conv, e := a.extendConversation(c, req, added)
	if e != nil {
		return callEnd{err: e}, nil
	}
	work, leave, err := a.enterWork(ctx, c)
	if err != nil {
		return callEnd{}, err
	}
	defer leave()
	var r sentinels.Reply
	err = a.waitForFiles(ctx, c.start.Label, func() (err error) {
		r, err = a.svc.Models.Turn(work, a.turn(conv, req), func(text string) {
			p := a.progress(run.OnText, a.n)
			p.Message = text
			a.run.Report(p)
		})
		return err
	})
	if err != nil {
		if ctx.Err() != nil {
			// The actual usage is unknown, so the reservation is charged.
			spent = worst
			return callEnd{}, err
		}
		spent = TurnUsage(r.Usage)
		return callEnd{err: failure.From(err, abi.Unavailable), body: journal.CallEndBody{Usage: &spent}}, nil
	}
	spent = TurnUsage(r.Usage)
	r.Usage = spent
	MakeReadable(&r)
	said := r.Said
	r.Said, r.Reasoning = nil, textcut.Mark(r.Reasoning, maxReasoning) // a record of its own has all of it
	LeaveOutArguments(&r, maxMessage-replyRest)
	a.mu.Lock()
	a.answered(conv, req, r, said)
	a.mu.Unlock()
	end, err = reply(struct {
		Conversation string `json:"conversation"`
		MaxTokens    int64  `json:"maxTokens,omitempty"`
		sentinels.Reply
	}{conv.id, lowered, r})
	end.body.Usage = &spent
	if said != nil && !req.Aside && err == nil {
		var text json.RawMessage
		if text, err = json.Marshal(said); err == nil {
			end.body.Said, err = a.svc.Values.Redacted(text)
		}
	}
	return end, err
}

// maxReasoning limits the thinking that a guest and the trace get, in bytes.
const maxReasoning = 32 << 10

// replyLimits bound JSON within a model's reply. They are smaller than the limits of
// the whole reply.
var replyLimits = strictjson.Limits{Bytes: 16 << 20, Depth: 64, Keys: 100_000, StringBytes: 16 << 20}

// MakeReadable ensures that a guest can decode a reply. Invalid arguments of a tool
// call, such as an object with duplicate keys, become a JSON string, which the command
// rejects, so that the model can correct the call. An invalid JSON value is removed and
// noted as a problem. Without this, either would fail the step.
func MakeReadable(r *sentinels.Reply) {
	r.ToolCalls = append([]sentinels.ToolCall{}, r.ToolCalls...) // copied, because the list belongs to the model's client
	for i, call := range r.ToolCalls {
		if len(call.Arguments) > 0 && strictjson.Check(call.Arguments, replyLimits) != nil {
			r.ToolCalls[i].Arguments, _ = json.Marshal(string(call.Arguments)) // a string always encodes
		}
	}
	if len(r.JSON) == 0 {
		return
	}
	if err := strictjson.Check(r.JSON, replyLimits); err != nil {
		r.JSON = nil
		r.Problems = append(r.Problems, "the reply is not JSON: "+err.Error())
	}
}

// replyRest is the part of an answer that is not its reply, and what the removal of secrets
// may add to it, in bytes.
const replyRest = 16 << 10

// LeaveOutArguments replaces the arguments of the largest tool calls by a text that says so,
// until the reply has at most limit bytes. The command rejects such a call, and
// the model gets its error; the whole reply would be an error of the turn.
func LeaveOutArguments(r *sentinels.Reply, limit int) {
	for {
		text, err := json.Marshal(r)
		if err != nil || len(text) <= limit {
			return
		}
		largest := -1
		for i, call := range r.ToolCalls {
			if call.Size == 0 && (largest < 0 || len(call.Arguments) > len(r.ToolCalls[largest].Arguments)) {
				largest = i
			}
		}
		if largest < 0 {
			return // its text is too large
		}
		call := &r.ToolCalls[largest]
		call.Size = len(call.Arguments)
		begin := strings.ToValidUTF8(string(call.Arguments[:min(len(call.Arguments), 200)]), "")
		call.Arguments, _ = json.Marshal(fmt.Sprintf("left out: the arguments have %d bytes, which is too large; they begin with: %s", call.Size, begin))
	}
}

// answered adds a reply to its conversation, unless the turn was made aside. The caller holds
// the lock of the attempt, or is alone.
func (a *attempt) answered(conv *conversation, req llmRequest, r sentinels.Reply, said *sentinels.Said) {
	if req.Aside {
		return
	}
	conv.messages = append(conv.messages, sentinels.Message{Role: "assistant", Content: r.Text, ToolCalls: r.ToolCalls, Said: said})
	a.conversations[conv.id] = conv
}

// extendConversation returns a copy of the request's conversation with its messages
// replaced and appended. The original is replaced only when the model has answered, so that a
// failed turn does not change it.
func (a *attempt) extendConversation(c *call, req llmRequest, added string) (*conversation, *abi.Error) {
	next := &conversation{}
	if req.Conversation == "" {
		next.id = "c" + strconv.Itoa(c.seq)
		next.system, next.data = strings.TrimSpace(req.System), modeldata.Mark(added)
	} else {
		a.mu.Lock()
		conv := a.conversations[req.Conversation]
		a.mu.Unlock()
		if conv == nil {
			return nil, failure.New(abi.NotFound, "%s: this step has no conversation %q", abi.FuncLLM, req.Conversation)
		}
		*next = *conv
	}
	var messages []sentinels.Message
	from := 0
	for i, r := range req.Replace {
		if r.From < from || r.To < r.From || r.To > len(next.messages) {
			return nil, &abi.Error{
				Code: abi.BadFields, Permanent: true, Field: fmt.Sprintf("replace[%d]", i),
				Message: fmt.Sprintf("%s: replace[%d]: messages %d to %d: want ranges in their order, of the %d messages that the conversation has",
					abi.FuncLLM, i, r.From, r.To, len(next.messages)),
			}
		}
		messages = append(append(messages, next.messages[from:r.From]...), r.With...)
		from = r.To
	}
	next.messages = append(append(messages, next.messages[from:]...), req.Append...)
	return next, nil
}

// turn returns the turn that the model receives.
func (a *attempt) turn(conv *conversation, req llmRequest) sentinels.Turn {
	t := sentinels.Turn{
		Model: req.Model, System: conv.system, Messages: conv.messagesWithData(), Schema: req.Schema,
		Temperature: req.Temperature, MaxTokens: req.MaxTokens,
	}
	if len(req.Tools) > 0 && a.svc.Commands != nil {
		for _, info := range a.offer(req.Tools) {
			t.Tools = append(t.Tools, sentinels.ToolSpec{Name: info.Name, Description: info.Summary, Schema: info.Input})
		}
	}
	return t
}

// addedText returns the text that the host put before the first message when the call began.
func (a *attempt) addedText(c *call) (string, error) {
	raw, err := a.svc.Values.Load(c.start.Added)
	if err != nil || raw == nil {
		return "", err
	}
	var text string
	err = json.Unmarshal(raw, &text)
	return text, err
}

// contextBytes is the maximum size of the variables in a model's context.
const contextBytes = 32 << 10

// messagesWithData returns the messages with the data of the run before the first one of the
// user, however the conversation was shortened. Data stays out of the system text, whose
// instructions a model follows before others.
func (c *conversation) messagesWithData() []sentinels.Message {
	if c.data == "" {
		return c.messages
	}
	if len(c.messages) == 0 || c.messages[0].Role != "user" {
		return append([]sentinels.Message{{Role: "user", Content: c.data}}, c.messages...)
	}
	messages := slices.Clone(c.messages)
	messages[0].Content = c.data + "\n\n" + messages[0].Content
	return messages
}

// contextText returns $ragContext as text for a model, and the variables if the request asks
// for them: those that were set last first, because a long text is cut. An inherited variable
// is in it only if a text of the definition refers to it. A context that the prompt has itself
// is not repeated.
func (a *attempt) contextText(req llmRequest) string {
	var b strings.Builder
	vars := a.sc.Variables()
	rag, set := vars["ragContext"] // a step of a recipe has set it
	if !set {
		rag = a.run.RAGContext()
	}
	if rag != nil {
		text := reference.Text(rag)
		inPrompt := slices.ContainsFunc(req.Append, func(m sentinels.Message) bool { return strings.Contains(m.Content, text) })
		if text != "" && !inPrompt {
			b.WriteString("# Context\n\n" + text + "\n\n")
		}
	}
	if !req.Context {
		return b.String()
	}
	names := slices.DeleteFunc(a.sc.Order(), func(name string) bool { return name == "ragContext" })
	slices.Reverse(names)
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		if name != "ragContext" && !slices.Contains(names, name) && a.run.Names().Named(name) {
			names = append(names, name) // inherited
		}
	}
	left := contextBytes
	for i, name := range names {
		if i == 0 {
			b.WriteString("# Variables\n")
		}
		text := contextValue(vars[name])
		if len(text) > left {
			text = strings.ToValidUTF8(text[:left], "") + "... (truncated)"
		}
		left = max(left-len(text), 0)
		b.WriteString("\n## " + name + "\n" + text + "\n")
	}
	return b.String()
}

// contextValue returns a variable as text for a model. Of the result of a shell line that
// is the exit code and both streams: its text is standard output alone, and most programs
// explain their failures on standard error.
func contextValue(v json.RawMessage) string {
	var shell struct {
		ExitCode *int    `json:"exitCode"`
		Output   *string `json:"output"`
		Stderr   *string `json:"stderr"`
	}
	if strictjson.DecodeForeign(v, &shell) == nil && shell.ExitCode != nil && shell.Output != nil && shell.Stderr != nil {
		return fmt.Sprintf("exit code %d\n%s", *shell.ExitCode, *shell.Output)
	}
	return reference.Text(v)
}

// rebuildConversation applies a recorded turn to the attempt's conversations.
func (a *attempt) rebuildConversation(c *call, end *journal.CallEndBody, reply json.RawMessage) error {
	var req llmRequest
	if e := parse(c, &req); e != nil {
		return e
	}
	added, err := a.addedText(c)
	if err != nil {
		return err
	}
	conv, e := a.extendConversation(c, req, added)
	if e != nil {
		return e
	}
	var r sentinels.Reply
	if err := json.Unmarshal(reply, &r); err != nil {
		return err
	}
	raw, err := a.svc.Values.Load(end.Said)
	if err != nil {
		return err
	}
	var said *sentinels.Said
	if raw != nil {
		if err := json.Unmarshal(raw, &said); err != nil {
			return err
		}
	}
	a.answered(conv, req, r, said)
	return nil
}

// LoweredText says that a budget lowered the limit of a reply.
func LoweredText(quote external.ModelQuote, tokens int64) string {
	return fmt.Sprintf("the budget leaves %d tokens for the reply of model %s/%s, which may otherwise have %d", tokens, quote.Provider, quote.Model, quote.Worst.OutputTokens)
}

// TurnUsage returns the usage of one turn, which may have failed.
func TurnUsage(u sentinels.Usage) sentinels.Usage {
	u.Calls = 1
	return u
}
