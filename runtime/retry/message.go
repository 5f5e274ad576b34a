package retry

import "strings"

// maxMessage bounds what is read of a message, in bytes: half from its begin,
// half from its end, where the cause of a long log stands.
const maxMessage = 8 << 10

// ClassifyMessage classifies an error by its text alone. An empty text is
// manual_review/empty_error, one that nothing is known of
// manual_review/unclassified.
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
