package sentinels

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/sentinel-runtime/sentinel/internal/lazyregexp"
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
	case typ == "array" && n.Kind == '"' && key == "onFailure" && asAction(n) != "":
		return `"onError": ` + asAction(n)
	case typ == "array" && key == "each" && n.Kind == '0':
		return `"count": ` + n.Text
	case typ == "array" && key == "each" && n.Kind == '"' && strings.Contains(n.Text, ","):
		return textList(strings.Split(n.Text, ","))
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

// textList returns texts as a list, without the white space around them.
func textList(texts []string) string {
	for i, text := range texts {
		texts[i] = quoted(strings.TrimSpace(text))
	}
	return "[" + strings.Join(texts, ", ") + "]"
}

// fieldsOf returns the members of a step as they are written, without those named.
func fieldsOf(n *node, without ...string) (parts []string) {
	for _, m := range n.Members {
		if !slices.Contains(without, m.Name) {
			parts = append(parts, quoted(m.Name)+": "+asWritten(m.Value))
		}
	}
	return parts
}

// statusCall matches the functions of GitHub about how the steps before have ended.
var statusCall = lazyregexp.New(`\b(always|failure|success|cancelled)\(\)`)

// statusStep returns what to write for a condition of a step that calls one of these, "" for any
// other. A step behind one that failed is not executed, so no condition can ask for it.
func statusStep(n *node, isCondition bool) string {
	if !isCondition || n.Kind != '"' || n.Parent() == nil {
		return ""
	}
	m := statusCall.FindStringSubmatch(n.Text)
	if m == nil {
		return ""
	}
	step := "{" + strings.Join(fieldsOf(n.Parent(), "condition", n.Key()), ", ") + "}"
	if len(step) > maxProblemText/4 {
		step = "{...}"
	}
	switch m[1] {
	case "always":
		return `in the definition, write "finally": [` + step + `], which is executed however the run ends`
	case "failure":
		return `in the definition, write "onFailure": [` + step + `], which is executed after a run that is not completed`
	case "cancelled":
		return `in the definition, write "finally": [` + strings.Replace(step, "{", `{"condition": "$result.status === 'stopped'", `, 1) + `]`
	}
	return "leave it out: a step is executed only if those before it have succeeded"
}

