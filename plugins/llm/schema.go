package llm

import "github.com/sentinel-runtime/sentinel/sdk"

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
