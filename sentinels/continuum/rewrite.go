// Package continuum rewrites definitions of the later documents of the original system
// into the format of this one. They have references in double braces, which find steps
// by their index, and a few fields that have no meaning here. What the format accepts
// under another name, such as pipeline or timeoutSecs, stays as it is.
package continuum

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sentinel-runtime/sentinel/internal/lazyregexp"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// A Change is one place that was rewritten.
type Change struct {
	Line int    // from 1, in the text that was given
	Path string // such as steps[1].cmd
	From string // empty if To was added
	To   string // empty if From was removed
}

// dropped are keys without a meaning here.
var dropped = []string{"activeAdapters", "permissionMode", "captureTraining", "isTemplate", "activeHandle", "executionCount", "lastSuccess", "executions", "status", "escalationRules"}

// expressions are the fields of steps and loops whose text is an expression.
var expressions = []string{"if", "check", "while", "until"}

// An edit replaces a part of the text.
type edit struct {
	start, end int
	text       string
}

// A rewriter collects what is to be changed in one text.
type rewriter struct {
	tree     *strictjson.Tree
	file     string
	steps    []*strictjson.Node // those that an index finds
	ids      map[int]string     // of steps that are referred to, by index
	inputs   []string           // that texts refer to
	edits    []edit
	changes  []Change
	problems sentinels.Problems
}

// Rewrite returns the text of a definition with everything rewritten that has a form
// here, and the places that have none as problems. file is named in problems.
func Rewrite(text []byte, file string) ([]byte, []Change, sentinels.Problems) {
	r := &rewriter{tree: strictjson.ParseWithComments(text, strictjson.Limits{}), file: file, ids: map[int]string{}}
	for _, e := range r.tree.Errors {
		line, column := r.tree.Position(e.Offset)
		r.problems = append(r.problems, sentinels.Problem{File: file, Line: line, Column: column, Kind: sentinels.KindSyntax, Message: e.Error()})
	}
	if r.tree.Root == nil || len(r.problems) > 0 {
		return nil, nil, r.problems
	}
	root := r.unwrap(r.tree.Root)
	if list := member(root, "steps"); list != nil {
		r.steps = list.Items
	}
	r.value(r.tree.Root, "", false)
	r.name(root)
	if len(r.problems) > 0 {
		return nil, nil, r.problems
	}
	slices.SortStableFunc(r.changes, func(a, b Change) int { return a.Line - b.Line })
	return r.apply(text), r.changes, nil
}

// unwrap returns the object with the steps. Where it is a member of the root, its members
// become those of the root.
func (r *rewriter) unwrap(n *strictjson.Node) *strictjson.Node {
	for _, m := range n.Members {
		if (m.Name == "pipeline" || m.Name == "definition") && m.Value.Kind == '{' && len(m.Value.Members) > 0 && member(n, "steps") == nil {
			r.edits = append(r.edits, edit{m.Start, m.Value.Start + 1, ""}, edit{m.Value.End - 1, m.Value.End, ""})
			r.note(m.Start, m.Value, strconv.Quote(m.Name)+" around the definition", "")
			return m.Value
		}
	}
	return n
}

func member(n *strictjson.Node, name string) *strictjson.Node {
	for _, m := range n.Members {
		if m.Name == name {
			return m.Value
		}
	}
	return nil
}

// value rewrites the texts and keys below n. key is the name under which it stands, shell
// says that it is in a step with a shell line.
func (r *rewriter) value(n *strictjson.Node, key string, shell bool) {
	switch n.Kind {
	case '"':
		if strings.Contains(n.Text, "{{") {
			r.text(n, slices.Contains(expressions, key), shell && (key == "cmd" || key == "command"))
		}
	case '[':
		for _, item := range n.Items {
			r.value(item, key, shell)
		}
	case '{':
		shell = member(n, "cmd") != nil || isText(member(n, "type"), "shell")
		for i, m := range n.Members {
			if slices.Contains(dropped, m.Name) && key != "params" {
				r.drop(n, i)
				continue
			}
			r.value(m.Value, m.Name, shell)
		}
	}
}

