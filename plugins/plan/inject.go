package plan

import (
	"strconv"

	"github.com/sentinel-runtime/sentinel/sdk"
)

// shell is the command that executes programs. What a file or a program has in it is data,
// so no output of a step becomes a part of a shell line, of a program that is an argument, or
// an option.
const shell = "code/shell/execute"

// The problems of references, and how a plan passes an output to a program instead.
const (
	becomesCode = ": a reference is not replaced here, because the output would be executed as code" + advised
	becomesFlag = ": the output begins with a dash, and would be an option" + advised
	advised     = `; put it in "env", as {"VALUE": "{{steps.ID.outputs.FIELD}}"}, and write "$VALUE" in the shell line, or pass it in "stdin", and to a definition in "inputs"`
)

// codeProblem returns where an input of a command has a reference that must not be replaced
// and why, "" for nowhere. The inputs of sentinel/* with parts of definitions are code, too.
//
//go:noinline
func codeProblem(command, name string, v sdk.Value) string {
	before := ""
	switch {
	case command == shell && name == "argv":
		before = "-c" // the plan chooses the program
	case command == shell && name == "args" && v.Kind() == sdk.KindList:
	case command == shell && name == "command",
		len(command) > 9 && command[:9] == "sentinel/" && (name == "definition" || name == "definitions" || name == "step" || name == "params"):
		before, v = "-c", sdk.List(v)
	default:
		return ""
	}
	if v.Kind() != sdk.KindList {
		v = sdk.List(v)
	}
	for _, item := range items(v) {
		if takesCode(before) && refers(item) {
			return name + becomesCode
		}
		before = item.StringOr("")
	}
	return ""
}

// takesCode reports whether programs execute the argument behind an option: sh -c, bash -lc,
// node -e, python3 -c, git -c.
//
//go:noinline
func takesCode(option string) bool {
	n := len(option)
	return option == "--eval" || option == "--exec" || option == "--command" ||
		n > 1 && option[0] == '-' && option[1] != '-' && (option[n-1] == 'c' || option[n-1] == 'e')
}

// optionProblem returns which argument of a program begins with a reference and would be an
// option, such as --upload-pack=PROGRAM of git, "" for none. The plan may write an option
// itself; of a list that is an output as a whole it has written nothing.
//
//go:noinline
func optionProblem(command, name string, written, resolved sdk.Value) string {
	if command != shell || name != "argv" && name != "args" {
		return ""
	}
	for i, item := range items(resolved) {
		if dashed(item) && !dashed(written.At(i)) {
			return name + "[" + strconv.Itoa(i) + "]" + becomesFlag
		}
	}
	return ""
}

//go:noinline
func dashed(v sdk.Value) bool {
	text := v.StringOr("")
	return text != "" && text[0] == '-'
}

// refers reports whether a value has a reference in it.
//
//go:noinline
func refers(v sdk.Value) (found bool) {
	each(v, func(text string) { found = found || len(references(text)) > 0 })
	return found
}
