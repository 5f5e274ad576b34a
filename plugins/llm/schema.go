package llm

import (
	"strconv"

	"github.com/sentinel-runtime/sentinel/sdk"
)

// schemaProblems returns the problems of the reply under the step's schema, which
// the host has checked.
func (t *conversation) schemaProblems() []string {
	if !t.r.schema.Exists() {
		return nil
	}
	if len(t.reply.Problems) > 0 {
		return t.reply.Problems
	}
	if !t.reply.JSON.Exists() {
		return []string{"the reply is not JSON"}
	}
	return nil
}

// correction returns the message that asks the model to correct its reply.
func correction(problems []string) string {
	return "Your reply does not fit the required JSON Schema:\n- " + join(problems, "\n- ") +
		"\nReply again with the corrected JSON only."
}

// lengthError is the error of a reply that was cut at its limit of tokens. The model is
// not asked to correct it, because the same limit applies to the correction.
func lengthError(r sdk.Reply) error {
	e := sdk.Fail(sdk.CodeLimit, "llm: the reply was cut at its limit of "+strconv.FormatInt(r.Usage.OutputTokens, 10)+
		" tokens, so it does not match the schema")
	e.Hint = "raise maxTokens of the step, or ask for a shorter reply"
	if r.MaxTokens > 0 {
		e.Hint = "raise the budget of the run, which left no more tokens for the reply"
	}
	return e
}

func schemaError(problems []string) error {
	return sdk.Fail(sdk.CodePlugin, "llm: the reply does not match the schema: "+join(problems, "; "))
}

func join(list []string, separator string) string {
	all := ""
	for i, s := range list {
		if i > 0 {
			all += separator
		}
		all += s
	}
	return all
}
