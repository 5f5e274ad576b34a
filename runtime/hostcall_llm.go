package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"sort"
	"strconv"
	"strings"

	"github.com/sentinel-runtime/sentinel/runtime/internal/budget"
	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
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
}

// A conversation is the messages of one exchange with a model. It lives as long
// as the attempt and is rebuilt from the attempt's records.
type conversation struct {
	id       string
	system   string
	messages []sentinels.Message
}

// startLLM is clause A6.4: one turn. Its worst case is reserved before it starts
// and what it really cost after it ended.
func (a *attempt) startLLM(ctx context.Context, c *call) error {
	var req llmRequest
	if e := parse(c, &req); e != nil {
		a.complete(c, callEnd{err: e})
		return nil
	}
	if a.run.rt.opt.Models == nil {
		a.complete(c, callEnd{err: errf(abi.Unavailable, "this program has no models")})
		return nil
	}
	added := ""
	if req.Conversation == "" && req.Context {
		added = a.contextText()
	}
	talk, e := a.talk(c, req, added)
	if e != nil {
		a.complete(c, callEnd{err: e})
		return nil
	}
	quote, err := a.run.rt.opt.Models.Quote(ctx, a.turn(talk, req))
	if err != nil {
		a.complete(c, callEnd{err: asError(err, abi.Unavailable)})
		return nil
	}
	if e := a.deniedModel(req.Model, quote); e != nil {
		a.complete(c, callEnd{err: e})
		return nil
	}
	quote.Worst.Calls = 1
	if err := a.run.reserve(ctx, quote); err != nil {
		if e := abi.As(err); e != nil {
			a.complete(c, callEnd{err: e})
			return nil
		}
		return err
	}
	body := journal.CallStartBody{Effect: true, Safe: true, Label: quote.Provider + "/" + quote.Model, Reserved: &quote.Worst}
	if added != "" {
		text, _ := json.Marshal(added)
		if body.Added, err = a.run.rt.value(text); err != nil {
			return err
		}
	}
	return a.beginCall(ctx, c, body)
}

// resumeLLM counts the reservation of a turn that a crash interrupted as spent. If the
// turn is made again, doLLM reserves once more.
func (a *attempt) resumeLLM(c *call) {
	a.run.budget.Charge(a.run.id, *c.start.Reserved)
	c.again = true
}

func (a *attempt) doLLM(ctx context.Context, c *call) (end callEnd, err error) {
	var req llmRequest
	if e := parse(c, &req); e != nil {
		return callEnd{err: e}, nil
	}
	worst := *c.start.Reserved
	if c.again {
		a.run.budget.ReserveAgain(a.run.id, worst)
	}
	spent := sentinels.Usage{}
	defer func() { a.run.budget.Settle(a.run.id, worst, spent) }()
	added, err := a.addedText(c)
	if err != nil {
		return callEnd{}, err
	}
	talk, e := a.talk(c, req, added)
	if e != nil {
		return callEnd{err: e}, nil
	}
	if err := a.run.enter(ctx); err != nil {
		return callEnd{}, err
	}
	defer a.run.leave()
	var r sentinels.Reply
	err = a.waitForFiles(ctx, c.start.Label, func() (err error) {
		r, err = a.run.rt.opt.Models.Turn(ctx, a.turn(talk, req), func(text string) {
			p := a.progress(OnText, a.n)
			p.Message = text
			a.run.report(p)
		})
		return err
	})
	if err != nil {
		if ctx.Err() != nil {
			// It is unknown what the server has counted, so the reservation stays.
			spent = worst
			return callEnd{}, err
		}
		spent = turnUsage(r.Usage)
		return callEnd{err: asError(err, abi.Unavailable), body: journal.CallEndBody{Usage: &spent}}, nil
	}
	spent = turnUsage(r.Usage)
	r.Usage = spent
	makeReadable(&r)
	a.mu.Lock()
	talk.messages = append(talk.messages, sentinels.Message{Role: "assistant", Content: r.Text, ToolCalls: r.ToolCalls})
	a.talks[talk.id] = talk
	a.mu.Unlock()
	end, err = reply(struct {
		Conversation string `json:"conversation"`
		sentinels.Reply
	}{talk.id, r})
	end.body.Usage = &spent
	return end, err
}

// replyLimits bound JSON in a model's reply. They are below what a guest reads of
// the whole reply.
var replyLimits = strictjson.Limits{Bytes: 16 << 20, Depth: 64, Keys: 100_000, StringBytes: 16 << 20}

