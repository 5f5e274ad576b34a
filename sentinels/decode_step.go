package sentinels

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sentinel-runtime/sentinel/internal/textcut"
	"github.com/sentinel-runtime/sentinel/sentinels/reference"
)

// The marks of step fields, as in package sdk/abi. A test compares the two lists,
// because this package imports no other package of the module.
const (
	markExpression  = "expression"
	markSteps       = "steps"
	markBranches    = "branches"
	markShell       = "shell"
	markInterpreter = "interpreter"
	markRaw         = "raw"
	markDefinition  = "definition"
	markTools       = "tools"
	markParams      = "params"
	markVariable    = "variable"
	markValues      = "values"
)

var marks = []string{markExpression, markSteps, markBranches, markShell, markInterpreter, markRaw, markDefinition, markTools, markParams, markVariable, markValues}

// stepID reads an id and reports a duplicate: edits and problems identify steps by id.
func (d *decoder) stepID(n *node, dst *Step) {
	text, ok := d.nonEmptyText(n)
	if !ok {
		return
	}
	if !stepID(text) {
		d.add(n, KindValue, "letters, digits, - and _, at most 64, not digits alone", "invalid step id %q", text)
		return
	}
	if first, duplicate := d.ids[text]; duplicate {
		line, _ := d.src.Position(first)
		d.add(n, KindDuplicate, "", "duplicate step id %q, first in line %d", text, line)
		return
	}
	d.ids[text] = n.Start
	dst.ID = text
}

// outputTo reads the variable and adds it to the outputs, for the check of parallel
// branches.
func (d *decoder) outputTo(n *node, dst *Step) {
	text, ok := d.nonEmptyText(n)
	if !ok {
		return
	}
	if message, hint := variableProblem(text); message != "" {
		d.add(n, KindValue, hint, "%s", message)
		return
	}
	d.outputs = append(d.outputs, output{text, n})
	dst.OutputTo = text
}

// steps reads a step list. The result is never nil.
func (d *decoder) steps(n *node) []Step {
	if !d.expect(n, '[', "an array of steps") {
		return []Step{}
	}
	steps := make([]Step, 0, len(n.Items))
	for _, item := range n.Items {
		steps = append(steps, d.step(item))
	}
	return steps
}

// step reads one step: the common fields with their table, the type's own with the
// schema and the marks of its spec.
func (d *decoder) step(n *node) Step {
	var s Step
	if !d.expect(n, '{', "a step") {
		return s
	}
	before := len(d.problems)
	spec := d.stepType(n, &s)
	if spec != nil && d.broken != nil {
		guessed := len(d.problems) > before
		defer func() { // the steps nested in this one mark themselves
			if guessed { // another type may not need what this one does
				d.problems = slices.DeleteFunc(d.problems, func(p Problem) bool { return p.Kind == KindMissing && p.Path == n.Path() })
			}
			if d.ownProblem(n, spec, d.problems[before:]) {
				d.broken[n.Start] = true
			}
		}()
	}
	adapted := *n
	n = &adapted
	d.adaptStep(n, spec)
	known, _ := format.step.names()
	var fields *fieldSet
	if spec != nil {
		fields = spec.compiled
		known = append(known, fields.names...)
	}
	seen := make(map[string]member, len(n.Members))
	own := new(node)
	*own = *n // for its place
	own.Members = nil
	for _, m := range n.Members {
		common := format.step.find(m.Name)
		name := m.Name
		if spec != nil {
			name = spec.stored(m.Name)
		}
		switch {
		case common != nil && common.name == "type": // read before
		case fields != nil && fields.has(name): // also a type's own timeoutMs
			if d.recordKey(seen, name, m) {
				m.Name = name
				own.Members = append(own.Members, m)
			}
		case fields == nil && m.Name == "timeoutMs" && m.Value.Kind == '"' && reference.Contains(m.Value.Text):
			own.Members = append(own.Members, m) // only a type's own is resolved, and the type is not known here
		case common != nil:
			common.decode(d, m.Value, &s)
		case fields == nil || fields.open:
			own.Members = append(own.Members, m)
		case d.lenient:
			own.Members = append(own.Members, m)
		default:
			d.unknownKey(m, []string{string(s.Type), inStep}, known)
		}
	}
	d.ownFields(&s, fields, own)
	return s
}

