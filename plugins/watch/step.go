// Package watch implements the step type that waits for the classified output of a
// shell execution or the lines of a file, for the end of a run, or for an event.
package watch

import (
	"github.com/sentinel-runtime/sentinel/plugins/sentinel"
	"github.com/sentinel-runtime/sentinel/sdk"
)

const fields = `{
  "type": "object",
  "properties": {
    "executionId": {"type": "string", "description": "What to watch: the id of a shell execution, as returned by code/shell/execute with wait:false. The id of a run works as in run.", "examples": ["$build.executionId"]},
    "rules": {
      "type": "array",
      "description": "The first rule that matches a line classifies it; else it is verbose. classifier, in place of the other fields, is an output classifier of a plugin. Default: the rules of the execution.",
      "items": {
        "type": "object",
        "properties": {
          "pattern": {"type": "string", "description": "Regular expression (RE2). Required without classifier."},
          "classification": {"type": "string", "enum": ["error", "warning", "info", "success", "verbose"], "default": "info"},
          "action": {"type": "string", "enum": ["Emit", "Suppress"], "default": "Emit", "description": "Suppress leaves the line out."},
          "classifier": {"type": "string"}
        },
        "anyOf": [{"required": ["pattern"]}, {"required": ["classifier"]}],
        "additionalProperties": false
      },
      "x-sentinel": "raw"
    },
    "until": {"type": "string", "enum": ["finished", "error", "match"], "default": "finished", "description": "When to stop: at the end, at the first line classified as error, or at the first line that a rule matches. The end always stops, and is an error before a match; a file has none."},
    "run": {"type": "string", "description": "Instead of an execution: the run to watch until it ends, such as that of a sentinel step with await false. A run that failed is a result too.", "examples": ["$child.run"]},
    "event": {"type": "string", "minLength": 1, "description": "Instead of an execution: pattern of the event to wait for. * matches one segment, a final ** the rest."},
    "source": {"type": "string", "enum": ["engine", "user"], "description": "Whose event sentinel:ID:WORD. Default: the engine's where ID is a stored sentinel."},
    "file": {"type": "string", "minLength": 1, "description": "Instead of an execution: a file of the workspace whose new lines to watch, with until error or match, or with timeoutMs. It may not exist yet, be replaced or become shorter.", "examples": ["logs/server.log"]},
    "from": {"type": "string", "default": "end", "description": "Where a watch of a file begins: end, start, or the position of an earlier watch.", "examples": ["$log?.position"]},
    "timeoutMs": {"type": "integer", "minimum": 1, "maximum": 1000000000000, "description": "Time limit in calendar time. Of a file it ends the watch with what was read; otherwise it is the error timeout."}
  },
  "additionalProperties": false
}`

// Step returns the step type.
func Step() sdk.Step {
	return sdk.Step{
		Type:     "watch",
		Summary:  "Waits for the output of a running process, new lines of a file, the end of a child run, or an event.",
		Fields:   fields,
		Output:   output,
		Infer:    []string{"executionId"},
		ReadOnly: true,
		Run:      run,
		Validate: check,
	}
}

// targets are the fields that name what is watched.
var targets = [...]string{"executionId", "run", "event", "file"}

func check(fields sdk.Value) []sdk.Problem {
	given := func(name string) bool { return fields.Get(name).Given() }
	target := ""
	for _, name := range targets {
		switch {
		case !given(name):
		case target == "":
			target = name
		default:
			return problem(name, "want "+target+" or "+name+", not both")
		}
	}
	until := fields.Get("until").StringOr("")
	message, field := "", "until"
	switch target {
	case "":
		return []sdk.Problem{{Field: "executionId", Message: "want executionId, run, event or file", Hint: `start a process with code/shell/execute and "wait": false, and watch "$name.executionId"`}}
	case "file":
		switch {
		case until == "finished":
			message = "a file has no end: want error or match"
		case !given("until") && !given("timeoutMs"):
			message = "a file has no end: want until (error or match) or timeoutMs"
		case until == "error" && !given("rules"):
			message = "error requires rules: without rules no line is an error"
		}
	case "event", "run":
		if given("rules") || given("until") && (target == "event" || until != "finished") {
			field, message = target, "rules and until require executionId or file"
		}
	}
	if target != "file" && given("from") {
		field, message = "from", "from requires file"
	}
	if target != "event" && given("source") {
		field, message = "source", "source requires event"
	}
	if message == "" {
		return nil
	}
	return problem(field, message)
}

