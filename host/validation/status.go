package validation

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sentinel-runtime/sentinel/internal/lazyregexp"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/sentinels/reference"
)

// The step types whose output has a status only where it is that of a success: any other one is an
// error of the step, which has no output.
const (
	httpStep     = "http"
	sentinelStep = "sentinel"
	// A step of this type has an exit code, 0 behind a success.
	shellStep = "shell"
)

// conditionStep is the step type whose else is executed if its check is false.
const conditionStep = "condition"

// A successStep is a step of such a type that has no field which allows for other statuses.
type successStep struct {
	*sentinels.Step
	path string
}

// successSteps returns those steps by the variable that has the output of one and nothing else,
// and by id.
func (v *check) successSteps() map[string]successStep {
	found, times := map[string]successStep{}, map[string]int{}
	for name := range v.definition.Variables {
		times[name]++
	}
	for name := range v.definition.Inputs {
		times[name]++
	}
	v.definition.EachStep(func(path string, s *sentinels.Step) {
		for _, name := range append(v.otherNames(s), s.OutputTo) {
			times[name]++
		}
		other := s.Type == httpStep && (given(s, "allowFailure") || given(s, "expect") || given(s, "redirects")) || s.Type == sentinelStep && given(s, "await")
		index, rest := topLevel(path)
		shell := s.Type == shellStep && index >= 0 && rest == "" && s.Condition == "" && !given(s, "allowFailure") && !given(s, "background") &&
			s.OnError.Action != sentinels.ActionSkip && v.definition.OnError.Action != sentinels.ActionSkip
		if s.Type != httpStep && s.Type != sentinelStep && !shell || other {
			return
		}
		if s.OutputTo != "" && !parses(s) {
			found[s.OutputTo] = successStep{s, path}
		}
		if s.ID != "" && times[s.ID] == 0 {
			found[s.ID] = successStep{s, path}
		}
	})
	for name, n := range times {
		if s, ok := found[name]; ok && (n > 1 || s.OutputTo != name) {
			delete(found, name)
		}
	}
	return found
}

// given reports whether a step has a field with another value than false.
func given(s *sentinels.Step, field string) bool {
	raw, ok := s.Fields[field]
	return ok && string(raw) != "false"
}

// status warns of comparisons in an expression that are meant for the status of a failure: the
// step then fails and has no status.
func (v *check) status(path, source string, steps map[string]successStep) {
	if len(steps) == 0 || source == "" {
		return
	}
	for _, c := range slices.Concat(reference.ComparedIn(source), reference.OrderedIn(source)) {
		left, right := c.Left, c.Right
		m := statusPattern.FindStringSubmatch(left)
		if m == nil && strings.Contains(c.Operator, "=") && !strings.ContainsAny(c.Operator, "<>") {
			left, right = right, left
			m = statusPattern.FindStringSubmatch(left)
		}
		if m == nil {
			continue
		}
		s, ok := steps[cmp.Or(m[1], m[2], m[3])]
		if !ok {
			continue
		}
		never := "is never true"
		if c.Operator[0] == '!' {
			never = "is always true"
		}
		written := fmt.Sprintf("%s %s %s", c.Left, c.Operator, c.Right)
		if s.Type == shellStep || m[4] != "status" {
			if s.Type == shellStep && behind(path, s.path) && !ofExit(m[4], c.Operator, right) {
				v.add(path, sentinels.KindWarning, `give `+s.path+` "allowFailure": true`, "%s: a failure of %s ends the run, so this is never true", written, s.path)
			}
			continue
		}
		whole, skips := strings.TrimSuffix(strings.TrimSuffix(left, ".status"), "?"), s.OnError.Action == sentinels.ActionSkip
		switch n, err := strconv.Atoi(right); {
		case s.Type == httpStep && err == nil && !ofSuccess(c.Operator, n):
			hint := `give ` + s.path + ` "allowFailure": true`
			if skips {
				hint += ` in place of "onError": "skip"`
				if !strings.ContainsAny(c.Operator, "<>") {
					hint = fmt.Sprintf("write %s.error?.code %s 'http_%d', or %s", whole, c.Operator, n, hint)
				}
			}
			v.add(path, sentinels.KindWarning, hint, "%s: a status other than 2xx is an error of %s, and %s then has no status, so this %s", written, s.path, whole, never)
		case s.Type == sentinelStep && slices.Contains(endsOfFailure, strings.Trim(right, `'"`)):
			hint := `give ` + s.path + ` "onError": "skip", and write ` + whole + ".skipped"
			if skips {
				hint = "write " + whole + ".skipped; " + whole + ".error?.code has the cause"
			}
			v.add(path, sentinels.KindWarning, hint, "%s: a run that is not completed is an error of %s, and %s then has no status, so this %s", written, s.path, whole, never)
		}
	}
}

