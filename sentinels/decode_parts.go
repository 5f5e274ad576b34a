package sentinels

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/sentinel-runtime/sentinel/internal/textcut"
	"github.com/sentinel-runtime/sentinel/sentinels/reference"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// cost reads a positive number.
func (d *decoder) cost(n *node, dst *Budget) {
	if !d.expect(n, '0', "a number") {
		return
	}
	if dst.CostUSD, _ = strconv.ParseFloat(n.Text, 64); dst.CostUSD <= 0 {
		d.add(n, KindValue, "", "is %s, want more than 0", n.Text)
	}
}

func encodeCost(src *Budget) json.RawMessage {
	if src.CostUSD == 0 {
		return nil
	}
	raw, err := json.Marshal(src.CostUSD)
	if err != nil {
		return nil // NaN or infinite, which no decoded definition has
	}
	return raw
}

// encodeRequired keeps "required": false, which is what the author says and not the default.
func encodeRequired(src *Input) json.RawMessage {
	switch {
	case src.Required:
		return json.RawMessage("true")
	case src.Optional:
		return json.RawMessage("false")
	}
	return nil
}

func encodeEnum(src *Input) json.RawMessage {
	if len(src.Enum) == 0 {
		return nil
	}
	raw := []byte{'['}
	for i, value := range src.Enum {
		if i > 0 {
			raw = append(raw, ',')
		}
		raw = append(raw, value...)
	}
	return append(raw, ']')
}

// onError reads an action, or {"retry": {...}} with a policy.
func (d *decoder) onError(n *node, dst *OnError) {
	if n.Kind == '{' {
		if seen := format.onError.read(d, n, dst); len(n.Members) == 0 { // an unknown key is enough of a problem
			format.onError.reportMissing(d, n, seen, "", "")
		}
		return
	}
	if n.Kind == '[' {
		d.add(n, KindType, `write {"type": "group", "steps": [...], "onFailure": `+textcut.Mark(asWritten(n), maxProblemText/2)+`}, with this step in "steps"`,
			"is an array: \"onError\" has no steps")
		return
	}
	if !d.expect(n, '"', "an action or {\"retry\": {...}}") {
		return
	}
	if own := asAction(n); own != "" && !slices.ContainsFunc(errorActions, func(a string) bool { return strings.EqualFold(a, n.Text) }) {
		d.add(n, KindUnknown, `write "onError": `+own, "unknown value %q", n.Text)
		return
	}
	if s, ok := d.choice(n, errorActions); ok {
		dst.Action = ErrorAction(s)
	}
}

// encodeOnError writes the short form unless a policy is set.
func encodeOnError(src *OnError) json.RawMessage {
	switch {
	case src.Action == "":
		return nil
	case src.Action == ActionRetry && src.Retry != RetryPolicy{}:
		return format.onError.encode(src)
	}
	return strictjson.AppendString(nil, string(src.Action))
}

// inputs reads the parameters of a run. None may have a reserved name.
func (d *decoder) inputs(n *node, dst *fileDefinition) {
	if !d.expect(n, '{', "an object of inputs by name") {
		return
	}
	if len(n.Members) > 0 {
		dst.Inputs = make(map[string]Input, len(n.Members))
	}
	for _, m := range n.Members {
		if message, hint := variableProblem(m.Name); message != "" {
			d.addAt(m.Start, m.Value.Path(), KindValue, hint, message)
		} else if m.Name == varRAGContext {
			d.addAt(m.Start, m.Value.Path(), KindValue, "", fmt.Sprintf("%q is reserved", m.Name))
		}
		var in Input
		if m.Value.Kind == '"' {
			in.Type, _ = d.choice(m.Value, inputTypes)
		} else if format.input.read(d, m.Value, &in) != nil {
			d.inputValues(m.Value, in)
		}
		dst.Inputs[m.Name] = in
	}
}

// variables reads the initial values of variables.
func (d *decoder) variables(n *node, dst *fileDefinition) {
	if !d.expect(n, '{', "an object of values by name") {
		return
	}
	if len(n.Members) > 0 {
		dst.Variables = make(map[string]json.RawMessage, len(n.Members))
	}
	for _, m := range n.Members {
		if message, hint := variableProblem(m.Name); message != "" {
			d.addAt(m.Start, m.Value.Path(), KindValue, hint, message)
		} else if m.Name == varRAGContext {
			d.addAt(m.Start, m.Value.Path(), KindValue, "", fmt.Sprintf("%q is reserved", m.Name))
		}
		d.neverEvaluated(m.Value)
		dst.Variables[m.Name] = m.Value.Canonical()
	}
}

// encodeVariables writes the initial values.
func encodeVariables(src *fileDefinition) json.RawMessage { return encodeByName(src.Variables) }

// encodeByName writes values sorted by name.
func encodeByName(values map[string]json.RawMessage) json.RawMessage {
	if len(values) == 0 {
		return nil
	}
	var o object
	for _, name := range slices.Sorted(maps.Keys(values)) {
		o.add(name, values[name])
	}
	return o.bytes()
}

// inputEnum stores the values in canonical form, so that a run can compare bytes.
func (d *decoder) inputEnum(n *node, dst *Input) {
	if !d.expect(n, '[', "an array of values") {
		return
	}
	if len(n.Items) == 0 {
		d.add(n, KindValue, "", "is empty: no value is allowed")
	}
	for _, item := range n.Items {
		dst.Enum = append(dst.Enum, item.Canonical())
	}
}

