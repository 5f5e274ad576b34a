package llm

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/sentinel-runtime/sentinel/internal/lazyregexp"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// names maps the names of commands to names every provider accepts, and back,
// for one request. It is one to one: the names of a request are fixed before
// it is sent.
type names struct {
	sent     map[string]string // ours to the provider's
	original map[string]string // and back
}

// longestName is what the strictest provider allows.
const longestName = 64

var (
	accepted = lazyregexp.New(`^[a-zA-Z0-9_-]{1,64}$`)
	refused  = lazyregexp.New(`[^a-zA-Z0-9_-]`)
)

// newNames maps the tools of a turn and those its conversation has called.
// Names that are accepted as they are keep theirs, whatever comes before them.
func newNames(turn sentinels.Turn) names {
	n := names{map[string]string{}, map[string]string{}}
	var all []string
	for _, tool := range turn.Tools {
		all = append(all, tool.Name)
	}
	for _, m := range turn.Messages {
		for _, call := range m.ToolCalls {
			all = append(all, call.Name)
		}
	}
	for _, name := range all {
		if accepted.MatchString(name) {
			n.sent[name], n.original[name] = name, name
		}
	}
	for _, name := range all {
		if _, done := n.sent[name]; done {
			continue
		}
		base := refused.ReplaceAllString(name, "_")
		if base == "" {
			base = "tool"
		}
		// The number is part of the length, so long names are cut further.
		base = base[:min(len(base), longestName)]
		sent := base
		for i := 2; ; i++ {
			if _, taken := n.original[sent]; !taken {
				break
			}
			suffix := fmt.Sprintf("_%d", i)
			sent = base[:min(len(base), longestName-len(suffix))] + suffix
		}
		n.sent[name], n.original[sent] = sent, name
	}
	return n
}

// back returns our name for one a model used. A name that was not sent is
// matched by its letters and digits alone, if that fits just one tool; else it
// is returned as it came, and the host refuses the call by that name.
func (n names) back(name string) string {
	if original, ok := n.original[name]; ok {
		return original
	}
	if _, ok := n.sent[name]; ok {
		return name
	}
	want := bare(name)
	// Some models prefix the namespace their training data used.
	short := bare(strings.TrimPrefix(strings.TrimPrefix(name, "functions."), "tools."))
	found := ""
	for original := range n.sent {
		if b := bare(original); b == want || b == short {
			if found != "" {
				return name
			}
			found = original
		}
	}
	if found != "" {
		return found
	}
	return name
}

// either returns the tools' names in both forms, for reading calls in a text.
func (n names) either(tools []sentinels.ToolSpec) []string {
	var out []string
	for _, tool := range tools {
		out = append(out, tool.Name, n.sent[tool.Name])
	}
	return out
}

// messages returns the conversation with the provider's names. A message as another model
// wrote it is not for this one. Ids of calls are replaced where they do not have idLength letters and
// digits, unless that is 0.
func (n names) messages(in []sentinels.Message, c chosen, protocol string, idLength int) []sentinels.Message {
	out := make([]sentinels.Message, len(in))
	for i, m := range in {
		if m.Said != nil && (m.Said.Provider != c.Provider || m.Said.Model != c.Model || m.Said.Protocol != protocol) {
			m.Said = nil
		}
		if len(m.ToolCalls) > 0 {
			calls := make([]sentinels.ToolCall, len(m.ToolCalls))
			for j, call := range m.ToolCalls {
				call.Name, call.ID = n.sent[call.Name], callID(call.ID, idLength)
				calls[j] = call
			}
			m.ToolCalls = calls
		}
		m.ToolCallID = callID(m.ToolCallID, idLength)
		out[i] = m
	}
	return out
}

var notInID = lazyregexp.New(`[^a-zA-Z0-9]`)

// callID returns an id of length letters and digits, which is the same in each request.
func callID(id string, length int) string {
	if id == "" || length == 0 || len(id) == length && !notInID.MatchString(id) {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:])[:length]
}

// tools returns the tools with the provider's names.
func (n names) tools(in []sentinels.ToolSpec) []sentinels.ToolSpec {
	out := make([]sentinels.ToolSpec, len(in))
	for i, tool := range in {
		tool.Name = n.sent[tool.Name]
		out[i] = tool
	}
	return out
}

// bare is a name's letters and digits in lower case.
func bare(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		}
		return -1
	}, name)
}
