// Package shell implements the step type that executes a shell command line or a
// program, and fails if its exit code is not 0.
package shell

import (
	"strconv"

	"github.com/sentinel-runtime/sentinel/sdk"
)

const fields = `{
  "type": "object",
  "properties": {
    "command": {"type": "string", "minLength": 1, "x-sentinel": "shell", "description": "A shell command line. A $reference becomes an environment variable with its value, so data is never executed as code. Do not put it in single quotes.", "examples": ["npm test"]},
    "shell": {"type": ["string", "array"], "items": {"type": "string"}, "minItems": 1, "x-sentinel": "interpreter", "description": "What reads the line: sh (the default), bash or zsh, which fail with any command of a pipe, python, node, pwsh, or a program with its arguments. Only shells get $references.", "examples": ["bash"]},
    "argv": {"type": "array", "items": {"type": "string"}, "minItems": 1, "description": "Instead of a command line: a program and its arguments, executed without a shell."},
    "env": {"type": "object", "additionalProperties": {"anyOf": [{"type": ["string", "number", "boolean"]},
      {"type": "object", "properties": {"secret": {"type": "string"}}, "required": ["secret"], "additionalProperties": false}]},
      "description": "Additional environment variables. {\"secret\": NAME} is the value of a secret."},
    "cwd": {"type": "string", "description": "Working folder, inside the workspace. Default: the workspace."},
    "stdin": {"type": "string", "description": "Text for standard input."},
    "background": {"type": "boolean", "default": false, "description": "Go on while it runs. It ends with the loop step around it, else with the run, or by code/shell/kill with its executionId."},
    "ready": {"type": "object", "description": "With background: the one probe for which the step waits. It fails if the program ends before.", "properties": {
      "http": {"type": "string", "minLength": 1, "description": "URL on this machine: ready at a status of 200 to 399.", "examples": ["http://localhost:3000/health"]},
      "tcp": {"type": ["string", "integer"], "description": "Port of this machine that takes connections.", "examples": [5432]},
      "match": {"type": "string", "minLength": 1, "description": "Regular expression (RE2) for a line of output.", "examples": ["listening on"]},
      "timeoutMs": {"type": "integer", "minimum": 1, "maximum": 1000000000000, "default": 60000}},
      "additionalProperties": false},
    "allowFailure": {"type": "boolean", "default": false, "description": "Return an exit code other than 0 as a result with success false, instead of an error."}
  },
  "additionalProperties": false
}`

// execute is the host command that executes programs.
const execute = "code/shell/execute"

// codeExit is the code of the error of a program that has ended with an exit code other than 0.
const codeExit = sdk.Code("exit")

// Step returns the step type. A step without a type is of this type if it has argv or
// the alias cmd; with command it is of type command.
func Step() sdk.Step {
	return sdk.Step{
		Type:     "shell",
		Summary:  "Executes a shell line or a program; an exit code other than 0 is an error.",
		Fields:   fields,
		Infer:    []string{"argv", "cmd"},
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
	case argv && fields.Get("shell").Given():
		return []sdk.Problem{{Field: "shell", Message: "argv is executed without a shell"}}
	}
	background, ready := fields.Get("background"), fields.Get("ready")
	switch {
	case !ready.Given():
		return nil
	case background.Kind() != sdk.KindString && !background.BoolOr(false): // a string is a reference
		return []sdk.Problem{{Field: "ready", Message: "ready needs \"background\": true"}}
	}
	if ready.Kind() != sdk.KindObject {
		return nil
	}
	probes := 0
	for _, name := range [...]string{"http", "tcp", "match"} {
		if ready.Get(name).Given() {
			probes++
		}
	}
	if probes != 1 {
		return []sdk.Problem{{Field: "ready", Message: "want exactly one of http, tcp and match"}}
	}
	return nil
}

