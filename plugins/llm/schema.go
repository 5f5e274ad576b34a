package llm

import "github.com/sentinel-runtime/sentinel/sdk"

// misfits says what is wrong with the reply under the step's schema; the host
// has compared them.
func (t *talk) misfits() []string {
	if !t.r.schema.Exists() {
		return nil
	}
	if len(t.reply.Problems) > 0 {
		return t.reply.Problems
	}
	if !t.reply.JSON.Exists() {
		return []string{"the reply is no JSON"}
	}
	return nil
}

// again asks for the reply once more.
func again(problems []string) string {
	return "Your reply does not fit the required JSON Schema:\n- " + join(problems, "\n- ") +
		"\nReply again with the corrected JSON only."
}

func misfit(problems []string) error {
	return sdk.Fail(sdk.CodePlugin, "llm: the reply does not fit the schema: "+join(problems, "; "))
}

func join(list []string, between string) string {
	all := ""
	for i, s := range list {
		if i > 0 {
			all += between
		}
		all += s
	}
	return all
}
