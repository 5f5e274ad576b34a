package sentinels

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/sentinel-runtime/sentinel/internal/lazyregexp"
	"github.com/sentinel-runtime/sentinel/sentinels/reference"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// shellTypes are the JSON types of the fields in the result of a shell line (F7.5).
var shellTypes = map[string]string{
	"stdout": "string", "stderr": "string", "output": "string", "text": "string", "signal": "string", "executionId": "string",
	"exitCode": "integer", "durationMs": "integer", "dropped": "integer", "success": "boolean", "truncated": "boolean",
}

// typesOf returns the JSON types of the fields of a step's output, nil if they are not known.
func (c *checker) typesOf(s *Step) map[string]string {
	if c.resultOf(s) == resultShell {
		return shellTypes
	}
	spec, ok := c.types.Lookup(s.Type)
	if !ok || len(spec.Output) == 0 || slices.ContainsFunc(spec.Marks(), func(m FieldMark) bool { return m.Mark == markParams || m.Mark == markValues }) {
		return nil
	}
	var schema struct {
		Type       string
		Properties map[string]struct{ Type any }
	}
	if json.Unmarshal(spec.Output, &schema) != nil || schema.Type != "object" {
		return nil
	}
	types := make(map[string]string, len(schema.Properties))
	for name, p := range schema.Properties {
		types[name], _ = p.Type.(string)
	}
	return types
}

// outputs records the types of the variables that have the output of one step and nothing
// else.
func (c *checker) outputs(d *Definition) {
	if c.fields = maps.Clone(c.fields); c.fields == nil {
		c.fields = make(map[string]map[string]string)
	}
	times := map[string]int{}
	for name := range d.Variables {
		times[name]++
	}
	for name := range d.Inputs {
		times[name]++
	}
	eachStep(d.Steps, "", func(_ string, s *Step) {
		for _, name := range setBy(s, c.types) {
			times[name]++
		}
		if types := c.typesOf(s); types != nil {
			if s.ID != "" {
				c.fields[s.ID] = types
			}
			if s.OutputTo != "" && s.Parse == "" {
				c.fields[s.OutputTo] = types
			}
		}
	})
	for name, n := range times {
		if n > 1 {
			delete(c.fields, name)
		}
	}
	eachStep(d.Steps, "", func(_ string, s *Step) {
		for _, name := range setBy(s, c.types) {
			if name != s.OutputTo || s.Parse != "" {
				delete(c.fields, name)
			}
		}
	})
}

// alwaysFalse warns of comparisons that have the same result whatever happens, and of calls
// of methods that no value has.
func (c *checker) alwaysFalse(path, source string) {
	if !strings.Contains(source, "$") {
		return
	}
	for _, cmp := range slices.Concat(reference.ComparedIn(source), reference.OrderedIn(source)) {
		c.comparison(path, cmp, cmp.Left, cmp.Right, func(left, right string) string { return left + " " + cmp.Operator + " " + right })
		c.comparison(path, cmp, cmp.Right, cmp.Left, func(right, left string) string { return left + " " + cmp.Operator + " " + right })
	}
	c.methods(path, source)
	c.endStatus(path, source)
}

