package execution

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/eventlog"
	"github.com/sentinel-runtime/sentinel/runtime/internal/execution/step"
	"github.com/sentinel-runtime/sentinel/runtime/internal/history"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/sentinels/reference"
)

// Lookup implements [step.State]. It resolves reserved names first, then variables;
// inputs are variables too.
func (r *liveRun) Lookup(sc step.Scope, retry json.RawMessage) reference.Lookup {
	return func(name string) (json.RawMessage, bool) {
		switch name {
		case "event":
			r.mu.Lock()
			e := r.folded.Event
			r.mu.Unlock()
			if e == nil {
				return nil, true
			}
			return eventlog.Variable(e), true
		case "inputs":
			in, err := r.ex.svc.Values.Load(r.begin.Inputs)
			if err != nil || in == nil {
				return json.RawMessage("{}"), true
			}
			return in, true
		case "iteration":
			b, _ := json.Marshal(r.Iteration())
			return b, true
		case "run":
			b, _ := json.Marshal(map[string]any{
				"id": r.id, "sentinel": r.begin.Sentinel, "iteration": r.Iteration(), "workspace": r.begin.Workspace,
			})
			return b, true
		case "last":
			return sc.Last(), true
		case "retry":
			return retry, true
		case "steps":
			return r.keptOutputs(sc), true
		case "ragContext":
			if v, ok := sc.Get(name); ok { // a step has set it, such as one of a recipe
				return v, true
			}
			return r.RAGContext(), true
		}
		if slices.Contains(sentinels.BuiltIn, name) {
			return r.builtIn(name), true
		}
		if v, ok := sc.Get(name); ok {
			return v, true
		}
		if v, ok := sc.Get(history.KeptPrefix + name); ok {
			return v, true
		}
		return nil, r.Names().Set(name) // it may have a value later
	}
}

// builtIn returns the value of a built-in variable. The record of the step or decision
// that reads it has the value, so that a replay agrees.
func (r *liveRun) builtIn(name string) json.RawMessage {
	var value any
	switch name {
	case "NOW":
		value = r.ex.svc.Calendar.Now().UTC().Format(time.RFC3339)
	case "WORKSPACE", "PROJECT_ROOT":
		value = r.begin.Workspace
	case "ELAPSED_MS":
		value = r.clock.Elapsed().Milliseconds()
	case "PERSONA_ID":
		value = cmp.Or(r.As(), r.Definition().CreatedBy)
	}
	b, _ := json.Marshal(value)
	return b
}

// keptOutputs returns $steps: the outputs of the steps whose ids a text of the definition
// refers to. An output without a field "output" has itself under this name, so that
// $steps["id"].output exists for all.
func (r *liveRun) keptOutputs(sc step.Scope) json.RawMessage {
	outputs := map[string]json.RawMessage{}
	for _, id := range r.Names().KeptIDs() {
		v, ok := sc.Get(history.KeptPrefix + id)
		if !ok {
			outputs[id] = json.RawMessage("null")
			continue
		}
		var fields map[string]json.RawMessage
		if json.Unmarshal(v, &fields) != nil || fields == nil {
			fields = map[string]json.RawMessage{}
		}
		if _, has := fields["output"]; !has {
			fields["output"] = v
			v, _ = json.Marshal(fields)
		}
		outputs[id] = v
	}
	b, _ := json.Marshal(outputs)
	return b
}
