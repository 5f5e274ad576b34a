package retry

import "strings"

// maxMessage limits how much of a message is read, in bytes: half from its start,
// and half from its end, where long logs have the cause.
const maxMessage = 8 << 10

// ClassifyMessage classifies an error by its text only. An empty text is
// manual_review/empty_error, a text without a match manual_review/unclassified.
func ClassifyMessage(msg string) Classification {
	if strings.TrimSpace(msg) == "" {
		return Classification{Category: ManualReview, Subcategory: "empty_error"}
	}
	if len(msg) > maxMessage {
		msg = msg[:maxMessage/2] + "\n" + msg[len(msg)-maxMessage/2:]
	}
	text := strings.ToLower(msg)
	for _, r := range specificRules {
		if r.pattern.MatchString(text) {
			return r.classification()
		}
	}
	if c, ok := classifyStatus(text); ok {
		return c
	}
	for _, r := range generalRules {
		if r.pattern.MatchString(text) {
			return r.classification()
		}
	}
	return unclassified()
}

func (r rule) classification() Classification {
	return Classification{Category: r.category, Subcategory: r.sub, Confidence: confidencePattern}
}
