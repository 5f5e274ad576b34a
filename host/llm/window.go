package llm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/host/llm/providers"
	"github.com/sentinel-runtime/sentinel/host/llm/wire"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Conversation is the field of the error limit for a conversation that is larger than the
// window of its model; see sdk/ABI.md A6.4.
const conversationField = "append"

// listTime limits the request for the list of a server's models that is made only to know
// their windows.
const listTime = 10 * time.Second

// minWindow is the smallest window that is guessed.
const minWindow = 512

// narrow learns the size of the window from a refusal of a request that is too long: from what
// it says, else from the list of the server, else it is smaller than the request with its reply.
// ok reports that the request is worth another attempt, because that leaves less for the
// reply than the request had.
func (m *Models) narrow(ctx context.Context, c chosen, h habits, err error, r wire.Request, turn sentinels.Turn) (next habits, note string, ok bool) {
	f, is := errors.AsType[*wire.Failure](err)
	if !is {
		return h, "", false
	}
	v := judge(c, f, providers.TooLong)
	if v.Class == "" {
		return h, "", false
	}
	before := m.sized(c).Context
	w := v.Window
	if w == 0 && before == 0 {
		w = m.listed(ctx, c)
	}
	text := "sent with a smaller limit of the reply, since the window of the model is %d tokens"
	again := true
	if w == 0 && (before == 0 || h.guessed) {
		row, _ := m.row(c.provider, c.Model)
		w = max(estimateTurn(turn, row.CharsPerToken)+r.MaxTokens, minWindow)
		text = "sent with a smaller limit of the reply, since the window of the model, which is not known, is less than about %d tokens"
		again, h.guessed = !h.guessed, true
	}
	if w == 0 || before > 0 && before <= w {
		return h, "", false
	}
	h.window = w
	m.learn(c, h)
	return h, fmt.Sprintf(text, w), again && r.MaxTokens > w/replyShare
}

// listed returns the window of a model that its server lists, or 0. A maker's own service
// and a plugin are not asked.
func (m *Models) listed(ctx context.Context, c chosen) int64 {
	if c.provider.official || c.provider.Kind == KindPlugin {
		return 0
	}
	return c.provider.window(ctx, c.Model)
}

// sized returns the row of a model with the smallest window that is known of it: that of the
// table, of the list of its server, or of an answer that refused a request.
func (m *Models) sized(c chosen) Model {
	row, _ := m.row(c.provider, c.Model)
	h := m.habitsOf(c)
	if h.window > 0 && (row.Context == 0 || h.window < row.Context) {
		row.Context = h.window
	}
	if h.maxOutput > 0 {
		row.MaxOutput = h.maxOutput
	}
	if row.Context == 0 {
		row.Context = c.provider.listedWindow(c.Model)
	}
	return row
}

// inputLimit returns how many tokens a turn may have beside its reply, 0 if that is not known.
// A server that is not a maker's own is asked once for its list of models.
func (m *Models) inputLimit(ctx context.Context, c chosen, turn sentinels.Turn) int64 {
	row := m.sized(c)
	if row.Context == 0 {
		row.Context = m.listed(ctx, c)
	}
	if row.Context == 0 {
		return 0
	}
	return row.Context - row.maxTokens(turn)
}

// overflow is the error for a conversation that is larger than the window.
func overflow(message string) *abi.Error {
	return &abi.Error{
		Code: abi.Limit, Permanent: true, Field: conversationField, Message: message,
		Hint: "send less, or choose a model with a larger context window",
	}
}

// explain adds to the error of a turn that is larger than the window which part of it is how
// large. Other errors are returned as they are. c has no provider if no model was chosen.
func (m *Models) explain(c chosen, turn sentinels.Turn, err error) error {
	e := abi.As(err)
	if e == nil || e.Field != conversationField {
		return err
	}
	var row Model
	if c.provider != nil {
		row = m.sized(c)
	}
	parts := partsOf(turn, row.CharsPerToken)
	if len(parts) == 0 {
		return err
	}
	var texts []string
	for _, p := range parts {
		texts = append(texts, fmt.Sprintf("%s about %d", p.name, p.tokens))
	}
	out := *e
	out.Message += fmt.Sprintf("; the request has about %d tokens: %s", estimateTurn(turn, row.CharsPerToken), strings.Join(texts, ", "))
	if row.Context > 0 {
		out.Message += fmt.Sprintf("; the window has %d, of which %d are for the reply", row.Context, row.maxTokens(turn))
	}
	out.Hint = parts[0].hint + ", or name a model with a larger window; if the size of the window is wrong, set context of the model in models.known of the configuration"
	return &out
}

// A part of a turn, with what makes it smaller.
type part struct {
	name, hint string
	tokens     int64
}

// partsOf returns the parts of a turn, the largest first.
func partsOf(turn sentinels.Turn, perToken float64) []part {
	size := func(t sentinels.Turn) int64 { return estimateTurn(t, perToken) }
	all := size(sentinels.Turn{Messages: turn.Messages})
	messages := part{tokens: all, hint: "put less into the messages"}
	if len(turn.Messages) == 1 {
		messages.name, messages.hint = "the prompt", "put less into the prompt"
	} else {
		largest, most := 0, int64(-1)
		for i := range turn.Messages {
			if n := size(sentinels.Turn{Messages: turn.Messages[i : i+1]}); n > most {
				largest, most = i, n
			}
		}
		messages.name = fmt.Sprintf("%d messages (number %d, of role %s, is the largest with about %d)", len(turn.Messages), largest+1, turn.Messages[largest].Role, most)
	}
	parts := []part{
		messages,
		{fmt.Sprintf("%d tools", len(turn.Tools)), "name fewer commands in the field tools", size(sentinels.Turn{Tools: turn.Tools})},
		{"the system prompt with the context", "shorten the field system, or leave the variables out with context: false", size(sentinels.Turn{System: turn.System})},
		{"the schema", "use a smaller schema", size(sentinels.Turn{Schema: turn.Schema})},
	}
	parts = slices.DeleteFunc(parts, func(p part) bool { return p.tokens == 0 })
	slices.SortStableFunc(parts, func(a, b part) int { return cmp.Compare(b.tokens, a.tokens) })
	return parts
}