func isText(n *strictjson.Node, text string) bool { return n != nil && n.Kind == '"' && n.Text == text }

// drop removes a member with the comma before or behind it.
func (r *rewriter) drop(n *strictjson.Node, i int) {
	m := n.Members[i]
	start, end := m.Start, m.Value.End
	if i+1 < len(n.Members) {
		end = n.Members[i+1].Start
	} else if i > 0 {
		start = n.Members[i-1].Value.End
	}
	r.edits = append(r.edits, edit{start, end, ""})
	r.note(m.Start, m.Value, strconv.Quote(m.Name), "")
}

func (r *rewriter) note(offset int, n *strictjson.Node, from, to string) {
	line, _ := r.tree.Position(offset)
	r.changes = append(r.changes, Change{Line: line, Path: n.Path(), From: from, To: to})
}

func (r *rewriter) problem(n *strictjson.Node, message, hint string) {
	line, column := r.tree.Position(n.Start)
	r.problems = append(r.problems, sentinels.Problem{File: r.file, Line: line, Column: column, Path: n.Path(), Kind: sentinels.KindValue, Message: message, Hint: hint})
}

// braces matches one reference, and in an expression the quotes around it.
var braces = lazyregexp.New(`(['"]?)\{\{\s*([^{}]*?)\s*\}\}(['"]?)`)

// text rewrites the references of one text.
func (r *rewriter) text(n *strictjson.Node, expression, shell bool) {
	out := braces.ReplaceAllStringFunc(n.Text, func(found string) string {
		m := braces.FindStringSubmatch(found)
		to, why := r.reference(m[2], expression, shell)
		if why != "" {
			r.problem(n, fmt.Sprintf("{{%s}}: %s", m[2], why), "write what it stands for with references such as $name; `sentinel help references` explains them")
			return found
		}
		from := "{{" + m[2] + "}}"
		r.note(n.Start, n, from, to)
		if expression && m[1] != "" && m[1] == m[3] {
			return to // a text in an expression needs no quotes
		}
		return m[1] + to + m[3]
	})
	if strings.Contains(out, "{{") && len(r.problems) == 0 {
		r.problem(n, "references in references have no form here", "compute the value with a step of type set")
		return
	}
	var encoded bytes.Buffer
	e := json.NewEncoder(&encoded)
	e.SetEscapeHTML(false) // && stays readable
	if err := e.Encode(out); err != nil {
		r.problem(n, err.Error(), "")
		return
	}
	r.edits = append(r.edits, edit{n.Start, n.End, strings.TrimSpace(encoded.String())})
}

// reference returns our form of what stands in braces, or why there is none.
func (r *rewriter) reference(text string, expression, shell bool) (to, why string) {
	parts := strings.Split(text, ".")
	rest := path(parts[1:])
	switch parts[0] {
	case "input", "inputs":
		if len(parts) < 2 || !validName(parts[1]) {
			return "", "an input needs a name"
		}
		if !slices.Contains(r.inputs, parts[1]) {
			r.inputs = append(r.inputs, parts[1])
		}
		return "$inputs" + rest, ""
	case "event":
		return "$event" + rest, ""
	case "named":
		if len(parts) < 2 || !validName(parts[1]) {
			return "", "a named output needs a name"
		}
		return "$" + parts[1] + path(parts[2:]), ""
	case "iteration":
		return "$index", ""
	case "env":
		if shell && len(parts) == 2 {
			return "${" + parts[1] + "}", ""
		}
		return "", "variables of the environment are read in shell lines only"
	case "steps":
		return r.step(parts, expression)
	case "loop", "parent_iteration":
		return "", "outer loops have no form here; give the value a name with a step of type set"
	}
	if len(parts) > 0 && validName(parts[0]) {
		return "$" + parts[0] + rest, ""
	}
	return "", "unknown reference"
}

