package llm

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/host/llm/providers"
	"github.com/sentinel-runtime/sentinel/host/llm/texttool"
	"github.com/sentinel-runtime/sentinel/host/llm/wire"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// maxRefusals bounds how often a turn is asked again without a refused part.
// It is the number of parts there are.
const maxRefusals = 10

// errStall is the cause of a turn ended for silence.
var errStall = errors.New("stalled")

// Turn makes one turn. delta, if not nil, receives the text as it arrives, with
// calls that are written in it; it may block the stream and is not called after
// Turn returned.
//
// The error is an *abi.Error. A reply beside an error is not one to use: it
// holds only the usage, for a turn that failed after tokens were counted.
func (m *Models) Turn(ctx context.Context, turn sentinels.Turn, delta func(text string)) (sentinels.Reply, error) {
	started := m.config.Clock()
	report := Report{}
	reply, err := m.turn(ctx, turn, delta, &report)
	if err != nil {
		err = m.clean(err)
		if e := abi.As(err); ctx.Err() == nil && transient(e) {
			e.Fallback = m.fallback(report.Choice)
		}
	}
	if m.config.Observe != nil {
		report.Usage, report.Err = reply.Usage, err
		report.Duration = m.config.Clock().Sub(started)
		m.config.Observe(ctx, report)
	}
	return reply, err
}

func (m *Models) turn(ctx context.Context, turn sentinels.Turn, delta func(string), report *Report) (sentinels.Reply, error) {
	if len(turn.Messages) == 0 {
		return sentinels.Reply{}, &abi.Error{Code: abi.BadFields, Field: "messages", Message: "model turn: no messages", Permanent: true}
	}
	c, err := m.choose(ctx, turn)
	report.Choice = c.Choice
	if err != nil {
		return sentinels.Reply{}, m.explain(c, turn, err)
	}
	n := newNames(turn)
	h := m.habitsOf(c)
	request := m.request(c, h, n, turn, report)
	answer, err := m.stream(ctx, c, request, delta, report)
	// Each pass leaves out one more part, or ends.
	for range maxRefusals {
		next, note, ok := h.adapt(err, c, m.protocol(c), request, turn)
		if !ok {
			next, note, ok = m.narrow(ctx, c, h, err, request, turn)
		}
		if !ok {
			break
		}
		h = next
		m.learn(c, h)
		report.Notes = append(report.Notes, note)
		request = m.request(c, h, n, turn, report)
		answer, err = m.stream(ctx, c, request, delta, report)
	}
	if err != nil {
		// A stream that broke is paid for as far as it came.
		reply := sentinels.Reply{Provider: c.Provider, Model: c.Model}
		if f, ok := errors.AsType[*wire.Failure](err); ok && (f.Usage.Known || f.Sent > 0) {
			// A server that sends more than the limit of the reply does not keep to it, and its answer is
			// refused: what it can charge is the limit.
			sent := int64(f.Sent)
			if request.MaxTokens > 0 {
				sent = min(sent, request.MaxTokens*4)
			}
			broken := wire.Answer{Text: strings.Repeat("x", int(sent)), Usage: f.Usage}
			m.count(c, turn, &broken, report)
			reply.Usage = m.usage(c, broken.Usage)
		}
		return reply, m.explain(c, turn, m.fault(ctx, c, err))
	}
	report.Served = answer.Model
	if answer.Note != "" {
		report.note(answer.Note)
	}
	if err := m.cut(c, answer); err != nil {
		m.count(c, turn, &answer, report)
		return sentinels.Reply{Provider: c.Provider, Model: c.Model, Usage: m.usage(c, answer.Usage)}, err
	}
	answer.Finish = finish(c, answer)
	reply, err := m.reply(c, h, n, turn, answer, report)
	if err == nil {
		reply.InputLimit = m.inputLimit(ctx, c, turn)
	}
	return reply, err
}

// finish returns how a reply ended. Servers disagree on that where there are calls, so the calls
// themselves decide.
func finish(c chosen, a wire.Answer) string {
	class := c.row().Finished(a.Finish)
	if class == providers.Stop && len(a.Calls) > 0 {
		return "tools"
	}
	return string(class)
}

