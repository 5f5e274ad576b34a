package sentinels

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// The marks of step fields, as package sdk/abi names them; a test holds the two
// lists equal, because this package imports nothing of the module.
const (
	markExpression = "expression"
	markSteps      = "steps"
	markBranches   = "branches"
	markShell      = "shell"
	markRaw        = "raw"
	markDefinition = "definition"
	markTools      = "tools"
	markParams     = "params"
	markVariable   = "variable"
)

var marks = []string{markExpression, markSteps, markBranches, markShell, markRaw, markDefinition, markTools, markParams, markVariable}

func init() {
	expression := map[string]any{"type": "string", "minLength": 1}
	stepFields = table[Step]{
		textField("type", "The step type; inferred from the other fields if it is missing.", func(s *Step) *StepType { return &s.Type }),
		{name: "id", doc: "A name for addressing the step, unique in the definition.",
			schema: map[string]any{"type": "string", "pattern": "^[A-Za-z0-9_][A-Za-z0-9_-]{0,63}$"},
			decode: (*decoder).stepID, encode: textField("", "", func(s *Step) *string { return &s.ID }).encode},
		textField("name", "The step as people read it.", func(s *Step) *string { return &s.Name }),
		{name: "condition", doc: "A guard: the step is carried out if it holds.", schema: expression,
			decode: func(d *decoder, n *node, dst *Step) { dst.Condition, _ = d.expression(n) },
			encode: textField("", "", func(s *Step) *string { return &s.Condition }).encode},
		{name: "outputTo", doc: "The variable that takes the output.",
			schema: map[string]any{"type": "string", "pattern": variablePattern},
			decode: (*decoder).outputTo, encode: textField("", "", func(s *Step) *string { return &s.OutputTo }).encode},
		{name: "onError", doc: "What an error of the step does; fail if it is missing.",
			schema: map[string]any{"anyOf": []any{map[string]any{"enum": errorActions}, refSchema("onError")}},
			decode: (*decoder).onError, encode: encodeOnError},
		numberField("timeoutMs", "Time limit of the step.", 1, func(s *Step) *int64 { return &s.TimeoutMs }),
		choiceField("onInterrupt", "What becomes of a call that a crash left in doubt.", interrupts, func(s *Step) *Interrupt { return &s.OnInterrupt }),
	}
}

// stepID keeps ids unique in a definition: edits and problems address steps by them.
func (d *decoder) stepID(n *node, dst *Step) {
	text, ok := d.mustText(n)
	if !ok {
		return
	}
	if !stepID(text) {
		d.add(n, KindValue, "letters, digits, - and _, at most 64, not digits alone", "%q is no step id", text)
		return
	}
	if first, double := d.ids[text]; double {
		line, _ := d.src.place(first)
		d.add(n, KindDuplicate, "", "the step id %q is there twice, first in line %d", text, line)
		return
	}
	d.ids[text] = n.start
	dst.ID = text
}

// outputTo notes the variable with its place, for the check of parallel branches.
func (d *decoder) outputTo(n *node, dst *Step) {
	text, ok := d.mustText(n)
	if !ok {
		return
	}
	if message, hint := settable(text); message != "" {
		d.add(n, KindValue, hint, "%s", message)
		return
	}
	d.outputs = append(d.outputs, output{text, n})
	dst.OutputTo = text
}

// steps reads a step list; it is never nil.
func (d *decoder) steps(n *node) []Step {
	if !d.want(n, '[', "an array of steps") {
		return []Step{}
	}
	steps := make([]Step, 0, len(n.items))
	for _, item := range n.items {
		steps = append(steps, d.step(item))
	}
	return steps
}

// step reads one step: the common fields by their table, the type's own by the
// schema and the marks of its spec.
func (d *decoder) step(n *node) Step {
	var s Step
	if !d.want(n, '{', "a step") {
		return s
	}
	spec := d.stepType(n, &s)
	known, _ := stepFields.names()
	var fields *fieldSet
	if spec != nil {
		fields = spec.compiled
		known = append(known, fields.names...)
	}
	seen := make(map[string]member, len(n.members))
	own := &node{kind: '{', start: n.start, path: n.path}
	for _, m := range n.members {
		common := stepFields.find(m.name)
		name := m.name
		if spec != nil {
			name = spec.stored(m.name)
		}
		switch {
		case m.name == "type":
		case fields != nil && fields.has(name): // also a type's own timeoutMs
			if d.first(seen, name, m) {
				own.members = append(own.members, member{name, m.start, m.value})
			}
		case common != nil:
			common.decode(d, m.value, &s)
		case fields == nil || fields.open:
			own.members = append(own.members, m)
		default:
			d.unknownKey(m, known)
		}
	}
	d.ownFields(&s, fields, own)
	return s
}