// ownProblem reports whether one of the problems concerns the step at n itself, not a
// step nested in it.
func (d *decoder) ownProblem(n *node, spec *TypeSpec, problems Problems) bool {
	at := n.Path()
	return slices.ContainsFunc(problems, func(p Problem) bool {
		if p.Kind == KindAbsent {
			return false
		}
		rest := strings.TrimPrefix(strings.TrimPrefix(p.Path, at), ".")
		field := rest[:len(rest)-len(strings.TrimLeft(rest, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"))]
		switch spec.Mark(spec.stored(field)) {
		case markSteps, markBranches, markDefinition:
			return rest == field // of the list as such
		}
		return true
	})
}

// stepType sets the type of the step and returns its spec, nil if the fields cannot
// be checked because the type is unknown or no types were given. For a misspelt type it
// is the spec that was probably meant, so that other mistakes in the step are reported
// in the same report.
func (d *decoder) stepType(n *node, s *Step) *TypeSpec {
	at := n.Member("type")
	if at == nil {
		if spec := d.infer(n); spec != nil {
			s.Type = spec.Type
			return spec
		}
		if d.opt.Types == nil {
			return nil // it is inferred when the definition is decoded with types
		}
		hint, word := d.stepWord(n)
		if word == "" {
			hint = d.typeHint(n)
		}
		d.add(n, KindMissing, hint, "type is missing and cannot be inferred from the other fields")
		return nil
	}
	text, ok := d.nonEmptyText(at)
	if !ok {
		return nil
	}
	s.Type = StepType(text)
	if d.opt.Types == nil {
		if s.Type = StepType(strings.ToLower(text)); !reference.IsName(text) || len(text) > maxName {
			d.add(at, KindValue, "lower-case letters, digits and _", "invalid step type %q", text)
		}
		return nil
	}
	if name, ok := equalFold(text, d.opt.Types.names()); ok {
		s.Type = StepType(name)
		spec, _ := d.opt.Types.Lookup(s.Type)
		return spec
	}
	if d.opt.UnknownType != nil {
		if message, hint := d.opt.UnknownType(s.Type); message != "" {
			if !d.opt.AllowAbsent {
				d.add(at, KindAbsent, hint, "%s", message)
			}
			return nil
		}
	}
	instead := d.otherWordHint(text, n, inType)
	later := instead != ""
	if later {
		d.add(at, KindUnknown, instead, "unknown step type %q", text)
	} else {
		d.add(at, KindUnknown, didYouMean(text, d.opt.Types.names()), "unknown step type %q", text)
	}
	if d.lenient || later {
		return nil
	}
	if near := Suggest(text, d.opt.Types.names()); len(near) > 0 {
		s.Type = StepType(near[0])
		spec, _ := d.opt.Types.Lookup(s.Type)
		return spec
	}
	d.unknownBlocks(n)
	return nil
}

// unknownBlocks reports the problems of the steps in the fields of a step whose type is
// unknown, which are those in which any type has steps.
func (d *decoder) unknownBlocks(n *node) {
	for _, m := range n.Members {
		mark := ""
		for i := range d.opt.Types.specs {
			spec := &d.opt.Types.specs[i]
			if found := spec.Mark(spec.stored(m.Name)); found == markSteps || found == markBranches {
				mark = found
			}
		}
		switch {
		case mark == markSteps && m.Value.Kind == '[':
			d.steps(m.Value)
		case mark == markBranches && (m.Value.Kind == '[' || m.Value.Kind == '{'):
			d.branches(new(Step), m, true)
		}
	}
}

// infer returns the first type for which the step has an inference field.
func (d *decoder) infer(n *node) *TypeSpec {
	if d.opt.Types == nil {
		return nil
	}
	otherIf := n.Member("then") == nil && n.Member("else") == nil // it is the word of another system for condition
	var condition *TypeSpec
	for i := range d.opt.Types.specs {
		spec := &d.opt.Types.specs[i]
		for _, m := range n.Members {
			if m.Name == "if" && otherIf && slices.Contains(spec.Infer, spec.stored(m.Name)) {
				condition = cmp.Or(condition, spec)
				continue
			}
			if slices.Contains(spec.Infer, m.Name) || slices.Contains(spec.Infer, spec.stored(m.Name)) {
				return spec
			}
		}
	}
	return condition
}

// typeHint suggests "type" or an inference field with a similar name, or lists the types.
func (d *decoder) typeHint(n *node) string {
	names := []string{"type"}
	for i := range d.opt.Types.specs {
		names = append(names, inferenceFields(&d.opt.Types.specs[i])...)
	}
	return cmp.Or(insteadHint(n, format.step.find, names), "one of "+quotedList(d.opt.Types.names(), " or "))
}

// insteadHint suggests one of names instead of a key that is similar, "" if there is none.
// known returns the field of a key that is not misspelt.
func insteadHint[T any](n *node, known func(name string) *field[T], names []string) string {
	for _, m := range n.Members {
		if near := Suggest(m.Name, names); len(near) > 0 && known(m.Name) == nil {
			return "did you mean " + quotedList(near, " or ") + fmt.Sprintf(" instead of %q?", m.Name)
		}
	}
	return ""
}

// ownFields divides a type's fields into Fields and Blocks and checks them.
func (d *decoder) ownFields(s *Step, fields *fieldSet, own *node) {
	costly := fields != nil && !fields.size.Cheap(own.Count()) && fields.size.TooCostly(fields.raw, fields.instance(own)) != ""
	var misplaced []string // paths of expressions that are reported
	for _, m := range own.Members {
		mark := ""
		if fields != nil {
			mark = fields.marks[m.Name]
			if !costly {
				fields.normalize(m.Name, m.Value)
			}
		}
		switch {
		case mark == markSteps:
			s.block(m.Name, d.steps(m.Value))
		case mark == markBranches:
			d.branches(s, m, fields.named(m.Name))
		case mark == markDefinition:
			if raw := d.nested(m.Value, s, own); raw != nil {
				s.field(m.Name, raw)
			}
		case mark == markExpression && m.Value.Kind == '"':
			d.expression(m.Value)
			s.field(m.Name, m.Value.Canonical())
		case mark == markVariable && m.Value.Kind == '"' && !reference.Contains(m.Value.Text):
			if message, hint := variableProblem(m.Value.Text); message != "" {
				d.add(m.Value, KindValue, hint, "%s", message)
			}
			s.field(m.Name, m.Value.Canonical())
		case mark == markValues && m.Value.Kind == '{':
			d.values(m.Value)
			s.field(m.Name, m.Value.Canonical())
		case mark == "" && fields != nil && fields.evaluates(m.Name) && expressionOf(m.Value) != nil:
			d.expression(expressionOf(m.Value))
			s.field(m.Name, m.Value.Canonical())
		case fields != nil && fields.evaluates(m.Name) && m.Value.Kind == '"' && reference.Contains(m.Value.Text) && !reference.IsReference(m.Value.Text):
			d.add(m.Value, KindType, `write {"expr": `+textcut.Mark(quoted(withoutTemplate(m.Value.Text)), maxProblemText/2)+`}`, "is a text with a reference in it, and not its value")
			s.field(m.Name, m.Value.Canonical())
		case (mark == "" || mark == markShell || mark == markVariable || mark == markInterpreter) && fields != nil && !fields.describesExpr(m.Name):
			misplaced = append(misplaced, d.misplacedExpressions(m.Value)...)
			s.field(m.Name, m.Value.Canonical())
		default:
			s.field(m.Name, m.Value.Canonical())
		}
	}
	if fields == nil {
		return
	}
	before := len(d.problems)
	d.checkFields(fields, own)
	if len(misplaced) > 0 && len(d.problems) > before { // the place of the expression is reported, so its type is not
		of := slices.DeleteFunc(d.problems[before:], func(p Problem) bool {
			return slices.ContainsFunc(misplaced, func(at string) bool { return p.Path == at || strings.HasPrefix(p.Path, at+".") })
		})
		d.problems = d.problems[:before+len(of)]
	}
}

// values reads the values of variables by name: names that a step may set, and the
// expressions among the values.
func (d *decoder) values(n *node) {
	for _, m := range n.Members {
		if message, hint := variableProblem(m.Name); message != "" {
			d.addAt(m.Start, m.Value.Path(), KindValue, hint, message)
			continue
		}
		d.outputs = append(d.outputs, output{m.Name, m.Value})
		if expr := expressionOf(m.Value); expr != nil {
			d.expression(expr)
			continue
		}
		d.misplacedExpressions(m.Value)
	}
}

// The message and the hint for {"expr": source} where nothing evaluates it.
const (
	MisplacedExpression     = `{"expr": ...} is evaluated only as a whole value in "values" of a step of type set, and as "each" of a loop`
	MisplacedExpressionHint = "compute it in a step of type set before this one, and write a $reference here"
)

// misplacedExpressions reports each {"expr": source} in a value, and returns their paths: it
// would stay an object with a text, because only the value of a variable is evaluated.
func (d *decoder) misplacedExpressions(n *node) (paths []string) {
	if expressionOf(n) != nil {
		d.add(n, KindValue, MisplacedExpressionHint, MisplacedExpression)
		return []string{n.Path()}
	}
	for _, m := range n.Members {
		paths = append(paths, d.misplacedExpressions(m.Value)...)
	}
	for _, item := range n.Items {
		paths = append(paths, d.misplacedExpressions(item)...)
	}
	return paths
}

// neverEvaluated reports a value that a run begins with and that is {"expr": source}.
func (d *decoder) neverEvaluated(n *node) {
	if expressionOf(n) != nil {
		d.add(n, KindValue, "compute it in a first step of type set", MisplacedExpression)
	}
}

// expressionOf returns the source in {"expr": source}, nil if n is another value.
func expressionOf(n *node) *node {
	if n.Kind != '{' || len(n.Members) != 1 {
		return nil
	}
	if expr := n.Member("expr"); expr != nil && expr.Kind == '"' {
		return expr
	}
	return nil
}

// branches reads a list of step lists, or an object of them by name if the type takes names. It reports a
// variable that two branches set: at the join, the value of the later branch would silently replace the other.
func (d *decoder) branches(s *Step, m member, named bool) {
	setBy := make(map[string]string)
	if m.Value.Kind == '{' && named {
		if len(m.Value.Members) == 0 {
			s.field(m.Name, json.RawMessage("{}")) // an empty object has no entry in Blocks
		}
		for _, b := range m.Value.Members {
			if !stepID(b.Name) {
				d.addAt(b.Start, b.Value.Path(), KindValue, "letters, digits, - and _, at most 64, not digits alone", fmt.Sprintf("invalid name of a branch %q", b.Name))
				continue
			}
			d.branch(s, m.Name+"."+b.Name, b.Name, b.Value, setBy)
		}
		return
	}
	want := "an array of step lists"
	if named {
		want += ", or an object of them by name"
	}
	if !d.expect(m.Value, '[', want) {
		return
	}
	if len(m.Value.Items) == 0 {
		s.field(m.Name, json.RawMessage("[]")) // an empty list has no entry in Blocks
	}
	for i, item := range m.Value.Items {
		d.branch(s, m.Name+"."+strconv.Itoa(i), strconv.Itoa(i), item, setBy)
	}
}

// branch reads the steps of one branch. setBy has the branches that set the variables so far.
func (d *decoder) branch(s *Step, path, name string, n *node, setBy map[string]string) {
	if n.Kind == '{' {
		allowed := name
		if _, err := strconv.Atoi(name); err != nil {
			allowed = strconv.Quote(name)
		}
		field, _, _ := strings.Cut(path, ".")
		hint := fmt.Sprintf(`write the list of its steps; "allowFailure": [%s] beside %q lets this branch fail`, allowed, field)
		d.add(n, KindType, hint, "a branch is an array of steps, not an object")
		return
	}
	from := len(d.outputs)
	s.block(path, d.steps(n))
	for _, o := range d.outputs[from:] {
		if other, set := setBy[o.name]; set && other != name {
			d.add(o.at, KindDuplicate, "give each branch its own variable",
				"the variable %q is also set in branch %s", o.name, other)
			continue
		}
		setBy[o.name] = name
	}
}

// field and block create their maps on first use, so that a step without fields has
// a nil map, as it has after encoding and decoding.
func (s *Step) field(name string, raw json.RawMessage) {
	if s.Fields == nil {
		s.Fields = make(map[string]json.RawMessage)
	}
	s.Fields[name] = raw
}

func (s *Step) block(path string, steps []Step) {
	if s.Blocks == nil {
		s.Blocks = make(map[string][]Step)
	}
	s.Blocks[path] = steps
}

// String returns the name, the id or the type of the step, for messages.
func (s *Step) String() string {
	switch {
	case s.Name != "":
		return s.Name
	case s.ID != "":
		return s.ID
	}
	return fmt.Sprintf("%s step", s.Type)
}