// comparison checks one operand of a comparison against the other. written returns the
// comparison with other operands.
func (c *checker) comparison(path string, cmp reference.Comparison, operand, other string, written func(operand, other string) string) {
	if text, ok := literalText(operand); ok {
		if ref := strings.TrimSpace(text); reference.IsReference(ref) {
			if names := reference.NamesInExpression(ref); len(names) == 1 && c.set[names[0]] {
				if ref == "$"+names[0] && c.fields[names[0]]["text"] == "string" {
					ref += ".text"
				}
				c.warn(path, "write "+written(ref, other), "%s in quotes is this text, and not the value of the variable", operand)
			}
		}
		return
	}
	m := comparedPattern.FindStringSubmatch(operand)
	if m == nil {
		return
	}
	types, known := c.fields[m[1]]
	text, isText := literalText(other)
	_, notNumber := strconv.ParseFloat(other, 64)
	isNumber := notNumber == nil
	if !known || !isText && !isNumber {
		return
	}
	strict := len(cmp.Operator) == 3
	never := "is never true"
	if strings.HasPrefix(cmp.Operator, "!") {
		never = "is always true"
	}
	field := strings.TrimPrefix(strings.TrimPrefix(m[2], "?"), ".")
	if strings.ContainsAny(cmp.Operator, "<>") && (field != "" || !isNumber) {
		return // the order of two texts, or of a text and a number, depends on the values
	}
	switch typ := types[field]; {
	case field == "" && (types["text"] == "string" || types["json"] != "" || len(types) > 0):
		hint := "write " + written(operand+".text", other)
		switch {
		case types["text"] == "":
			hint = "write " + written(operand+"."+slices.Sorted(maps.Keys(types))[0], other)
		case isNumber && types["exitCode"] != "" && codeName.MatchString(m[1]):
			hint = "write " + written(operand+".exitCode", other)
		case isNumber && types["exitCode"] != "":
			hint = "write " + written(operand+".json", other) + ` for a number that it prints, or give that step "parse": "json"; its exit code is ` + operand + ".exitCode"
		}
		c.warn(path, hint, "%s is an object, the output of a step, so this %s", operand, never)
	case typ == "boolean" && isText:
		value := "true"
		if text == "false" {
			value = text
		}
		c.warn(path, "write "+written(operand, value), "%s is a boolean and %s is a text, so this %s", operand, other, never)
	case typ == "integer" && isText && strict:
		value := strings.TrimSpace(text)
		if _, err := strconv.ParseFloat(value, 64); err != nil {
			value = "0"
		}
		c.warn(path, "write "+written(operand, value), "%s is a number and %s is a text, so this %s", operand, other, never)
	case typ == "string" && isNumber && strict:
		c.warn(path, "write "+written(operand, "'"+other+"'"), "%s is a text and %s is a number, so this %s", operand, other, never)
	case (field == "stdout" || field == "stderr" || field == "output") && types["stdout"] == "string" && isText && text != "":
		with := operand + ".trim()"
		if field == "stdout" {
			with = strings.TrimSuffix(operand, "stdout") + "text"
		}
		c.warn(path, "write "+written(with, other), "%s ends with a line end, and %s does not, so this %s", operand, other, never)
	}
}

// codeName matches the name of a variable that is about an exit code.
var codeName = lazyregexp.New(`(?i)code|exit|status|^rc$|^ret$`)

// comparedPattern matches a variable with at most one field.
var comparedPattern = lazyregexp.New(`^\$([A-Za-z_][A-Za-z0-9_]*)((?:\??\.[A-Za-z_][A-Za-z0-9_]*)?)$`)

// literalText returns the text of a string literal without escapes.
func literalText(operand string) (string, bool) {
	if len(operand) < 2 || operand[0] != '\'' && operand[0] != '"' || operand[len(operand)-1] != operand[0] || strings.IndexByte(operand[1:len(operand)-1], operand[0]) >= 0 {
		return "", false
	}
	return operand[1 : len(operand)-1], true
}

// methodNames are the methods of values and of the global objects of expressions.
const methodNames = ` at concat copyWithin entries every fill filter find findIndex findLast findLastIndex flat flatMap forEach includes indexOf join keys lastIndexOf map pop push
 reduce reduceRight reverse shift slice some sort splice toReversed toSorted toSpliced toString unshift values with charAt charCodeAt codePointAt endsWith localeCompare match matchAll
 normalize padEnd padStart repeat replace replaceAll search split startsWith substr substring toLowerCase toUpperCase toLocaleLowerCase toLocaleUpperCase trim trimEnd trimStart trimLeft trimRight valueOf
 toExponential toFixed toPrecision exec test call apply bind get set has add delete clear size next return throw union intersection difference symmetricDifference isSubsetOf isSupersetOf isDisjointFrom
 abs acos acosh asin asinh atan atan2 atanh cbrt ceil clz32 cos cosh exp expm1 floor fround hypot imul log log10 log1p log2 max min pow round sign sin sinh sqrt tan tanh trunc
 assign create defineProperties defineProperty freeze fromEntries getOwnPropertyDescriptor getOwnPropertyDescriptors getOwnPropertyNames getOwnPropertySymbols getPrototypeOf hasOwn is isExtensible isFrozen isSealed preventExtensions seal setPrototypeOf
 from isArray of fromCharCode fromCodePoint raw isFinite isInteger isNaN isSafeInteger parseFloat parseInt parse stringify asIntN asUintN for keyFor
 group groupBy groupToMap groupByToMap isWellFormed toWellFormed getOrInsert getOrInsertComputed hasOwnProperty propertyIsEnumerable isPrototypeOf toLocaleString escape sumPrecise f16round fromAsync random now `