// request translates a turn for one model.
func (m *Models) request(c chosen, h habits, n names, turn sentinels.Turn, report *Report) wire.Request {
	row := m.sized(c)
	r := wire.Request{
		Model: c.Model, System: turn.System, Temperature: turn.Temperature,
		MaxTokens: row.maxTokens(turn), Dialect: h.dialect,
	}
	if h.noTemperature && r.Temperature != nil {
		r.Temperature = nil
		report.note("sent without temperature, which the model refuses")
	}
	if c.provider.Kind == KindAnthropic && r.Temperature != nil && *r.Temperature > 1 {
		most := 1.0
		r.Temperature = &most
		report.note("sent with temperature 1, the highest there is")
	}
	// A conversation that had tools earlier is flattened too: a model without
	// native calls cannot read the roles they came in.
	if h.textTools && (len(turn.Tools) > 0 || called(turn.Messages)) {
		r.Messages = texttool.Flatten(turn.Messages)
		if len(turn.Tools) > 0 {
			r.System = paragraphs(r.System, texttool.Instruct(turn.Tools))
		}
	} else {
		r.Messages, r.Tools = n.messages(turn.Messages, c, m.protocol(c), h.callIDs), n.tools(turn.Tools)
	}
	if turn.Schema != nil {
		if m.nativeSchema(c, h, turn) {
			r.Schema = turn.Schema
		} else {
			r.System = paragraphs(r.System, schemaText(turn))
		}
	}
	return r
}

// nativeSchema reports whether the schema is sent as a parameter. Local servers
// constrain every token by it, which leaves no way to call a tool, so with
// tools it is only asked for in words there.
func (m *Models) nativeSchema(c chosen, h habits, turn sentinels.Turn) bool {
	return !h.textSchema && isObject(turn.Schema) && (len(turn.Tools) == 0 || c.provider.official)
}

// schemaText asks for a schema in words.
func schemaText(turn sentinels.Turn) string {
	text := "Answer with one JSON value and nothing else: no prose, no code fence. It must be valid under this JSON Schema:\n" + string(turn.Schema)
	if len(turn.Tools) > 0 {
		text = "When you need no more tools: a" + strings.TrimPrefix(text, "A")
	}
	return text
}

// paragraphs joins what is not empty with blank lines.
func paragraphs(parts ...string) string {
	var out []string
	for _, part := range parts {
		if part != "" {
			out = append(out, part)
		}
	}
	return strings.Join(out, "\n\n")
}

// called reports whether a conversation has calls or results.
func called(messages []sentinels.Message) bool {
	for _, m := range messages {
		if len(m.ToolCalls) > 0 || m.Role == "tool" {
			return true
		}
	}
	return false
}

// stream asks once, when the provider lets it, and gives up when the server is silent for too long.
func (m *Models) stream(ctx context.Context, c chosen, r wire.Request, delta func(string), report *Report) (answer wire.Answer, err error) {
	waited, err := c.provider.limiter.begin(ctx, c.Provider)
	if err != nil {
		return wire.Answer{}, err
	}
	defer func() {
		f, ok := errors.AsType[*wire.Failure](err)
		refused := ok && judge(c, f, providers.RateLimit, providers.NoCredit).Class == providers.RateLimit
		pause := time.Duration(0)
		if refused {
			pause = time.Duration(m.wait(f)) * time.Millisecond
		}
		c.provider.limiter.end(refused, pause)
	}()
	if waited >= 100*time.Millisecond {
		report.note(fmt.Sprintf("waited %s, since the provider limits requests", waited.Round(100*time.Millisecond)))
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timer := time.AfterFunc(m.config.Stall, func() { cancel(errStall) })
	defer timer.Stop()
	r.Alive = func() { timer.Reset(m.config.Stall) }
	answer, err = m.clientOf(c).Stream(ctx, r, delta)
	if err != nil && errors.Is(context.Cause(ctx), errStall) {
		return answer, fmt.Errorf("%w for %s", errStall, m.config.Stall)
	}
	return answer, err
}

// note adds a note once.
func (r *Report) note(text string) {
	for _, have := range r.Notes {
		if have == text {
			return
		}
	}
	r.Notes = append(r.Notes, text)
}
