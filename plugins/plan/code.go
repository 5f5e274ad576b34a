package plan

import "github.com/sentinel-runtime/sentinel/sdk"

// advice is what the codes of errors suggest.
var advice = [...]struct{ code, text string }{
	{"FILE_NOT_FOUND", "Use fs_list with a broader search pattern."},
	{"PATH_RESTRICTED", "The path validation failed. Try using fs_list to search for the file."},
	{"PERMISSION_DENIED", "Check if the path is accessible or try a different location."},
}

// errorOf returns the error of a step: its code, its message, whether the same action may
// be repeated, and what to do instead.
func errorOf(command string, outcome sdk.Value) sdk.Value {
	e := outcome.Get("error")
	message := e.Get("message").StringOr("")
	if message == "" {
		message = outcome.Get("text").StringOr(outcome.Get("output").StringOr("the command reports success false"))
	}
	code := codeOf(command, e, message)
	out := sdk.Object(
		sdk.F("code", sdk.String(code)), sdk.F("message", sdk.String(sdk.Cut(message, maxError))), sdk.F("hint", e.Get("hint")),
		sdk.F("retryable", sdk.Bool(code == "TIMEOUT" || code == "NETWORK_ERROR")),
	)
	for _, a := range advice {
		if a.code == code {
			out = out.With("suggestion", sdk.String(a.text))
		}
	}
	return out
}

// codeOf maps the code of an error to that of operators. The code of the host decides
// about retries; this one is for planners.
func codeOf(command string, e sdk.Value, message string) string {
	field := e.Get("field").StringOr("")
	path := field == "path" || field == "cwd" || field == "pattern"
	switch sdk.Code(e.Get("code").StringOr("")) {
	case sdk.CodeNotFound:
		switch {
		case field == "command":
			return "SKILL_NOT_FOUND"
		case len(command) > 7 && command[:7] == "ticket/":
			return "TASK_NOT_FOUND"
		case path:
			return "FILE_NOT_FOUND"
		}
	case sdk.CodeDenied:
		switch {
		case index(message, "not among the tools") >= 0:
			return "SKILL_NOT_FOUND"
		case index(message, "outside the workspace") >= 0:
			return "PATH_RESTRICTED"
		}
		return "PERMISSION_DENIED"
	case sdk.CodeBadFields:
		if path {
			return "VALIDATION_FAILED"
		}
		return "INVALID_ARGS"
	case sdk.CodeTimeout:
		return "TIMEOUT"
	case sdk.CodeUnavailable:
		return "NETWORK_ERROR"
	}
	return "UNKNOWN"
}
