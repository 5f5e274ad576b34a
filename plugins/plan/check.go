package plan

import (
	"strconv"

	"github.com/sentinel-runtime/sentinel/sdk"
)

const (
	maxSteps    = 50
	maxProblems = 20
	maxPlan     = 96 << 10 // bytes as JSON; a request to the host has 256 KiB
)

// A planned is one step of a plan that is checked.
type planned struct {
	id     string
	skill  *skill
	inputs sdk.Value
	needs  []string // ids of the steps that it depends on
	value  sdk.Value
}

// A checker collects the problems of a plan.
type checker struct {
	skills   skills
	problems []sdk.Value
}

func (k *checker) add(problem string) {
	if len(k.problems) < maxProblems {
		k.problems = append(k.problems, sdk.String(problem))
	}
}

// check returns what is wrong with a plan, and the plan with its steps in an order in which
// each follows those that it depends on.
func check(c *sdk.Context, all skills) sdk.Value {
	k := &checker{skills: all}
	plan, problem := decode(c.Field("plan"))
	var steps []planned
	if n := len(plan.String()); problem == "" && n > maxPlan {
		plan, problem = sdk.Value{}, "the plan has "+strconv.Itoa(n)+" bytes, the limit is "+strconv.Itoa(maxPlan)
	}
	if problem != "" {
		k.add(problem)
	} else {
		steps = k.order(k.steps(plan.Get("steps")))
	}
	if len(k.problems) > 0 {
		return sdk.Object(sdk.F("valid", sdk.Bool(false)), sdk.F("ok", sdk.Bool(false)), sdk.F("equal", sdk.Bool(false)),
			sdk.F("problems", sdk.List(k.problems...)), sdk.F("plan", plan), sdk.F("text", sdk.String(k.text())))
	}
	own := hash(normal(steps))
	to, equal := int64(0), false
	for _, f := range items(c.Field("failed")) {
		if f.Get("hash").StringOr("") == own {
			to, equal = f.Get("attemptNumber").IntOr(0), true
		}
	}
	list := make([]sdk.Value, len(steps))
	for i, s := range steps {
		inputs := s.inputs
		if s.skill.schema.Get("properties").Get(autofix).Exists() {
			inputs = inputs.With(autofix, sdk.Bool(c.Field("autofix").BoolOr(false)))
		}
		list[i] = sdk.Object(
			sdk.F("id", s.value.Get("id")), sdk.F("description", sdk.String(s.value.Get("description").StringOr(""))),
			sdk.F("skillId", sdk.String(s.skill.id())), sdk.F("command", sdk.String(s.skill.name)), sdk.F("risk", sdk.String(s.skill.risk)),
			sdk.F("inputs", inputs), sdk.F("dependsOn", sdk.List(texts(s.needs)...)), sdk.F("expectedOutput", s.value.Get("expectedOutput")),
		)
	}
	out := sdk.Object(
		sdk.F("valid", sdk.Bool(true)), sdk.F("ok", sdk.Bool(!equal)), sdk.F("equal", sdk.Bool(equal)), sdk.F("problems", sdk.List()),
		sdk.F("plan", sdk.Object(sdk.F("steps", sdk.List(list...)), sdk.F("reasoning", plan.Get("reasoning")))),
		sdk.F("hash", sdk.String(own)), sdk.F("text", sdk.String("")),
	)
	if equal {
		n := strconv.FormatInt(to, 10)
		out = out.With("equalTo", sdk.Int(to)).With("text", sdk.String("- The plan is equal to the failed plan of attempt "+n+". Its words differ at most."))
	}
	return out
}

// text returns the problems as a list for a prompt.
func (k *checker) text() string {
	text := ""
	for _, p := range k.problems {
		text += "- " + p.StringOr("") + "\n"
	}
	return text
}

// steps reads the steps of a plan and checks each of them.
func (k *checker) steps(v sdk.Value) []planned {
	if v.Kind() != sdk.KindList || v.Len() == 0 || v.Len() > maxSteps {
		k.add("steps: want a list of 1 to " + strconv.Itoa(maxSteps) + " steps, got " + v.Kind().String())
		return nil
	}
	var list []planned
	var seen []string
	for i, s := range items(v) {
		at := "steps[" + strconv.Itoa(i) + "]"
		if s.Kind() != sdk.KindObject {
			k.add(at + ": want an object, got " + s.Kind().String())
			continue
		}
		p := planned{id: idOf(s.Get("id")), inputs: s.Get("inputs"), value: s}
		switch {
		case !validID(p.id):
			k.add(at + ".id: want a number or a name of letters, digits, - and _")
		case contains(seen, p.id):
			k.add(at + ".id: " + sdk.Quote(p.id) + " is the id of an earlier step too")
		}
		seen = append(seen, p.id)
		for _, name := range [...]string{"description", "expectedOutput"} {
			if t := s.Get(name); t.Given() && t.Kind() != sdk.KindString {
				k.add(at + "." + name + ": want a text, got " + t.Kind().String())
			}
		}
		if !p.inputs.Given() {
			p.inputs = sdk.Object()
		}
		id, _ := s.Get("skillId").AsString()
		if p.skill = k.skills.find(id); p.skill == nil {
			k.add(at + ".skillId: unknown skill " + sdk.Quote(sdk.Cut(id, 80)) + "; the skills are " + k.skills.ids())
		} else {
			k.inputs(at+".inputs", p.skill, p.inputs)
		}
		k.needs(at, &p)
		list = append(list, p)
	}
	return list
}