// makeReadable makes sure that a guest can read a reply. Arguments with duplicate
// keys or the like become a JSON string: the command's registry refuses that and
// says why, and the model can correct the call. A JSON value of that kind is
// removed and noted as a problem. As they are, either would fail the step.
func makeReadable(r *sentinels.Reply) {
	r.ToolCalls = append([]sentinels.ToolCall{}, r.ToolCalls...) // the model's own list stays as it is
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

// Turn makes a model turn for a command that a step of the run called, on the
// run's budget. For an id that no live run has, no budget counts.
func (rt *Runtime) Turn(ctx context.Context, id sentinels.RunID, turn sentinels.Turn, delta func(string)) (sentinels.Reply, error) {
	if rt.opt.Models == nil {
		return sentinels.Reply{}, errf(abi.Unavailable, "this program has no models")
	}
	r := rt.live(id)
	if r == nil {
		reply, err := rt.opt.Models.Turn(ctx, turn, delta)
		makeReadable(&reply)
		return reply, err
	}
	quote, err := rt.opt.Models.Quote(ctx, turn)
	if err != nil {
		return sentinels.Reply{}, err
	}
	quote.Worst.Calls = 1
	if err := r.reserve(ctx, quote); err != nil {
		return sentinels.Reply{}, err
	}
	reply, err := rt.opt.Models.Turn(ctx, turn, delta)
	makeReadable(&reply)
	spent := turnUsage(reply.Usage)
	r.write(writeOptions{lazy: true}, &journal.Record{Kind: journal.Signal, Signal: &journal.SignalBody{Type: "usage", Usage: &spent}})
	if err != nil && ctx.Err() != nil {
		spent = quote.Worst
	}
	r.budget.Settle(r.id, quote.Worst, spent)
	return reply, err
}

// talk returns the conversation with the request's messages appended. The kept
// one changes only when the model has answered, so a failed turn leaves no
// trace in it.
func (a *attempt) talk(c *call, req llmRequest, added string) (*conversation, *abi.Error) {
	next := &conversation{}
	if req.Conversation == "" {
		next.id = "c" + strconv.Itoa(c.seq)
		next.system = strings.TrimSpace(req.System + "\n\n" + added)
	} else {
		a.mu.Lock()
		talk := a.talks[req.Conversation]
		a.mu.Unlock()
		if talk == nil {
			return nil, errf(abi.NotFound, "%s: this step has no conversation %q", abi.FuncLLM, req.Conversation)
		}
		*next = *talk
	}
	next.messages = append(append([]sentinels.Message(nil), next.messages...), req.Append...)
	return next, nil
}

func (a *attempt) turn(talk *conversation, req llmRequest) sentinels.Turn {
	t := sentinels.Turn{
		Model: req.Model, System: talk.system, Messages: talk.messages, Schema: req.Schema,
		Temperature: req.Temperature, MaxTokens: req.MaxTokens,
	}
	if len(req.Tools) > 0 && a.run.rt.opt.Commands != nil {
		for _, info := range a.run.rt.opt.Commands.Tools(req.Tools) {
			t.Tools = append(t.Tools, sentinels.ToolSpec{Name: info.Name, Description: info.Summary, Schema: info.Input})
		}
	}
	return t
}

// addedText is what the host added to the system text when the call began.
func (a *attempt) addedText(c *call) (string, error) {
	raw, err := a.run.rt.load(c.start.Added)
	if err != nil || raw == nil {
		return "", err
	}
	var text string
	err = json.Unmarshal(raw, &text)
	return text, err
}

// contextBytes is the most that the variables take in a model's system text.
const contextBytes = 32 << 10

// contextText is $ragContext and the accumulated variables as a model reads
// them.
func (a *attempt) contextText() string {
	var b strings.Builder
	a.run.mu.Lock()
	rag := a.run.state.RAGContext.Content()
	a.run.mu.Unlock()
	if rag != nil {
		b.WriteString("# Context\n\n")
		b.WriteString(reference.Text(rag))
		b.WriteString("\n\n")
	}
	vars := a.sc.variables()
	names := make([]string, 0, len(vars))
	for name := range vars {
		names = append(names, name)
	}
	sort.Strings(names)
	left := contextBytes
	for i, name := range names {
		if i == 0 {
			b.WriteString("# Variables\n")
		}
		text := reference.Text(vars[name])
		if len(text) > left {
			text = strings.ToValidUTF8(text[:left], "") + "... (cut)"
		}
		left = max(left-len(text), 0)
		b.WriteString("\n## " + name + "\n" + text + "\n")
	}
	return b.String()
}

// rebuildTalks makes the conversations again from the attempt's records.
func (a *attempt) rebuildTalks(c *call, reply json.RawMessage) error {
	var req llmRequest
	if e := parse(c, &req); e != nil {
		return e
	}
	added, err := a.addedText(c)
	if err != nil {
		return err
	}
	talk, e := a.talk(c, req, added)
	if e != nil {
		return e
	}
	var r sentinels.Reply
	if err := json.Unmarshal(reply, &r); err != nil {
		return err
	}
	talk.messages = append(talk.messages, sentinels.Message{Role: "assistant", Content: r.Text, ToolCalls: r.ToolCalls})
	a.talks[talk.id] = talk
	return nil
}

// openBudget makes the budget of a definition that of the run.
func (r *run) openBudget(def *sentinels.Definition) {
	parent := sentinels.RunID("")
	if r.parent != nil {
		parent = r.parent.id
	}
	r.budget.Open(r.id, parent, def.Budget)
}

// reserve reserves the worst case of a call. At a limit it returns the error that ends
// the run, or pauses the run until a resume extends the limit.
func (r *run) reserve(ctx context.Context, q ModelQuote) error {
	for {
		exceeded, err := r.budget.Reserve(r.id, budget.Reservation{Model: q.Provider + "/" + q.Model, Worst: q.Worst, Priced: q.Priced})
		if err != nil || exceeded == nil {
			return err
		}
		owner := r
		if exceeded.Run != r.id {
			if live := r.rt.live(exceeded.Run); live != nil {
				owner = live
			}
		}
		// The run that has the limit pauses or ends; the call ends with ctx.
		if err := owner.atLimit(ctx, &limitError{exceeded.Name, exceeded.Text}); err != nil {
			if !errors.As(err, new(*limitError)) {
				return err
			}
			owner.cancel(err)
			if owner != r { // which stops all below it, this run too
				<-ctx.Done()
				return context.Cause(ctx)
			}
			return err
		}
		if err := r.waitWhilePaused(ctx); err != nil {
			return err
		}
	}
}

// turnUsage returns what a turn has cost. One that failed may have cost something
// too.
func turnUsage(u sentinels.Usage) sentinels.Usage {
	u.Calls = 1
	return u
}
