package llm

import (
	"math"
	"unicode/utf8"

	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Tokens a request has beside its text, by experience with both protocols.
const (
	perMessage = 6
	perTool    = 16
)

// estimateTurn guesses a turn's input tokens.
func estimateTurn(turn sentinels.Turn, perToken float64) int64 {
	tokens := textTokens(turn.System, perToken) + textTokens(string(turn.Schema), perToken)
	for _, m := range turn.Messages {
		own := perMessage + textTokens(m.Content, perToken)
		for _, call := range m.ToolCalls {
			own += perMessage + textTokens(call.Name, perToken) + textTokens(string(call.Arguments), perToken)
		}
		if m.Said != nil { // has the thinking, and goes to its provider in place of the rest
			own = max(own, perMessage+textTokens(m.Said.Message, perToken))
		}
		tokens += own
	}
	for _, tool := range turn.Tools {
		tokens += perTool + textTokens(tool.Name, perToken) + textTokens(tool.Description, perToken) + textTokens(string(tool.Schema), perToken)
	}
	return int64(math.Ceil(tokens))
}

// textTokens guesses the tokens of a text: four ASCII characters to a token
// unless the model's row says otherwise, and one for every other rune, since
// few scripts are packed as densely as English.
func textTokens(text string, perToken float64) float64 {
	if perToken <= 0 {
		perToken = 4
	}
	ascii, other := 0, 0
	for _, r := range text {
		if r < utf8.RuneSelf {
			ascii++
		} else {
			other++
		}
	}
	return float64(ascii)/perToken + float64(other)
}
