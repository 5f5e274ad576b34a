package sentinels

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/sentinel-runtime/sentinel/internal/textcut"
	"github.com/sentinel-runtime/sentinel/sentinels/reference"
)

// A fileDefinition is a definition with the keys that a file may have and the
// stored form has not: they are merged into other fields.
type fileDefinition struct {
	Definition
	uniqueID      ID
	timeoutMs     int64
	maxIterations int
}

// definition reads the definition at n and checks the rules between its fields.
func (d *decoder) definition(n *node) Definition {
	var out fileDefinition
	if pipeline := n.Member(recipeSteps); pipeline != nil {
		d.recipe, d.outputs = true, recipeOutputs(pipeline)
	}
	d.seen = format.definition.read(d, n, &out)
	if d.seen == nil {
		return out.Definition
	}
	d.name(n, &out)
	format.definition.reportMissing(d, n, d.seen, "", "")
	if variables := n.Member("variables"); variables != nil {
		for _, m := range variables.Members {
			if _, input := out.Inputs[m.Name]; input {
				d.addAt(m.Start, m.Value.Path(), KindDuplicate, `set "default" of the input instead`, fmt.Sprintf("%q is an input too", m.Name))
			}
		}
	}
	if out.Loop.Type == "" {
		out.Loop.Type = LoopOnce
	}
	larger(d, n, "timeoutMs", out.timeoutMs, out.Safety.TimeoutMs)
	larger(d, n, "maxIterations", int64(out.maxIterations), int64(out.Safety.MaxIterations))
	out.Safety.TimeoutMs = smaller(out.Safety.TimeoutMs, out.timeoutMs)
	out.Safety.MaxIterations = smaller(out.Safety.MaxIterations, out.maxIterations)
	d.requireLimit(n, &out)
	if strategy := n.Member("strategy"); strategy != nil && strategy.Member("matrix") != nil {
		d.add(strategy, KindUnknown, "write a step "+textcut.Mark(matrixLoop(strategy), maxProblemText/2), "nothing reads a strategy: a matrix is a loop over its values")
	}
	if template := n.Member(recipeTemplate); template != nil && template.Kind != 'n' {
		if out.Recipe == "" && out.RAGSources == nil {
			out.RAGSources = d.templateSources(template) // the file is its own recipe
		} else {
			d.add(template, KindWarning, "leave it out", "%s has no effect beside recipe and ragSources", recipeTemplate)
		}
	}
	return out.Definition
}

// name sets the id from the name, or the name from the id, if one is missing.
func (d *decoder) name(n *node, out *fileDefinition) {
	if out.uniqueID != "" {
		if out.ID != "" && out.ID != out.uniqueID {
			d.add(n.Member("id"), KindWarning, "leave one of both out", "id has no effect beside uniqueId %q", out.uniqueID)
		}
		out.ID = out.uniqueID
	}
	if _, given := d.seen["name"]; given || out.Name != "" {
		if out.ID == "" && out.Name != "" {
			out.ID = Slug(out.Name)
		}
		return
	}
	switch {
	case out.ID != "":
		out.Name = string(out.ID)
	case d.label != "":
		out.Name, out.ID = d.label, Slug(d.label)
	default:
		d.add(n, KindMissing, "", "name is missing")
	}
}