// isMethod has these names.
var isMethod = sync.OnceValue(func() map[string]bool {
	names := map[string]bool{}
	for _, name := range strings.Fields(methodNames) {
		names[name] = true
	}
	return names
})

// foreignMethods are methods of other languages, with the form here: {} is the value, () the
// arguments in brackets.
var foreignMethods = []struct{ names, form string }{
	{"contains has_key containskey include", "{}.includes()"},
	{"length size count len", "{}.length"},
	{"startswith hasprefix beginswith", "{}.startsWith()"},
	{"endswith hassuffix", "{}.endsWith()"},
	{"lower tolower downcase", "{}.toLowerCase()"},
	{"upper toupper upcase", "{}.toUpperCase()"},
	{"strip trimspace", "{}.trim()"},
	{"equals equal eq", "{} === ()"},
	{"isempty empty", "{}.length === 0"},
	{"matches", "new RegExp().test({})"},
}

// methods warns of calls of methods that no value has: the call is undefined.
func (c *checker) methods(path, source string) {
	for _, m := range calledPattern.FindAllStringSubmatch(source, -1) {
		value, name, arguments := m[1], m[2], m[3]
		if isMethod()[name] {
			continue
		}
		hint := "a value has the methods of JavaScript: `sentinel help expressions`"
		if near := c.Suggest(name, strings.Fields(methodNames)); len(near) > 0 {
			hint = "write " + value + "." + near[0] + arguments
		}
		for _, f := range foreignMethods {
			if slices.Contains(strings.Fields(f.names), strings.ToLower(name)) {
				hint = "write " + strings.Replace(strings.Replace(f.form, "()", cutBrackets(f.form, arguments), 1), "{}", value, 1)
			}
		}
		c.warn(path, hint, "%s.%s is not a method, so the call is undefined", value, name)
	}
}

// cutBrackets returns arguments for a form: without brackets behind an operator.
func cutBrackets(form, arguments string) string {
	if strings.HasSuffix(form, " ()") {
		return strings.TrimSuffix(strings.TrimPrefix(arguments, "("), ")")
	}
	return arguments
}

// calledPattern matches the call of a method of a variable, with arguments without brackets.
var calledPattern = lazyregexp.New(`(\$[A-Za-z_]\w*(?:\??\.[A-Za-z_]\w*|\[[0-9]+\])*)\??\.([A-Za-z_]\w*)(\([^()]*\))`)

// filters warns of names in the filters of triggers: they see $event alone.
func (c *checker) filters(d *Definition, prefix string) {
	for i, t := range d.Triggers {
		source := ""
		if len(t.Options) > 0 {
			strictjson.EachMember(t.Options, func(name, value []byte) bool {
				if strictjson.IsString(name, "filter") {
					source = reference.Text(value)
				}
				return true
			})
		}
		path := prefix + "trigger.filter"
		if len(d.Triggers) > 1 {
			path = fmt.Sprintf("%strigger[%d].filter", prefix, i)
		}
		for _, name := range reference.NamesInExpression(source) {
			if name == "event" {
				continue
			}
			own := "$event." + name
			if name == "payload" || name == "body" {
				own = "$event.data"
			}
			c.warn(path, "write "+strings.ReplaceAll(source, "$"+name, own), "$%s is never set in a filter, which sees $event alone", name)
		}
	}
}

// sets reports whether a step sets a variable.
func (d *Definition) sets(name string, types *TypeSet) (found bool) {
	d.EachStep(func(_ string, s *Step) { found = found || slices.Contains(setBy(s, types), name) })
	return found
}

// findTexts adds the variables of d that are known to be texts, and leaves out those around it that d hides or sets.
func (c *checker) findTexts(d *Definition) {
	texts := maps.Clone(c.texts)
	if texts == nil {
		texts = make(map[string]bool)
	}
	maps.DeleteFunc(texts, func(name string, _ bool) bool { return d.sets(name, c.types) })
	for name, value := range d.Variables {
		delete(texts, name)
		if _, input := d.Inputs[name]; !input && len(value) > 0 && value[0] == '"' && !c.open && !d.sets(name, c.types) {
			texts[name] = true
		}
	}
	for name, in := range d.Inputs {
		delete(texts, name)
		if in.Type == "string" {
			texts[name] = !d.sets(name, c.types)
		}
	}
	c.texts = texts
}