// retryPolicy returns the policy of another system as the object of "retry".
func retryPolicy(n *node) string {
	var parts []string
	have := map[string]bool{}
	add := func(name, value string) {
		if !have[name] {
			have[name] = true
			parts = append(parts, quoted(name)+": "+value)
		}
	}
	for _, m := range n.Members {
		if format.retry.find(m.Name) != nil {
			add(m.Name, asWritten(m.Value))
			continue
		}
		for _, w := range retryWords() {
			if slices.Contains(strings.Fields(w.names), fold(m.Name)) {
				as := w.as
				if as == nil {
					as = asWritten
				}
				add(strings.Split(w.hint, `"`)[1], as(m.Value))
			}
		}
	}
	if !have["maxRetries"] {
		parts = append([]string{`"maxRetries": 3`}, parts...)
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// asRetries returns a number of attempts as that of the attempts after the first one.
func asRetries(n *node) string {
	if count, err := strconv.Atoi(n.Text); n.Kind == '0' && err == nil && count > 1 {
		return strconv.Itoa(count - 1)
	}
	return "3"
}

// asShortTime is asTime for a number whose unit is not in its name: seconds.
func asShortTime(n *node) string {
	if n.Kind == '0' && !strings.HasSuffix(fold(n.Key()), "ms") {
		return quoted(n.Text + "s")
	}
	return asTime(n)
}

// asBackoff returns how a delay grows.
func asBackoff(n *node) string {
	switch strings.ToLower(n.Text) {
	case "linear":
		return `"linear"`
	case "none", "fixed", "constant", "1", "1.0":
		return `"none"`
	}
	return `"exponential"`
}

// asAction returns the value of onError for a word of other systems, "" for any other.
func asAction(n *node) string {
	switch fold(strings.ReplaceAll(n.Text, " ", "")) {
	case "continue", "ignore", "skip", "resume", "next", "proceed", "warn", "continueonerror", "pass":
		return `"skip"`
	case "stop", "abort", "exit", "fail", "halt", "terminate", "break", "throw", "cancel", "failfast":
		return `"fail"`
	case "retry", "rerun", "repeat":
		return `"retry"`
	}
	return ""
}

// asOverlap returns the overlap policy for the concurrency of other systems, "" for any other value.
func asOverlap(n *node) string {
	switch {
	case n.Kind == '{' && n.Member("overlap") == nil && (n.Member("group") != nil || n.Member("cancel-in-progress") != nil):
		if cancel := n.Member("cancel-in-progress"); cancel != nil && cancel.Kind == 't' {
			return `"restart"`
		}
		return `"queue"`
	case n.Kind == '0' && n.Text == "1":
		return `"queue"`
	case n.Kind == '0':
		return `"parallel"`
	case n.Kind != '"':
		return ""
	}
	switch strings.ToLower(n.Text) {
	case "forbid", "drop", "ignore":
		return `"skip"`
	case "allow":
		return `"parallel"`
	case "replace", "cancel", "cancel-in-progress":
		return `"restart"`
	case "wait", "serial":
		return `"queue"`
	}
	return ""
}

// interpreterWord returns the value of "shell" for the name of a language, "" for that of sh.
func interpreterWord(name string) string {
	switch fold(name) {
	case "bash":
		return "bash"
	case "zsh":
		return "zsh"
	case "python", "python3", "py":
		return "python"
	case "node", "nodejs", "javascript", "js":
		return "node"
	case "powershell", "pwsh":
		return "pwsh"
	}
	return ""
}

// languageOf returns the value of "shell" that the fields of a step of another system mean.
func languageOf(n *node) string {
	for _, name := range []string{"language", "lang", "interpreter", "runtime"} {
		if m := n.Member(name); m != nil {
			return interpreterWord(plainText(m))
		}
	}
	return ""
}

// withShell returns the fields of a shell step for a line that a program reads.
func withShell(shell, line string) string {
	if shell == "" {
		return `"command": ` + line
	}
	return `"shell": ` + quoted(shell) + `, "command": ` + line
}

func asInterpreter(n *node) string { return quoted(cmp.Or(interpreterWord(plainText(n)), "sh")) }

// asKeyScript returns the fields for a line under the name of its language.
func asKeyScript(n *node) string {
	parent := n.Parent()
	typ := `"type": "shell", `
	if parent != nil && parent.Member("type") != nil {
		typ = ""
	}
	return typ + withShell(interpreterWord(n.Key()), quoted(scriptText(n)))
}

// asOwnScript returns the fields for the line of a step that has its type, and perhaps its language.
func asOwnScript(n *node) string {
	if shell := languageOf(n.Parent()); shell != "" {
		return withShell(shell, quoted(scriptText(n)))
	}
	return asOwnLine(n)
}

// scriptText returns a text, or a list of lines as one.
func scriptText(n *node) string {
	if n.Kind != '[' {
		return plainText(n)
	}
	lines := make([]string, len(n.Items))
	for i, item := range n.Items {
		lines[i] = plainText(item)
	}
	return strings.Join(lines, "\n")
}

// scriptStep returns a shell step for a step whose type is a program that reads a text.
func scriptStep(n *node) string {
	shell := languageOf(n)
	if typ := n.Member("type"); shell == "" && typ != nil {
		shell = interpreterWord(typ.Text)
	}
	step := stepOf("shell", "run=command script=command cmd=command code=command source=command line=command workingDirectory=cwd workdir=cwd dir=cwd", "command")(n)
	for _, name := range []string{"language", "lang", "interpreter", "runtime"} {
		if m := n.Member(name); m != nil {
			step = strings.Replace(step, `, "shell": `+asInterpreter(m), "", 1)
		}
	}
	if shell == "" || n.Member("shell") != nil {
		return step
	}
	return strings.Replace(step, `{"type": "shell"`, `{"type": "shell", "shell": `+quoted(shell), 1)
}

// codeStep returns a shell step for code with a language, else a computation.
func codeStep(n *node) string {
	if languageOf(n) != "" {
		return scriptStep(n)
	}
	return `{"type": "set", "values": {"NAME": {"expr": "..."}}} for an expression, or {"type": "shell", "shell": "node", "command": ...} for a program`
}

// asRef returns a definition for the name or the file of a sentinel.
func asRef(n *node) string {
	name := plainText(n)
	if n.Kind == '{' {
		return asWritten(n)
	}
	if id, _, file := refFile(name); file && id.Valid() && !strings.HasPrefix(name, "./") {
		name = "./" + name
	} else if !file && !ID(name).Valid() {
		name = string(Slug(name))
	}
	return `{"$ref": ` + quoted(name) + `}`
}

// childStep returns a step of type sentinel for one that starts another workflow.
func childStep(n *node) string {
	definition := `{"$ref": "ID"}`
	for _, name := range []string{"definition", "ref", "workflow", "workflowId", "sentinel", "file", "path", "pipeline", "job", "name", "id", "uses"} {
		if m := n.Member(name); m != nil && (m.Kind == '"' || m.Kind == '{') {
			definition = asRef(m)
			break
		}
	}
	step := `{"type": "sentinel", "definition": ` + definition
	for _, name := range []string{"inputs", "input", "with", "params", "parameters", "args"} {
		if m := n.Member(name); m != nil && m.Kind == '{' {
			return step + `, "inputs": ` + asWritten(m) + "}"
		}
	}
	return step + "}"
}

// matrixLoop returns a loop over the first list of a matrix.
func matrixLoop(n *node) string {
	matrix := n
	if inner := n.Member("matrix"); inner != nil {
		matrix = inner
	}
	for _, m := range matrix.Members {
		if m.Value.Kind == '[' && reference.IsName(m.Name) {
			return `{"type": "loop", "each": ` + asWritten(m.Value) + `, "as": ` + quoted(m.Name) + `, "steps": [...]}`
		}
	}
	return `{"type": "loop", "each": [...], "steps": [...]}`
}

// asBreak says how a loop ends before its last item.
func asBreak(n *node) string {
	condition := conditionOf(n)
	return `in a loop with "each", write {"type": "fail", "message": "done", "condition": ` + condition + `} and "onItemError": "stop" in the loop; in any other, "until": ` + condition + ` in the loop`
}

// asContinue says how the rest of an iteration is left out.
func asContinue(n *node) string {
	condition := conditionOf(n)
	if text := strings.Trim(condition, `"`); text != "..." {
		condition = `"!(` + text + `)"`
	}
	return `write {"type": "condition", "check": ` + condition + `, "then": [...]} around the steps behind it`
}

// conditionOf returns the condition of a step, or of a key with one.
func conditionOf(n *node) string {
	if n.Kind == '"' {
		return asCondition(n)
	}
	for _, name := range []string{"condition", "if", "when", "check"} {
		if m := n.Member(name); m != nil && m.Kind == '"' {
			return asCondition(m)
		}
	}
	return `"..."`
}

// switchStep returns nested steps of type condition for the cases of a step: an object of them by
// value, or a list with a condition each.
func switchStep(n *node) string {
	value := ""
	for _, name := range []string{"value", "on", "switch", "expression", "variable", "match", "choice", "input"} {
		if m := n.Member(name); m != nil && m.Kind == '"' {
			value = withoutTemplate(m.Text)
			break
		}
	}
	var otherwise string
	for _, name := range []string{"default", "else", "otherwise"} {
		if m := n.Member(name); m != nil {
			otherwise = asSteps(m)
		}
	}
	type branch struct{ check, then string }
	var branches []branch
	for _, name := range []string{"cases", "choices", "branches", "when", "switch"} {
		m := n.Member(name)
		if m == nil {
			continue
		}
		for _, c := range m.Members {
			if fold(c.Name) == "default" {
				otherwise = asSteps(c.Value)
				continue
			}
			branches = append(branches, branch{quoted(cmp.Or(value, "$value") + " === '" + strings.ReplaceAll(c.Name, "'", `\'`) + "'"), asSteps(c.Value)})
		}
		for _, c := range m.Items {
			b := branch{conditionOf(c), "[...]"}
			for _, name := range []string{"case", "value", "equals", "is"} {
				if v := c.Member(name); v != nil && b.check == `"..."` {
					b.check = quoted(cmp.Or(value, "$value") + " === " + strings.ReplaceAll(asWritten(v), `"`, "'"))
				}
			}
			for _, name := range []string{"steps", "then", "do", "run"} {
				if v := c.Member(name); v != nil {
					b.then = asSteps(v)
				}
			}
			branches = append(branches, b)
		}
	}
	if len(branches) == 0 {
		branches = []branch{{`"..."`, "[...]"}}
	}
	for _, b := range slices.Backward(branches) {
		step := `{"type": "condition", "check": ` + b.check + `, "then": ` + b.then
		if otherwise != "" {
			step += `, "else": ` + otherwise
		}
		otherwise = "[" + step + "}]"
	}
	return strings.TrimSuffix(strings.TrimPrefix(otherwise, "["), "]")
}

// renamePattern matches the hint of a word that is a key with another name here.
var renamePattern = lazyregexp.New(`^write "(\w+)": (\{\}|"\w+"$|NAME)`)

// ownMember returns the name and the value that a member of an object of one of the given kinds
// has here, so that a suggested line leads to no next error; an empty name if it is left out.
func ownMember(m member, kinds ...string) (name, value string) {
	for _, w := range otherWords() { // the first row that fits, as in otherWordHint
		in := strings.Fields(w.in)
		if !slices.Contains(strings.Fields(w.names), fold(m.Name)) || !slices.ContainsFunc(kinds, func(kind string) bool { return slices.Contains(in, kind) }) {
			continue
		}
		match := renamePattern.FindStringSubmatch(w.hint)
		switch {
		case strings.HasPrefix(w.hint, "leave it out"):
			return "", ""
		case match == nil:
			return m.Name, asWritten(m.Value)
		case match[2] == "NAME": // of a variable
			return match[1], `"HOOK_SECRET"`
		case match[2] != "{}":
			return match[1], match[2]
		case w.as == nil:
			return match[1], asWritten(m.Value)
		}
		return match[1], oneTime(w.as(m.Value))
	}
	return m.Name, asWritten(m.Value)
}

// oneTime returns one value of asTime, which names two for a number without a unit: few are
// seconds, since nothing ends in so few milliseconds.
func oneTime(value string) string {
	number, seconds, two := strings.Cut(value, ", in milliseconds, or ")
	if two && len(number) < 4 {
		return seconds
	}
	return number
}

// triggerType returns the type for the name of a type of other systems.
func triggerType(name string) string {
	for _, w := range otherWords() {
		if w.in == inKind && slices.Contains(strings.Fields(w.names), fold(name)) {
			return strings.Trim(strings.TrimPrefix(w.hint, `write "type": `), `"`)
		}
	}
	return name
}

// typedTrigger returns a trigger with its keys as they are named here.
func typedTrigger(n *node) string {
	typ := triggerType(plainText(n.Member("type")))
	kind := typ
	if kind == "cron" { // the rows of the table have the name that is stored
		kind = "schedule"
	}
	parts := []string{`"type": ` + quoted(typ)}
	for _, m := range n.Members {
		if name, value := ownMember(m, kind, inTrigger); name != "" && m.Name != "type" {
			parts = append(parts, quoted(name)+": "+value)
		}
	}
	return "{" + strings.Join(parts, ", ") + "}"
}
