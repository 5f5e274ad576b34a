package llm

import (
	"errors"
	"fmt"
	"slices"

	"github.com/sentinel-runtime/sentinel/host/llm/providers"
	"github.com/sentinel-runtime/sentinel/host/llm/wire"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// habits are what one model at one server does not take. They start from what
// is known of it and grow with what it refuses.
type habits struct {
	dialect       wire.Dialect
	noTemperature bool
	textTools     bool  // tools go into the system text
	textSchema    bool  // the schema goes into the system text
	callIDs       int   // length that ids of calls must have, of letters and digits; 0 for any
	window        int64 // most tokens of its window, if its server said so or refused more; else 0
	guessed       bool  // window is estimated from what was refused
	maxOutput     int64 // longest reply that the server accepts a limit of, in tokens; 0 if it has refused none
}

// habitsOf returns what is known of a model's habits.
func (m *Models) habitsOf(c chosen) habits {
	m.mu.Lock()
	defer m.mu.Unlock()
	if h, ok := m.learned[c.Provider+"/"+c.Model]; ok {
		return h
	}
	row, _ := m.row(c.provider, c.Model)
	known := c.row()
	return habits{
		dialect:       wire.Dialect{CompletionTokens: known.CompletionTokens, Omit: known.Omit, Call: known.Call},
		noTemperature: row.NoTemperature,
		textTools:     c.provider.Tools == ToolsText,
		textSchema:    row.NoSchema,
	}
}

// learn keeps habits for later turns of this process. Turns that run side by
// side may each meet the refusal; what they learn is the same.
func (m *Models) learn(c chosen, h habits) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.learned[c.Provider+"/"+c.Model] = h
}

// adapt reads a refusal and returns the habit it teaches, with a note of it.
// ok is false if the refusal is about something else, or about a part that the
// request did not have: then asking again would change nothing.
func (h habits) adapt(err error, c chosen, protocol string, r wire.Request, turn sentinels.Turn) (next habits, note string, ok bool) {
	f, is := errors.AsType[*wire.Failure](err)
	if !is || f.Kind != wire.Status {
		return h, "", false
	}
	p := c.provider
	v := c.row().Judge(f.Status, f.Type+" "+f.Code+" "+f.Message, func(class providers.Class) bool {
		switch class {
		case providers.NoStreamUsage:
			return protocol == KindOpenAI && !r.Dialect.NoUsage
		case providers.NoEncrypted:
			return protocol == ProtocolResponses && !r.Dialect.NoEncrypted
		case providers.OtherLimitName: // changed at most once
			return protocol == KindOpenAI && r.Dialect.CompletionTokens == c.row().CompletionTokens
		case providers.NoTemperature:
			return r.Temperature != nil
		case providers.NoSchema:
			return r.Schema != nil
		case providers.NoTools:
			return len(turn.Tools) > 0 && !h.textTools && p.Tools == ToolsAuto
		case providers.NoMember:
			return slices.ContainsFunc(r.Messages, func(m sentinels.Message) bool { return m.Said != nil }) || h.dialect.Reasoning != ""
		case providers.NeedsMember:
			return h.dialect.Reasoning == ""
		case providers.OutputLimit:
			return r.MaxTokens > 1
		case providers.CallIDs:
			return h.callIDs == 0
		}
		return false
	})
	switch v.Class {
	case providers.NoStreamUsage:
		h.dialect.NoUsage = true
		return h, "the server does not count tokens in a stream", true
	case providers.NoEncrypted:
		h.dialect.NoEncrypted = true
		return h, "sent without a request for encrypted reasoning, which the model does not have", true
	case providers.OtherLimitName:
		h.dialect.CompletionTokens = !h.dialect.CompletionTokens
		return h, "the server names the limit on output differently", true
	case providers.NoTemperature:
		h.noTemperature = true
		return h, "sent without temperature, which the model refuses", true
	case providers.NoSchema:
		h.textSchema = true
		return h, "sent with the schema in the system text, since the server refused it as a parameter", true
	case providers.NoTools:
		h.textTools = true
		return h, "sent with the tools in the system text, since the model has no native ones", true
	case providers.NoMember:
		if slices.Contains(h.dialect.Omit, v.Member) {
			return h, "", false
		}
		h.dialect.Omit = append(slices.Clone(h.dialect.Omit), v.Member)
		if h.dialect.Reasoning == v.Member {
			h.dialect.Reasoning = ""
		}
		return h, fmt.Sprintf("sent without %s of earlier replies, which the server refuses", v.Member), true
	case providers.NeedsMember:
		h.dialect.Reasoning = v.Member
		return h, fmt.Sprintf("sent with a %s in each earlier reply, which the server requires", v.Member), true
	case providers.CallIDs:
		if v.Most < 4 || v.Most > 64 {
			return h, "", false
		}
		h.callIDs = int(v.Most)
		return h, fmt.Sprintf("sent with ids of calls of %d letters and digits, which the server requires", v.Most), true
	case providers.OutputLimit:
		most := v.Most
		if most <= 0 || most >= r.MaxTokens {
			most = r.MaxTokens / 2
		}
		h.maxOutput = most
		return h, fmt.Sprintf("sent with a limit of the reply of %d tokens, since the server refuses more", most), true
	}
	return h, "", false
}