// run passes the command line unchanged: the host has replaced $references by
// environment variables, and adds their values to the call.
func run(c *sdk.Context) (sdk.Value, error) {
	if err := sdk.BadFields(check(c.Fields())); err != nil {
		return sdk.Value{}, err
	}
	allow, err := c.BoolField("allowFailure", false)
	if err != nil {
		return sdk.Value{}, err
	}
	background, err := c.BoolField("background", false)
	if err != nil {
		return sdk.Value{}, err
	}
	line, argv := c.Field("command"), c.Field("argv")
	if program := c.Field("shell"); program.Given() {
		var words []sdk.Value
		for _, word := range program.Items() {
			words = append(words, word)
		}
		line, argv = sdk.Value{}, sdk.List(append(words, line)...)
	}
	params := sdk.Object(
		sdk.F("command", line),
		sdk.F("argv", argv),
		sdk.F("env", environment(c.Field("env"))),
		sdk.F("cwd", c.Field("cwd")),
		sdk.F("stdin", c.Field("stdin")),
		sdk.F("wait", sdk.Bool(!background)),
	)
	if background {
		params = params.With("ready", probe(c.Field("ready"))).With("endsWith", sdk.String("loop"))
	}
	result, err := c.Command(execute, params)
	if err != nil || allow || result.Get("success").BoolOr(true) {
		return result, err
	}
	e := sdk.Fail(codeExit, "shell "+quote(commandLine(c))+": "+exitText(result))
	e.Hint = result.Get("hint").StringOr("")
	return sdk.Value{}, e
}

// probe returns ready with a port as a text.
func probe(ready sdk.Value) sdk.Value {
	if port := ready.Get("tcp"); port.Given() {
		return ready.With("tcp", sdk.String(port.StringOr(port.String())))
	}
	return ready
}

// environment returns env with the texts of its numbers and booleans, and the names of secrets as they are.
func environment(env sdk.Value) sdk.Value {
	if !env.Given() {
		return env
	}
	var fields []sdk.Field
	for name, v := range env.Fields() {
		if !v.Get("secret").Given() {
			v = sdk.String(v.StringOr(v.String()))
		}
		fields = append(fields, sdk.F(name, v))
	}
	return sdk.Object(fields...)
}

// quote returns a line between quotes that it does not contain, so that it reads as it
// was written; if it has both, or several lines, as a Go string.
func quote(line string) string {
	double, other := false, false
	for _, b := range []byte(line) {
		double = double || b == '"' || b == '\\'
		other = other || b == '`' || b < ' '
	}
	if double && !other {
		return "`" + line + "`"
	}
	return sdk.Quote(line)
}

// commandLine returns the command line, or the program with its arguments as a shell would
// need them, cut for an error message.
func commandLine(c *sdk.Context) string {
	line := c.Field("command").StringOr("")
	for i, arg := range c.Field("argv").Items() {
		if i > 0 {
			line += " "
		}
		line += word(arg.StringOr(""))
	}
	const limit = 100
	if len(line) > limit {
		return sdk.Cut(line, limit) + "..."
	}
	return line
}

// word returns an argument as a word of a shell line: in single quotes if it has characters
// that a shell would read.
func word(arg string) string {
	plain, quoted := arg != "", "'"
	for i, b := range []byte(arg) {
		letter := b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || b >= 0x80
		if !letter && b != '-' && b != '_' && b != '.' && b != '/' && b != '=' && b != ':' && b != ',' && b != '@' && b != '%' && b != '+' {
			plain = false
		}
		if b == '\'' {
			quoted += `'\'`
		}
		quoted += arg[i : i+1]
	}
	if plain {
		return arg
	}
	return quoted + "'"
}

// exitText returns the exit code and the last lines of the output, as a terminal shows
// them: standard error, or the whole output if that is blank.
func exitText(result sdk.Value) string {
	text := "exit code " + strconv.FormatInt(result.Get("exitCode").IntOr(-1), 10)
	written := result.Get("stderr").StringOr("")
	if blank(written) {
		written = result.Get("output").StringOr("")
	}
	if tail := lastLines(overwritten(written)); tail != "" {
		text += ": " + tail
	}
	return text
}

// overwritten returns of each line the part behind the last carriage return that has text
// behind it.
func overwritten(s string) string {
	out := make([]byte, 0, len(s))
	line := 0 // where the present line begins in out
	for i := range len(s) {
		if s[i] == '\r' && i+1 < len(s) && s[i+1] != '\n' && s[i+1] != '\r' {
			out = out[:line]
			continue
		}
		if out = append(out, s[i]); s[i] == '\n' {
			line = len(out)
		}
	}
	return string(out)
}

func blank(s string) bool {
	for i := range len(s) {
		if s[i] > ' ' {
			return false
		}
	}
	return true
}

// lastLines returns the last five lines, at most 500 bytes, without trailing white
// space.
func lastLines(s string) string {
	for len(s) > 0 && s[len(s)-1] <= ' ' {
		s = s[:len(s)-1]
	}
	s = sdk.CutStart(s, 500)
	for i, lines := len(s)-1, 0; i >= 0; i-- {
		if s[i] == '\n' {
			if lines++; lines == 5 {
				return s[i+1:]
			}
		}
	}
	return s
}
