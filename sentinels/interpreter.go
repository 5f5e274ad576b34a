package sentinels

import (
	"encoding/json"
	"path"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/sentinels/reference"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// An Interpreter is the program that reads the shell lines of a step: one of [Interpreters], or
// a program with its arguments, behind which the line stands. Empty is /bin/sh.
type Interpreter []string

// Interpreters are the names that stand for a program with its arguments. Only those that have
// it get pipefail, so that a line fails with any command of a pipe; not sh, which has it on some
// machines only.
var Interpreters = []string{"sh", "bash", "zsh", "python", "node", "pwsh"}

// Arguments returns the program and the arguments before the line, nil for /bin/sh.
func (i Interpreter) Arguments() []string {
	if len(i) != 1 {
		return i
	}
	switch i[0] {
	case "sh":
		return nil
	case "bash", "zsh":
		return []string{i[0], "-o", "pipefail", "-c"}
	case "python":
		return []string{"python3", "-c"}
	case "node":
		return []string{"node", "-e"}
	case "pwsh":
		return []string{"pwsh", "-NoProfile", "-NonInteractive", "-Command"}
	}
	return i
}

// program returns the name of the program without its folder.
func (i Interpreter) program() string {
	if len(i) == 0 {
		return "sh"
	}
	return strings.TrimSuffix(path.Base(i[0]), ".exe")
}

// IsShell reports whether the program reads the lines as a POSIX shell does, so that references
// in them become environment variables. In the text of others a "$" is their own.
func (i Interpreter) IsShell() bool {
	return slices.Contains([]string{"sh", "bash", "zsh", "dash", "ash", "ksh", "busybox"}, i.program())
}

// InterpreterOf returns the interpreter in a field of a step or a definition. ok is false for
// what is neither a known name nor a list of a program and its arguments without references.
func InterpreterOf(raw json.RawMessage) (i Interpreter, ok bool) {
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return nil, true
	case raw[0] == '"':
		name := reference.Text(raw)
		return Interpreter{name}, slices.Contains(Interpreters, name)
	case raw[0] != '[' || json.Unmarshal(raw, &i) != nil || len(i) == 0 || i[0] == "":
		return nil, false
	}
	return i, !slices.ContainsFunc(i, func(word string) bool { return strings.Contains(word, "$") })
}

// Interpreter returns the interpreter of a step's shell lines: that of its own field with the
// mark, or the one of the definition, if it has a line. field is the name of that field, "" if
// the step has none.
func (s *TypeSpec) Interpreter(step *Step, definition Interpreter) (i Interpreter, field string) {
	hasLine := false
	for _, m := range s.Marks() {
		switch m.Mark {
		case markShell:
			hasLine = len(step.Fields[m.Path]) > 0
		case markInterpreter:
			field = m.Path
		}
	}
	if field == "" || !hasLine {
		return nil, field
	}
	if raw := step.Fields[field]; len(raw) > 0 {
		i, _ = InterpreterOf(raw) // another value is refused with the fields
		return i, field
	}
	return definition, field
}

const wantInterpreter = "sh, bash, zsh, python, node, pwsh, or a list of a program and its arguments"

// interpreterSchema is the schema of the field shell.
func interpreterSchema() any {
	return map[string]any{"anyOf": []any{
		map[string]any{"enum": Interpreters},
		map[string]any{"type": "array", "minItems": 1, "items": map[string]any{"type": "string"}}}}
}

func (d *decoder) shell(n *node, dst *fileDefinition) {
	i, ok := InterpreterOf(n.Canonical())
	if !ok {
		d.add(n, KindValue, `such as "bash", or ["bash", "-eu", "-c"]`, "is not an interpreter: want %s", wantInterpreter)
		return
	}
	dst.Shell = i
}

func encodeShell(src *fileDefinition) json.RawMessage {
	switch {
	case len(src.Shell) == 0:
		return nil
	case len(src.Shell) == 1 && slices.Contains(Interpreters, src.Shell[0]):
		return strictjson.AppendString(nil, src.Shell[0])
	}
	list, _ := json.Marshal([]string(src.Shell)) // texts always encode
	return list
}
