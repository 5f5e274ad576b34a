package llm

import (
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/internal/lazyregexp"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// thinkTag matches the tags in which models without a field for it write their thinking.
var thinkTag = lazyregexp.New(`<(/?)(?:think|thinking|thought|seed:think)>|\[(/?)THINK\]|◁(/?)think▷`)

// tagEnds are the ends of these tags. A long text is searched for them much faster than for the tags.
var tagEnds = []string{"think>", "thinking>", "thought>", "THINK]", "think▷"}

// splitThinking takes the thinking out of a text. Calls are never read out of it and it is never
// an answer, so it is taken for more rather than for less: a block may lack its begin, because
// the chat template has written that, or its end, because the reply was cut; there may be several,
// and text before them. A tag behind a quote or a backtick is one that the text is about, and a
// text that is JSON has none.
func splitThinking(text string) (rest, thinking string) {
	if !slices.ContainsFunc(tagEnds, func(end string) bool { return strings.Contains(text, end) }) {
		return text, ""
	}
	tags := thinkTag.FindAllStringSubmatchIndex(text, -1)
	if tags == nil || strictjson.Check([]byte(strings.TrimSpace(text)), jsonLimits) == nil {
		return text, ""
	}
	var out, thought strings.Builder
	at, inside, found := 0, false, false
	for _, tag := range tags {
		if tag[0] > 0 && strings.IndexByte("`\"'", text[tag[0]-1]) >= 0 {
			continue
		}
		closes := false
		for i := 2; i < len(tag); i += 2 {
			closes = closes || tag[i+1] > tag[i]
		}
		part := text[at:tag[0]]
		switch {
		case closes && inside:
			thought.WriteString(part)
		case closes: // what came before it was thinking too
			thought.WriteString(out.String() + part)
			out.Reset()
		case inside:
			continue
		default:
			out.WriteString(part)
		}
		at, inside, found = tag[1], !closes, true
	}
	if !found {
		return text, ""
	}
	if inside {
		thought.WriteString(text[at:])
	} else {
		out.WriteString(text[at:])
	}
	return strings.TrimSpace(out.String()), strings.TrimSpace(thought.String())
}
