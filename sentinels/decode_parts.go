package sentinels

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

var (
	timeouts     = []string{string(TimeoutStop), string(TimeoutPause)}
	interrupts   = []string{string(InterruptRetry), string(InterruptFail), string(InterruptAsk)}
	errorActions = []string{string(ActionFail), string(ActionSkip), string(ActionRetry)}
	backoffs     = []string{"exponential", "linear", "none"}
	inputTypes   = []string{"string", "number", "integer", "boolean", "array", "object"}
)

// safetyTable fills safetyFields. Limits in a file are at least 1: in a Safety, 0
// means no limit, while an author could mean it as a limit of 0.
func safetyTable() table[Safety] {
	safetyFields = table[Safety]{
		numberField("maxIterations", "Limit of iterations.", 1, func(s *Safety) *int { return &s.MaxIterations }),
		numberField("timeoutMs", "Time limit of a run, in milliseconds of running.", 1, func(s *Safety) *int64 { return &s.TimeoutMs }),
		numberField("maxStepTimeoutMs", "Time limit of a step that has none of its own.", 1, func(s *Safety) *int64 { return &s.MaxStepTimeoutMs }),
		numberField("maxMemoryMb", "Limit of guest memory, variables and child processes together.", 1, func(s *Safety) *int64 { return &s.MaxMemoryMB }),
		numberField("maxSteps", "Limit of step executions in an iteration.", 1, func(s *Safety) *int { return &s.MaxSteps }),
		choiceField("onTimeout", "What happens at a limit. Default stop.", timeouts, func(s *Safety) *OnTimeout { return &s.OnTimeout }),
		choiceField("onInterrupt", "What happens to a host call that is in doubt after a crash, for steps without an onInterrupt.", interrupts, func(s *Safety) *Interrupt { return &s.OnInterrupt }),
	}
	return safetyFields
}

// budgetTable fills budgetFields.
func budgetTable() table[Budget] {
	budgetFields = table[Budget]{
		numberField("tokens", "Input and output tokens together.", 1, func(b *Budget) *int64 { return &b.Tokens }),
		{name: "costUsd", doc: "US dollars.", schema: map[string]any{"type": "number", "exclusiveMinimum": 0},
			decode: func(d *decoder, n *node, dst *Budget) {
				if !d.expect(n, '0', "a number") {
					return
				}
				if dst.CostUSD, _ = strconv.ParseFloat(n.Text, 64); dst.CostUSD <= 0 {
					d.add(n, KindValue, "", "is %s, want more than 0", n.Text)
				}
			},
			encode: func(src *Budget) json.RawMessage {
				if src.CostUSD == 0 {
					return nil
				}
				raw, err := json.Marshal(src.CostUSD)
				if err != nil {
					return nil // NaN or infinite, which no decoded definition has
				}
				return raw
			}},
		numberField("calls", "Calls of models.", 1, func(b *Budget) *int64 { return &b.Calls }),
	}
	return budgetFields
}

func init() {
	overlapFields = table[Definition]{
		choiceField("overlap", "", overlaps, func(d *Definition) *Overlap { return &d.Concurrency }),
	}
	retryFields = table[RetryPolicy]{
		numberField("maxRetries", "Attempts after the first one.", 1, func(r *RetryPolicy) *int { return &r.MaxRetries }),
		choiceField("backoffType", "How the delay grows.", backoffs, func(r *RetryPolicy) *string { return &r.BackoffType }),
		numberField("baseDelayMs", "The shortest delay.", 1, func(r *RetryPolicy) *int64 { return &r.BaseDelayMs }),
		numberField("maxDelayMs", "The longest delay.", 1, func(r *RetryPolicy) *int64 { return &r.MaxDelayMs }),
	}
	onErrorFields = table[OnError]{
		{name: "retry", schema: retryFields.objectSchema(),
			decode: func(d *decoder, n *node, dst *OnError) {
				dst.Action = ActionRetry
				retryFields.read(d, n, &dst.Retry)
			},
			encode: func(src *OnError) json.RawMessage { return retryFields.encode(&src.Retry) }},
	}
	inputFields = table[Input]{
		choiceField("type", "JSON type of the value. Default any.", inputTypes, func(i *Input) *string { return &i.Type }),
		textField("description", "What it is for.", func(i *Input) *string { return &i.Description }),
		flagField("required", "Whether a run cannot start without it.", func(i *Input) *bool { return &i.Required }),
		{name: "default", doc: "The value if a run is started without one.", schema: true,
			decode: func(_ *decoder, n *node, dst *Input) { dst.Default = n.Canonical() },
			encode: func(src *Input) json.RawMessage { return src.Default }},
		{name: "enum", doc: "The only values allowed.", schema: map[string]any{"type": "array", "minItems": 1},
			decode: (*decoder).inputEnum,
			encode: func(src *Input) json.RawMessage {
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
			}},
	}
}

// onError reads an action, or {"retry": {...}} with a policy.
func (d *decoder) onError(n *node, dst *Step) {
	if n.Kind == '{' {
		if seen := onErrorFields.read(d, n, &dst.OnError); seen != nil && len(seen) == 0 && len(n.Members) == 0 {
			d.add(n, KindMissing, "", `"retry" is missing`)
		}
		return
	}
	if !d.expect(n, '"', "an action or {\"retry\": {...}}") {
		return
	}
	if s, ok := d.choice(n, errorActions); ok {
		dst.OnError.Action = ErrorAction(s)
	}
}

// encodeOnError writes the short form unless a policy is set.
func encodeOnError(src *Step) json.RawMessage {
	switch {
	case src.OnError.Action == "":
		return nil
	case src.OnError.Action == ActionRetry && src.OnError.Retry != RetryPolicy{}:
		return onErrorFields.encode(&src.OnError)
	}
	return strictjson.AppendString(nil, string(src.OnError.Action))
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
		} else if inputFields.read(d, m.Value, &in) != nil {
			d.inputValues(m.Value, in)
		}
		dst.Inputs[m.Name] = in
	}
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
	check(def)
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
		o.add(name, inputFields.encode(&in))
	}
	return o.bytes()
}