// stepType settles the type of the step and returns its spec, nil if there is
// none to check the fields by.
func (d *decoder) stepType(n *node, s *Step) *TypeSpec {
	at := n.member("type")
	if at == nil {
		if spec := d.infer(n); spec != nil {
			s.Type = spec.Type
			return spec
		}
		if d.opt.Types == nil {
			return nil // whoever knows the types infers it
		}
		d.add(n, KindMissing, d.typeHint(n), "type is missing, and no other field tells it")
		return nil
	}
	text, ok := d.mustText(at)
	if !ok {
		return nil
	}
	s.Type = StepType(text)
	if d.opt.Types == nil {
		if !isName(text) || len(text) > maxName || text != strings.ToLower(text) {
			d.add(at, KindValue, "lower-case letters, digits and _", "%q is no step type", text)
		}
		return nil
	}
	if name, ok := equalFold(text, d.opt.Types.names()); ok {
		s.Type = StepType(name)
		spec, _ := d.opt.Types.Lookup(s.Type)
		return spec
	}
	if d.opt.Absent != nil {
		if message, hint := d.opt.Absent(s.Type); message != "" {
			d.add(at, KindUnknown, hint, "%s", message)
			return nil
		}
	}
	d.add(at, KindUnknown, didYouMean(text, d.opt.Types.names()), "unknown step type %q", text)
	return nil
}

// infer returns the first type that has a telling field in the step.
func (d *decoder) infer(n *node) *TypeSpec {
	if d.opt.Types == nil {
		return nil
	}
	for i := range d.opt.Types.specs {
		spec := &d.opt.Types.specs[i]
		for _, m := range n.members {
			if slices.Contains(spec.Infer, spec.stored(m.name)) {
				return spec
			}
		}
	}
	return nil
}

// typeHint looks for a mistyped telling field, or else lists the types.
func (d *decoder) typeHint(n *node) string {
	var telling []string
	for i := range d.opt.Types.specs {
		telling = append(telling, tellingFields(&d.opt.Types.specs[i])...)
	}
	for _, m := range n.members {
		if near := Suggest(m.name, telling); len(near) > 0 && stepFields.find(m.name) == nil {
			return "did you mean " + quotedList(near, " or ") + fmt.Sprintf(" in place of %q?", m.name)
		}
	}
	return "one of " + quotedList(d.opt.Types.names(), " or ")
}

// ownFields sorts a type's fields into Fields and Blocks and checks them.
func (d *decoder) ownFields(s *Step, fields *fieldSet, own *node) {
	costly := fields != nil && !fields.cheap(own.count()) && fields.tooCostly(fields.instance(own)) != ""
	for _, m := range own.members {
		mark := ""
		if fields != nil {
			mark = fields.marks[m.name]
			if !costly {
				fields.spell(m.name, m.value)
			}
		}
		switch {
		case mark == markSteps:
			s.block(m.name, d.steps(m.value))
		case mark == markBranches:
			d.branches(s, m)
		case mark == markDefinition:
			if raw := d.nested(m.value, s, own.path); raw != nil {
				s.field(m.name, raw)
			}
		case mark == markExpression && m.value.kind == '"':
			d.expression(m.value)
			s.field(m.name, m.value.raw())
		case mark == markVariable && m.value.kind == '"' && !hasReference(m.value.text):
			if message, hint := settable(m.value.text); message != "" {
				d.add(m.value, KindValue, hint, "%s", message)
			}
			s.field(m.name, m.value.raw())
		default:
			s.field(m.name, m.value.raw())
		}
	}
	if fields != nil {
		d.checkFields(fields, own)
	}
}

// branches reads a list of step lists. What two branches set is a problem: at
// the join the later one would silently win.
func (d *decoder) branches(s *Step, m member) {
	if !d.want(m.value, '[', "an array of step lists") {
		return
	}
	if len(m.value.items) == 0 {
		s.field(m.name, json.RawMessage("[]")) // no entry of Blocks could say so
	}
	setBy := make(map[string]int)
	for i, item := range m.value.items {
		from := len(d.outputs)
		s.block(m.name+"."+strconv.Itoa(i), d.steps(item))
		for _, o := range d.outputs[from:] {
			if other, set := setBy[o.name]; set && other != i {
				d.add(o.at, KindDuplicate, "give each branch its own variable",
					"the variable %q is also set in branch %d", o.name, other)
				continue
			}
			setBy[o.name] = i
		}
	}
}

// field and block make their maps late: a step without fields keeps a nil map, as one
// that was written and read again has.
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

// String returns what identifies the step to a person.
func (s *Step) String() string {
	switch {
	case s.Name != "":
		return s.Name
	case s.ID != "":
		return s.ID
	}
	return fmt.Sprintf("%s step", s.Type)
}
