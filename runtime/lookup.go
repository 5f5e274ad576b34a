package runtime

import (
	"encoding/json"
	"slices"

	"github.com/sentinel-runtime/sentinel/runtime/internal/cond"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/sentinels/reference"
)

// lookup returns the names that references and conditions of a scope may use:
// the reserved ones, then variables, then inputs as plain variables. retry is
// the value of $retry, nil outside a repeated attempt.
func (r *run) lookup(sc scope, retry json.RawMessage) reference.Lookup {
	return func(name string) (json.RawMessage, bool) {
		switch name {
		case "event":
			r.mu.Lock()
			e := r.state.Event
			r.mu.Unlock()
			if e == nil {
				return json.RawMessage("null"), true
			}
			return eventValue(e), true
		case "inputs":
			in, err := r.rt.load(r.begin.Inputs)
			if err != nil || in == nil {
				return json.RawMessage("{}"), true
			}
			return in, true
		case "iteration":
			b, _ := json.Marshal(r.iterationNumber())
			return b, true
		case "run":
			b, _ := json.Marshal(map[string]any{
				"id": r.id, "sentinel": r.begin.Sentinel, "iteration": r.iterationNumber(), "workspace": r.begin.Workspace,
			})
			return b, true
		case "last":
			v := sc.last()
			if v == nil {
				v = json.RawMessage("null")
			}
			return v, true
		case "retry":
			if retry == nil {
				return json.RawMessage("null"), true
			}
			return retry, true
		case "ragContext":
			if v, ok := sc.get(name); ok { // a step made it, as recipes do
				return v, true
			}
			r.mu.Lock()
			rag := r.state.RAGContext.Content()
			r.mu.Unlock()
			if rag == nil {
				return nil, false
			}
			return rag, true
		}
		return sc.get(name)
	}
}

// conditionVars are the same names for a condition. A reserved name that has
// nothing to say, such as $retry in a first attempt, has no value there, so that
// $retry.attempts is undefined and no error.
func (r *run) conditionVars(sc scope, retry json.RawMessage) cond.Vars {
	lookup := r.lookup(sc, retry)
	return func(name string) (json.RawMessage, bool) {
		v, ok := lookup(name)
		if ok && string(v) == "null" && slices.Contains(sentinels.Reserved, name) {
			return nil, false
		}
		return v, ok
	}
}

// eventValue is $event: the payload's own fields at the top, so that
// $event.path works, and the record's attributes where the payload has none.
func eventValue(e *sentinels.Event) json.RawMessage {
	fields := map[string]json.RawMessage{}
	put := func(name string, v any) {
		b, err := json.Marshal(v)
		if err == nil {
			fields[name] = b
		}
	}
	put("id", e.ID)
	put("type", e.Name)
	put("name", e.Name)
	put("source", e.Source)
	put("time", e.Time)
	if e.Subject != "" {
		put("subject", e.Subject)
	}
	if e.Data != nil {
		fields["data"] = e.Data
		var data map[string]json.RawMessage
		if json.Unmarshal(e.Data, &data) == nil {
			for k, v := range data {
				fields[k] = v
			}
		}
	}
	b, err := json.Marshal(fields)
	if err != nil {
		return json.RawMessage("null")
	}
	return b
}
