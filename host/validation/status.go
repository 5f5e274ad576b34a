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
)

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
		if s.Type != httpStep && s.Type != sentinelStep || other {
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
		whole, skips := strings.TrimSuffix(strings.TrimSuffix(left, ".status"), "?"), s.OnError.Action == sentinels.ActionSkip
		written := fmt.Sprintf("%s %s %s", c.Left, c.Operator, c.Right)
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

// statusPattern matches the status of a variable, of an id, or of an output by its id.
var statusPattern = lazyregexp.New(`^\$(?:([A-Za-z_]\w*)|steps\.([A-Za-z_]\w*)(?:\.output)?|steps\["([^"]+)"\](?:\.output)?)\??\.status$`)
