package sentinels

import (
	"slices"
	"strconv"
	"strings"

	"github.com/sentinel-runtime/sentinel/internal/textcut"
	"github.com/sentinel-runtime/sentinel/sentinels/reference"
)

// formHint returns the value of n in the form that its place needs, for a value of another
// JSON type than the ones wanted: `write ["a"]`. It is made from what is written; "" if the
// meaning is not clear.
func formHint(n *node, want ...string) string {
	for _, typ := range want {
		if form := inForm(n, typ); form != "" {
			return "write " + textcut.Mark(form, maxProblemText/2)
		}
	}
	return ""
}

// stepFields are the fields whose value is a list of steps.
var stepFields = []string{"steps", recipeSteps, "then", "else", "checks", "finally", "onFailure"}

// inForm returns n as a value of a JSON type, "" if that is not possible.
func inForm(n *node, typ string) string {
	key := n.Key()
	switch {
	case key == "type" || key == "" && n.Kind == '[' && len(n.Items) == 0:
	case n.Kind == '"' && reference.Contains(n.Text): // its value may have the form
	case typ == "array" && n.Kind == '{' && slices.Contains(stepFields, key):
		return stepsInForm(n)
	case typ == "array" && (n.Kind == '"' || n.Kind == '{') && n.Text != "":
		return asList(n)
	case typ == "object" && n.Kind == '[':
		return namesInForm(n, key)
	case typ == "object" && key == "trigger" && n.Kind == '"':
		return asTrigger(n)
	case typ == "object" && key == "loop" && n.Kind == '0':
		return `{"type": "count", "max": ` + n.Text + `}`
	case typ == "object" && key == "loop" && n.Kind == '"' && slices.Contains([]string{"once", "forever", "infinite"}, n.Text):
		return `{"type": ` + quoted(map[bool]string{true: "once", false: "continuous"}[n.Text == "once"]) + `}`
	case typ == "step" && n.Kind == '"':
		return `{"type": "shell", "command": ` + asWritten(n) + `}`
	case typ == "string" && key == "command" && n.Kind == '[':
		return asOwnLine(n)
	case typ == "string" && key == "filter" && n.Kind == '{':
		return quoted(comparisons("$event", n))
	case typ == "string" && n.Kind == '[':
		lines := make([]string, len(n.Items))
		for i, item := range n.Items {
			if item.Kind != '"' {
				return ""
			}
			lines[i] = item.Text
		}
		return quoted(strings.Join(lines, "\n"))
	case typ == "string" && (n.Kind == '0' || n.Kind == 't' || n.Kind == 'f'):
		return quoted(asWritten(n))
	case (typ == "integer" || typ == "number") && n.Kind == '"':
		if _, err := strconv.ParseFloat(n.Text, 64); err == nil {
			return n.Text
		}
	case typ == "boolean" && n.Kind == '"':
		switch strings.ToLower(n.Text) {
		case "true", "yes", "on":
			return "true"
		case "false", "no", "off":
			return "false"
		}
	}
	return ""
}

// stepsInForm returns one step, or steps by name, as a list of steps.
func stepsInForm(n *node) string {
	if len(n.Members) == 0 || slices.ContainsFunc(n.Members, func(m member) bool { return m.Value.Kind != '{' }) {
		return asList(n)
	}
	steps := make([]string, len(n.Members))
	for i, m := range n.Members {
		steps[i] = asWritten(m.Value)
		if m.Value.Member("id") == nil && stepID(m.Name) {
			steps[i] = strings.Replace(steps[i], "{", `{"id": `+quoted(m.Name)+", ", 1)
		}
	}
	return "[" + strings.Join(steps, ", ") + "]"
}

// namesInForm returns a list as the object that a key needs.
func namesInForm(n *node, key string) string {
	switch {
	case len(n.Items) == 0:
		return "{}"
	case key == "env":
		return asEnv(n)
	case key == "inputs" && n.Parent() != nil && n.Parent().Member("type") == nil:
		return asInputs(n)
	case key == "variables" || key == "values" || key == "inputs":
		parts := make([]string, len(n.Items))
		for i, item := range n.Items {
			if item.Kind != '"' {
				return ""
			}
			parts[i] = quoted(item.Text) + `: ""`
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case len(n.Items) == 1 && n.Items[0].Kind == '{':
		return asWritten(n.Items[0])
	}
	return ""
}

// comparisons returns a condition that the members of a variable have the values in an
// object.
func comparisons(variable string, n *node) string {
	var all []string
	for _, m := range n.Members {
		at := variable + "." + m.Name
		switch m.Value.Kind {
		case '{':
			all = append(all, comparisons(at, m.Value))
		case '"':
			all = append(all, at+" === '"+strings.ReplaceAll(strings.ReplaceAll(m.Value.Text, `\`, `\\`), `'`, `\'`)+"'")
		default:
			all = append(all, at+" === "+asWritten(m.Value))
		}
	}
	return strings.Join(all, " && ")
}

// wantedTypes returns the JSON types in a text such as "an array of steps".
func wantedTypes(want string) (types []string) {
	for _, typ := range []string{"array", "object", "string", "boolean", "step"} {
		if strings.HasPrefix(want, "a "+typ) || strings.HasPrefix(want, "an "+typ) {
			types = append(types, typ)
		}
	}
	switch {
	case strings.HasPrefix(want, "a whole number"), strings.HasPrefix(want, "a number"):
		types = append(types, "number")
	case strings.HasPrefix(want, "a trigger"):
		types = append(types, "object")
	}
	return types
}