// idOf returns the id of a step as text; ids may be numbers.
func idOf(v sdk.Value) string {
	if n, ok := v.AsInt(); ok {
		return strconv.FormatInt(n, 10)
	}
	return v.StringOr("")
}

// validID reports whether an id can be part of a reference.
func validID(id string) bool {
	for _, c := range []byte(id) {
		if !word(c) {
			return false
		}
	}
	return id != "" && len(id) <= 64
}

func word(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_'
}

// inputs checks the inputs of a step under the schema of its skill, as far as references
// allow it. The host checks them again when the step is executed.
func (k *checker) inputs(at string, s *skill, inputs sdk.Value) {
	if inputs.Kind() != sdk.KindObject {
		k.add(at + ": want an object, got " + inputs.Kind().String())
		return
	}
	properties := s.schema.Get("properties")
	required, _ := s.schema.Get("required").AsStrings()
	for _, name := range required {
		if !inputs.Get(name).Exists() {
			k.add(at + "." + name + ": is missing; " + s.id() + " requires it")
		}
	}
	for _, f := range members(inputs) {
		name, v := f.Name, f.Value
		property := properties.Get(name)
		if !property.Exists() {
			if open := s.schema.Get("additionalProperties"); open.Exists() && open.String() == "false" {
				k.add(at + "." + name + ": is not an input of " + s.id())
			}
			continue
		}
		if bad := codeProblem(s.name, name, v); bad != "" {
			k.add(at + "." + bad)
			continue
		}
		if text, ok := v.AsString(); ok && len(references(text)) > 0 {
			continue
		}
		if want := property.Get("type"); !fits(want, v) {
			k.add(at + "." + name + ": want " + want.String() + ", got " + v.Kind().String())
		} else if enum := property.Get("enum"); enum.Len() > 0 && !among(enum, v) {
			k.add(at + "." + name + ": want one of " + enum.String())
		}
	}
}

// fits reports whether a value has one of the JSON types of a schema.
func fits(want sdk.Value, v sdk.Value) bool {
	if want.Kind() == sdk.KindList {
		for _, one := range items(want) {
			if fits(one, v) {
				return true
			}
		}
		return false
	}
	switch want.StringOr("") {
	case "string":
		return v.Kind() == sdk.KindString
	case "integer":
		_, ok := v.AsInt()
		return ok
	case "number":
		return v.Kind() == sdk.KindNumber
	case "boolean":
		return v.Kind() == sdk.KindBool
	case "array":
		return v.Kind() == sdk.KindList
	case "object":
		return v.Kind() == sdk.KindObject
	case "null":
		return v.Kind() == sdk.KindNull
	}
	return true
}

func among(list, v sdk.Value) bool {
	for _, item := range items(list) {
		if item.Canonical() == v.Canonical() {
			return true
		}
	}
	return false
}

// needs collects the steps that a step depends on: by references and by dependsOn.
func (k *checker) needs(at string, p *planned) {
	add := func(id string) {
		if !contains(p.needs, id) {
			p.needs = append(p.needs, id)
		}
	}
	for _, v := range items(p.value.Get("dependsOn")) {
		add(idOf(v))
	}
	each(p.inputs, func(text string) {
		for _, r := range references(text) {
			if r.problem != "" {
				k.add(at + ".inputs: " + r.problem)
				continue
			}
			add(r.id)
		}
	})
}

// order sorts steps so that each follows those that it depends on, and keeps their order
// otherwise.
func (k *checker) order(steps []planned) []planned {
	var known []string
	for _, s := range steps {
		known = append(known, s.id)
	}
	for i, s := range steps {
		for _, id := range s.needs {
			if !contains(known, id) {
				k.add("steps[" + strconv.Itoa(i) + "]: depends on step " + sdk.Quote(id) + ", which the plan does not have")
			}
		}
	}
	if len(k.problems) > 0 {
		return nil
	}
	var done []string
	var sorted []planned
	for len(sorted) < len(steps) {
		before := len(sorted)
		for _, s := range steps {
			if !contains(done, s.id) && ready(s, done) {
				done = append(done, s.id)
				sorted = append(sorted, s)
				break
			}
		}
		if len(sorted) == before {
			circle := ""
			for _, s := range steps {
				if !contains(done, s.id) {
					circle += " " + s.id
				}
			}
			k.add("steps depend on each other in a circle:" + circle)
			return nil
		}
	}
	return sorted
}

func ready(s planned, done []string) bool {
	for _, id := range s.needs {
		if !contains(done, id) {
			return false
		}
	}
	return true
}

func texts(list []string) []sdk.Value {
	values := make([]sdk.Value, len(list))
	for i, s := range list {
		values[i] = sdk.String(s)
	}
	return values
}