// step returns the reference to a part of a step's result.
func (r *rewriter) step(parts []string, expression bool) (to, why string) {
	if len(parts) < 3 {
		return "", "want steps.INDEX.FIELD"
	}
	i, err := strconv.Atoi(parts[1])
	if err != nil || i < 0 || i >= len(r.steps) {
		return "", fmt.Sprintf("there is no step %s", parts[1])
	}
	if slices.Contains(parts, "*") {
		return "", "* has no form here; use a loop step with each, or an expression with map"
	}
	ref := `$steps["` + r.id(i) + `"]`
	isShell := member(r.steps[i], "cmd") != nil || isText(member(r.steps[i], "type"), "shell")
	switch parts[2] {
	case "output":
		return ref + ".output" + path(parts[3:]), ""
	case "data":
		return ref + path(parts[3:]), ""
	case "exitCode":
		return ref + ".exitCode", ""
	case "success":
		if isShell && expression {
			return "(" + ref + ".exitCode === 0)", ""
		}
		return "", "only the exit code of a shell step says whether it succeeded; other steps end the run when they fail"
	}
	return "", fmt.Sprintf("a step has no %s here; `sentinel trace` shows it", parts[2])
}

// id returns the id of a step, which it gets if it has none.
func (r *rewriter) id(i int) string {
	if own := member(r.steps[i], "id"); own != nil && own.Kind == '"' {
		return own.Text
	}
	if r.ids[i] == "" {
		r.ids[i] = fmt.Sprintf("step%d", i)
	}
	return r.ids[i]
}

// name inserts the ids of steps and the inputs that references need.
func (r *rewriter) name(root *strictjson.Node) {
	for i := range r.steps {
		if id := r.ids[i]; id != "" {
			r.edits = append(r.edits, edit{r.steps[i].Start + 1, r.steps[i].Start + 1, fmt.Sprintf("%q: %q, ", "id", id)})
			r.note(r.steps[i].Start, r.steps[i], "", `"id": `+strconv.Quote(id))
		}
	}
	declared := member(root, "inputs")
	var missing []string
	for _, name := range r.inputs {
		if declared == nil || declared.Kind == '{' && member(declared, name) == nil {
			missing = append(missing, fmt.Sprintf(`%q: {}`, name))
		}
	}
	if len(missing) == 0 {
		return
	}
	list := strings.Join(missing, ", ")
	at, text := root.Start+1, `"inputs": {`+list+`}`
	if declared != nil {
		at, text = declared.Start+1, list
	}
	if declared == nil && len(root.Members) > 0 || declared != nil && len(declared.Members) > 0 {
		text += ", "
	}
	r.edits = append(r.edits, edit{at, at, text})
	r.note(root.Start, root, "", `"inputs": {`+list+`}`)
}

// apply returns the text with all edits. The text of the tree has no comments.
func (r *rewriter) apply(text []byte) []byte {
	slices.SortStableFunc(r.edits, func(a, b edit) int { return a.start - b.start })
	var out []byte
	at := 0
	for _, e := range r.edits {
		if e.start < at { // within a member that is removed
			continue
		}
		out = append(append(out, text[at:e.start]...), e.text...)
		at = e.end
	}
	return append(out, text[at:]...)
}

var name = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*$`)

func validName(text string) bool { return name.MatchString(text) }

// path returns the parts as the path of a reference: .a, [0] or ["a-b"].
func path(parts []string) string {
	var b strings.Builder
	for _, p := range parts {
		switch {
		case validName(p):
			b.WriteString("." + p)
		case strings.Trim(p, "0123456789") == "":
			b.WriteString("[" + p + "]")
		default:
			b.WriteString(`["` + p + `"]`)
		}
	}
	return b.String()
}