// pathOfText reports a path behind a value that is known to be a text, such as
// $name.json: it would be a field of the text, and texts have none.
func (c *checker) pathOfText(path string, ref reference.Reference) {
	m := textPath.FindStringSubmatch(ref.Path)
	if m == nil {
		return
	}
	before, rest := "", ref.Path
	switch {
	case c.texts[ref.Name]:
	case ref.Name == "inputs" && m[2] != "":
		if _, text := c.texts[m[1]]; !text || !c.inputs[m[1]] {
			return
		}
		before, rest = "."+m[1], ref.Path[len(m[1])+1:]
	case m[2] != "" && c.fields[ref.Name][m[1]] == "string":
		before, rest = "."+m[1], ref.Path[len(m[1])+1:]
	default:
		return
	}
	if rest == ".length" {
		return
	}
	whole := ref.Name + before
	hint := `write "${` + whole + "}" + rest + `"`
	if c.inShell {
		hint = `write "$` + whole + `"` + rest
	}
	c.Add(Problem{Path: path, Kind: KindValue, Hint: hint, Message: fmt.Sprintf("$%s is a text, so %s is read as its field, which it does not have", whole, rest)})
}

// textPath matches one name, or two, behind a variable.
var textPath = lazyregexp.New(`^\.([A-Za-z_]\w*)(\.[A-Za-z_]\w*)?`)

// computation warns of a text that looks like a computation.
func (c *checker) computation(path, text string) {
	if !computed.MatchString(text) {
		return
	}
	for _, name := range reference.NamesInExpression(text) {
		if c.set[name] {
			c.warn(path, `write {"expr": `+quoted(text)+`}`, "%q looks like a computation and is a text", text)
			return
		}
	}
}

// computed matches numbers and references with operators between them.
var computed = lazyregexp.New(`^(?:\$[A-Za-z_][\w.\[\]]*|[0-9.]+)(?:\s+[-+*/%]\s+(?:\$[A-Za-z_][\w.\[\]]*|[0-9.]+))+$`)

// shellForms warns of forms in which the shell reads a variable of its own, although the
// name is one of the definition.
func (c *checker) shellForms(path, line string, assigned []string) {
	ours := func(name string) bool {
		return c.set[name] && !slices.Contains(assigned, name) && !slices.Contains(BuiltIn, name) && !slices.Contains(Reserved, name)
	}
	for _, m := range arithmeticForm.FindAllStringSubmatch(line, -1) {
		own := bareName.ReplaceAllStringFunc(m[1], func(name string) string {
			if ours(name) {
				return "$" + name
			}
			return name
		})
		if own != m[1] && !strings.Contains(m[1], "$") {
			c.warn(path, "write $(("+own+"))", "%s has variables of the shell, which do not have the values", m[0])
		}
	}
	for _, m := range parameterForm.FindAllStringSubmatch(line, -1) {
		if ours(m[2]) && m[1]+m[3] != "" { // ${name} has a warning already
			c.warn(path, `write value="$`+m[2]+`"; before it, and ${`+m[1]+"value"+m[3]+"}", "%s is a variable of the shell, which does not have the value", m[0])
		}
	}
	for _, m := range selfAssigned.FindAllStringSubmatch(line, -1) {
		if m[1] == m[2] && c.set[m[1]] {
			c.warn(path, "give the variable of the shell another name: value=$"+m[1], "%s=$%s is empty: a name that the line assigns is one of the shell", m[1], m[2])
		}
	}
}

var (
	arithmeticForm = lazyregexp.New(`\$\(\(([^()]*)\)\)`)
	bareName       = lazyregexp.New(`[A-Za-z_]\w*`)
	parameterForm  = lazyregexp.New(`\$\{(#?)([A-Za-z_]\w*)((?:[:%#/^,+?=-][^}]*)?)\}`)
	selfAssigned   = lazyregexp.New(`(?:^|[;&|(\n]\s*|\b(?:export|local|readonly)\s+)([A-Za-z_]\w*)="?\$([A-Za-z_]\w*)"?(?:[\s;&|)]|$)`)
)

