package sentinels

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/internal/lazyregexp"
	"github.com/sentinel-runtime/sentinel/sentinels/reference"
)

// varError is the variable of the conditions when and unless of a retry. It is not reserved,
// because steps may call their output so: it is a variable of these conditions alone.
const varError = "error"

// errorTypes are the JSON types of the fields of $error.
var errorTypes = map[string]string{"text": "string", "code": "string", "category": "string", "exitCode": "integer"}

// ErrorFields returns the names of the fields of $error in the conditions of a retry, sorted.
func ErrorFields() []string { return slices.Sorted(maps.Keys(errorTypes)) }

// ErrorCategories returns the categories that $error.category can be.
func ErrorCategories() []string {
	return []string{"api", "timeout", "runtime", "logic", "syntax", "context", "manual_review", "security", "verification"}
}

// retry checks a policy: fields without effect, and its conditions, which see $error and the
// variables of the step.
func (c *checker) retry(path string, p RetryPolicy) {
	if field, reason := p.Ignored(); field != "" {
		c.warn(path+field, "leave it out", "%s has no effect: %s", field, reason)
	}
	set, fields := c.set[varError], c.fields[varError]
	c.set[varError] = true
	if c.fields == nil {
		c.fields = make(map[string]map[string]string)
	}
	c.fields[varError] = errorTypes
	p.Conditions(func(key, source string) {
		c.expression(path+key, source)
		c.errorFields(path+key, source)
		c.categories(path+key, source)
		c.alwaysFalse(path+key, source)
	})
	c.set[varError], c.fields[varError] = set, fields
	if !set {
		delete(c.set, varError)
	}
	if fields == nil {
		delete(c.fields, varError)
	}
}

// errorFields reports fields that $error does not have, and categories that do not exist: such a
// condition never holds, and the step would never be retried.
func (c *checker) errorFields(path, source string) {
	for _, m := range namePattern.FindAllStringSubmatch(source, -1) {
		key, ok := stepKey(m[2])
		if m[1] != varError || !ok || errorTypes[key] != "" {
			continue
		}
		hint := "known: " + strings.Join(references(prefixed(varError+".", ErrorFields())), ", ")
		switch near := Suggest(key, ErrorFields()); {
		case slices.Contains(otherNamesOfText, key):
			hint = "write $" + varError + ".text"
		case strings.HasPrefix(fold(key), "exit"):
			hint = "write $" + varError + ".exitCode"
		case strings.HasPrefix(key, "status"):
			hint = "the status of a request is in the code: write $" + varError + ".code === 'http_503'"
		case isMethodOfText(source, m[0]):
			hint = "write $" + varError + ".text." + key + "(...)"
		case len(near) > 0:
			hint = "did you mean $" + varError + "." + near[0] + "?"
		}
		c.Add(Problem{Path: path, Kind: KindUnknown, Hint: hint, Message: fmt.Sprintf("$%s has no %q", varError, key)})
	}
}

// categories warns of a comparison of $error.category with a word that is not one.
func (c *checker) categories(path, source string) {
	const operand = "$" + varError + ".category"
	for _, cmp := range reference.ComparedIn(source) {
		word, ok := literalText(cmp.Right)
		if cmp.Left != operand {
			word, ok = literalText(cmp.Left)
			ok = ok && cmp.Right == operand
		}
		if ok && !slices.Contains(ErrorCategories(), word) {
			c.warn(path, "the categories are "+strings.Join(ErrorCategories(), ", "), "%q is not a category of errors, so this comparison has always the same result", word)
		}
	}
}

// ofLists returns what to do about a variable that exists in some places alone, "" for any other.
func (c *checker) ofLists(name string) string {
	switch {
	case name == varError && c.set[varResult]:
		return "write $result.error, which has code, message, step, stepId and exitCode"
	case name == varError:
		return `$error is in "when" and "unless" of a retry; write the step into "onFailure", where $result.error is what failed`
	case name == varResult:
		return `$result is in the lists "onFailure" and "finally"; give the step whose output you mean "outputTo": "result"`
	}
	return ""
}

// endStatus warns of a comparison of $result.status, in onFailure and finally, with a word that it cannot be.
func (c *checker) endStatus(path, source string) {
	const operand = "$" + varResult + ".status"
	if !InEnd(path) || c.fields[varResult] != nil {
		return
	}
	statuses := []string{string(StatusCompleted), string(StatusFailed), string(StatusStopped), string(StatusTimedOut)}
	for _, cmp := range reference.ComparedIn(source) {
		for _, side := range [][2]string{{cmp.Left, cmp.Right}, {cmp.Right, cmp.Left}} {
			word, ok := literalText(side[1])
			if side[0] != operand || !ok || slices.Contains(statuses, word) {
				continue
			}
			hint := "it is " + strings.Join(statuses, ", ")
			if slices.Contains([]string{"success", "succeeded", "ok", "done", "passed", "complete"}, strings.ToLower(word)) {
				hint = "write " + operand + " " + cmp.Operator + " '" + string(StatusCompleted) + "'"
			} else if slices.Contains([]string{"failure", "error", "errored"}, strings.ToLower(word)) {
				hint = "write " + operand + " " + cmp.Operator + " '" + string(StatusFailed) + "'"
			}
			c.warn(path, hint, "%q is not a status of an end, so this comparison has always the same result", word)
		}
	}
}

var endPath = lazyregexp.New(`(^|\.)(?:onFailure|finally)\[`)

// InEnd reports whether the path of a problem is that of a step in a list onFailure or finally, or of a field of it.
func InEnd(path string) bool { return endPath.MatchString(path) }

// otherNamesOfText are what other systems call the text of an error.
var otherNamesOfText = []string{"message", "msg", "output", "stderr", "stdout", "reason", "description"}

// isMethodOfText reports whether a name that stands in a source is called.
func isMethodOfText(source, name string) bool {
	_, behind, _ := strings.Cut(source, name)
	return strings.HasPrefix(strings.TrimSpace(behind), "(")
}

// prefixed returns names with a text before each.
func prefixed(prefix string, names []string) []string {
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = prefix + name
	}
	return out
}