// elseOfSuccess warns of an else that is meant for the failure of a step of type shell, which ends the run.
func (v *check) elseOfSuccess(path string, s *sentinels.Step, steps map[string]successStep) {
	if s.Type != conditionStep || len(s.Blocks["else"]) == 0 {
		return
	}
	m := exitPattern.FindStringSubmatch(reference.Text(s.Fields["check"]))
	if m == nil {
		return
	}
	if of, ok := steps[cmp.Or(m[1], m[2], m[3])]; ok && of.Type == shellStep && behind(path, of.path) {
		v.add(path+".else", sentinels.KindWarning, `give `+of.path+` "allowFailure": true`, "a failure of %s ends the run, so else is never executed", of.path)
	}
}

// topLevel returns the index of the step of the definition that a path is in, and the rest of the path; -1 for a path
// elsewhere, such as in finally.
func topLevel(path string) (index int, rest string) {
	m := topPattern.FindStringSubmatch(path)
	if m == nil {
		return -1, path
	}
	n, err := strconv.Atoi(m[1])
	if err != nil {
		return -1, path
	}
	return n, m[2]
}

// behind reports whether a path is in a step of the definition behind another one.
func behind(path, step string) bool {
	n, _ := topLevel(path)
	before, _ := topLevel(step)
	return n > before
}

// ofExit reports whether a comparison of the exit code or success behind a success can be true.
func ofExit(field, operator, right string) bool {
	if field == "success" {
		switch right {
		case "true":
			return operator[0] != '!'
		case "false":
			return operator[0] == '!'
		}
		return true
	}
	n, err := strconv.Atoi(right)
	switch {
	case err != nil:
		return true
	case operator == ">":
		return 0 > n
	case operator == ">=":
		return 0 >= n
	case operator[0] == '!':
		return n != 0
	case operator[0] == '=':
		return n == 0
	}
	return true
}

// endsOfFailure are the statuses of runs whose step of type sentinel fails.
var endsOfFailure = []string{string(sentinels.StatusFailed), string(sentinels.StatusStopped), string(sentinels.StatusTimedOut), "error", "failure"}

// ofSuccess reports whether a comparison of a status of success with n can have both results, or
// has the one that it is without a status.
func ofSuccess(operator string, n int) bool {
	switch operator {
	case ">":
		return n < 299
	case ">=":
		return n <= 299
	case "<", "<=":
		return true
	}
	return n >= 200 && n <= 299
}

// statusPattern matches the status, or how a program ended, of a variable, of an id, or of an output by its id.
var statusPattern = lazyregexp.New(`^` + outputPattern + `\??\.(status|exitCode|success)$`)

// exitPattern matches a whole expression that is true behind a success.
var exitPattern = lazyregexp.New(`^\s*` + outputPattern + `\??\.(?:success(?:\s*===?\s*true)?|exitCode\s*===?\s*0)\s*$`)

const outputPattern = `\$(?:([A-Za-z_]\w*)|steps\.([A-Za-z_]\w*)(?:\.output)?|steps\["([^"]+)"\](?:\.output)?)`

var topPattern = lazyregexp.New(`^steps\[(\d+)\](.*)$`)