// mayBeUndefined warns of a value that is a part of the JSON that a shell line wrote: it is
// undefined if the output is not JSON, and then the step fails.
func (c *checker) mayBeUndefined(path, source string) {
	m := partOfJSON.FindStringSubmatch(strings.TrimSpace(source))
	if m == nil || c.fields[m[1]]["stdout"] == "" {
		return
	}
	c.warn(path, `write {"expr": `+quoted(strings.TrimSpace(source)+" ?? null")+`}, or "parse": "json" in the step of $`+m[1],
		"%s is undefined if the output is not JSON or lacks the field, and then the step fails", strings.TrimSpace(source))
}

var partOfJSON = lazyregexp.New(`^\$([A-Za-z_]\w*)\??\.json(?:\??\.[A-Za-z_]\w*|\[[0-9]+\])*$`)

// bashForms warns of what bash has and a POSIX shell has not, and of a pipe that hides a failure.
// A line that starts bash itself has it in quotes.
func (c *checker) bashForms(path, line string, by Interpreter) {
	if slices.Contains([]string{"bash", "zsh", "ksh"}, by.program()) {
		return
	}
	plain := reference.WithoutQuoted(line)
	c.hiddenFailure(path, plain)
	for _, form := range []struct {
		pattern    *lazyregexp.Regexp
		what, mend string
	}{
		{doubleBrackets, "[[ ]] is of bash", `write [ ... ] with = in place of ==`},
		{bashArray, "an array is of bash", `write the values as words: for x in a b; do ...; done`},
		{sourceWord, "source is of bash", "write . ./FILE"},
		{functionWord, "function is of bash", "write NAME() { ...; }"},
		{setPipefail, "pipefail is of bash", "leave it out"},
	} {
		if form.pattern.MatchString(plain) {
			c.warn(path, form.mend+`, or "shell": "bash"`, "%s, and the shell is /bin/sh", form.what)
		}
	}
}

// hiddenFailure warns of a pipe whose first command may fail without the line failing. Of those
// that only read and write text, few do. What is quoted is not in the line.
func (c *checker) hiddenFailure(path, plain string) {
	if setPipefail.MatchString(plain) {
		return
	}
	for _, m := range pipePattern.FindAllStringSubmatchIndex(plain, -1) {
		program := reference.LastProgram(plain[:m[0]+1])
		if program == "" || strings.ContainsAny(program, "$'\"}") || strings.Contains(textPrograms, " "+program[strings.LastIndex(program, "/")+1:]+" ") {
			continue
		}
		c.warn(path, `"shell": "bash" on the step or the definition fails with any command of a pipe`,
			"if %s fails, the line does not: its result is that of the last command of the pipe", program)
		return
	}
}

// textPrograms are commands whose failure at the start of a pipe is rare, or usual and meant.
const textPrograms = " echo printf cat ls seq yes date true false find grep egrep fgrep rg sed awk sort uniq head tail cut tr wc tac rev nl paste join comm diff cmp column fold " +
	"env pwd id uname ps pgrep df du stat file git jq yq tee xargs base64 sha256sum md5sum which type command hostname whoami uptime free test [ : read sleep history dirname basename done fi esac ) "

// otherLine warns of a reference in the text of a program that is not a shell: it stays as written.
func (c *checker) otherLine(path string, raw json.RawMessage, by Interpreter) {
	for _, ref := range reference.In(raw) {
		if name := ref.Name; c.set[name] && !strings.Contains(string(raw), "$"+name+" =") {
			c.warn(path, `give it as a variable of the environment: "env": {"`+strings.ToUpper(name)+`": "$`+name+`"}`,
				"$%s stays as written: %s is not a shell, whose lines get the values of references", name, by.program())
			return
		}
	}
}

var (
	setPipefail    = lazyregexp.New(`\bset\s+-\w*o\s+pipefail`)
	pipePattern    = lazyregexp.New(`[^|&]\|(?:[^|]|$)`)
	doubleBrackets = lazyregexp.New(`(?:^|[\s;&|!(])\[\[\s`)
	bashArray      = lazyregexp.New(`(?:^|[\s;&|(])[A-Za-z_]\w*\+?=\(`)
	sourceWord     = lazyregexp.New(`(?:^|[;&|({]|\b(?:then|do|else)\s)\s*source\s`)
	functionWord   = lazyregexp.New(`(?:^|[;&|({])\s*function\s+[A-Za-z_]`)
)
