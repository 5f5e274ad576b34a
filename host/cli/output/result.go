package output

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/internal/termtext"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A StepResult is what the line of a step shows of its output.
type StepResult struct {
	Text     string
	Output   json.RawMessage // what a command printed, or of a condition any value
	Success  *bool
	ExitCode *int
	Branch   string
	Value    *bool // of a condition

	// Of the answer to a request.
	Status, Method, URL json.RawMessage
}

// ReadStepResult returns the result in the output of a step. Output of another form has none.
func ReadStepResult(output json.RawMessage) (r StepResult) {
	if json.Unmarshal(output, &r) != nil {
		return StepResult{}
	}
	return r
}

// Failed reports whether a command failed, in a step that allows it.
func (r *StepResult) Failed() bool { return r.Success != nil && !*r.Success }

// Mark is the end of a step without an error in a word: a condition was true or not, and a command
// may have failed all the same.
func (r *StepResult) Mark(p Palette, of sentinels.StepType) termtext.Text {
	switch {
	case of == "condition" && r.Value != nil && *r.Value:
		return p.Good("yes")
	case of == "condition" && r.Value != nil && r.Branch == "else":
		return p.Dim("no, else")
	case of == "condition" && r.Value != nil:
		return p.Dim("no")
	case r.Failed() && r.ExitCode != nil:
		return p.Warn(termtext.Sprintf("exit code %d (allowed)", *r.ExitCode))
	case r.Failed() && r.httpStatus() > 0:
		return p.Warn(termtext.Sprintf("status %d (allowed)", r.httpStatus()))
	case r.Failed():
		return p.Warn("no success (allowed)")
	}
	return p.Good("ok")
}

// Line is the line of the output that says most: of a command that failed the first one that names
// an error, else the last one that it printed; of a model's reply the first one.
func (r *StepResult) Line() string {
	if status := r.httpStatus(); status > 0 {
		return fmt.Sprintf("%s: %d", RequestLine(r.Method, r.URL), status)
	}
	var printed string
	if json.Unmarshal(r.Output, &printed) != nil {
		printed = r.Text
	}
	lines := strings.Split(strings.TrimSpace(printed), "\n")
	line := lines[0]
	if r.ExitCode != nil {
		line = TellingLine(lines, r.Failed())
	}
	return termtext.Overwrite(line)
}

// Gist returns what a person wants to know of a value, and the field that has it, as a
// definition would write it: of a program's output the JSON or the text, of a model's
// reply the text, else the value itself. -o json has all of it.
func Gist(value json.RawMessage) (field string, shown termtext.Text) {
	var text string
	var fields struct {
		Text, Output, ExecutionID string
		Running                   bool
		JSON                      json.RawMessage
	}
	isText := json.Unmarshal(value, &text) == nil
	switch {
	case isText:
	case json.Unmarshal(value, &fields) != nil:
		return "", JSONText(value)
	case fields.Running && fields.ExecutionID != "":
		return "", termtext.Sprintf("a command that continued in the background, execution %s", fields.ExecutionID)
	case len(fields.JSON) > 0 && fields.Text != "":
		return ".json", JSONText(fields.JSON)
	case fields.Text != "":
		field, text = ".text", fields.Text
	case fields.Output != "":
		field, text = ".output", fields.Output
	default:
		return "", JSONText(value)
	}
	first, rest, more := strings.Cut(strings.TrimSpace(termtext.Overwrite(text)), "\n")
	if result := ReadStepResult(value); !isText && result.ExitCode != nil {
		first = result.Line() // of what a command printed
	}
	first = strings.Join(strings.Fields(first), " ")
	if more {
		first += fmt.Sprintf("  (and %s)", Plural(strings.Count(rest, "\n")+1, "more line", "more lines"))
	}
	return field, Escape(first)
}

// httpStatus returns the status of the answer to a request, 0 for another result.
func (r *StepResult) httpStatus() (status int) {
	if len(r.Method) == 0 || len(r.URL) == 0 || json.Unmarshal(r.Status, &status) != nil {
		return 0
	}
	return status
}

// RequestLine returns the line of a request: its method, GET if there is none, and its URL.
func RequestLine(method, url json.RawMessage) string {
	name, address := "GET", ""
	_ = json.Unmarshal(method, &name) // another value than a text leaves the default
	_ = json.Unmarshal(url, &address)
	return name + " " + address
}

// TellingLine returns the first of the lines that names an error if the command failed, else the
// last one. There is at least one line.
func TellingLine(lines []string, failed bool) string {
	if at := slices.IndexFunc(lines, namesError); failed && at >= 0 {
		return lines[at]
	}
	return lines[len(lines)-1]
}

// namesError reports whether a line of a program looks like the cause of its failure.
func namesError(line string) bool {
	line = strings.ToLower(line)
	return slices.ContainsFunc([]string{"error", "fail", "panic", "fatal", "undefined"}, func(word string) bool { return strings.Contains(line, word) })
}

// OneLine shortens a message of several lines to one. Of what a program printed, behind its exit
// code, it keeps the line that says most, else the first line.
func OneLine(message string) string {
	lines := strings.Split(strings.TrimSpace(termtext.Overwrite(message)), "\n")
	if len(lines) == 1 {
		return lines[0]
	}
	head, first, ok := cutExit(lines[0])
	if !ok {
		return lines[0] + " (and " + Plural(len(lines)-1, "more line", "more lines") + ")"
	}
	lines[0] = first
	return head + TellingLine(lines, true)
}

// cutExit cuts the first line of the error of a command behind its exit code.
func cutExit(line string) (head, printed string, ok bool) {
	at := strings.LastIndex(line, "exit code ")
	if at < 0 {
		return "", "", false
	}
	code, printed, ok := strings.Cut(line[at:], ": ")
	return line[:at] + code + ": ", printed, ok
}