// smaller returns the smaller of two limits; 0 means no limit.
func smaller[N int | int64](a, b N) N {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// larger reports the larger one of a limit of the definition and that of safety.
func larger(d *decoder, n *node, name string, own, safety int64) {
	switch safetyNode := n.Member("safety"); {
	case own == 0 || safety == 0 || own == safety:
	case own > safety:
		d.add(n.Member(name), KindWarning, "leave it out", "%s has no effect: that of safety is smaller", name)
	default:
		d.add(safetyNode.Member(name), KindWarning, "leave it out", "%s has no effect: that of the definition is smaller", name)
	}
}

// requireLimit reports an unbounded loop.
func (d *decoder) requireLimit(n *node, out *fileDefinition) {
	switch out.Loop.Type {
	case LoopUntil, LoopWhile, LoopContinuous, LoopEvent:
	default:
		return
	}
	if out.Safety.MaxIterations > 0 || out.Safety.TimeoutMs > 0 {
		return
	}
	// A limit that is given but invalid has been reported already.
	for _, f := range format.definition {
		outer, name, limit := strings.Cut(f.into, ".")
		if own := n.Member(f.name); limit && own != nil && own.Kind != 'n' {
			return
		}
		if in := n.Member(outer); limit && in != nil && in.Kind != 'n' && (in.Kind != '{' || in.Member(name) != nil) {
			return
		}
	}
	at := n
	if loop := n.Member("loop"); loop != nil {
		at = loop
	}
	d.add(at, KindBound, `add "timeoutMs", or "maxIterations" in "safety"`, "a loop of type %q is unbounded: set maxIterations or timeoutMs", out.Loop.Type)
}

// tools reads command names. Recipes have objects with a name instead.
func (d *decoder) tools(n *node, dst *fileDefinition) {
	if !d.expect(n, '[', "an array of command names") {
		return
	}
	for _, item := range n.Items {
		if item.Kind == '{' {
			name := item.Member("name")
			if name == nil {
				d.add(item, KindMissing, "", "name is missing")
				continue
			}
			item = name
		}
		if s, ok := d.nonEmptyText(item); ok {
			dst.Tools = append(dst.Tools, s)
		}
	}
}

// concurrency reads an overlap policy: a string, or the object {"overlap": policy}.
func (d *decoder) concurrency(n *node, dst *fileDefinition) {
	if own := asOverlap(n); own != "" {
		d.add(n, KindValue, `write "concurrency": `+own, "is of another system: here it says what a start does while a run of this sentinel is active")
		return
	}
	if n.Kind == '{' {
		format.overlap.read(d, n, &dst.Definition)
		return
	}
	if !d.expect(n, '"', "a policy or {\"overlap\": policy}") {
		return
	}
	if s, ok := d.choice(n, overlaps); ok {
		dst.Concurrency = Overlap(s)
	}
}

// notify reads the kinds of messages for people: a list, or false for none.
func (d *decoder) notify(n *node, dst *fileDefinition) {
	if n.Kind == 'f' {
		dst.Notify = []string{}
		return
	}
	if !d.expect(n, '[', "false or an array of kinds") {
		return
	}
	dst.Notify = []string{}
	for _, item := range n.Items {
		if !d.expect(item, '"', "a kind") {
			continue
		}
		if s, ok := d.choice(item, notifyKinds); ok {
			dst.Notify = append(dst.Notify, s)
		}
	}
}

func encodeNotify(src *fileDefinition) json.RawMessage {
	if src.Notify != nil && len(src.Notify) == 0 {
		return json.RawMessage("false")
	}
	return listField("", "", func(d *fileDefinition) *[]string { return &d.Notify }).encode(src)
}

// recipeOutputs returns the variables that a pipeline sets, in nested steps too.
func recipeOutputs(n *node) []output {
	var outputs []output
	for _, item := range n.Items {
		outputs = append(outputs, recipeOutputs(item)...)
	}
	for _, m := range n.Members {
		if m.Name == stepOutput && m.Value.Kind == '"' {
			outputs = append(outputs, output{m.Value.Text, m.Value})
		} else {
			outputs = append(outputs, recipeOutputs(m.Value)...)
		}
	}
	return outputs
}

// nested reads the definition in a field of step, {"$ref": name}, or a reference to a
// variable with a definition; at is the step in the text.
func (d *decoder) nested(n *node, step *Step, at *node) json.RawMessage {
	if n.Kind == '"' && reference.IsReference(n.Text) {
		return n.Canonical() // its value is decoded when the step starts it
	}
	if n.Kind == '"' && !reference.Contains(n.Text) {
		d.add(n, KindType, "write "+asRef(n), "is a string, want a definition, {\"$ref\": name} or one $reference to a definition")
		return nil
	}
	if !d.expect(n, '{', "a definition, {\"$ref\": name} or one $reference to a definition") {
		return nil
	}
	if ref := n.Member("$ref"); ref != nil {
		for _, m := range n.Members {
			if m.Name != "$ref" {
				d.unknownKey(m, nil, []string{"$ref"})
			}
		}
		s, ok := d.nonEmptyText(ref)
		if id, _, isFile := refFile(s); isFile {
			if !id.Valid() {
				d.add(ref, KindValue, `write {"$ref": "./child.json"} or {"$ref": "../shared/child.json"}: a file relative to the folder of this one, named after the id of its sentinel`,
					"invalid file %q in \"$ref\"", s)
				return nil
			}
			return json.RawMessage(`{"$ref":"` + string(id) + `"}`)
		}
		if ok && !ID(s).Valid() {
			hint := fmt.Sprintf("for example %q", Slug(s))
			if reference.IsReference(s) {
				hint = fmt.Sprintf("the definition in a variable is the value of the field itself: %q", s)
			}
			d.add(ref, KindValue, hint, "invalid sentinel id %q", s)
		}
		return n.Canonical()
	}
	if d.depth+1 >= maxDefinitions {
		d.add(n, KindLimit, "", "definitions are nested more than %d deep", maxDefinitions)
		return nil
	}
	inner := &decoder{decodeState: d.decodeState, depth: d.depth + 1, ids: make(map[string]int), label: labelOf(step, at)}
	def := inner.definition(n)
	return compact(&def)
}

// labelOf returns the name of a definition that has none: that of the step that
// contains it.
func labelOf(step *Step, at *node) string {
	switch {
	case step.Name != "":
		return step.Name
	case step.ID != "":
		return step.ID
	}
	digits := strings.FieldsFunc(at.Path(), func(r rune) bool { return r < '0' || r > '9' })
	return "step-" + strings.Join(digits, "-")
}

// templateSource has the context sources for members of a recipe's ragTemplate.
var templateSource = map[string]string{"messageHistory": "chat", "participants": "participants"}

// templateSources returns the context sources of a recipe's ragTemplate. It warns of parts
// without one: they describe the entities of another program.
func (d *decoder) templateSources(n *node) (sources []string) {
	for _, m := range n.Members {
		switch {
		case asksForNothing(m.Value):
		case templateSource[m.Name] != "":
			sources = append(sources, templateSource[m.Name])
		default:
			d.addAt(m.Start, m.Value.Path(), KindWarning, "list what the context needs in ragSources, which then replaces ragTemplate", "has no context source here and is not used")
		}
	}
	return sources
}

// asksForNothing reports whether a member of a ragTemplate is null, false, an empty list, or an
// object with such members alone.
func asksForNothing(n *node) bool {
	switch n.Kind {
	case 'n', 'f':
		return true
	case '[':
		return len(n.Items) == 0
	case '{':
		for _, m := range n.Members {
			if !asksForNothing(m.Value) {
				return false
			}
		}
		return len(n.Members) > 0
	}
	return false
}

// TemplateSources returns the context sources of the ragTemplate in a recipe's file, for
// definitions that name the recipe; false if the text has none.
func TemplateSources(recipe []byte) ([]string, bool) {
	d, root := newDecoder(recipe, DecodeOptions{})
	if root == nil || root.Member(recipeTemplate) == nil {
		return nil, false
	}
	return d.templateSources(root.Member(recipeTemplate)), true
}
