// Package shell is the step type that runs a shell line or a program and fails
// when it does.
package shell

import (
	"strconv"

	"github.com/sentinel-runtime/sentinel/sdk"
)

const fields = `{
  "type": "object",
  "properties": {
    "command": {"type": "string", "minLength": 1, "x-sentinel": "shell", "description": "A shell line. A $reference becomes an environment variable with its text, so data is never read as code; keep it out of single quotes.", "examples": ["npm test"]},
    "argv": {"type": "array", "items": {"type": "string"}, "minItems": 1, "description": "Instead of a line: a program and its arguments, run without a shell."},
    "env": {"type": "object", "additionalProperties": {"type": ["string", "number", "boolean"]}, "description": "Further environment variables."},
    "cwd": {"type": "string", "description": "Folder to run in, inside the workspace. Default: the workspace."},
    "stdin": {"type": "string", "description": "Text for standard input."},
    "allowFailure": {"type": "boolean", "default": false, "description": "An exit code other than 0 is a result with success false instead of an error."}
  },
  "additionalProperties": false
}`

// execute is the command that does the work.
const execute = "code/shell/execute"

// Step describes the type. A step with the field command and no type is one of
// type command, as the specification has it; a shell step is known by argv or by
// its type.
func Step() sdk.Step {
	return sdk.Step{
		Type:     "shell",
		Summary:  "Runs a shell line or a program; an exit code other than 0 is an error.",
		Fields:   fields,
		Infer:    []string{"argv"},
		Aliases:  map[string]string{"cmd": "command", "workingDir": "cwd"},
		Run:      run,
		Validate: check,
	}
}

func check(fields sdk.Value) []sdk.Problem {
	line, argv := fields.Get("command").Given(), fields.Get("argv").Given()
	switch {
	case !line && !argv:
		return []sdk.Problem{{Field: "command", Message: "want command or argv"}}
	case line && argv:
		return []sdk.Problem{{Field: "argv", Message: "want command or argv, not both"}}
	}
	return nil
}

// run passes the line as it got it: the host has put environment variables in
// the place of references and adds those variables to the call itself.
func run(c *sdk.Context) (sdk.Value, error) {
	if err := sdk.BadFields(check(c.Fields())); err != nil {
		return sdk.Value{}, err
	}
	allow, err := c.BoolField("allowFailure", false)
	if err != nil {
		return sdk.Value{}, err
	}
	result, err := c.Command(execute, sdk.Object(
		sdk.F("command", c.Field("command")),
		sdk.F("argv", c.Field("argv")),
		sdk.F("env", c.Field("env")),
		sdk.F("cwd", c.Field("cwd")),
		sdk.F("stdin", c.Field("stdin")),
		sdk.F("wait", sdk.Bool(true)),
	))
	if err != nil || allow || result.Get("success").BoolOr(true) {
		return result, err
	}
	return sdk.Value{}, sdk.Fail(sdk.CodePlugin, "shell "+sdk.Quote(shown(c))+": "+outcome(result))
}

// shown is the line or the program, short enough for a message.
func shown(c *sdk.Context) string {
	line := c.Field("command").StringOr("")
	for i, arg := range c.Field("argv").Items() {
		if i > 0 {
			line += " "
		}
		line += arg.StringOr("")
	}
	const room = 100
	if len(line) > room {
		return sdk.Cut(line, room) + "..."
	}
	return line
}

// outcome says how it ended, with the last lines of what it wrote: standard
// error if there is any, because that is where programs say why.
func outcome(result sdk.Value) string {
	text := "exit code " + strconv.FormatInt(result.Get("exitCode").IntOr(-1), 10)
	written := result.Get("stderr").StringOr("")
	if blank(written) {
		written = result.Get("stdout").StringOr("")
	}
	if tail := lastLines(written); tail != "" {
		text += ": " + tail
	}
	return text
}

func blank(s string) bool {
	for i := range len(s) {
		if s[i] > ' ' {
			return false
		}
	}
	return true
}

// lastLines returns the last five lines, at most 500 bytes, without trailing
// space.
func lastLines(s string) string {
	for len(s) > 0 && s[len(s)-1] <= ' ' {
		s = s[:len(s)-1]
	}
	start, lines := len(s), 0
	for start > 0 && len(s)-start < 500 {
		if s[start-1] == '\n' {
			if lines++; lines == 5 {
				break
			}
		}
		start--
	}
	for start < len(s) && s[start]&0xC0 == 0x80 { // not inside a character
		start++
	}
	return s[start:]
}