//go:noinline
func problem(field, message string) []sdk.Problem {
	return []sdk.Problem{{Field: field, Message: message}}
}

// run returns the answer of the host for an execution, with success, and for a file;
// {event} for an event; and the result of a run with finished and text.
func run(c *sdk.Context) (sdk.Value, error) {
	if err := sdk.BadFields(check(c.Fields())); err != nil {
		return sdk.Value{}, err
	}
	limit, err := c.IntField("timeoutMs", 1, 0)
	if err != nil {
		return sdk.Value{}, err
	}
	var target, name string
	for _, field := range targets {
		if c.Field(field).Given() {
			target = field
		}
	}
	if name, err = c.StringField(target); err != nil {
		return sdk.Value{}, err
	}
	if name == "" {
		return sdk.Value{}, sdk.BadField(target, "empty: what it names did not start, or its variable is not set")
	}
	if target == "executionId" && isRun(name) {
		if c.Field("rules").Given() {
			return sdk.Value{}, sdk.BadField("rules", "a run has no lines")
		}
		target = "run"
	}
	switch target {
	case "event":
		event, err := c.WaitEventOf(name, c.Field("source").StringOr(""), limit)
		if err != nil {
			return sdk.Value{}, sdk.Wrap("event "+sdk.Quote(name), err)
		}
		return sdk.Object(sdk.F("event", event)), nil
	case "run":
		return watchRun(c, name, limit)
	}
	until, err := c.StringField("until")
	if err != nil {
		return sdk.Value{}, err
	}
	if target == "file" {
		from, err := c.StringField("from")
		if err != nil {
			return sdk.Value{}, err
		}
		return c.WatchFile(name, c.Field("rules"), until, from, limit)
	}
	if until == "" {
		until = "finished"
	}
	answer, err := c.WatchFor(name, c.Field("rules"), until, limit)
	if err != nil {
		return sdk.Value{}, err
	}
	if exit, ok := answer.Get("exitCode").AsInt(); ok && !answer.Get("success").Exists() {
		answer = answer.With("success", sdk.Bool(exit == 0))
	}
	if until == "match" && answer.Get("finished").BoolOr(false) {
		return sdk.Value{}, sdk.WithData(noMatch(name, answer), answer.With("lines", sdk.Value{}).With("text", sdk.Value{}))
	}
	return answer, nil
}

// noMatch returns the error of a watch until a match whose process has ended without one, with its last lines.
func noMatch(id string, answer sdk.Value) error {
	text := sdk.CutStart(answer.Get("text").StringOr(""), 500)
	message := "watch: execution " + id + " ended"
	if code := answer.Get("exitCode"); code.Given() {
		message += " with exit code " + code.String()
	}
	message += " before a line that a rule matches"
	if text != "" {
		message += ": " + text
	}
	return sdk.Fail(sdk.CodePlugin, message)
}

// isRun reports whether an id is that of a run, a UUID, rather than of an execution.
func isRun(id string) bool { return len(id) == 36 && id[8] == '-' }

// watchRun waits for the end of a run. A run has no lines; its text says how it ended.
func watchRun(c *sdk.Context, id string, limit int64) (sdk.Value, error) {
	result, err := c.WaitRunFor(id, limit)
	if err != nil {
		return sdk.Value{}, sdk.Wrap("run "+id, err)
	}
	text := result.Get("status").StringOr("")
	if problem := result.Get("error").Get("message").StringOr(""); problem != "" {
		text += ": " + problem
	}
	return sentinel.Output(id, result).With("finished", sdk.Bool(true)).With("text", sdk.String(text)), nil
}
