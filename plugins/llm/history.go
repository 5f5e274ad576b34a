package llm

import "github.com/sentinel-runtime/sentinel/sdk"

// Estimates of tokens. What is added counts more than what is left out, so that an estimate
// is rather too large.
const (
	bytesAdded    = 3 // to a token
	bytesLeftOut  = 4
	messageTokens = 8
)

// An entry is what this guest keeps of a message of the conversation, which the host has.
type entry struct {
	role string
	size int         // of its text and arguments, in bytes
	mark sdk.Message // of a tool result: what takes its place; empty if it is not worth it
	out  bool        // the mark takes its place in the next turn
}

// A history says how large the conversation is and how large it may be, in tokens.
type history struct {
	entries []entry
	tokens  int64 // of all entries, system text and tools: as the server counted the last turn
	limit   int64 // of a turn, beside its reply; 0 if it is not known
	model   string
	fold    int // number of the first entries that folded takes the place of in the next turn
	folded  string
}

// estimate returns the tokens of the next turn with these messages.
func (h *history) estimate(messages []sdk.Message) int64 {
	tokens := h.tokens
	for i, e := range h.entries {
		switch {
		case i < h.fold:
			tokens -= int64(e.size) / bytesLeftOut
		case e.out:
			tokens -= int64(e.size-len(e.mark.Content)) / bytesLeftOut
		}
	}
	tokens = max(tokens, 0) + int64(len(h.folded))/bytesAdded
	return tokens + added(messages)
}

// added returns the tokens of messages that are new.
func added(messages []sdk.Message) (tokens int64) {
	for _, m := range messages {
		tokens += messageTokens + int64(len(m.Content))/bytesAdded
	}
	return tokens
}

// replacements returns the changes of the conversation that the next turn makes.
func (h *history) replacements() []sdk.Replacement {
	var list []sdk.Replacement
	if h.fold > 0 {
		list = append(list, sdk.Replacement{To: h.fold, With: []sdk.Message{{Role: "user", Content: h.folded}}})
	}
	for i := h.fold; i < len(h.entries); i++ {
		if h.entries[i].out {
			list = append(list, sdk.Replacement{From: i, To: i + 1, With: []sdk.Message{h.entries[i].mark}})
		}
	}
	return list
}

// answered notes a turn: its replacements, its messages, whose marks are in the same order,
// and its reply.
func (h *history) answered(messages, marks []sdk.Message, r sdk.Reply) {
	kept := make([]entry, 0, len(h.entries)+len(messages)+1)
	if h.fold > 0 {
		kept = append(kept, entry{role: "user", size: len(h.folded)})
	}
	for _, e := range h.entries[h.fold:] {
		if e.out {
			e = entry{role: e.role, size: len(e.mark.Content)}
		}
		kept = append(kept, e)
	}
	for i, m := range messages {
		e := entry{role: m.Role, size: len(m.Content)}
		if i < len(marks) && len(marks[i].Content) < len(m.Content)/2 {
			e.mark = marks[i]
		}
		kept = append(kept, e)
	}
	size := len(r.Text)
	for _, call := range r.ToolCalls {
		size += len(call.Name) + len(call.Arguments.String())
	}
	h.entries = append(kept, entry{role: "assistant", size: size})
	h.fold, h.folded = 0, ""
	total := int64(0)
	for _, e := range h.entries {
		total += int64(e.size)
	}
	// A server that counts fewer tokens than any text of this size has does not count.
	if h.tokens = r.Usage.InputTokens + r.Usage.OutputTokens; h.tokens < total/8 {
		h.tokens = total / bytesLeftOut
	}
	if model := r.Provider + "/" + r.Model; model != h.model && h.model != "" {
		h.limit = r.InputLimit // what another one refused says nothing of this one
		h.model = model
	} else if h.model = model; r.InputLimit > 0 && (h.limit == 0 || r.InputLimit < h.limit) {
		h.limit = r.InputLimit
	}
}

// leaveOut marks the oldest tool results until the next turn has at most target tokens.
func (h *history) leaveOut(messages []sdk.Message, target int64) (results, size int) {
	for i := h.fold; i < len(h.entries) && h.estimate(messages) > target; i++ {
		if e := &h.entries[i]; e.mark.Content != "" && !e.out {
			e.out = true
			results, size = results+1, size+e.size
		}
	}
	return results, size
}

// lastReply returns the index of the last message of the model, 0 if there is none.
func (h *history) lastReply() int {
	for i := len(h.entries) - 1; i > 0; i-- {
		if h.entries[i].role == "assistant" {
			return i
		}
	}
	return 0
}