// inputValues checks default and enum against the type and each other.
func (d *decoder) inputValues(n *node, in Input) {
	check := func(v *node) {
		if in.Type != "" && !hasType(v, in.Type) {
			d.add(v, KindType, "", "is %s, but the input's type is %s", v.TypeName(), in.Type)
		}
	}
	if enum := n.Member("enum"); enum != nil {
		for _, item := range enum.Items {
			check(item)
		}
	}
	def := n.Member("default")
	if def == nil {
		return
	}
	d.neverEvaluated(def)
	check(def)
	if in.Required {
		d.add(n.Member("required"), KindWarning, "leave it out", "required has no effect: a run without a value has the default")
	}
	if len(in.Enum) > 0 && !slices.ContainsFunc(in.Enum, func(v json.RawMessage) bool { return string(v) == string(in.Default) }) {
		d.add(def, KindValue, "", "is not in enum")
	}
}

// hasType checks a type as JSON Schema does, except that 1.0 is not an integer.
func hasType(n *node, name string) bool {
	switch name {
	case "string":
		return n.Kind == '"'
	case "number":
		return n.Kind == '0'
	case "integer":
		_, err := strconv.ParseInt(n.Text, 10, 64)
		return n.Kind == '0' && err == nil
	case "boolean":
		return n.Kind == 't' || n.Kind == 'f'
	case "array":
		return n.Kind == '['
	}
	return n.Kind == '{'
}

// encodeInputs writes the long form of every input, sorted by name.
func encodeInputs(src *fileDefinition) json.RawMessage {
	if len(src.Inputs) == 0 {
		return nil
	}
	var o object
	for _, name := range slices.Sorted(maps.Keys(src.Inputs)) {
		in := src.Inputs[name]
		o.add(name, format.input.encode(&in))
	}
	return o.bytes()
}

// loop reads a loop and reports keys of other loop types. They would have no effect,
// and the author of a loop of type until with "max" expects it to be a limit.
func (d *decoder) loop(n *node) Loop {
	var l Loop
	seen := format.loop.read(d, n, &l)
	if seen == nil {
		return l
	}
	typ := string(l.Type)
	format.loop.reportMissing(d, n, seen, "loop", typ)
	if typ == "" {
		return l
	}
	var known []string
	for i := range format.loop {
		if f := &format.loop[i]; f.has(typ) {
			known = append(known, f.name)
		}
	}
	for i := range format.loop {
		f := &format.loop[i]
		if m, given := seen[f.name]; given && !f.has(typ) {
			d.addAt(m.Start, m.Value.Path(), KindUnknown, cmp.Or(f.elsewhere, "known: "+strings.Join(known, ", ")), fmt.Sprintf("a loop of type %q has no %q", typ, m.Name))
		}
	}
	return l
}

// loopMax reads a number or a string that is exactly one reference: a reference
// within text would resolve to text, not to a number.
func (d *decoder) loopMax(n *node, dst *Loop) {
	if n.Kind == '"' && reference.IsReference(n.Text) {
		dst.Max = n.Canonical()
		return
	}
	if n.Kind == '"' {
		d.wrongType(n, "a whole number or one $reference")
	} else if _, ok := d.integer(n, 1); ok {
		dst.Max = n.Canonical()
	}
}

// pattern reads a pattern of event names.
func (d *decoder) pattern(n *node) string {
	text, ok := d.nonEmptyText(n)
	if ok && !ValidPattern(text) {
		d.add(n, KindValue, `segments are separated by ":"; "*" is a whole segment, "**" only the last`, "invalid event pattern %q", text)
	}
	holder := n.Parent()
	for holder.Kind != '{' {
		holder = holder.Parent()
	}
	source := holder.Member("source")
	ofUsers := source != nil && strings.EqualFold(source.Text, string(SourceUser))
	if problem, hint := CheckRunPattern(text); problem != "" && !ofUsers {
		d.add(n, KindWarning, hint, "%s", problem)
	}
	if names := alternatives(text); names != nil {
		list := textList(names)
		if n.Parent().Kind == '[' {
			list = strings.Trim(list, "[]")
		}
		d.add(n, KindWarning, "write "+list, bracesText, text)
	}
	if missesRuns(text) {
		d.add(n, KindWarning, missesRunsHint, missesRunsText, text)
	}
	return text
}

// maxPatterns limits the patterns of one trigger.
const maxPatterns = 32

// patterns reads a pattern of event names or a list of them.
func (d *decoder) patterns(n *node) string {
	if n.Kind != '[' {
		return d.pattern(n)
	}
	if len(n.Items) == 0 || len(n.Items) > maxPatterns {
		d.add(n, KindValue, "", "want 1 to %d patterns, got %d", maxPatterns, len(n.Items))
		return ""
	}
	list := make([]string, len(n.Items))
	for i, item := range n.Items {
		list[i] = d.pattern(item)
	}
	return strings.Join(list, " ")
}

// encodePatterns writes one pattern as a text, several as a list.
func encodePatterns(t *Trigger) json.RawMessage {
	list := strings.Fields(t.Event)
	if len(list) < 2 {
		return textField("", "", func(t *Trigger) *string { return &t.Event }).encode(t)
	}
	return listField("", "", func(*Trigger) *[]string { return &list }).encode(t)
}
